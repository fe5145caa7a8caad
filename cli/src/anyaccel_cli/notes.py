"""Sentences that concern no single device, for stderr and for the `notes` of a document. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from anyaccel.device import Device, DeviceState
from anyaccel.inventory import Inventory, OutcomeStatus
from anyaccel.visibility import Resolution, TokenEffect

if TYPE_CHECKING:
    from anyaccel.machine import Machine
    from anyaccel.registry import Registry

__all__ = ["device_hints", "ignored_masks", "mask_hints", "mask_notes", "nothing_hint"]


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
    """Say what is worth knowing about the masks in force: warnings, and entries that cannot be told."""
    resolutions = inventory.resolutions.values()
    return tuple(note for r in resolutions for note in (*r.warnings, *_unknown_entries(r)))


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
