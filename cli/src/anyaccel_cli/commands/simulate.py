"""`accel-cli simulate`: imaginary machines, listed or written to a folder."""

from __future__ import annotations

from collections import Counter
from typing import Any

import click

from anyaccel.machine_description import MachineDescription
from anyaccel.registry import Registry
from anyaccel_cli.documents import schema_of
from anyaccel_cli.exit_codes import ExitCode, epilog
from anyaccel_cli.failures import WrongUsageError
from anyaccel_cli.looking import current_registry
from anyaccel_cli.machine_options import complete_machines, simulated_machine
from anyaccel_cli.output import Output, json_text, lines_text, table_width
from anyaccel_cli.output_options import output_options
from anyaccel_cli.recording_target import check_target
from anyaccel_cli.table import Heading, Row

__all__ = ["command"]

_NAME, _CARDS, _TITLE = Heading("name", "name"), Heading("cards", "cards"), Heading("title", "title")
_LEAST_TITLE = 20


@click.command(
    "simulate",
    epilog=epilog("accel-cli simulate --list", "accel-cli simulate my-server.toml -o my-server"),
)
@click.argument("name", metavar="[NAME|FILE.toml]", required=False, shell_complete=complete_machines)
@click.option("--list", "is_list", is_flag=True, help="List the imaginary machines that the plugins bring.")
@click.option("-o", "--output", "path", metavar="DIR", help="A new folder, or a .tar.gz archive, for the machine.")
@click.option("--force", "is_forced", is_flag=True, help="Replace an archive that exists.")
@output_options("table", "json", has_file=False)
def command(output: Output, name: str | None, is_list: bool, path: str | None, is_forced: bool) -> int:
    """List imaginary machines, or write one to a folder that --replay and --root read.

    To look at one without writing it: accel-cli discover --simulate NAME.
    """
    if is_list == (name is not None) or (name is None) != (path is None):
        raise WrongUsageError("simulate takes --list, or a NAME or FILE.toml with -o DIR")
    if path is not None:
        check_target(path, is_forced=is_forced)
    registry = current_registry()
    if name is None or path is None:
        return _list(output, registry)
    _write(output, registry, name, path)
    return ExitCode.DONE


def _list(output: Output, registry: Registry) -> int:
    from anyaccel.simulation import find_machine, list_machines

    machines = [find_machine(name, registry) for name in list_machines(registry)]
    if output.options.format == "json":
        output.result(
            json_text({"schema": schema_of("accel-simulate-list"), "machines": [_document(m) for m in machines]})
        )
    elif not machines:
        output.result(output.lines(("no installed plugin brings an imaginary machine",)))
    else:
        output.result(_table_text(output, machines))
    return ExitCode.DONE if machines else ExitCode.NOTHING


def _table_text(output: Output, machines: list[MachineDescription]) -> str:
    """Give names and titles; the cards between them where there is room, the title below its name where there is none."""
    headings = (_NAME, _CARDS, _TITLE)
    rows = [Row((m.name, _cards(m), m.title)) for m in machines]
    if output.width is None or table_width(headings, [row.cells for row in rows]) <= output.width:
        return output.table(headings, rows)
    if table_width((_NAME,), [(m.name,) for m in machines]) + _LEAST_TITLE <= output.width:
        return output.table((_NAME, _TITLE), [Row((m.name, m.title)) for m in machines])
    return output.table((_NAME,), [Row((m.name,), below=(m.title,)) for m in machines])


def _counts(machine: MachineDescription) -> Counter[tuple[str, str]]:
    return Counter((card.plugin, card.model) for card in machine.cards)


def _cards(machine: MachineDescription) -> str:
    return ", ".join(f"{count} {plugin} {model}" for (plugin, model), count in _counts(machine).items()) or "none"


def _document(machine: MachineDescription) -> dict[str, Any]:
    return {
        "name": machine.name,
        "title": machine.title,
        "cards": [
            {"plugin": plugin, "model": model, "count": count} for (plugin, model), count in _counts(machine).items()
        ],
        "faults": [fault.kind for fault in machine.faults],
        "environ": dict(machine.environ),
    }


def _write(output: Output, registry: Registry, name: str, path: str) -> None:
    from anyaccel.recording import pack_machine, write_recording

    machine = simulated_machine(name, registry)
    content = pack_machine(machine)
    write_recording(content, path)
    if output.options.format == "json":
        document = {"schema": schema_of("accel-simulate"), "name": machine.name, "path": path}
        output.result(json_text({**document, "file_count": len(content.files)}))
    else:
        output.result(lines_text((f"wrote simulated machine {machine.name} to {path}",)))
    output.hint(f"accel-cli discover --replay {path}")
