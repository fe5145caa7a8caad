"""`accel-cli discover`: one row a device, and why one is not usable."""

from __future__ import annotations

import click

from anyaccel.device import Device
from anyaccel.inventory import Inventory
from anyaccel_cli.exit_codes import epilog
from anyaccel_cli.failures import NothingMatchedError, WrongUsageError
from anyaccel_cli.looking import exit_code, look, report_broken
from anyaccel_cli.machine_options import MachineOptions, machine_options, select_option
from anyaccel_cli.notes import device_hints, mask_hints, nothing_hint
from anyaccel_cli.output import Output, csv_text, json_text, lines_text, table_width
from anyaccel_cli.output_options import output_options
from anyaccel_cli.rows import (
    SPARED_FIRST,
    Column,
    columns_named,
    csv_rows,
    default_columns,
    device_rows,
    header_lines,
    in_full,
    is_empty,
    nothing_lines,
    summary_line,
    telling_devices,
    unclaimed_lines,
    wide_columns,
)

__all__ = ["command"]


@click.command(
    "discover",
    epilog=epilog(
        "accel-cli discover --vendor nvidia --format wide",
        "accel-cli discover --select state=ready --format ids",
    ),
)
@select_option
@click.option("--columns", metavar="A,B,...", help="Columns of the table or CSV, in this order.")
@click.option(
    "--all",
    "is_all",
    is_flag=True,
    help="Rows for cores that differ in nothing from their device, and for integrated parts when there is nothing else.",
)
@machine_options
@output_options("table", "wide", "json", "csv", "ids")
def command(
    machine: MachineOptions, output: Output, expressions: tuple[str, ...], columns: str | None, is_all: bool
) -> int:
    """List the accelerators of this machine and say why one is not usable.

    One row a device, with the number the vendor's own tools use, and as soon as a mask such as CUDA_VISIBLE_DEVICES is set
    the number a process started here would use. Parts of a device stand indented below it.
    """
    chosen = _columns(columns, output)
    inventory = look(machine, output)
    report_broken(inventory, output)
    devices, problem = _devices(inventory, expressions, output)
    is_nothing = not expressions and (not inventory.devices or (is_empty(inventory) and not is_all))
    is_short = not (is_all or expressions or chosen) and output.options.format == "table"
    listed = telling_devices(inventory, devices) if is_short and not output.options.is_verbose else devices
    output.result(_text(output, inventory, devices, chosen, listed=listed, is_nothing=is_nothing))
    if len(listed) < len(devices):
        output.note(
            f"{len(devices) - len(listed)} parts that only repeat their device are not listed (--all lists them)"
        )
    for hint in _hints(inventory, devices, is_nothing=is_nothing):
        output.hint(hint)
    if problem is not None and inventory.is_complete:
        raise problem
    return exit_code(inventory, is_empty=is_nothing or problem is not None)


def _columns(text: str | None, output: Output) -> tuple[Column, ...] | None:
    if text is None:
        return None
    if output.options.format in ("json", "ids"):
        raise WrongUsageError(f"--columns has no meaning for --format {output.options.format}")
    return columns_named(tuple(name.strip() for name in text.split(",")))


def _devices(
    inventory: Inventory, expressions: tuple[str, ...], output: Output
) -> tuple[tuple[Device, ...], NothingMatchedError | None]:
    """Select devices; that nothing matches is said after the rest, since JSON is one document in any case."""
    if not expressions:
        return inventory.devices, None
    from anyaccel_cli.selection import select

    try:
        matches = select(inventory, expressions)
    except NothingMatchedError as error:
        return (), error
    for note in matches.notes:
        output.detail(note)
    return matches.shown, None


def _text(
    output: Output,
    inventory: Inventory,
    devices: tuple[Device, ...],
    chosen: tuple[Column, ...] | None,
    *,
    listed: tuple[Device, ...],
    is_nothing: bool,
) -> str:
    """Give the result; `listed` are the devices that get a row of the table."""
    format_ = output.options.format
    if format_ == "json":
        from anyaccel_cli.documents import discover_document

        return json_text(discover_document(inventory, devices))
    if format_ == "ids":
        return lines_text(() if is_nothing else (device.id for device in devices))
    if format_ == "csv":
        columns = chosen or default_columns(inventory)
        titles = [column.csv_title or column.name for column in columns]
        return csv_text(titles, () if is_nothing else csv_rows(inventory, devices, columns))
    if is_nothing:
        return lines_text(header_lines(inventory)) + output.lines(
            (*nothing_lines(inventory), *unclaimed_lines(inventory))
        )
    if not devices:
        return ""
    columns = _shown_columns(output, inventory, listed, chosen)
    return (
        lines_text(header_lines(inventory))
        + output.table(columns, device_rows(inventory, listed, columns, is_verbose=output.options.is_verbose))
        + output.lines((*unclaimed_lines(inventory), summary_line(inventory, devices)))
    )


def _shown_columns(
    output: Output, inventory: Inventory, devices: tuple[Device, ...], chosen: tuple[Column, ...] | None
) -> tuple[Column, ...]:
    """Give the columns asked for; of the default ones a narrow terminal gets fewer, and this is said."""
    if output.options.format == "wide":
        return wide_columns() if chosen is None else in_full(chosen)
    if chosen is not None:
        return chosen
    columns = default_columns(inventory)
    left = _narrowed(inventory, devices, columns, output.width)
    if len(left) < len(columns):
        names = ", ".join(column.name for column in columns if column not in left)
        output.note(f"left out on {output.width} columns: {names} (--columns shows them)")
    return left


def _narrowed(
    inventory: Inventory, devices: tuple[Device, ...], columns: tuple[Column, ...], width: int | None
) -> tuple[Column, ...]:
    """Leave out columns, the least important first, until the table fits or nothing more can be spared."""
    for name in SPARED_FIRST:
        cells = [[column.cell(device, inventory) for column in columns] for device in devices]
        if width is None or table_width(columns, cells) <= width:
            break
        columns = tuple(column for column in columns if column.name != name)
    return columns


def _hints(inventory: Inventory, devices: tuple[Device, ...], *, is_nothing: bool) -> tuple[str, ...]:
    return nothing_hint(inventory) if is_nothing else (*mask_hints(inventory), *device_hints(devices))
