"""Laws of the declaration: what is promised is there, what is refused is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping

from anyaccel.capabilities import CONTRACT_VERSION, Capability, SupportState
from anyaccel.device import FamilyView, Level
from anyaccel.errors import CapabilityNotSupportedError, SelectionNotExpressibleError
from anyaccel.machine import Machine
from anyaccel.machine_description import MachineDescription
from anyaccel.registry import Plugin
from anyaccel.resources import LegalSets, Refusal, ResourceRequest
from anyaccel.visibility import Selection
from anyaccel_conformance.laws.breach import need

__all__ = ["HOOKS_OF", "check_capabilities", "check_declaration", "check_refusal"]

HOOKS_OF: Mapping[Capability, tuple[str, ...]] = {
    Capability.INSPECT: ("accel_inspect_devices",),
    Capability.LINKS: ("accel_describe_topology",),
    Capability.VISIBILITY: ("accel_resolve_visibility", "accel_visibility_environment"),
    Capability.HIDE_ALL: ("accel_visibility_environment",),
    Capability.LEGAL_SETS: ("accel_validate_request",),
    Capability.METRICS: ("accel_read_metrics",),
    Capability.DIAGNOSE: ("accel_diagnose",),
    Capability.OBSERVE_RUNTIME: ("accel_observe_runtime",),
    Capability.SIMULATE: ("accel_simulate",),
}
"""The hooks that a supported capability needs; what is missing here shows in devices and answers instead."""


def check_declaration(plugin: Plugin) -> bool:
    """DEC-001, DEC-003, DEC-004: key, version, rules that name an owner, and the same answer twice."""
    declaration = plugin.declaration
    need(
        declaration.key == plugin.key,
        "DEC-001",
        f"declares the key {declaration.key!r} and is loaded as {plugin.key!r}",
    )
    need(re.fullmatch(r"[a-z][a-z0-9-]*", plugin.key), "DEC-001", f"key {plugin.key!r} is no lower-case word")
    need(declaration.title.strip(), "DEC-001", "declares no title")
    major, ours = declaration.contract_version.partition(".")[0], CONTRACT_VERSION.partition(".")[0]
    need(major == ours, "DEC-001", f"is written for contract {declaration.contract_version}, not {CONTRACT_VERSION}")
    need(declaration.matches, "DEC-003", "declares no rule to recognise its hardware by")
    for rule in declaration.matches:
        need(rule.is_specific, "DEC-003", f"has a rule that names no owner: {rule}")
    need(plugin.call("accel_declare") == declaration, "DEC-004", "declares something else at the second call")
    return True


def check_capabilities(plugin: Plugin) -> bool:
    """DEC-002: every capability is declared, with its hooks or with a reason."""
    declared = plugin.declaration.capabilities
    known = {capability.value for capability in Capability}
    need(set(declared) <= known, "DEC-002", f"declares unknown capabilities {sorted(set(declared) - known)}")
    for capability in Capability:
        support = declared.get(capability.value)
        if support is None:
            need(False, "DEC-002", f"does not say whether it has {capability.value}")
        elif support.state is SupportState.SUPPORTED:
            missing = [hook for hook in HOOKS_OF.get(capability, ()) if not plugin.implements(hook)]
            need(not missing, "DEC-002", f"declares {capability.value} as supported without {', '.join(missing)}")
        else:
            reason = (support.reason or "").strip()
            need(reason, "DEC-002", f"declares {capability.value} as {support.state.value} without a reason")
    return True


def check_refusal(plugin: Plugin, machine: Machine, view: FamilyView, capability: Capability) -> bool:
    """DEC-002: what was declared as not supported is refused, or is not there, when somebody asks for it."""
    if capability is Capability.PARTITIONS:
        found = [device.id for device in view.devices if device.level is Level.PARTITION]
        need(not found, "DEC-002", f"declares no partitions and lists {found[:3]}")
    elif capability is Capability.FRACTIONS:
        _check_no_fractions(plugin, view)
    elif capability is Capability.HIDE_ALL:
        _check_no_hiding(plugin, view)
    elif capability is Capability.LEGAL_SETS:
        _check_no_legal_sets(plugin, view)
    else:
        for hook in HOOKS_OF[capability]:
            need(
                _is_refused(plugin, hook, machine, view),
                "DEC-002",
                f"declares no {capability.value}, yet {hook} answers",
            )
    return True


def _check_no_fractions(plugin: Plugin, view: FamilyView) -> None:
    if not plugin.implements("accel_validate_request"):
        return
    for resource in plugin.declaration.resources:
        request = ResourceRequest(resource.kind, 0.5)
        answer = plugin.call("accel_validate_request", view=view, request=request)
        need(isinstance(answer, Refusal), "DEC-002", f"declares no fractions and grants half of {resource.kind!r}")


def _check_no_legal_sets(plugin: Plugin, view: FamilyView) -> None:
    """Refusing an impossible amount is no rule about sets; listing sets is."""
    if not plugin.implements("accel_validate_request"):
        return
    for resource in plugin.declaration.resources:
        request = ResourceRequest(resource.kind, 2)
        answer = plugin.call("accel_validate_request", view=view, request=request)
        need(
            not isinstance(answer, LegalSets), "DEC-002", f"declares no legal sets and lists some for {resource.kind!r}"
        )


def _check_no_hiding(plugin: Plugin, view: FamilyView) -> None:
    need(not plugin.declaration.hide_all, "DEC-002", "declares values that hide all, and that nothing hides all")
    if not plugin.implements("accel_visibility_environment"):
        return
    try:
        arguments = {"view": view, "selection": Selection(), "environ": {}, "gang": None}
        plugin.call("accel_visibility_environment", **arguments)
    except (SelectionNotExpressibleError, CapabilityNotSupportedError):
        return
    need(False, "DEC-002", "declares that nothing hides all, and gives an environment for no device")


def _is_refused(plugin: Plugin, hook: str, machine: Machine, view: FamilyView) -> bool:
    known = {
        "machine": machine,
        "devices": view.devices,
        "view": view,
        "environ": {},
        "selection": Selection(),
        "gang": None,
        "description": MachineDescription("nothing"),
    }
    try:
        plugin.call(hook, **{name: known[name] for name in _ARGUMENTS[hook]})
    except CapabilityNotSupportedError:
        return True
    return False


_ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "accel_inspect_devices": ("machine", "devices"),
    "accel_describe_topology": ("machine", "devices"),
    "accel_resolve_visibility": ("view", "environ"),
    "accel_visibility_environment": ("view", "selection", "environ", "gang"),
    "accel_read_metrics": ("machine", "devices"),
    "accel_diagnose": ("machine", "devices"),
    "accel_observe_runtime": ("machine",),
    "accel_simulate": ("description",),
}
