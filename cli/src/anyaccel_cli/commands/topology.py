"""`accel-cli topology`: how devices are connected."""

from __future__ import annotations

import click

from anyaccel.inventory import Inventory
from anyaccel_cli.exit_codes import epilog
from anyaccel_cli.formats import (
    default_devices,
    dot_text,
    hwloc_xml_text,
    matrix_table,
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
@machine_options
@output_options("matrix", "tree", "dot", "hwloc-xml", "json")
def command(machine: MachineOptions, output: Output, expressions: tuple[str, ...]) -> int:
    """Show how accelerators, NUMA nodes and network cards are connected.

    The matrix says how near every two devices are: the vendor's own link when there is one, and the way over PCIe. What
    each word means stands below it. On a terminal under 80 columns it is a list of pairs.
    """
    inventory = look(machine, output)
    report_broken(inventory, output)
    matches = select(inventory, expressions) if expressions else Matches(default_devices(inventory), inventory.devices)
    output.result(_text(output, inventory, matches))
    if not matches.chosen:
        for hint in nothing_hint(inventory):
            output.hint(hint)
    return exit_code(inventory, is_empty=not matches.chosen)


def _text(output: Output, inventory: Inventory, matches: Matches) -> str:
    """Give the result: documents for programs in any case, for people what there is or why there is nothing."""
    format_ = output.options.format
    if format_ == "json":
        return json_text(topology_document(inventory, matches.chosen))
    if format_ == "dot":
        return dot_text(inventory, matches.shown)
    if format_ == "hwloc-xml":
        return hwloc_xml_text(inventory, matches.shown)
    header = lines_text(header_lines(inventory))
    if not matches.chosen:
        return header + lines_text((*nothing_lines(inventory), *unclaimed_lines(inventory)))
    if format_ == "tree":
        return header + lines_text(tree_lines(inventory, matches.shown, is_ascii=output.is_ascii))
    table = matrix_table(topology_matrix(inventory, matches.chosen), output.width)
    return header + output.table(table.headings, table.rows) + "\n" + lines_text(table.legend)
