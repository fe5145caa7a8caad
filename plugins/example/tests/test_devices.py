"""Devices of files, and what the driver adds."""

from __future__ import annotations

import pytest

from anyaccel.device import Level
from anyaccel.files import MemoryTree
from anyaccel.machine import Machine, MachineKind, NoAnswers
from anyaccel.topology import LinkState
from anyaccel_example.devices import find_devices, inspected

GRID = ["0000:41:00.0", "0000:42:00.0", "0000:81:00.0", "0000:82:00.0"]


def test_two_chips_share_one_function(grid):
    """Both chips of a board give its PCI address and differ by position."""
    assert [d.id for d in grid.roots] == [f"example:{address}/{chip}" for address in GRID for chip in (0, 1)]
    assert [d.pci_addresses for d in grid.roots[:2]] == [("0000:41:00.0",)] * 2


def test_cores_are_the_leaves(grid):
    """A chip stands for its two cores."""
    assert grid.leaves("example:0000:42:00.0/1") == ("example:0000:42:00.0/1/0", "example:0000:42:00.0/1/1")


def test_number_spaces_are_kept_apart(grid):
    """A chip has another number in every space."""
    numbers = grid.device("example:0000:82:00.0/1").numbers

    assert dict(numbers) == {"minor": 8, "slot": 10, "unit": 8}


def test_cores_draw_from_the_memory_of_their_chip(grid):
    """Memory is counted once, at the chip that owns it."""
    chip, core = grid.device("example:0000:41:00.0/0"), grid.device("example:0000:41:00.0/0/1")

    assert (chip.memory_bytes, chip.memory_owner) == (32 << 30, chip.id)
    assert (core.memory_bytes, core.memory_owner) == (None, chip.id)
    assert core.why_unknown("memory_bytes") == "the memory is the chip's, its cores share it"


def test_ids_are_the_same_without_the_driver(look, make_machine, grid):
    """Discovery lists the same rows when no question is answered."""
    machine = make_machine("example-grid").with_answers({"*": NoAnswers("nobody is here")}).for_plugin("example")

    assert [d.id for d in find_devices(machine).devices] == [d.id for d in grid.devices]


def test_ids_are_the_same_without_the_kernel_driver(look):
    """A board without its kernel driver is listed by its PCI id; its numbers are unknown with a reason."""
    chip = look("example-faults").view("example").device("example:0000:42:00.0/1")

    assert chip.reason == "no kernel driver is bound"
    assert chip.numbers["slot"] is None
    assert chip.why_unknown("numbers.slot") == "the driver's folder does not tell"


def test_dead_board_keeps_its_chips(look):
    """A board that left the bus has no readable id; the driver bound to it still shows two chips."""
    view = look("example-faults").view("example")

    assert [d.state.value for d in view.roots if "0000:44:00.0" in d.pci_addresses] == ["lost", "lost"]


def test_memory_the_driver_cannot_tell_is_unknown(look):
    """No value is ever 0 in place of unknown."""
    chip = look("example-faults").view("example").device("example:0000:46:00.0/0")

    assert chip.memory_bytes is None
    assert chip.why_unknown("memory_bytes") == "the driver answers `not supported`"


def test_one_bad_node_concerns_one_chip(look):
    """Rights belong to a device file, so the other chip of the board stays ready."""
    view = look("example-faults").view("example")

    states = [view.device(f"example:0000:45:00.0/{chip}").state.value for chip in (0, 1)]

    assert states == ["denied", "ready"]


def test_chip_outside_the_container_is_blocked(look):
    """The third chip is on the bus but its device file was not given to the container."""
    chip = look("example-small").view("example").device("example:0000:42:00.0/0")

    assert chip.reason == "on the host, not accessible here: /dev/example2 is not in this container"


def test_unknown_model_is_one_chip(registry):
    """A newer board of this vendor is listed as one chip with the reason why its model is unknown."""
    folder = "/sys/devices/pci0000:41/0000:41:00.0"
    files = {f"{folder}/vendor": b"0x1de7\n", f"{folder}/device": b"0x00ff\n", f"{folder}/class": b"0x120000\n"}
    tree = MemoryTree(files, {"/sys/bus/pci/devices/0000:41:00.0": folder})

    found = find_devices(Machine(tree, kind=MachineKind.SIMULATED))

    assert [d.id for d in found.devices if d.level is Level.DEVICE] == ["example:0000:41:00.0/0"]
    assert found.devices[0].why_unknown("model") == "no name is known for 1de7:00ff"


def test_chip_that_the_driver_does_not_list_stays_as_it_was(grid):
    """A silent chip loses no row and gains no invented value."""
    answer = {"version": "1.4.0", "chips": [], "links": []}

    assert inspected(grid.devices, answer).devices == grid.devices


def test_driver_names_every_unit(grid):
    """Stable names come from the driver, for chips and cores."""
    assert all(device.uuid for device in grid.devices)


def test_links_join_neighbours(grid):
    """A 4x2 grid has ten links, each with its speed as the driver told."""
    assert len(grid.links) == 10
    assert {(link.kind, link.label, link.bytes_per_second_each_way) for link in grid.links} == {("mesh", "M4", 10**11)}


def test_link_that_is_down_is_listed(look):
    """A broken bridge is a link with state down, not a missing link."""
    links = look("example-faults").view("example").links

    assert [(link.a, link.b) for link in links if link.state is LinkState.DOWN] == [
        ("example:0000:47:00.0/0", "example:0000:47:00.0/1")
    ]


@pytest.mark.parametrize("machine", ["example-grid", "example-small", "example-faults"])
def test_everything_says_that_it_is_simulated(machine, look):
    """No imaginary row can be taken for a real one."""
    assert all(device.is_simulated for device in look(machine).devices)
