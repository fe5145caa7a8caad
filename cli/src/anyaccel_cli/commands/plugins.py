"""`accel-cli plugins`: what is installed, and what of it does not work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click

from anyaccel.errors import PluginConflictError
from anyaccel.inventory import OutcomeStatus, PluginOutcome
from anyaccel.registry import Plugin, Registry
from anyaccel_cli.documents import as_json, schema_of
from anyaccel_cli.exit_codes import ExitCode, epilog
from anyaccel_cli.failures import WrongUsageError
from anyaccel_cli.levels import known_levels, level_of
from anyaccel_cli.looking import current_registry, look
from anyaccel_cli.machine_options import MachineOptions, machine_options, narrowed
from anyaccel_cli.output import Output, csv_text, json_text, lines_text
from anyaccel_cli.output_options import output_options
from anyaccel_cli.table import Heading, Row
from anyaccel_cli.text import UNKNOWN, counted

__all__ = ["command"]

_HEADINGS = (
    Heading("plugin", "plugin"),
    Heading("distribution", "distribution"),
    Heading("version", "version"),
    Heading("contract", "contract"),
    Heading("state", "state"),
    Heading("level", "level"),
)
_DEVICES = Heading("devices", "devices", is_right=True)


@dataclass(frozen=True)
class _Entry:
    """One plugin, loaded or not; None = unknown or not looked at."""

    plugin: str
    title: str | None
    distribution: str | None
    version: str | None
    contract_version: str | None
    state: str
    level: str | None
    device_count: int | None
    reason: str | None = None
    hint: str | None = None
    code: str | None = None
    capabilities: Mapping[str, Any] | None = None


@click.command(
    "plugins",
    epilog=epilog("accel-cli plugins", "accel-cli plugins --devices --json"),
)
@click.option("--devices", "has_devices", is_flag=True, help="Look at the machine and count each plugin's devices.")
@machine_options
@output_options("table", "json", "csv", "ids")
def command(machine: MachineOptions, output: Output, has_devices: bool) -> int:
    """List the installed plugins and their state: loaded, failed to load, disabled, conflict, incompatible contract.

    A plugin that does not work costs only its own devices; this says which and why.
    """
    if not machine.is_live and not has_devices:
        raise WrongUsageError("--root, --replay and --simulate need --devices here")
    registry = narrowed(current_registry(), machine.vendors)
    counts = _device_counts(machine, output) if has_devices else {}
    entries = _entries(registry, counts)
    output.result(_text(output, entries, has_devices=has_devices))
    failed = [entry for entry in entries if entry.state not in ("loaded", "disabled")]
    for entry in failed:
        output.error(entry.reason or f"plugin {entry.plugin!r} does not work", entry.hint)
    if failed:
        return ExitCode.BROKEN_PLUGIN
    return ExitCode.DONE if entries else ExitCode.NOTHING


def _device_counts(machine: MachineOptions, output: Output) -> dict[str, int]:
    return {outcome.plugin: outcome.device_count for outcome in look(machine, output).outcomes}


def _entries(registry: Registry, counts: Mapping[str, int]) -> tuple[_Entry, ...]:
    levels = known_levels()
    loaded = (
        _loaded(plugin, counts.get(plugin.key), level_of(plugin.distribution, plugin.version, levels))
        for plugin in registry.plugins
    )
    entries = (*loaded, *(_failed(failure) for failure in registry.failures))
    return tuple(sorted(entries, key=lambda entry: entry.plugin))


def _loaded(plugin: Plugin, device_count: int | None, level: str) -> _Entry:
    declaration = plugin.declaration
    return _Entry(
        plugin=plugin.key,
        title=declaration.title,
        distribution=plugin.distribution,
        version=plugin.version,
        contract_version=declaration.contract_version,
        state="loaded",
        level=level,
        device_count=device_count,
        reason="; ".join(plugin.misdeeds) or None,
        capabilities=declaration.capabilities,
    )


def _failed(failure: PluginOutcome) -> _Entry:
    return _Entry(
        plugin=failure.plugin,
        title=None,
        distribution=failure.distribution,
        version=failure.version,
        contract_version=None,
        state=_state(failure),
        level=None,
        device_count=None,
        reason=failure.reason,
        hint=failure.hint,
        code=failure.code,
    )


def _state(failure: PluginOutcome) -> str:
    if failure.status is OutcomeStatus.DISABLED:
        return "disabled"
    words = {PluginConflictError.code: "conflict", "plugin-contract-version": "incompatible contract"}
    return words.get(failure.code or "", "failed to load")


def _text(output: Output, entries: tuple[_Entry, ...], *, has_devices: bool) -> str:
    format_ = output.options.format
    if format_ == "json":
        return json_text({"schema": schema_of("accel-plugins"), "plugins": as_json(entries)})
    if format_ == "ids":
        return lines_text(entry.plugin for entry in entries)
    headings = (*_HEADINGS, _DEVICES) if has_devices else _HEADINGS
    rows = [_row(entry, has_devices=has_devices) for entry in entries]
    if format_ == "csv":
        return csv_text([heading.name for heading in headings], [row.cells for row in rows])
    summary = f"{counted(len(entries), 'plugin')}: {_summary(entries)}" if entries else "no plugin is installed"
    return (output.table(headings, rows) if rows else "") + output.lines((summary,))


def _row(entry: _Entry, *, has_devices: bool) -> Row:
    values = (entry.plugin, entry.distribution, entry.version, entry.contract_version, entry.state, entry.level)
    more = (entry.device_count,) if has_devices else ()
    cells = tuple(UNKNOWN if value is None else str(value) for value in (*values, *more))
    return Row(cells, entry.state, () if entry.reason is None else (entry.reason,))


def _summary(entries: tuple[_Entry, ...]) -> str:
    states = [entry.state for entry in entries]
    return ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(sorted(states, key=_state_order)))


def _state_order(state: str) -> tuple[bool, str]:
    return (state != "loaded", state)
