"""Sentences that concern no single device, for stderr and for the `notes` of a document. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from anyaccel.device import Device, DeviceState
from anyaccel.inventory import Inventory, OutcomeStatus, PluginOutcome
from anyaccel.visibility import Resolution, TokenEffect
from anyaccel_cli.text import counted

if TYPE_CHECKING:
    from anyaccel.machine import Machine
    from anyaccel.registry import Plugin, Registry

__all__ = ["device_hints", "ignored_masks", "mask_hints", "mask_notes", "nothing_hint", "plugin_details"]


def ignored_masks(machine: Machine, registry: Registry, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Say that masks in this process's environment do not concern a machine that is not this one."""
    if machine.is_live:
        return ()
    names = {variable.name for plugin in registry.plugins for variable in plugin.declaration.variables}
    ignored = sorted(name for name in names if name in environ)
    if not ignored:
        return ()
    verb = "is" if len(ignored) == 1 else "are"
    return (f"{', '.join(ignored)} of this shell {verb} ignored: the machine shown is not this one (see --env)",)


def mask_notes(inventory: Inventory) -> tuple[str, ...]:
    """Say what is worth knowing about the masks in force: warnings, what has no effect, and entries that cannot be told."""
    resolutions = inventory.resolutions.values()
    return tuple(note for r in resolutions for note in (*r.warnings, *_without_effect(r), *_unknown_entries(r)))


def _without_effect(resolution: Resolution) -> Iterable[str]:
    for report in resolution.variables:
        if not report.has_effect and not report.is_warning:
            yield f"{report.variable}={report.value!r} has no effect here: {report.reason}"


def _unknown_entries(resolution: Resolution) -> Iterable[str]:
    entries: dict[tuple[str, str], list[str]] = {}
    for token in resolution.tokens:
        if token.effect is TokenEffect.UNKNOWN:
            entries.setdefault((token.variable, token.reason), []).append(token.text)
    warned = {(report.variable, report.reason) for report in resolution.variables if report.is_warning}
    for (variable, reason), texts in entries.items():
        if (variable, reason) in warned:
            continue
        words = f"entry {texts[0]!r} names" if len(texts) == 1 else f"entries {', '.join(map(repr, texts))} name"
        yield f"{variable}: what {words} is unknown: {reason}"


def mask_hints(inventory: Inventory) -> tuple[str, ...]:
    """Give what could be done about masks that do something else than one may think, each once."""
    hints: list[str | None] = []
    for resolution in inventory.resolutions.values():
        hints += [token.hint for token in resolution.tokens if token.effect is TokenEffect.UNKNOWN]
        hints += [report.hint for report in resolution.variables if report.is_warning]
    return tuple(dict.fromkeys(hint for hint in hints if hint))


def device_hints(devices: Iterable[Device]) -> tuple[str, ...]:
    """Give what could be done about devices that are not ready, each once."""
    hints = (device.hint for device in devices if device.state is not DeviceState.READY)
    return tuple(dict.fromkeys(hint for hint in hints if hint))


def nothing_hint(inventory: Inventory) -> tuple[str, ...]:
    """Give what could be done when there is nothing to show."""
    if not inventory.outcomes:
        return ("pip install 'anyaccel-cli[all]' installs the plugins",)
    nothing = (outcome for outcome in inventory.outcomes if outcome.status is OutcomeStatus.NOTHING)
    hints = dict.fromkeys(outcome.hint for outcome in nothing if outcome.hint)
    return tuple(hints) or ("accel-cli plugins lists what could be found",)


_DRIVER_HOOKS = ("accel_inspect_devices", "accel_describe_topology")


def plugin_details(inventory: Inventory, registry: Registry, machine: Machine) -> tuple[str, ...]:
    """Say for each plugin what came of it, which driver was found and how it was asked, and what the family's facts are.

    Example: "nvidia (anyaccel-nvidia 0.1.0): found 8 devices; driver nvidia 550.1; ..."
    """
    plugins = {plugin.key: plugin for plugin in registry.plugins}
    return tuple(
        "; ".join(_details(outcome, inventory, plugins.get(outcome.plugin), machine)) for outcome in inventory.outcomes
    )


def _details(outcome: PluginOutcome, inventory: Inventory, plugin: Plugin | None, machine: Machine) -> Iterable[str]:
    source = "" if outcome.distribution is None else f" ({outcome.distribution} {outcome.version})"
    yield f"{outcome.plugin}{source}: {_came_of(outcome)}"
    view = inventory.view(outcome.plugin)
    if plugin is None or not view.devices:
        yield "no driver was asked"
        return
    drivers = dict.fromkeys((d.driver, d.driver_version) for d in view.roots)
    yield from (f"driver {name or 'unknown'}, version {version or 'unknown'}" for name, version in drivers)
    yield _asked(outcome, plugin, machine)
    if view.links:
        yield counted(len(view.links), "link")
    facts = [f"{name}={value}" for name, value in sorted(view.facts.items()) if value is not None]
    if facts:
        yield f"facts: {', '.join(facts)}"


def _came_of(outcome: PluginOutcome) -> str:
    if outcome.status is OutcomeStatus.FOUND:
        return f"found {counted(outcome.device_count, 'device')}, parts included"
    where = "" if outcome.hook is None else f" in {outcome.hook}"
    return f"{outcome.status.value}{where}: {outcome.reason or 'no reason given'}"


def _asked(outcome: PluginOutcome, plugin: Plugin, machine: Machine) -> str:
    """Say which hooks asked the driver, and whether a driver answered or what is stored of one."""
    hooks = [hook for hook in _DRIVER_HOOKS if plugin.implements(hook)]
    if not hooks:
        return "the plugin asks no driver"
    source = "the driver itself, in a child process" if machine.is_live else f"what is stored ({machine.kind.value})"
    results = (f"{hook} {'failed' if outcome.hook == hook else 'answered'}" for hook in hooks)
    return f"asked {source}: {', '.join(results)}"
