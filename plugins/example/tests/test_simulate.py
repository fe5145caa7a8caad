"""Imaginary machines: what is described is what is found, and what nobody knows is refused."""

from __future__ import annotations

import pytest

from anyaccel.errors import RecordingError
from anyaccel.inventory import OutcomeStatus

CARD = '[[card]]\nplugin = "example"\nmodel = "ex2"\naddress = "0000:41:00.0"\n'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (CARD.replace("ex2", "ex9"), r"unknown model 'ex9' of an example card \(known: ex1, ex2\)"),
        (CARD + "fans = 2\n", "unknown option 'fans'"),
        (CARD + '[[fault]]\nplugin = "example"\nkind = "on-fire"\n', "unknown fault 'on-fire'"),
        (CARD.replace('address = "0000:41:00.0"\n', ""), "needs the address of its PCI function"),
    ],
)
def test_what_nobody_knows_is_refused(text, told, make_machine):
    """A typing error in a description is an error, not another machine."""
    with pytest.raises(RecordingError, match=told):
        make_machine(text)


def test_chips_count_on_without_options(look):
    """Slots, device files, units and places follow the order of the cards."""
    view = look(CARD + CARD.replace("41", "42")).view("example")

    assert [d.numbers["slot"] for d in view.roots] == [0, 1, 2, 3]
    assert view.roots[3].places[0].coordinates == (3, 0)


@pytest.mark.parametrize("fault", ["driver-missing", "driver-hangs", "driver-crashes"])
def test_failing_driver_costs_attributes_not_rows(fault, make_machine, registry):
    """Rows stay and say that the driver was not heard."""
    from anyaccel.discovery import discover

    machine = make_machine(CARD + f'[[fault]]\nplugin = "example"\nkind = "{fault}"\n')

    inventory = discover(machine, registry, timeout_seconds=3.0)

    assert len(inventory.devices) == 6
    assert inventory.devices[0].memory_bytes is None
    assert inventory.devices[0].state.value == "unknown"
    assert inventory.devices[0].reason.startswith("the driver was not heard: ")
    is_broken = inventory.outcomes[0].status is OutcomeStatus.BROKEN
    assert is_broken is (fault != "driver-missing")


def test_kernel_driver_of_another_name_is_kept(look):
    """A card bound to something else shows no folder of ours."""
    view = look(CARD + 'driver = ""\n').view("example")

    assert {d.reason for d in view.devices} == {"no kernel driver is bound"}
