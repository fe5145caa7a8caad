"""`accel-cli metrics`: sensors and counters, once, again and again, or for Prometheus."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from anyaccel.device import Device
from anyaccel_cli.exit_codes import ExitCode, epilog
from anyaccel_cli.failures import WrongUsageError
from anyaccel_cli.looking import current_registry, look_at, report_broken
from anyaccel_cli.machine_options import MachineOptions, machine_options, narrowed, open_machine, select_option
from anyaccel_cli.output import Output, json_text, lines_text
from anyaccel_cli.output_options import output_options

if TYPE_CHECKING:
    from anyaccel.asking import Asker
    from anyaccel.inventory import Inventory
    from anyaccel.readings import Sample

__all__ = ["command"]

_USUAL_SECONDS = 2.0
_SERVED_SECONDS = 5.0


@click.command(
    "metrics",
    epilog=epilog("accel-cli metrics --watch 5 --select vendor=nvidia", "accel-cli metrics --serve 127.0.0.1:9400"),
)
@select_option
@click.option(
    "--watch",
    "interval_seconds",
    type=click.FloatRange(min=0.1),
    is_flag=False,
    flag_value=_USUAL_SECONDS,
    metavar="[SECONDS]",
    help="Again and again; every 2 seconds when no number is given. With --json one document a line.",
)
@click.option("--count", type=click.IntRange(min=1), metavar="N", help="With --watch: end after N times.")
@click.option(
    "--serve", "address", metavar="HOST:PORT", help="Answer Prometheus on this machine; HOST is 127.0.0.1 or ::1."
)
@machine_options
@output_options("table", "json")
def command(
    machine: MachineOptions,
    output: Output,
    *,
    expressions: tuple[str, ...],
    interval_seconds: float | None,
    count: int | None,
    address: str | None,
) -> int:
    """Show load, memory, temperature and power of every accelerator.

    What a driver does not tell is unknown, with the reason in --json. Drivers stay started between two looks; a look that
    takes longer than the interval is not made up for.
    """
    _check(output, interval_seconds, count, address)
    if address is not None:
        interval_seconds = interval_seconds or _SERVED_SECONDS
    from anyaccel.asking import Asker

    registry = narrowed(current_registry(), machine.vendors)
    opened = open_machine(machine, current_registry())
    inventory = look_at(opened, machine, output)
    report_broken(inventory, output)
    devices = _devices(inventory, expressions)
    if not devices:
        output.result(_text(output, inventory, None, (), is_compact=False))
        return ExitCode.NOTHING if inventory.is_complete else ExitCode.BROKEN_PLUGIN
    with Asker(inventory, opened, registry) as asker:
        limit = machine.timeout_seconds
        samples = _samples(
            asker, inventory, output, timeout_seconds=limit, interval_seconds=interval_seconds, count=count
        )
        if address is not None:
            return _serve(address, inventory, samples, output)
        return _show(inventory, devices, samples, output, is_repeated=interval_seconds is not None)


def _check(output: Output, interval_seconds: float | None, count: int | None, address: str | None) -> None:
    if address is not None:
        from anyaccel_cli.exporter import parse_address

        parse_address(address)
    elif count is not None and interval_seconds is None:
        raise WrongUsageError("--count says how often to --watch", hint=f"add --watch {_USUAL_SECONDS:g}")
    if interval_seconds is not None and output.options.file is not None and address is None:
        raise WrongUsageError("--output takes one result, --watch gives many", hint="redirect stdout instead")


def _devices(inventory: Inventory, expressions: tuple[str, ...]) -> tuple[Device, ...]:
    if not expressions:
        return inventory.devices
    from anyaccel_cli.selection import select

    return select(inventory, expressions).shown


def _samples(
    asker: Asker,
    inventory: Inventory,
    output: Output,
    *,
    timeout_seconds: float,
    interval_seconds: float | None,
    count: int | None,
) -> Iterator[Sample]:
    """Take one sample, or one at each tick; ticks that pass while drivers answer are left out."""
    from anyaccel.readings import take_sample

    begun, number = time.monotonic(), 0
    while True:
        yield take_sample(asker, inventory, timeout_seconds=timeout_seconds, on_progress=output.note)
        number += 1
        if interval_seconds is None or number == count:
            return
        passed = time.monotonic() - begun
        time.sleep(interval_seconds - passed % interval_seconds)


def _show(
    inventory: Inventory, devices: tuple[Device, ...], samples: Iterator[Sample], output: Output, *, is_repeated: bool
) -> int:
    code = ExitCode.DONE if inventory.is_complete else ExitCode.BROKEN_PLUGIN
    for number, sample in enumerate(samples):
        gap = "\n" if number and output.options.format == "table" else ""
        output.result(gap + _text(output, inventory, sample, devices, is_compact=is_repeated))
        for sentence in sample.broken:
            output.error(sentence)
            code = ExitCode.BROKEN_PLUGIN
        for hint in sample.hints:
            output.hint(hint)
    return code


def _text(
    output: Output, inventory: Inventory, sample: Sample | None, devices: tuple[Device, ...], *, is_compact: bool
) -> str:
    from anyaccel.readings import Sample as _Sample
    from anyaccel_cli.metrics_rows import HEADINGS, metrics_document, metrics_rows, silent_lines
    from anyaccel_cli.rows import header_lines, nothing_lines

    sample = sample or _Sample()
    if output.options.format == "json":
        return json_text(metrics_document(inventory, sample, devices), is_compact=is_compact)
    if not devices:
        return lines_text(header_lines(inventory)) + output.lines(nothing_lines(inventory))
    rows = metrics_rows(inventory, sample, devices, sample.took_seconds)
    return lines_text(header_lines(inventory)) + output.table(HEADINGS, rows) + output.lines(silent_lines(sample))


def _serve(address: str, inventory: Inventory, samples: Iterator[Sample], output: Output) -> int:
    from anyaccel_cli.exporter import Exporter, parse_address

    host, port = parse_address(address)
    exporter = Exporter(inventory)
    server = exporter.serve(host, port)
    output.note(f"serving http://{host}:{server.server_port}/metrics until interrupted")
    try:
        for sample in samples:
            exporter.put(sample)
    finally:
        server.shutdown()
        server.server_close()
    return ExitCode.DONE
