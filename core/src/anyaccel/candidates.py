"""Request + inventory → which devices of which family could serve it, and why each of the others could not. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from anyaccel.device import Device, DeviceState, FamilyView, Level
from anyaccel.errors import InvalidResourceRequestError
from anyaccel.frozen import FrozenMap
from anyaccel.inventory import Inventory
from anyaccel.registry import Plugin, Registry
from anyaccel.resources import ResourceRequest, find_resource
from anyaccel.visibility import Resolution

__all__ = ["Candidates", "find_candidates", "known_resources"]

_VISIBLE_STATES = frozenset({DeviceState.READY, DeviceState.BUSY, DeviceState.HIDDEN})
"""States in which a device may be chosen, or would be if no mask hid it."""


@dataclass(frozen=True)
class Candidates:
    """What one family has for a request.

    Args: devices: those that could serve it, in the inventory's order; busy ones among them. refused: for every other device
        of the level asked for, why not, in a clause.
    """

    family: str
    level: Level
    devices: tuple[Device, ...] = ()
    refused: FrozenMap[str] = field(default_factory=FrozenMap)


def known_resources(registry: Registry) -> tuple[str, ...]:
    """Give every key that the loaded plugins declare, sorted; a profile's place is left as `{profile}`."""
    names = (
        name
        for plugin in registry.plugins
        for resource in plugin.declaration.resources
        for name in (resource.kind, resource.kubernetes, resource.ray)
    )
    return tuple(sorted({name for name in names if name is not None}))


def find_candidates(
    inventory: Inventory, registry: Registry, request: ResourceRequest, free: Collection[str] | None = None
) -> tuple[Candidates, ...]:
    """Find what each family that declares the request's key has for it, families in order of key.

    A family that declares the key and has no device here is left out, unless none has one.
    Args: free: leaves nobody holds; None = all.
    Raises: InvalidResourceRequestError for a key no loaded plugin declares, with the nearest.
    """
    declaring = [(plugin, level) for plugin in registry.plugins if (level := _level(plugin, request.key)) is not None]
    if not declaring:
        raise _unknown(request.key, registry)
    found = [_of_family(inventory, plugin.key, level, free) for plugin, level in declaring]
    present = [candidates for candidates in found if candidates.devices or candidates.refused]
    return tuple(sorted(present or found, key=lambda candidates: candidates.family))


def _level(plugin: Plugin, key: str) -> Level | None:
    resources = plugin.declaration.resources
    found = find_resource(resources, key)
    if found is not None:
        return found.level
    patterned = (r for r in resources if r.kubernetes and "{profile}" in r.kubernetes)
    return next((r.level for r in patterned if _has_profile(r.kubernetes or "", key)), None)


def _has_profile(pattern: str, key: str) -> bool:
    before, _, after = pattern.partition("{profile}")
    profile = key.removeprefix(before).removesuffix(after)
    return key == f"{before}{profile}{after}" and bool(profile)


def _unknown(key: str, registry: Registry) -> InvalidResourceRequestError:
    from difflib import get_close_matches

    known = known_resources(registry)
    near = get_close_matches(key, known, n=1)
    return InvalidResourceRequestError(
        f"unknown resource {key!r} (known: {', '.join(known) or 'none'})",
        hint=f"did you mean {near[0]!r}?" if near else None,
    )


def _of_family(inventory: Inventory, family: str, level: Level, free: Collection[str] | None) -> Candidates:
    view = inventory.view(family)
    resolution = inventory.resolutions.get(family)
    devices: list[Device] = []
    refused: dict[str, str] = {}
    for device in _units(view, level):
        reason = _why_not(device, view, resolution, free)
        if reason is None:
            devices.append(device)
        else:
            refused[device.id] = reason
    return Candidates(family, level, tuple(devices), FrozenMap(refused))


def _units(view: FamilyView, level: Level) -> Iterable[Device]:
    return (device for device in view.devices if device.level is level)


def _why_not(
    device: Device,
    view: FamilyView,
    resolution: Resolution | None,
    free: Collection[str] | None,
) -> str | None:
    """Say why a device cannot serve a request, None when it can."""
    leaves = view.leaves(device.id)
    if not device.is_counted:
        return device.count_reason or device.reason or "it is not counted among what requests may take"
    if device.state not in _VISIBLE_STATES:
        return f"{device.state.value}: {device.reason}"
    if resolution is not None and not set(leaves) <= resolution.leaves:
        variable = resolution.hidden_by.get(device.id)
        return f"hidden by {variable}" if variable else "not known to be visible to a process here"
    if device.state is DeviceState.HIDDEN:
        return f"hidden: {device.reason}"
    if free is not None and not set(leaves) <= set(free):
        return "taken"
    return None
