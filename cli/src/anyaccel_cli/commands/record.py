"""`accel-cli record`: keep what a machine says of its accelerators, for a bug report or a test."""

from __future__ import annotations

import click

from anyaccel.inventory import Inventory
from anyaccel_cli.documents import as_json, machine_document, schema_of
from anyaccel_cli.exit_codes import epilog
from anyaccel_cli.looking import current_registry, exit_code, report_broken
from anyaccel_cli.machine_options import MachineOptions, machine_options, narrowed, open_machine
from anyaccel_cli.output import Output, json_text, lines_text
from anyaccel_cli.output_options import output_options
from anyaccel_cli.recording_target import check_target
from anyaccel_cli.rows import summary_line

__all__ = ["command"]


@click.command(
    "record",
    epilog=epilog("accel-cli record -o machine.tar.gz", "accel-cli discover --replay machine.tar.gz"),
)
@click.option(
    "-o", "--output", "path", required=True, metavar="FILE", help="The recording: a .tar.gz archive, or a new folder."
)
@click.option(
    "--no-scrub",
    "is_scrubbed",
    is_flag=True,
    flag_value=False,
    default=True,
    help="Keep serial numbers, uuids, host and user names.",
)
@click.option("--force", "is_forced", is_flag=True, help="Replace an archive that exists.")
@machine_options
@output_options("text", "json", has_file=False)
def command(machine: MachineOptions, output: Output, path: str, is_scrubbed: bool, is_forced: bool) -> int:
    """Write what this machine says of its accelerators to a file that --replay reads.

    Only what the plugins looked at is kept, as plain text files one can read. Serial numbers, uuids, host and user names
    are left out or replaced unless --no-scrub is given.
    """
    from anyaccel.recording import record, write_recording

    check_target(path, is_forced=is_forced)
    registry = current_registry()
    target = open_machine(machine, registry)
    inventory, content = record(
        target,
        narrowed(registry, machine.vendors),
        is_scrubbed=is_scrubbed,
        timeout_seconds=machine.timeout_seconds,
    )
    write_recording(content, path)
    report_broken(inventory, output)
    output.result(_text(output, inventory, path, file_count=len(content.files), is_scrubbed=is_scrubbed))
    output.hint(f"accel-cli discover --replay {path}")
    return exit_code(inventory, is_empty=False)


def _text(output: Output, inventory: Inventory, path: str, *, file_count: int, is_scrubbed: bool) -> str:
    if output.options.format == "json":
        return json_text(
            {
                "schema": schema_of("accel-record"),
                "machine": machine_document(inventory),
                "path": path,
                "is_scrubbed": is_scrubbed,
                "file_count": file_count,
                "summary": summary_line(inventory, inventory.devices),
                "plugins": as_json(inventory.outcomes),
            }
        )
    care = "scrubbed" if is_scrubbed else "not scrubbed: it names serial numbers, uuids and this host"
    return lines_text((f"recorded {summary_line(inventory, inventory.devices)} to {path} ({care})",))
