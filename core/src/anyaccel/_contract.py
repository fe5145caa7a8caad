"""Checks of what hooks answer. Each broken rule is named with the requirement that states it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

from anyaccel.capabilities import CONTRACT_VERSION, Declaration, SupportState
from anyaccel.device import Device, Discovery, Inspection
from anyaccel.errors import PluginContractError, PluginVersionError

__all__ = ["check_answer", "check_contract_version", "check_declaration", "check_discovery", "check_inspection"]

_Complain = Callable[[str, str], PluginContractError]

_RESULTS: Mapping[str, tuple[str, str]] = {
    "accel_declare": ("anyaccel.capabilities:Declaration", "DEC-001"),
    "accel_discover_devices": ("anyaccel.device:Discovery", "DISC-001"),
    "accel_inspect_devices": ("anyaccel.device:Inspection", "INSP-001"),
    "accel_describe_topology": ("anyaccel.topology:TopologyReport", "TOPO-001"),
    "accel_resolve_visibility": ("anyaccel.visibility:Resolution", "VIS-008"),
    "accel_visibility_environment": ("anyaccel.visibility:EnvironmentChange", "VIS-001"),
    "accel_validate_request": ("anyaccel.resources:AnySet LegalSets Refusal", "VAL-001"),
    "accel_read_metrics": ("builtins:tuple", "MET-001"),
    "accel_diagnose": ("builtins:tuple", "DIA-001"),
    "accel_observe_runtime": ("builtins:tuple", "OBS-001"),
    "accel_simulate": ("anyaccel.machine_description:SimulatedFamily", "SIM-001"),
    "accel_filter_devices": ("collections.abc:Mapping", "FIL-001"),
}
"""What each hook answers, by name: modules that a command does not need are not imported for it."""

_ITEMS: Mapping[str, str] = {
    "accel_read_metrics": "anyaccel.metrics:Reading",
    "accel_diagnose": "anyaccel.metrics:Finding",
    "accel_observe_runtime": "builtins:str",
}


def _types(names: str) -> tuple[type, ...]:
    module, _, classes = names.partition(":")
    return tuple(getattr(import_module(module), name) for name in classes.split())


def check_answer(plugin: str, hook: str, answer: Any) -> None:
    """Raise PluginContractError unless an answer has the type its hook promises."""
    names, requirement = _RESULTS[hook]
    types = _types(names)
    if not isinstance(answer, types):
        wanted = " or ".join(cls.__name__ for cls in types)
        raise PluginContractError(
            f"plugin {plugin!r} returned {type(answer).__name__} from {hook}, not {wanted}",
            plugin=plugin,
            hook=hook,
            requirement=requirement,
        )
    item = _types(_ITEMS[hook])[0] if hook in _ITEMS else None
    if item is not None and not _all_are(item, answer):
        raise PluginContractError(
            f"plugin {plugin!r} returned something else than {item.__name__} inside the tuple of {hook}",
            plugin=plugin,
            hook=hook,
            requirement=requirement,
        )


def _all_are(item: type, entries: Any) -> bool:
    return all(isinstance(entry, item) for entry in entries)


def check_declaration(key: str, declaration: Declaration) -> None:
    """Raise PluginContractError when a declaration contradicts itself or its entry point."""
    complain = _complaints(key, "accel_declare")
    if declaration.key != key:
        raise complain("DEC-001", f"declares the key {declaration.key!r} under the entry point {key!r}")
    for name, support in declaration.capabilities.items():
        if support.state is not SupportState.SUPPORTED and not support.reason:
            raise complain("DEC-002", f"declares {name} as {support.state.value} without a reason")
    for rule in declaration.matches:
        if not rule.is_specific:
            raise complain("DEC-003", f"has a match rule that names neither vendor nor driver: {rule!r}")


def check_contract_version(plugin: str, declaration: Declaration) -> None:
    """Raise PluginVersionError for a plugin written for another major version of the contract."""
    theirs, ours = declaration.contract_version, CONTRACT_VERSION
    if theirs.partition(".")[0] != ours.partition(".")[0]:
        raise PluginVersionError(
            f"plugin {plugin!r} was written for contract {theirs}, this anyaccel speaks {ours}",
            plugin=plugin,
            hook="accel_declare",
            requirement="DEC-001",
            hint="install a version of the plugin and of anyaccel that fit together",
        )


def check_discovery(plugin: str, discovery: Discovery) -> None:
    """Raise PluginContractError when a discovery breaks a rule that core can see."""
    complain = _complaints(plugin, "accel_discover_devices")
    if not discovery.devices and not discovery.reason:
        raise complain("DISC-002", "found no device and gives no reason")
    _check_devices(plugin, discovery.devices, complain)


def check_inspection(plugin: str, before: Iterable[Device], inspection: Inspection) -> None:
    """Raise PluginContractError when an inspection moved, renamed or lost a device, or holds impossible values."""
    complain = _complaints(plugin, "accel_inspect_devices")
    _check_devices(plugin, inspection.devices, complain)
    known = [(device.id, device.parent) for device in before]
    kept = [(d.id, d.parent) for d in inspection.devices if (d.id, d.parent) in set(known)]
    if kept != known:
        raise complain("INSP-001", "changed the id, parent or order of discovered devices")


def _complaints(plugin: str, hook: str) -> _Complain:
    def complain(requirement: str, message: str) -> PluginContractError:
        return PluginContractError(
            f"plugin {plugin!r} {message} (in {hook})", plugin=plugin, hook=hook, requirement=requirement
        )

    return complain


def _check_devices(plugin: str, devices: tuple[Device, ...], complain: _Complain) -> None:
    if not isinstance(devices, tuple) or not all(isinstance(device, Device) for device in devices):
        raise complain("DISC-001", "returned something else than a tuple of Device")
    seen: set[str] = set()
    for device in devices:
        if device.id in seen:
            raise complain("DISC-003", f"uses the id {device.id!r} twice")
        if not device.id.startswith(f"{plugin}:") or device.family != plugin:
            raise complain("DISC-003", f"returned the id {device.id!r} of family {device.family!r}")
        if device.parent is not None and device.parent not in seen:
            raise complain("DISC-003", f"lists {device.id!r} before its parent {device.parent!r}")
        _check_values(device, complain)
        seen.add(device.id)


def _check_values(device: Device, complain: _Complain) -> None:
    for name in ("memory_bytes", "numa_node", "max_per_process"):
        value = getattr(device, name)
        if value is not None and value < 0:
            raise complain("DISC-007", f"gives {name}={value} for {device.id!r}; unknown is None with a reason")
