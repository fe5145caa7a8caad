"""Machine + registry → Inventory: the one way in which everything learns what a machine holds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from anyaccel import _contract
from anyaccel.device import Blocks, Condition, Device, DeviceState, Discovery, FamilyView, Inspection
from anyaccel.errors import AccelError, PluginContractError, UnavailableError
from anyaccel.frozen import FrozenMap
from anyaccel.host import read_boundary, read_host
from anyaccel.inventory import Inventory, OutcomeStatus, PluginOutcome
from anyaccel.machine import Deadline, Machine, Recorder, live_machine
from anyaccel.pci import address_key
from anyaccel.registry import Plugin, Registry
from anyaccel.topology import Boundary, FabricNode, HostParts, Link, TopologyReport
from anyaccel.unclaimed import KnownFamily, unclaimed_hardware

if TYPE_CHECKING:
    from anyaccel import _probe
    from anyaccel.visibility import Resolution

__all__ = ["DISCOVER_TIMEOUT_SECONDS", "KnownFamily", "discover"]

DISCOVER_TIMEOUT_SECONDS = 2.0
"""The usual limit for one plugin's file reading, after which its rows are given up."""


@dataclass
class _Work:
    """What is known of one plugin while the inventory is made."""

    plugin: Plugin
    discovery: Discovery = field(default_factory=Discovery)
    devices: tuple[Device, ...] = ()
    links: tuple[Link, ...] = ()
    fabric: tuple[FabricNode, ...] = ()
    notes: tuple[str, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)
    reason: str | None = None
    hint: str | None = None
    broken: PluginOutcome | None = None
    resolution: Resolution | None = None

    def break_with(self, reason: str, **more: str | None) -> None:
        """Note what went wrong; the first cause stands."""
        if self.broken is None:
            self.broken = self._outcome(OutcomeStatus.BROKEN, reason=reason, **more)

    def break_with_error(self, error: AccelError, hook: str) -> None:
        requirement = getattr(error, "requirement", None)
        self.break_with(error.message, hint=error.hint, hook=hook, code=error.code, requirement=requirement)

    def blame(self, misdeeds: Iterable[str]) -> None:
        """Note forbidden side effects; the rows stay."""
        for misdeed in misdeeds:
            self.break_with(
                f"plugin {self.plugin.key!r} {misdeed} [DISC-005]",
                code=PluginContractError.code,
                requirement="DISC-005",
            )

    def outcome(self) -> PluginOutcome:
        """Give what came of the plugin."""
        if self.broken is not None:
            return replace(self.broken, device_count=len(self.devices))
        if self.devices:
            return self._outcome(OutcomeStatus.FOUND)
        return self._outcome(OutcomeStatus.NOTHING, reason=self.discovery.reason, hint=self.discovery.hint)

    def _outcome(self, status: OutcomeStatus, **more: Any) -> PluginOutcome:
        plugin = self.plugin
        return PluginOutcome(
            plugin.key, status, plugin.distribution, plugin.version, device_count=len(self.devices), **more
        )

    def view(self, boundary: Boundary) -> FamilyView:
        """Give the family as pure hooks see it."""
        facts = FrozenMap({**self.discovery.facts, **self.facts})
        return FamilyView(self.plugin.key, self.devices, self.links, boundary, facts)


def discover(
    machine: Machine | None = None,
    registry: Registry | None = None,
    *,
    timeout_seconds: float = 10.0,
    isolate: bool | None = None,
    on_progress: Callable[[str], None] | None = None,
    known: Sequence[KnownFamily] = (),
    recorder: Recorder | None = None,
) -> Inventory:
    """Find out what accelerators a machine holds, how they are connected and what is visible.

    Args: machine: None = this one. registry: None = what is installed. timeout_seconds: for everything together.
        isolate: ask drivers in probe children; None = where a driver is really asked. on_progress: takes a sentence when
        it lasts. known: families whose hardware shall be named when their plugin is missing. recorder: takes what was
        read and answered.
    Returns: the inventory; a bad plugin costs only its own rows and is named in the outcomes.
    Example: discover(machine, registry).devices[0].family == "example"
    """
    machine = machine or live_machine()
    machine = machine.with_deadline(Deadline(timeout_seconds))
    if recorder is not None:
        machine = machine.with_journal(recorder.journal)
    registry = registry or Registry.installed()
    boundary = read_boundary(machine)
    works = [_Work(plugin) for plugin in registry.plugins]
    for work in works:
        work.blame(f"{misdeed} while it was loaded" for misdeed in work.plugin.misdeeds)
        _find(work, machine)
    conflicts = _settle_conflicts(works, machine)
    results = _ask(works, machine, on_progress, isolate=isolate)
    for work in works:
        if work.plugin.key in results:
            _take_result(work, results[work.plugin.key], recorder)
    for work in works:
        work.devices = _ordered(work.devices)
    _apply_policies(works, machine)
    for work in works:
        _resolve(work, machine, boundary)
    machine = machine.with_deadline(Deadline(None))
    inventory = _assembled(works, registry, machine, boundary)
    failures = [*registry.failures, *(work.broken for work in works if work.broken is not None)]
    unclaimed = unclaimed_hardware(machine, _claimed(works), _working(works), failures, known)
    return replace(inventory, conflicts=conflicts, unclaimed=tuple(unclaimed))


def _claimed(works: Sequence[_Work]) -> frozenset[str]:
    devices = [device for work in works for device in work.devices]
    addresses = {name for device in devices for name in (*device.pci_addresses, *device.nodes)}
    return frozenset(addresses.union(*(work.discovery.claimed for work in works)))


def _working(works: Sequence[_Work]) -> frozenset[str]:
    return frozenset(work.plugin.key for work in works if work.broken is None)


def _file_seconds(machine: Machine) -> float:
    """Give one plugin's limit for reading files: a fifth of the command's time, and not less than the usual limit.

    Never more than half of what is left, so that one that hangs leaves the others their time.
    """
    left = machine.deadline.seconds_left()
    return DISCOVER_TIMEOUT_SECONDS if left is None else min(max(DISCOVER_TIMEOUT_SECONDS, left / 5), left / 2)


def _pure_seconds(machine: Machine) -> float:
    """Give one plugin's limit for a hook that computes only; there is always time for a short one."""
    left = machine.deadline.seconds_left()
    return DISCOVER_TIMEOUT_SECONDS if left is None else min(DISCOVER_TIMEOUT_SECONDS, max(left / 2, 0.25))


def _find(work: _Work, machine: Machine) -> None:
    hook = "accel_discover_devices"
    key = work.plugin.key
    seconds = _file_seconds(machine)
    guarded = work.plugin.call_guarded(hook, timeout_seconds=seconds, machine=machine.for_plugin(key))
    work.blame(f"{misdeed} in {hook}" for misdeed in guarded.misdeeds)
    try:
        discovery = work.plugin.opened(hook, guarded)
        _contract.check_discovery(key, discovery)
    except AccelError as error:
        work.break_with_error(error, hook)
        return
    work.discovery, work.devices, work.notes = discovery, discovery.devices, discovery.notes


def _settle_conflicts(works: Sequence[_Work], machine: Machine) -> tuple[str, ...]:
    """Give one physical device to one plugin: the owner of the PCI vendor id first, then the first key."""
    claims: dict[str, list[_Work]] = {}
    for work in works:
        for address in {a for device in work.devices for a in device.pci_addresses}:
            claims.setdefault(address, []).append(work)
    conflicts = []
    for address in sorted((a for a, who in claims.items() if len(who) > 1), key=address_key):
        who = claims[address]
        owners = [work for work in who if _owns_vendor(work, address, machine)]
        winner = (owners or who)[0]
        rule = "it owns the PCI vendor id" if len(owners) == 1 else "its key comes first"
        names = " and ".join(work.plugin.key for work in who)
        conflicts.append(f"{address} is claimed by plugins {names}; {winner.plugin.key} keeps it because {rule}")
        for work in who:
            if work is not winner:
                work.devices = _without(work.devices, address)
                reason = f"what it found belongs to plugin {winner.plugin.key}"
                work.discovery = replace(work.discovery, reason=work.discovery.reason or reason)
    return tuple(conflicts)


def _owns_vendor(work: _Work, address: str, machine: Machine) -> bool:
    function = next((f for f in machine.pci_functions() if f.address == address), None)
    rules = work.plugin.declaration.matches
    return function is not None and any(rule.vendor_id == function.vendor_id for rule in rules)


def _without(devices: tuple[Device, ...], address: str) -> tuple[Device, ...]:
    gone: set[str] = set()
    for device in devices:
        if address in device.pci_addresses or device.parent in gone:
            gone.add(device.id)
    return tuple(device for device in devices if device.id not in gone)


def _ask(
    works: Sequence[_Work],
    machine: Machine,
    on_progress: Callable[[str], None] | None,
    *,
    isolate: bool | None,
) -> Mapping[str, _probe.ProbeResult]:
    askable = [work for work in works if work.devices and _hooks(work.plugin)]
    if not askable:
        return {}
    from anyaccel import _probe, _probe_child
    from anyaccel.asking import needs_child

    requests = {work.plugin.key: _request(work, machine) for work in askable}
    if needs_child(machine) if isolate is None else isolate:
        return _probe.run_probes(tuple(requests.values()), on_progress)
    return {work.plugin.key: _probe_child.run_here(work.plugin, requests[work.plugin.key]) for work in askable}


def _hooks(plugin: Plugin) -> tuple[str, ...]:
    return tuple(hook for hook in ("accel_inspect_devices", "accel_describe_topology") if plugin.implements(hook))


def _request(work: _Work, machine: Machine) -> _probe.ProbeRequest:
    from anyaccel import _probe

    plugin = work.plugin
    left = machine.deadline.seconds_left()
    limit = plugin.declaration.probe_timeout_seconds
    return _probe.ProbeRequest(
        key=plugin.key,
        module_name=plugin.module_name,
        machine=machine.for_plugin(plugin.key),
        devices=work.devices,
        hooks=_hooks(plugin),
        timeout_seconds=limit if left is None else min(limit, left),
        is_live=machine.is_live,
        wants_journal=machine.journal is not None,
    )


def _take_result(work: _Work, result: _probe.ProbeResult, recorder: Recorder | None) -> None:
    work.blame(result.misdeeds)
    if recorder is not None:
        recorder.documents[work.plugin.key] = dict(result.documents)
        if result.journal is not None:
            recorder.journal.merge(result.journal)
    inspection = result.answers.get("accel_inspect_devices")
    if inspection is not None:
        _take_inspection(work, inspection)
    report = result.answers.get("accel_describe_topology")
    if report is not None:
        _take_topology(work, report)
    for hook, error in result.errors.items():
        _take_error(work, hook, error)
    if result.failure is not None:
        work.break_with(
            f"plugin {work.plugin.key!r}: {result.failure}", hint=result.hint, hook=result.hook, code="probe-failed"
        )
        work.devices = _with_condition(work.devices, _unasked("probe-failed", result.failure, result.hint))


def _take_inspection(work: _Work, inspection: Inspection) -> None:
    try:
        _contract.check_inspection(work.plugin.key, work.devices, inspection)
    except PluginContractError as error:
        work.break_with_error(error, "accel_inspect_devices")
        work.devices = ()
        return
    work.devices = inspection.devices
    work.notes += inspection.notes
    work.facts.update(inspection.facts)


def _take_topology(work: _Work, report: TopologyReport) -> None:
    known = {device.id for device in work.devices} | {node.id for node in report.nodes}
    for link in report.links:
        stranger = next((end for end in (link.a, link.b) if end not in known and not _is_host_end(end)), None)
        if stranger is not None or link.a == link.b:
            what = f"to unknown device {stranger!r}" if stranger else f"from {link.a!r} to itself"
            work.break_with(
                f"plugin {work.plugin.key!r} returned a link {what} [TOPO-001]",
                hook="accel_describe_topology",
                code=PluginContractError.code,
                requirement="TOPO-001",
            )
            return
    work.links, work.fabric = report.links, report.nodes
    work.notes += report.notes


def _is_host_end(end: str) -> bool:
    return re.fullmatch(r"numa:\d+", end) is not None


def _take_error(work: _Work, hook: str, error: AccelError) -> None:
    if isinstance(error, UnavailableError):
        work.devices = _with_condition(work.devices, _unasked(error.reason_code, error.message, error.hint))
        return
    work.break_with_error(error, hook)
    if hook == "accel_inspect_devices":
        work.devices = _with_condition(work.devices, _unasked(error.code, error.message, error.hint))


def _unasked(code: str, reason: str, hint: str | None) -> Condition:
    return Condition(code, f"the driver was not heard: {reason}", DeviceState.UNKNOWN, Blocks.NOTHING, hint)


def _with_condition(devices: tuple[Device, ...], condition: Condition) -> tuple[Device, ...]:
    return tuple(d if condition in d.conditions else replace(d, conditions=(condition, *d.conditions)) for d in devices)


def _ordered(devices: tuple[Device, ...]) -> tuple[Device, ...]:
    """Put devices in the order of their place: address as numbers, then unit path; children right after their parent."""
    children: dict[str | None, list[Device]] = {}
    for device in devices:
        children.setdefault(device.parent, []).append(device)
    ordered: list[Device] = []

    def walk(parent: str | None) -> None:
        for device in sorted(children.get(parent, ()), key=_place_key):
            ordered.append(device)
            walk(device.id)

    walk(None)
    return tuple(ordered)


def _place_key(device: Device) -> tuple[Any, ...]:
    address = min((address_key(a) for a in device.pci_addresses), default=(1 << 41, 0, 0, 0))
    path = device.id if device.parent is None else device.id.removeprefix(device.parent)
    return (address, tuple((int(p), "") if p.isdigit() else (1 << 62, p) for p in re.split(r"(\d+)", path) if p))


def _apply_policies(works: Sequence[_Work], machine: Machine) -> None:
    everything = tuple(device for work in works for device in work.devices)
    for work in works:
        if not everything or not work.plugin.implements("accel_filter_devices"):
            continue
        hook = "accel_filter_devices"
        guarded = work.plugin.call_guarded(hook, timeout_seconds=_pure_seconds(machine), devices=everything)
        work.blame(f"{misdeed} in {hook}" for misdeed in guarded.misdeeds)
        try:
            reasons: Mapping[str, str] = work.plugin.opened(hook, guarded)
        except AccelError as error:
            work.break_with_error(error, hook)
            continue
        for other in works:
            other.devices = tuple(_hidden_by_policy(device, reasons, work.plugin.key) for device in other.devices)


def _hidden_by_policy(device: Device, reasons: Mapping[str, str], plugin: str) -> Device:
    if device.id not in reasons:
        return device
    reason = f"hidden by the policy of plugin {plugin!r}: {reasons[device.id]}"
    condition = Condition("hidden-by-policy", reason, DeviceState.HIDDEN)
    return replace(device, conditions=(*device.conditions, condition), is_counted=False)


def _resolve(work: _Work, machine: Machine, boundary: Boundary) -> None:
    hook = "accel_resolve_visibility"
    if not work.devices or not work.plugin.implements(hook):
        return
    view = work.view(boundary)
    guarded = work.plugin.call_guarded(
        hook, timeout_seconds=_pure_seconds(machine), view=view, environ=dict(machine.environ)
    )
    work.blame(f"{misdeed} in {hook}" for misdeed in guarded.misdeeds)
    try:
        resolution: Resolution = work.plugin.opened(hook, guarded)
    except AccelError as error:
        work.break_with_error(error, hook)
        return
    work.resolution = resolution
    work.devices = tuple(_with_visibility(device, resolution) for device in work.devices)


def _with_visibility(device: Device, resolution: Resolution) -> Device:
    variable = resolution.hidden_by.get(device.id)
    if variable is None:
        return device
    condition = Condition("hidden", f"hidden by {variable}", DeviceState.HIDDEN)
    return replace(device, conditions=(*device.conditions, condition))


def _assembled(works: Sequence[_Work], registry: Registry, machine: Machine, boundary: Boundary) -> Inventory:
    views = tuple(work.view(boundary) for work in works if work.devices)
    addresses = {a for view in views for device in view.devices for a in device.pci_addresses}
    addresses |= {node.pci_address for work in works for node in work.fabric if node.pci_address is not None}
    host = read_host(machine, addresses, boundary) if views else HostParts(boundary=boundary)
    outcomes = sorted((*(work.outcome() for work in works), *registry.failures), key=lambda outcome: outcome.plugin)
    return Inventory(
        views=views,
        resolutions=FrozenMap({work.plugin.key: work.resolution for work in works if work.resolution is not None}),
        outcomes=tuple(outcomes),
        host=host,
        fabric=tuple(node for work in works for node in work.fabric),
        notes=tuple(note for work in works for note in work.notes) + host.warnings,
        kind=machine.kind,
        name=machine.name,
    )
