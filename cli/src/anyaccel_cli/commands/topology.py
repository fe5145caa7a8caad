"""`accel-cli topology`: how devices are connected."""

from __future__ import annotations

from dataclasses import replace

import click

from anyaccel.inventory import Inventory
from anyaccel.topology import PairLevel
from anyaccel_cli.exit_codes import epilog
from anyaccel_cli.failures import WrongUsageError
from anyaccel_cli.formats import (
    MOST_DEVICES,
    Connections,
    default_devices,
    dot_text,
    hwloc_xml_text,
    matrix_table,
    nearest_nics,
    topology_matrix,
    tree_lines,
)
from anyaccel_cli.looking import exit_code, look, report_broken
from anyaccel_cli.machine_options import MachineOptions, machine_options, select_option
from anyaccel_cli.notes import nothing_hint
from anyaccel_cli.output import Output, json_text, lines_text
from anyaccel_cli.output_options import output_options
from anyaccel_cli.rows import header_lines, nothing_lines, unclaimed_lines
from anyaccel_cli.selection import Matches, select
from anyaccel_cli.topology_document import topology_document

__all__ = ["command"]


@click.command(
    "topology",
    epilog=epilog(
        "accel-cli topology --format tree",
        "accel-cli topology --simulate nvidia-h100x8 --format dot --output topology.dot",
    ),
)
@select_option
@click.option(
    "--nics/--no-nics",
    "has_nics",
    default=None,
    help="All network cards, or none.  [default: all; with --select those nearest to the devices]",
)
@machine_options
@output_options("matrix", "tree", "dot", "hwloc-xml", "json")
def command(machine: MachineOptions, output: Output, expressions: tuple[str, ...], has_nics: bool | None) -> int:
    """Show how accelerators, NUMA nodes and network cards are connected.

    The matrix says how near every two devices are: the vendor's own link when there is one, and the way over PCIe. What
    each word means stands below it. On a terminal that is too narrow for it the words stand below each other, then the
    network cards move below the matrix, then short codes such as PIX or SYS stand for the words; where nothing of that
    fits, and under 80 columns, it is a list of pairs of devices. More than 64 devices are no matrix: choose some, or take
    another format.
    """
    inventory = look(machine, output)
    report_broken(inventory, output)
    matches = select(inventory, expressions) if expressions else Matches(default_devices(inventory), inventory.devices)
    for note in matches.notes:
        output.detail(note)
    inventory = _with_nics(inventory, matches, has_nics=not expressions or None if has_nics is None else has_nics)
    output.result(_text(output, inventory, matches))
    if not matches.chosen:
        for hint in nothing_hint(inventory):
            output.hint(hint)
    return exit_code(inventory, is_empty=not matches.chosen)


def _with_nics(inventory: Inventory, matches: Matches, *, has_nics: bool | None) -> Inventory:
    """Leave out network cards that nobody asked for. Args: has_nics: all or none of them, None = each device's nearest."""
    if has_nics:
        return inventory
    near = _nearest_to(inventory, matches) if has_nics is None else frozenset()
    nics = tuple(nic for nic in inventory.host.nics if nic.id in near)
    return replace(inventory, host=replace(inventory.host, nics=nics))


def _nearest_to(inventory: Inventory, matches: Matches) -> frozenset[str]:
    nics = inventory.host.nics
    connections = Connections(inventory, (*matches.chosen, *nics))
    near: set[str] = set()
    for place in range(len(matches.chosen)):
        levels: dict[str, PairLevel] = {
            nic.id: connections.cell(place, len(matches.chosen) + n).level for n, nic in enumerate(nics)
        }
        found = nearest_nics(levels)
        near.update(() if found is None else found[1])
    return frozenset(near)


def _text(output: Output, inventory: Inventory, matches: Matches) -> str:
    """Give the result: documents for programs in any case, for people what there is or why there is nothing."""
    format_ = output.options.format
    if format_ == "json":
        is_large = len(matches.chosen) > MOST_DEVICES
        return json_text(topology_document(inventory, matches.chosen), is_compact=is_large)
    if format_ == "dot":
        return dot_text(inventory, matches.shown)
    if format_ == "hwloc-xml":
        return hwloc_xml_text(inventory, matches.shown)
    header = lines_text(header_lines(inventory))
    if not matches.chosen:
        return header + output.lines((*nothing_lines(inventory), *unclaimed_lines(inventory)))
    if format_ == "tree":
        return header + lines_text(tree_lines(inventory, matches.shown, is_ascii=output.is_ascii))
    _check_size(len(matches.chosen))
    table = matrix_table(topology_matrix(inventory, matches.chosen), output.width)
    return header + output.table(table.headings, table.rows) + "\n" + output.lines(table.legend)


def _check_size(count: int) -> None:
    if count > MOST_DEVICES:
        raise WrongUsageError(
            f"a matrix of {count} devices is too large to read (at most {MOST_DEVICES})",
            hint="choose devices with --select, or take --format tree or json",
        )
