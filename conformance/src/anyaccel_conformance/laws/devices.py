"""Laws of discovery and inspection: what is listed, under which id, and what an unknown looks like."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from anyaccel.device import Device, DeviceState, Discovery, FamilyView, Inspection, Level
from anyaccel.errors import AccelError, PluginError, UnavailableError
from anyaccel.frozen import FrozenMap
from anyaccel.machine import Answers, Journal, Machine, NoAnswers, StoredAnswers
from anyaccel.pci import address_key
from anyaccel.registry import Plugin
from anyaccel_conformance.laws.breach import RequirementBrokenError, need

__all__ = [
    "check_discovery_is_stable",
    "check_discovery_without_driver",
    "check_ids",
    "check_inspection_keeps_devices",
    "check_inspection_without_driver",
    "check_memory",
    "check_unknown_values",
    "discover_again",
    "without_driver",
]

_DEPTH = list(Level)


class _Listening(Answers):
    """Answers nothing and keeps what was asked."""

    def __init__(self) -> None:
        self.topics: list[str] = []

    def answer(self, topic: str, collect: Callable[[], Any]) -> Any:
        self.topics.append(topic)
        raise UnavailableError("the kit lets nobody answer", reason_code="no-live-questions")


def discover_again(plugin: Plugin, machine: Machine) -> Discovery:
    """Ask for a discovery, with every file read anew."""
    discovery: Discovery = plugin.call("accel_discover_devices", machine=machine.with_journal(Journal()))
    return discovery


def without_driver(machine: Machine) -> Machine:
    """Give the same machine with nobody there to answer."""
    return machine.with_answers({"*": NoAnswers("the kit lets nobody answer")})


def check_ids(plugin: Plugin, devices: Iterable[Device]) -> bool:
    """DISC-003: ids belong to the family and are unique; parents come first and lie higher."""
    levels: dict[str, Level] = {}
    for device in devices:
        need(device.family == plugin.key, "DISC-003", f"{device.id} is of family {device.family!r}")
        need(device.id.startswith(f"{plugin.key}:"), "DISC-003", f"id {device.id!r} does not begin with the key")
        need(device.id not in levels, "DISC-003", f"id {device.id!r} is there twice")
        if device.parent is not None:
            need(device.parent in levels, "DISC-003", f"{device.id} comes before its parent {device.parent!r}")
            deeper = _DEPTH.index(device.level) > _DEPTH.index(levels[device.parent])
            need(deeper, "DISC-003", f"{device.id} is a {device.level.value} below a {levels[device.parent].value}")
        levels[device.id] = device.level
    return bool(levels)


def check_discovery_is_stable(plugin: Plugin, machine: Machine) -> bool:
    """DISC-004: twice the same, roots in the order of their addresses as numbers."""
    first, second = discover_again(plugin, machine), discover_again(plugin, machine)
    for before, after in zip(first.devices, second.devices, strict=False):
        need(before == after, "DISC-004", f"a second discovery gives {after}, the first gave {before}")
    need(first == second, "DISC-004", "a second discovery gives another answer")
    roots = [device for device in first.devices if device.parent is None]
    places = [min(map(address_key, root.pci_addresses)) for root in roots if root.pci_addresses]
    need(places == sorted(places), "DISC-004", f"roots are not in the order of their PCI addresses: {places}")
    return bool(first.devices)


def check_discovery_without_driver(plugin: Plugin, machine: Machine) -> bool:
    """DISC-006: discovery asks nobody, and whoever would answer changes nothing."""
    listening = _Listening()
    alone = discover_again(plugin, machine.with_answers({"*": listening}))
    need(not listening.topics, "DISC-006", f"discovery asks the driver {', '.join(listening.topics)}")
    with_driver = discover_again(plugin, machine)
    ids = ({d.id for d in alone.devices}, {d.id for d in with_driver.devices})
    need(ids[0] == ids[1], "DISC-006", f"without the driver other devices are found: {sorted(ids[0] ^ ids[1])}")
    return bool(with_driver.devices)


def check_unknown_values(devices: Iterable[Device], *, was_inspected: bool) -> bool:
    """DISC-007: unknown is None with a reason, never 0, a negative number or an empty text."""
    count = 0
    for device in devices:
        count += 1
        for name in ("memory_bytes", "max_per_process"):
            value = getattr(device, name)
            need(value is None or value > 0, "DISC-007", f"{device.id} has {name}={value}")
        for name in ("model", "uuid", "driver", "driver_version"):
            need(getattr(device, name) != "", "DISC-007", f"{device.id} has an empty {name}")
        need(device.numa_node is None or device.numa_node >= 0, "DISC-007", f"{device.id} is on NUMA node -1")
        for name in _silent_fields(device, was_inspected=was_inspected):
            need(device.why_unknown(name), "DISC-007", f"{device.id} has {name}=None without a reason")
    return count > 0


def _silent_fields(device: Device, *, was_inspected: bool) -> Iterable[str]:
    """Give what is None and needs a reason; a lost device has said in its condition why it tells nothing."""
    if device.state is DeviceState.LOST:
        return
    fields = ["model", "numa_node"]
    if was_inspected and device.memory_owner in (None, device.id):
        fields.append("memory_bytes")
    yield from (name for name in fields if getattr(device, name) is None)
    yield from (f"numbers.{space}" for space, number in device.numbers.items() if number is None)
    yield from (f"attributes.{key}" for key, value in device.attributes.items() if value is None)


def _inspect(plugin: Plugin, machine: Machine, devices: tuple[Device, ...]) -> Inspection | None:
    """Ask for an inspection; None when the driver does not answer, which is said by an error of the machine or device."""
    try:
        inspection: Inspection = plugin.call("accel_inspect_devices", machine=machine, devices=devices)
    except PluginError:
        raise
    except AccelError:
        return None
    return inspection


def check_inspection_keeps_devices(plugin: Plugin, machine: Machine) -> bool:
    """INSP-001: every device is kept with id, parent and order; what is new lies below something."""
    devices = discover_again(plugin, machine).devices
    inspection = _inspect(plugin, machine, devices) if devices else None
    if inspection is None:
        return False
    _need_kept(devices, inspection, "INSP-001")
    known = {device.id for device in devices}
    seen: set[str] = set()
    for device in inspection.devices:
        if device.id not in known:
            need(device.parent in seen, "INSP-001", f"the new device {device.id} does not come behind its parent")
        seen.add(device.id)
    return True


def _need_kept(devices: tuple[Device, ...], inspection: Inspection, requirement: str) -> None:
    before = [(device.id, device.parent) for device in devices]
    known = {device.id for device in devices}
    after = [(device.id, device.parent) for device in inspection.devices if device.id in known]
    need(after == before, requirement, f"inspection gives {after} for the discovered devices {before}")


def check_memory(view: FamilyView) -> bool:
    """INSP-002: an owner is the device or one above it; parts never own more than the whole has."""
    for device in view.devices:
        above = (device.id, *view.ancestors(device.id))
        owner = device.memory_owner
        need(
            owner is None or owner in above, "INSP-002", f"{device.id} draws memory from {owner}, which is not above it"
        )
        total = sum(_own_memory(part) for part in view.devices if device.id in view.ancestors(part.id))
        whole = device.memory_bytes
        need(
            whole is None or total <= whole,
            "INSP-002",
            f"the parts of {device.id} own {total} bytes, itself has {whole}",
        )
    return any(device.memory_bytes is not None for device in view.devices)


def _own_memory(device: Device) -> int:
    return (device.memory_bytes or 0) if device.memory_owner in (None, device.id) else 0


def check_inspection_without_driver(plugin: Plugin, machine: Machine) -> bool:
    """INSP-003: with no answer, and with every single answer missing in turn, the rows stay."""
    devices = discover_again(plugin, machine).devices
    if not devices:
        return False
    for silent in (without_driver(machine), *_with_one_silent(plugin, machine)):
        try:
            inspection = _inspect(plugin, silent, devices)
        except PluginError as error:
            raise RequirementBrokenError("INSP-003", f"a driver that does not answer: {error.message}") from error
        if inspection is not None:
            _need_kept(devices, inspection, "INSP-003")
    return True


def _with_one_silent(plugin: Plugin, machine: Machine) -> Iterable[Machine]:
    answers = machine.answers.get(plugin.key)
    if isinstance(answers, StoredAnswers):
        for topic in answers.documents:
            rest = FrozenMap({name: document for name, document in answers.documents.items() if name != topic})
            yield machine.with_answers({**machine.answers, plugin.key: StoredAnswers(rest)})
