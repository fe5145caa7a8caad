"""Which units a request gets, and what is said of the others, on families written for the tests."""

from __future__ import annotations

import pytest

from anyaccel.discovery import discover
from anyaccel.errors import InvalidResourceRequestError, ResourceUnavailableError
from anyaccel.placement import place, place_all
from anyaccel.registry import Registry
from anyaccel.resources import ResourceRequest, parse_requests

CARDS = tuple((f"0000:{n:02x}:00.0", 0x1DE8, "120000") for n in range(1, 7))
RULES = """
from anyaccel.capabilities import ResourceName
from anyaccel.device import Level
from anyaccel.resources import AnySet, LegalSet, LegalSets, Refusal, find_resource

RESOURCES = (ResourceName("gpu", Level.DEVICE, "toy.org/gpu"), ResourceName("slice", Level.PARTITION, "toy.org/slice-{profile}"))
_plain = (accel_declare, accel_discover_devices)

@hookimpl
def accel_declare():
    from dataclasses import replace
    return replace(_plain[0](), resources=RESOURCES)

@hookimpl
def accel_discover_devices(machine):
    from dataclasses import replace
    found = _plain[1](machine)
    lost = Condition("lost", "fell off the bus", DeviceState.LOST)
    states = {1: lost, 2: Condition("busy", "process 7 uses it", DeviceState.BUSY)}
    devices = tuple(replace(d, conditions=(states[n],) if n in states else ()) for n, d in enumerate(found.devices))
    return replace(found, devices=devices)

@hookimpl
def accel_validate_request(view, request):
    ids = [d.id for d in view.roots]
    ANSWER
"""
PAIRS = """if request.count == 5:
        return Refusal("sets of 1, 2 or 4, not 5")
    if request.count != 2:
        return AnySet()
    slow = LegalSet((ids[0], ids[3]), True, "no bridge between them")
    return LegalSets((LegalSet((ids[0], ids[1])), LegalSet((ids[4], ids[5])), slow), reason="pairs on a bridge")
"""


@pytest.fixture
def machine(write_toy, pci_machine):
    """Look at six cards, the second lost and the third busy; gives inventory and registry."""

    def make(answer="return AnySet()", environ=None):
        registry = Registry.of(write_toy(RULES.replace("ANSWER", answer)))
        assert registry.failures == ()
        looked = pci_machine(*CARDS).with_environ(environ or {})
        return discover(looked, registry), registry

    return make


def _numbers(placement):
    return [int(i.split(":")[2], 16) - 1 for i in placement.device_ids]


def test_the_first_usable_devices_are_taken(machine):
    """The lost one is passed over, the busy one is left for last."""
    assert _numbers(place(*machine(), ResourceRequest("gpu", 3))) == [0, 3, 4]


def test_a_busy_device_is_taken_with_a_warning_when_nothing_else_is_left(machine):
    """Five of six work only with the busy one, and it is named."""
    placement = place(*machine(), ResourceRequest("gpu", 5))

    assert _numbers(placement) == [0, 2, 3, 4, 5]
    assert placement.warnings == ("toy:0000:03:00.0 is busy: process 7 uses it",)


def test_every_other_device_has_its_reason(machine):
    """Lost, busy, not needed: nothing is left out in silence."""
    placement = place(*machine(), ResourceRequest("gpu", 3))

    assert dict(placement.refused) == {
        "toy:0000:02:00.0": "lost: fell off the bus",
        "toy:0000:03:00.0": "not needed",
        "toy:0000:06:00.0": "not needed",
    }


def test_the_familys_rule_decides(machine):
    """The first legal set holds a lost device, so the next is taken, and the rule is the reason."""
    placement = place(*machine(PAIRS), ResourceRequest("toy.org/gpu", 2))

    assert _numbers(placement) == [4, 5]
    assert placement.reasons == ("pairs on a bridge",)


def test_a_slower_set_is_taken_with_its_reason(machine):
    """When the good pair is taken, the slower one will do, and says why it is slower."""
    inventory, registry = machine(PAIRS)
    free = {d.id for d in inventory.devices} - {"toy:0000:05:00.0"}

    placement = place(inventory, registry, ResourceRequest("gpu", 2), free=free)

    assert _numbers(placement) == [0, 3]
    assert placement.warnings == ("no bridge between them",)
    assert placement.refused["toy:0000:05:00.0"] == "taken"


@pytest.mark.parametrize(
    ("answer", "count", "told"),
    [
        ("return AnySet()", 6, "toy: 5 of 6 devices can be used (lost: fell off the bus)"),
        (PAIRS, 5, "toy: sets of 1, 2 or 4, not 5"),
        (
            "return LegalSets((LegalSet((ids[0], ids[1])),), reason='one pair')",
            2,
            "toy: one pair, and the 5 devices that can be used",
        ),
    ],
)
def test_what_cannot_be_met_says_the_numbers(answer, count, told, machine):
    """Present, usable, and the family's own words."""
    with pytest.raises(ResourceUnavailableError) as error:
        place(*machine(answer), ResourceRequest("gpu", count))

    assert f"request gpu={count} cannot be met here: {told}" in error.value.message


def test_a_mask_is_named_for_what_it_hides(machine):
    """Inside a mask only what it shows is chosen; the rest names the variable."""
    inventory, registry = machine(environ={"TOY_VISIBLE": "4,5"})
    placement = place(inventory, registry, ResourceRequest("gpu", 1))

    assert _numbers(placement) == [4]
    assert placement.refused["toy:0000:01:00.0"] == "hidden by TOY_VISIBLE"


@pytest.mark.parametrize(("key", "near"), [("gpus", "gpu"), ("toy.org/gp", "toy.org/gpu")])
def test_an_unknown_key_names_the_known_and_the_nearest(key, near, machine):
    """Nothing is guessed."""
    with pytest.raises(InvalidResourceRequestError, match="unknown resource") as error:
        place(*machine(), ResourceRequest(key, 1))

    assert error.value.hint == f"did you mean {near!r}?"


def test_a_profile_in_the_key_is_known(machine):
    """A key made of a pattern and a profile is the family's, and here it has none."""
    with pytest.raises(ResourceUnavailableError, match="0 of 0 devices can be used"):
        place(*machine(), ResourceRequest("toy.org/slice-1g", 1))


def test_several_requests_share_nothing(machine):
    """What one request got is taken for the next."""
    first, second = place_all(*machine(), parse_requests("gpu=2,toy.org/gpu=2"))

    assert (_numbers(first), _numbers(second)) == ([0, 3], [4, 5])
