"""`accel-cli env`: what to set and unset so that a program sees exactly certain devices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from anyaccel.errors import NotGrantedError
from anyaccel.visibility import EnvironmentChange
from anyaccel_cli.exit_codes import ExitCode, epilog
from anyaccel_cli.failures import WrongUsageError
from anyaccel_cli.formats.shells import SHELLS
from anyaccel_cli.looking import current_registry, look_at, report_broken
from anyaccel_cli.machine_options import MachineOptions, machine_options, open_machine, select_option
from anyaccel_cli.output import Output, json_text, lines_text
from anyaccel_cli.output_options import output_options

if TYPE_CHECKING:
    from anyaccel.inventory import Inventory
    from anyaccel.placement import Placement
    from anyaccel.registry import Registry

__all__ = ["command"]


@dataclass(frozen=True)
class _Chosen:
    """Devices a program shall see, in the order it shall count them, and why these.

    Args: placements: one a resource asked for; empty when the devices were named.
    """

    device_ids: tuple[str, ...]
    placements: tuple[Placement, ...] = ()


@click.command(
    "env",
    epilog=epilog(
        'eval "$(accel-cli env --resources gpu=2)"',
        "accel-cli env --select nvidia:3 --select nvidia:1 --explain",
    ),
)
@click.option(
    "--resources",
    metavar="KEY=N,...",
    help="Choose this many: gpu=2, nvidia.com/gpu=1, TPU=4, aws.amazon.com/neuroncore=2.",
)
@select_option
@click.option("--explain", "is_explained", is_flag=True, help="Say in comments why these devices and not the others.")
@click.option("--no-hide-others", "keeps_others", is_flag=True, help="Leave the masks of other vendors as they are.")
@click.option(
    "--widen", "is_widened", is_flag=True, help="Replace the masks that are set instead of staying inside them."
)
@machine_options
@output_options("bash", "fish", "json", flag="--shell")
def command(
    machine: MachineOptions,
    output: Output,
    *,
    resources: str | None,
    expressions: tuple[str, ...],
    is_explained: bool,
    keeps_others: bool,
    is_widened: bool,
) -> int:
    """Print what to set and unset so that a program sees exactly certain devices, of whatever vendor.

    Devices are named with --select, in the order in which the program shall count them, or chosen with --resources among
    those that are ready and visible here. A mask is advice to the program, not a fence, and nothing is reserved.
    """
    if (resources is None) == (not expressions):
        raise WrongUsageError("give either --resources or --select", hint="accel-cli env --resources gpu=1")
    registry = current_registry()
    opened = open_machine(machine, registry)
    inventory = look_at(opened, machine, output)
    report_broken(inventory, output)
    chosen = _chosen(inventory, registry, resources, expressions)
    change = _change(inventory, registry, chosen, opened.environ, is_widened=is_widened, keeps_others=keeps_others)
    output.result(_text(output, inventory, chosen, change, is_explained=is_explained))
    for warning in _warnings(inventory, chosen):
        output.note(warning)
    return ExitCode.DONE if inventory.is_complete else ExitCode.BROKEN_PLUGIN


def _chosen(inventory: Inventory, registry: Registry, resources: str | None, expressions: tuple[str, ...]) -> _Chosen:
    if resources is None:
        return _Chosen(_named(inventory, expressions))
    from anyaccel.placement import place_all
    from anyaccel.resources import parse_requests

    placements = place_all(inventory, registry, parse_requests(resources))
    return _Chosen(tuple(i for placement in placements for i in placement.device_ids), placements)


def _named(inventory: Inventory, expressions: tuple[str, ...]) -> tuple[str, ...]:
    """Give the devices in the order in which they were named; a filter gives its devices in the inventory's order."""
    from anyaccel_cli.selection import select

    matches = (select(inventory, (expression,)).chosen for expression in expressions)
    return tuple(dict.fromkeys(device.id for chosen in matches for device in chosen))


def _change(
    inventory: Inventory,
    registry: Registry,
    chosen: _Chosen,
    environ: Mapping[str, str],
    *,
    is_widened: bool,
    keeps_others: bool,
) -> EnvironmentChange:
    from anyaccel.environment import environment_for

    try:
        return environment_for(
            inventory, registry, chosen.device_ids, environ, widen=is_widened, hide_others=not keeps_others
        )
    except NotGrantedError as error:
        is_masked = any(resolution.is_masked for resolution in inventory.resolutions.values())
        hint = "--widen replaces the masks that are set, on purpose" if is_masked else "accel-cli discover says why"
        raise NotGrantedError(error.message, hint=hint) from error


def _warnings(inventory: Inventory, chosen: _Chosen) -> Iterable[str]:
    from anyaccel_cli.facts import reason_of

    yield from (warning for placement in chosen.placements for warning in placement.warnings)
    if not chosen.placements:
        devices = (inventory.view(i.partition(":")[0]).device(i) for i in chosen.device_ids)
        yield from (f"{d.id} is {d.state.value}: {reason_of(d)}" for d in devices if reason_of(d))


def _text(
    output: Output, inventory: Inventory, chosen: _Chosen, change: EnvironmentChange, *, is_explained: bool
) -> str:
    if output.options.format == "json":
        from anyaccel_cli.env_document import env_document

        return json_text(env_document(inventory, chosen.placements, change))
    from anyaccel_cli.rows import header_lines
    from anyaccel_cli.text import escape

    comments = [*header_lines(inventory), *(_explanation(chosen, change) if is_explained else ())]
    return lines_text((*(f"# {escape(line)}" for line in comments if line), *SHELLS[output.options.format](change)))


def _explanation(chosen: _Chosen, change: EnvironmentChange) -> Iterable[str]:
    yield f"a program sees {', '.join(change.device_ids) or 'no device'}, counted from 0 in this order"
    for placement in chosen.placements:
        yield from placement.reasons
        yield from (f"not {device_id}: {reason}" for device_id, reason in placement.refused.items())
    yield from change.notes
