from __future__ import annotations

import pytest

from anyaccel.discovery import discover
from anyaccel.environment import environment_for, resolve_all
from anyaccel.errors import DeviceNotFoundError, VisibilityConflictError
from anyaccel.registry import Registry
from anyaccel.visibility import apply_change

ROWS = (("0000:01:00.0", 0x1DE8, "120000"), ("0000:02:00.0", 0x1DE8, "120000"), ("0000:03:00.0", 0x1DE9, "120000"))


@pytest.fixture
def two_families(write_toy, pci_machine):
    registry = Registry.of(write_toy(), write_toy(key="alpha", vendor="0x1de9", variable="ALPHA"))
    return discover(pci_machine(*ROWS), registry), registry


def leaves(inventory, registry, environ):
    return {family: set(r.leaves) for family, r in resolve_all(inventory, registry, environ).items()}


def test_selected_devices_are_all_that_is_visible(two_families):
    """Families without a selected device are hidden, the selected one shows exactly the selection."""
    inventory, registry = two_families

    change = environment_for(inventory, registry, ["toy:0000:02:00.0"], {})

    assert leaves(inventory, registry, apply_change({}, change)) == {"alpha": set(), "toy": {"toy:0000:02:00.0"}}


def test_other_families_can_be_left_alone(two_families):
    """hide_others=False writes nothing for families without a selected device."""
    inventory, registry = two_families

    change = environment_for(inventory, registry, ["toy:0000:02:00.0"], {}, hide_others=False)

    assert [name for name, _ in change.set] == ["TOY_VISIBLE"]


def test_no_device_hides_every_family(two_families):
    """An empty selection is a value, not an unset variable."""
    inventory, registry = two_families

    assert environment_for(inventory, registry, [], {}).set == (("ALPHA", ""), ("TOY_VISIBLE", ""))


def test_order_within_a_family_is_kept(two_families):
    """Devices are counted in the order they were listed."""
    inventory, registry = two_families
    wanted = ["toy:0000:02:00.0", "alpha:0000:03:00.0", "toy:0000:01:00.0"]

    environ = apply_change({}, environment_for(inventory, registry, wanted, {}))

    assert resolve_all(inventory, registry, environ)["toy"].device_ids == ("toy:0000:02:00.0", "toy:0000:01:00.0")


def test_two_families_with_one_variable_conflict(write_toy, pci_machine):
    """Two families that read one variable differently are named."""
    registry = Registry.of(write_toy(), write_toy(key="alpha", vendor="0x1de9"))
    inventory = discover(pci_machine(*ROWS), registry)

    with pytest.raises(VisibilityConflictError, match=r"alpha sets TOY_VISIBLE='0' and toy sets TOY_VISIBLE='1'"):
        environment_for(inventory, registry, ["toy:0000:02:00.0", "alpha:0000:03:00.0"], {})


def test_masks_that_do_not_hold_together_are_refused(write_toy, pci_machine):
    """A family whose selection would not survive the merge is named, although no value differs."""
    more = """
    @hookimpl
    def accel_visibility_environment(view, selection, environ, gang):
        return EnvironmentChange(device_ids=selection.device_ids)
    """
    registry = Registry.of(write_toy(more))
    inventory = discover(pci_machine(*ROWS), registry)

    with pytest.raises(VisibilityConflictError, match="2 units would be visible instead of 1"):
        environment_for(inventory, registry, ["toy:0000:02:00.0"], {})


def test_widening_is_explicit_and_clears_the_mask(two_families):
    """widen drops the inherited masks, of families that are then hidden too."""
    inventory, registry = two_families
    environ = {"TOY_VISIBLE": "0", "ALPHA": "0", "PATH": "/bin"}

    change = environment_for(inventory, registry, ["toy:0000:02:00.0"], environ, widen=True, hide_others=False)

    assert apply_change(environ, change) == {"TOY_VISIBLE": "1", "PATH": "/bin"}


def test_unknown_device_is_named(two_families):
    """A device that is not there lists the known ones."""
    inventory, registry = two_families

    with pytest.raises(DeviceNotFoundError, match=r"toy:0000:01:00\.0"):
        environment_for(inventory, registry, ["toy:0000:09:00.0"], {})
