"""From options to an inventory: what `discover` and `topology` do before they show anything."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from anyaccel_cli.exit_codes import ExitCode
from anyaccel_cli.machine_options import MachineOptions, narrowed, open_machine
from anyaccel_cli.notes import ignored_masks, mask_notes, plugin_details
from anyaccel_cli.output import Output

if TYPE_CHECKING:
    from anyaccel.inventory import Inventory, PluginOutcome
    from anyaccel.machine import Machine
    from anyaccel.registry import Registry

__all__ = ["current_registry", "exit_code", "look", "look_at", "report_broken"]


def current_registry() -> Registry:
    """Give the plugins of this run: those handed in by whoever called the command line, or those installed, loaded once."""
    context = click.get_current_context()
    if context.obj is None:
        from anyaccel.registry import Registry

        context.obj = Registry.installed()
    registry: Registry = context.obj
    return registry


def look(options: MachineOptions, output: Output) -> Inventory:
    """Look at the machine that the options describe, and say on stderr what concerns no single device.

    Returns: the inventory; its notes are those that were said.
    """
    return look_at(open_machine(options, current_registry()), options, output)


def look_at(machine: Machine, options: MachineOptions, output: Output) -> Inventory:
    """Look at a machine that is open already, for commands that need it afterwards; otherwise as `look`."""
    from anyaccel.discovery import discover
    from anyaccel_cli.known_hardware import known_families

    started = time.monotonic()
    registry = current_registry()
    wanted = narrowed(registry, options.vendors)
    inventory = discover(
        machine,
        wanted,
        timeout_seconds=options.timeout_seconds,
        on_progress=output.note,
        known=known_families(),
    )
    output.detail(f"looked at the machine for {time.monotonic() - started:.2f} s")
    inventory = _of_vendors(inventory, frozenset(options.vendors))
    for line in plugin_details(inventory, wanted, machine):
        output.detail(line)
    notes = (*ignored_masks(machine, registry, os.environ), *inventory.notes, *mask_notes(inventory))
    for note in notes:
        output.note(note)
    return replace(inventory, notes=notes)


def _of_vendors(inventory: Inventory, vendors: frozenset[str]) -> Inventory:
    """Leave out what concerns other vendors: they were not looked for, so nothing true can be said of them."""
    if not vendors:
        return inventory
    return replace(
        inventory,
        views=tuple(view for view in inventory.views if view.family in vendors),
        outcomes=tuple(outcome for outcome in inventory.outcomes if outcome.plugin in vendors),
        unclaimed=tuple(hardware for hardware in inventory.unclaimed if hardware.plugin in vendors),
    )


def report_broken(inventory: Inventory, output: Output) -> None:
    """Name every broken plugin and every contradiction between plugins on stderr."""
    from anyaccel.inventory import OutcomeStatus

    for outcome in inventory.outcomes:
        if outcome.status is OutcomeStatus.BROKEN:
            output.error(_broken_text(outcome), outcome.hint)
    for conflict in inventory.conflicts:
        output.error(conflict)


def _broken_text(outcome: PluginOutcome) -> str:
    """Give the reason, with the plugin and its distribution where the reason does not name them itself."""
    reason = outcome.reason or "no reason given"
    name = "" if repr(outcome.plugin) in reason else f"plugin {outcome.plugin!r} is broken: "
    is_named = outcome.distribution is None or outcome.distribution in reason
    return f"{name}{reason}{'' if is_named else f' ({outcome.distribution} {outcome.version})'}"


def exit_code(inventory: Inventory, *, is_empty: bool) -> ExitCode:
    """Give the exit code: a broken plugin outweighs an empty result, which may be empty because of it."""
    if not inventory.is_complete:
        return ExitCode.BROKEN_PLUGIN
    return ExitCode.NOTHING if is_empty else ExitCode.DONE
