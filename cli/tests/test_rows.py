"""Rows, headings and sentences made of an inventory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from anyaccel.device import Blocks, Condition, Device, DeviceState
from anyaccel.frozen import FrozenMap
from anyaccel.inventory import Inventory, OutcomeStatus, PluginOutcome, UnclaimedHardware
from anyaccel.machine import MachineKind
from anyaccel.visibility import Resolution, VisibleUnit
from anyaccel_cli.failures import WrongUsageError
from anyaccel_cli.rows import (
    columns_named,
    csv_rows,
    default_columns,
    device_rows,
    header_lines,
    in_full,
    is_empty,
    nothing_lines,
    summary_line,
    unclaimed_lines,
)


def _cells(inventory: Inventory, *names: str) -> list[tuple[str, ...]]:
    return [row.cells for row in device_rows(inventory, inventory.devices, columns_named(names))]


def test_the_summary_counts_states_and_names_the_mask(masked_server: Inventory) -> None:
    """The last line says how many of what, ready first, worst last, hidden with the variable."""
    line = summary_line(masked_server, masked_server.devices)

    assert line == "8 devices: 5 ready, 2 hidden by GPU_VISIBLE, 1 lost"


def test_the_summary_counts_parts_apart(partitioned_server: Inventory) -> None:
    """Partitions are no devices: each level has its own number."""
    line = summary_line(partitioned_server, partitioned_server.devices)

    assert line == "2 devices: 1 ready, 1 partitioned · 2 partitions: 2 ready"


def test_the_summary_leaves_integrated_parts_out(
    make_gpu: Callable[..., Device], make_inventory: Callable[..., Inventory]
) -> None:
    """What a plain request would not get is not counted, but said."""
    inventory = make_inventory(make_gpu(0), make_gpu(1, is_integrated=True, is_counted=False))

    assert summary_line(inventory, inventory.devices) == "1 device: 1 ready · 1 not counted"


def test_a_reason_stands_below_its_row(masked_server: Inventory) -> None:
    """A card that is not ready says why on the next line."""
    rows = device_rows(masked_server, masked_server.devices, columns_named(("number",)))

    assert [row.below for row in rows[:5]] == [(), (), (), ("fell off the bus",), ()]


def test_a_repeated_reason_is_folded(masked_server: Inventory) -> None:
    """Rows with the same reason say it once, below the last of them, with their number."""
    rows = device_rows(masked_server, masked_server.devices, columns_named(("number",)))

    assert [row.below for row in rows[6:]] == [(), ("hidden by GPU_VISIBLE (2 rows)",)]


def test_verbose_shows_every_condition(
    make_gpu: Callable[..., Device], make_inventory: Callable[..., Inventory]
) -> None:
    """A degraded link does not change the state; -v shows it all the same."""
    noted = Condition("slow-link", "PCIe link trained to x8 of x16", None, Blocks.NOTHING)
    inventory = make_inventory(make_gpu(0, conditions=(noted,)))
    quiet, verbose = (
        device_rows(inventory, inventory.devices, columns_named(("number",)), is_verbose=flag)[0].below
        for flag in (False, True)
    )

    assert (quiet, verbose) == ((), ("PCIe link trained to x8 of x16",))


def test_visible_stands_beside_the_number_as_soon_as_a_mask_is_set(masked_server: Inventory) -> None:
    """The two numbers a person confuses stand side by side, but only when they can differ."""
    plain = replace(masked_server, resolutions=FrozenMap())
    names = [[column.name for column in default_columns(inventory)][:3] for inventory in (masked_server, plain)]

    assert names == [["number", "visible", "vendor"], ["number", "vendor", "model"]]


def test_the_visible_number_is_the_processs_own(masked_server: Inventory) -> None:
    """Physical number and the number a process uses differ under a mask; hidden and lost cards have none."""
    assert [cells[0] for cells in _cells(masked_server, "visible")] == ["1", "2", "3", "no", "4", "0", "no", "no"]


def test_a_mask_that_cannot_be_read_makes_visible_unknown(
    make_gpu: Callable[..., Device], make_inventory: Callable[..., Inventory]
) -> None:
    """When a token's device is unknown, nobody knows of any card whether it is visible."""
    resolution = Resolution(units=(VisibleUnit(0, None, reason="a card is lost"),), is_masked=True, is_complete=False)
    inventory = make_inventory(make_gpu(0), make_gpu(1), resolutions={"gpu": resolution})

    assert _cells(inventory, "visible") == [("unknown",), ("unknown",)]


def test_unknown_is_a_word(make_gpu: Callable[..., Device], make_inventory: Callable[..., Inventory]) -> None:
    """Nothing that is unknown is shown as 0 or as nothing."""
    bare = make_gpu(
        0,
        model=None,
        memory_bytes=None,
        numa_node=None,
        driver=None,
        driver_version=None,
        numbers=FrozenMap(),
        uuid=None,
    )
    cells = _cells(make_inventory(bare), "number", "model", "memory", "numa", "driver", "uuid")[0]

    assert cells == ("unknown",) * 6


def test_parts_stand_indented_and_inherit_their_place(partitioned_server: Inventory) -> None:
    """A partition shows its card's number before its own, its own memory, and address, NUMA node and driver of its card."""
    cells = _cells(partitioned_server, "number", "model", "memory", "pci", "numa", "driver")[1]

    assert cells == ("0/0", "  1g.10gb", "10 GiB", "0000:10:00.0", "0", "550.1")


def test_programs_get_the_plain_number_of_a_part(partitioned_server: Inventory) -> None:
    """CSV keeps the number that the vendor gives; the parent has a column of its own."""
    rows = csv_rows(partitioned_server, partitioned_server.devices[1:2], columns_named(("number", "parent")))

    assert rows == (("0", "gpu:0000:10:00.0"),)


@pytest.mark.parametrize(
    ("driver", "version", "texts"),
    [
        ("amdgpu", "6.14.0 (srcversion 1234)", ("6.14.0", "6.14.0 (srcversion 1234)")),
        ("amdgpu", None, ("amdgpu", "amdgpu")),
        (None, None, ("unknown", "unknown")),
    ],
)
def test_the_table_shows_the_short_version(
    make_gpu: Callable[..., Device],
    make_inventory: Callable[..., Inventory],
    driver: str | None,
    version: str | None,
    texts: tuple[str, str],
) -> None:
    """Cut at the first blank, all of it in the wide table; a driver without version is shown by its name."""
    card = make_gpu(0, driver=driver, driver_version=version)
    inventory = make_inventory(card)
    columns = columns_named(("driver",))

    assert tuple(c.cell(card, inventory) for c in (*columns, *in_full(columns))) == texts


def test_memory_drawn_from_another_node_is_shared(
    make_gpu: Callable[..., Device], make_inventory: Callable[..., Inventory]
) -> None:
    """A part that draws from its card's memory has no number of its own."""
    part = make_gpu(1, parent="gpu:0000:10:00.0", memory_bytes=None, memory_owner="gpu:0000:10:00.0")

    assert _cells(make_inventory(make_gpu(0), part), "memory")[1] == ("shared",)


def test_a_board_without_pci_says_none(
    make_gpu: Callable[..., Device], make_inventory: Callable[..., Inventory]
) -> None:
    """No address is a fact, not something unknown."""
    assert _cells(make_inventory(make_gpu(0, pci_addresses=())), "pci") == [("none",)]


def test_csv_has_base_units(masked_server: Inventory) -> None:
    """CSV is for programs: bytes, no unit, no indentation."""
    rows = csv_rows(masked_server, masked_server.devices[:1], columns_named(("number", "memory", "state")))

    assert rows == (("0", "85899345920", "ready"),)


def test_an_unknown_column_is_named_with_the_known_ones(masked_server: Inventory) -> None:
    """A typing error in --columns is wrong usage with a suggestion."""
    with pytest.raises(WrongUsageError, match=r"unknown column .modle. .*number, visible") as raised:
        columns_named(("modle",))

    assert raised.value.hint == "did you mean 'model'?"


@pytest.mark.parametrize(
    ("kind", "lines"),
    [
        (MachineKind.LIVE, ()),
        (MachineKind.ROOT, ("root here",)),
        (MachineKind.REPLAY, ("replay of here",)),
        (MachineKind.SIMULATED, ("simulated: here",)),
    ],
)
def test_the_header_says_what_is_not_this_machine(
    masked_server: Inventory, kind: MachineKind, lines: tuple[str, ...]
) -> None:
    """Nobody may take an imaginary machine for the one in front of them."""
    assert header_lines(replace(masked_server, kind=kind, name="here")) == lines


def test_hardware_without_plugin_is_named_with_the_command(masked_server: Inventory) -> None:
    """The line says what it is, where, why it is not used, and what helps."""
    found = UnclaimedHardware("0000:0c:00.0", "MI300X", "amd", "plugin not installed", "pip install anyaccel-amd")

    assert unclaimed_lines(replace(masked_server, unclaimed=(found,))) == (
        "amd MI300X 0000:0c:00.0 plugin not installed · pip install anyaccel-amd",
    )


def test_nothing_says_why_for_every_plugin(
    make_gpu: Callable[..., Device], make_inventory: Callable[..., Inventory]
) -> None:
    """One line a plugin, the integrated part named with the rule that leaves it out."""
    part = make_gpu(0, is_integrated=True, is_counted=False, count_reason="integrated graphics")
    outcomes = (
        PluginOutcome("gpu", OutcomeStatus.FOUND, device_count=1),
        PluginOutcome("npu", OutcomeStatus.NOTHING, reason="no NPU on PCI"),
        PluginOutcome("broken", OutcomeStatus.BROKEN, reason="it raised"),
    )

    assert nothing_lines(make_inventory(part, outcomes=outcomes)) == (
        "no accelerator found",
        "  gpu     integrated part ACME G100 80GB (0000:10:00.0) is not counted: integrated graphics",
        "  npu     no NPU on PCI",
        "  broken  broken: it raised",
    )


def test_a_device_hidden_by_policy_is_something(
    make_gpu: Callable[..., Device], make_inventory: Callable[..., Inventory]
) -> None:
    """Only integrated parts count as nothing; a card that a site's policy hides is listed."""
    policy = Condition("hidden-by-policy", "hidden by the policy of plugin 'site'", DeviceState.HIDDEN)

    assert not is_empty(make_inventory(make_gpu(0, conditions=(policy,), is_counted=False)))
