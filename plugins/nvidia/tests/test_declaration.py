"""The declaration, and the names that belong to it."""

from __future__ import annotations

from importlib.metadata import entry_points

import pytest

from anyaccel.capabilities import Capability
from anyaccel_nvidia.pci_names import INTEGRATED_IDS, SWITCH_IDS, product_name


def test_entry_point_names_the_plugin():
    """The distribution announces the plugin under its key."""
    (entry,) = (e for e in entry_points(group="anyaccel.plugins") if e.name == "nvidia")

    assert entry.value == "anyaccel_nvidia.plugin"


def test_what_is_not_there_yet_says_so(plugin):
    """Findings and observation of the runtime are declared as not implemented, with a reason."""
    for capability in (Capability.DIAGNOSE, Capability.OBSERVE_RUNTIME):
        support = plugin.declaration.capabilities[capability.value]

        assert support.state.value == "not-implemented"
        assert support.reason


@pytest.mark.parametrize(
    ("device_id", "name"),
    [(0x2330, "H100 SXM5 80GB"), (0x25B6, "A2 / A16"), (0x2E12, "GB10"), (0xFFFE, None), (None, None)],
)
def test_product_names(device_id, name):
    """Ids of the table have a name, others none; an id of two products lists both."""
    assert product_name(device_id) == name


def test_switches_have_no_product_name():
    """A switch is in its own table and never listed as a product."""
    assert not any(product_name(device_id) for device_id in SWITCH_IDS)
    assert all(product_name(device_id) for device_id in INTEGRATED_IDS)
