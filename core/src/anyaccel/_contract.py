"""Checks of what hooks answer. Each broken rule is named with the requirement that states it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

from anyaccel._exact import why_not_exact
from anyaccel.capabilities import CONTRACT_VERSION, Declaration, SupportState
from anyaccel.device import Device, Discovery, Inspection
from anyaccel.errors import PluginContractError, PluginVersionError
from anyaccel.frozen import FrozenMap
from anyaccel.pci import normal_address

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
    "accel_read_metrics": ("anyaccel.metrics:Reading ...", "MET-001"),
    "accel_diagnose": ("anyaccel.metrics:Finding ...", "DIA-001"),
    "accel_observe_runtime": ("builtins:str ...", "OBS-001"),
    "accel_simulate": ("anyaccel.machine_description:SimulatedFamily", "SIM-001"),
    "accel_filter_devices": ("collections.abc:Mapping", "FIL-001"),
}
"""What each hook answers, by name: modules that a command does not need are not imported for it. `...`: a tuple of these."""

_DEEPEST_UNIT = 8
"""Levels of the unit tree that core walks; card, device, partition and core are four."""


def _types(names: str) -> tuple[type, ...]:
    module, _, classes = names.partition(":")
    return tuple(getattr(import_module(module), name) for name in classes.removesuffix(" ...").split())


def check_answer(plugin: str, hook: str, answer: Any) -> None:
    """Raise PluginContractError unless an answer is exactly of the type its hook promises, all the way down."""
    names, requirement = _RESULTS[hook]
    types = _types(names)
    problem = _wrong_kind(hook, answer, types, is_many=names.endswith(" ...")) or _wrong_part(answer, types)
    if problem is not None:
        raise PluginContractError(
            f"plugin {plugin!r} returned {problem}", plugin=plugin, hook=hook, requirement=requirement
        )


def _wrong_kind(hook: str, answer: Any, types: tuple[type, ...], *, is_many: bool) -> str | None:
    found = type(answer)
    wanted = (tuple,) if is_many else (dict, FrozenMap) if types == (Mapping,) else types
    if found not in wanted:
        named = ("tuple",) if is_many else tuple(cls.__name__ for cls in types)
        return f"{found.__name__} from {hook}, not {' or '.join(named)}"
    if is_many and any(type(entry) is not types[0] for entry in answer):
        return f"something else than {types[0].__name__} inside the tuple of {hook}"
    return None


def _wrong_part(answer: Any, types: tuple[type, ...]) -> str | None:
    hint = Mapping[str, str] if types == (Mapping,) else type(answer)
    if hint is not tuple:
        return why_not_exact(answer, hint)
    told = (why_not_exact(entry, types[0], f"[{number}]") for number, entry in enumerate(answer))
    return next((reason for reason in told if reason is not None), None)


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
    depths: dict[str | None, int] = {None: 0}
    for device in devices:
        if device.id in depths:
            raise complain("DISC-003", f"uses the id {device.id!r} twice")
        if not device.id.startswith(f"{plugin}:") or device.family != plugin:
            raise complain("DISC-003", f"returned the id {device.id!r} of family {device.family!r}")
        if device.parent not in depths:
            raise complain("DISC-003", f"lists {device.id!r} before its parent {device.parent!r}")
        _check_values(device, complain)
        depths[device.id] = depths[device.parent] + 1
        if depths[device.id] > _DEEPEST_UNIT:
            raise complain("DISC-003", f"nests {device.id!r} more than {_DEEPEST_UNIT} levels deep")


def _check_values(device: Device, complain: _Complain) -> None:
    strange = next((a for a in device.pci_addresses if normal_address(a) != a), None)
    if strange is not None:
        raise complain("DISC-003", f"gives {strange!r} as a PCI address of {device.id!r}")
    for name in ("memory_bytes", "numa_node", "max_per_process"):
        value = getattr(device, name)
        if value is not None and value < 0:
            raise complain("DISC-007", f"gives {name}={value} for {device.id!r}; unknown is None with a reason")
