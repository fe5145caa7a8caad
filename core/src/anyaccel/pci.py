"""PCI functions as the kernel shows them: ids, bridge chain, NUMA node, link, driver; and devices made of them.

Files: Documentation/ABI/testing/sysfs-bus-pci of the kernel; a dead link reads all ones (PCI specification).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anyaccel.capabilities import MatchRule
from anyaccel.cpus import local_cpus, node_cpus, online_cpus
from anyaccel.device import Blocks, Condition, Device, DeviceState, Level
from anyaccel.errors import FileUnavailableError
from anyaccel.frozen import FrozenMap
from anyaccel.topology import PcieLink, PciPath

if TYPE_CHECKING:
    from anyaccel.machine import Machine

__all__ = [
    "PciDetail",
    "PciFunction",
    "address_key",
    "device_from_function",
    "match_functions",
    "node_condition",
    "normal_address",
    "read_detail",
    "read_functions",
]

_DEVICES = "/sys/bus/pci/devices"
_ADDRESS = re.compile(r"^([0-9a-f]{4,8}):([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])$")
_ROOT = re.compile(r"^pci[0-9a-f]{4,8}:[0-9a-f]{2}$")
_PASSED_THROUGH = ("vfio-pci", "xe-vfio-pci", "pci-stub", "pciback")


@dataclass(frozen=True)
class PciFunction:
    """One PCI function.

    Args: vendor_id, device_id: None = unreadable. class_code: six hex digits, None = unreadable. path: its real folder.
    """

    address: str
    vendor_id: int | None
    device_id: int | None
    class_code: str | None
    path: str

    @property
    def is_dead(self) -> bool:
        """Whether reads return all ones, as they do when the card has left the bus."""
        return self.vendor_id == 0xFFFF


@dataclass(frozen=True)
class PciDetail:
    """What the kernel says of one function beyond its ids; None = unknown.

    Args: position: root, bridges and NUMA node. numa_reason: why the node is unknown, or that a bridge told it.
        link: speed and width at the card's upstream port. physical_function: address this virtual function belongs to.
        runtime_status: power state word of the kernel (`active`, `suspended`).
    """

    position: PciPath
    driver: str | None = None
    numa_reason: str | None = None
    link: PcieLink | None = None
    subsystem_vendor_id: int | None = None
    subsystem_id: int | None = None
    revision: int | None = None
    physical_function: str | None = None
    iommu_group: str | None = None
    runtime_status: str | None = None


def normal_address(text: str) -> str | None:
    """Write a PCI address as sysfs does, whatever tool wrote it; None when it is no address.

    Example: normal_address("00000000:1B:00.0") == "0000:1b:00.0"
    """
    text = text.strip().lower()
    if text.count(":") == 1:
        text = "0000:" + text
    domain, _, rest = text.partition(":")
    domain = domain.lstrip("0").rjust(4, "0")
    address = f"{domain}:{rest}"
    return address if _ADDRESS.fullmatch(address) else None


def address_key(address: str) -> tuple[int, int, int, int]:
    """Give an address as numbers, for sorting: domain 10000 comes after ffff."""
    match = _ADDRESS.fullmatch(address)
    if match is None:
        return (1 << 40, 0, 0, 0)
    domain, bus, device, function = (int(part, 16) for part in match.groups())
    return (domain, bus, device, function)


def read_functions(machine: Machine) -> tuple[PciFunction, ...]:
    """Give every PCI function of a machine in numeric order; three small files are read of each."""
    names = [name for name in machine.list_folder(_DEVICES) if _ADDRESS.fullmatch(name)]
    return tuple(_read_function(machine, name) for name in sorted(names, key=address_key))


def _read_function(machine: Machine, address: str) -> PciFunction:
    path = machine.resolve(f"{_DEVICES}/{address}") or f"{_DEVICES}/{address}"
    vendor = read_hex(machine, f"{path}/vendor")
    device = read_hex(machine, f"{path}/device")
    class_code = read_hex(machine, f"{path}/class")
    return PciFunction(address, vendor, device, None if class_code is None else f"{class_code:06x}", path)


def read_hex(machine: Machine, path: str) -> int | None:
    """Read a file of one hexadecimal number, None when it is missing or holds something else."""
    return _number(machine, path, 16)


def read_int(machine: Machine, path: str) -> int | None:
    """Read a file of one decimal number, None when it is missing or holds something else."""
    return _number(machine, path, 10)


def _number(machine: Machine, path: str, base: int) -> int | None:
    try:
        return int(machine.read_text(path), base)
    except (FileUnavailableError, ValueError):
        return None


def read_detail(machine: Machine, function: PciFunction) -> PciDetail:
    """Read the rest of what the kernel says of one function."""
    path = function.path
    root, bridges = _chain(path)
    numa_node, numa_reason = _numa(machine, path)
    return PciDetail(
        position=PciPath(function.address, root, bridges, numa_node),
        driver=machine.pci_driver(function),
        numa_reason=numa_reason,
        link=_link(machine, function, bridges),
        subsystem_vendor_id=read_hex(machine, f"{path}/subsystem_vendor"),
        subsystem_id=read_hex(machine, f"{path}/subsystem_device"),
        revision=read_hex(machine, f"{path}/revision"),
        physical_function=_link_name(machine, f"{path}/physfn"),
        iommu_group=_link_name(machine, f"{path}/iommu_group"),
        runtime_status=machine.read_text_or_none(f"{path}/power/runtime_status"),
    )


def read_driver(machine: Machine, function: PciFunction) -> str | None:
    """Give the name of the kernel driver bound to a function, None when none is."""
    return _link_name(machine, f"{function.path}/driver")


def _chain(path: str) -> tuple[str | None, tuple[str, ...]]:
    parts = path.split("/")
    roots = [number for number, part in enumerate(parts) if _ROOT.fullmatch(part)]
    if not roots:
        return None, ()
    return parts[roots[-1]], tuple(part for part in parts[roots[-1] + 1 : -1] if _ADDRESS.fullmatch(part))


def _link_name(machine: Machine, path: str) -> str | None:
    real = machine.resolve(path)
    return None if real is None else posixpath.basename(real)


def _numa(machine: Machine, path: str) -> tuple[int | None, str | None]:
    node = read_int(machine, f"{path}/numa_node")
    if node is not None and node >= 0:
        return node, None
    why = "the kernel does not say" if node is None else "the kernel reports -1"
    parent = posixpath.dirname(path)
    while _ADDRESS.fullmatch(posixpath.basename(parent)):
        above = read_int(machine, f"{parent}/numa_node")
        if above is not None and above >= 0:
            return above, f"taken from bridge {posixpath.basename(parent)}: {why} for the card itself"
        parent = posixpath.dirname(parent)
    node = _node_of_local_cpus(machine, path)
    return (None, why) if node is None else (node, f"taken from the card's local CPUs: {why} the node itself")


def _node_of_local_cpus(machine: Machine, path: str) -> int | None:
    """Give the one of several NUMA nodes that holds all of the function's local CPUs.

    A node may list CPUs that are not online, and a card may be near a part of its node. All online CPUs, or a machine with
    one node, tell nothing: that is what the kernel writes when it does not know.
    """
    cpus = set(local_cpus(machine, path))
    nodes = {number: set(of_node) for number, of_node in node_cpus(machine).items() if of_node}
    if not cpus or len(nodes) < 2 or cpus == online_cpus(machine):
        return None
    holding = [number for number, of_node in nodes.items() if cpus <= of_node]
    return holding[0] if len(holding) == 1 else None


def _link(machine: Machine, function: PciFunction, bridges: Sequence[str]) -> PcieLink | None:
    """Read the link at the card's upstream port.

    Cards with a switch inside show the link of that inner bridge, often 2.5 GT/s x1; bridges of the card's own vendor
    right above it, the root port left out, belong to the card.
    """
    at, path = function.address, function.path
    parent = posixpath.dirname(path)
    for bridge in reversed(bridges[1:]):
        if read_hex(machine, f"{parent}/vendor") != function.vendor_id or function.vendor_id is None:
            break
        at, path = bridge, parent
        parent = posixpath.dirname(parent)
    link = PcieLink(
        speed_gts=_speed(machine.read_text_or_none(f"{path}/current_link_speed")),
        width=_width(read_int(machine, f"{path}/current_link_width")),
        max_speed_gts=_speed(machine.read_text_or_none(f"{path}/max_link_speed")),
        max_width=_width(read_int(machine, f"{path}/max_link_width")),
        at=at,
    )
    is_empty = link.speed_gts is None and link.max_speed_gts is None
    return None if is_empty else link


def _speed(text: str | None) -> float | None:
    match = re.match(r"^(\d+(?:\.\d+)?) GT/s", text or "")
    return float(match.group(1)) if match else None


def _width(lanes: int | None) -> int | None:
    return lanes if lanes is not None and 1 <= lanes <= 32 else None


def match_functions(machine: Machine, rules: Iterable[MatchRule]) -> tuple[tuple[PciFunction, MatchRule], ...]:
    """Give the PCI functions that belong to a family, each with the first rule that fits.

    A dead function has no readable ids; it belongs to the family whose driver is bound to it.
    """
    usable = tuple(rule for rule in rules if rule.is_specific and rule.sysfs_class is None)
    matches = ((function, _first_rule(machine, function, usable)) for function in machine.pci_functions())
    return tuple((function, rule) for function, rule in matches if rule is not None)


def _first_rule(machine: Machine, function: PciFunction, rules: Sequence[MatchRule]) -> MatchRule | None:
    return next((rule for rule in rules if _fits(machine, function, rule)), None)


def _fits(machine: Machine, function: PciFunction, rule: MatchRule) -> bool:
    if function.is_dead:
        return bool(rule.drivers) and rule.is_accelerator and _has_driver(machine, function, rule)
    if rule.vendor_id is not None and function.vendor_id != rule.vendor_id:
        return False
    if rule.device_ids and function.device_id not in rule.device_ids:
        return False
    if rule.class_prefixes and not (function.class_code or "").startswith(rule.class_prefixes):
        return False
    return not rule.drivers or _has_driver(machine, function, rule)


def _has_driver(machine: Machine, function: PciFunction, rule: MatchRule) -> bool:
    return machine.pci_driver(function) in rule.drivers


def device_from_function(
    machine: Machine,
    function: PciFunction,
    *,
    family: str,
    drivers: Sequence[str],
    label: str = "device",
    model: str | None = None,
) -> Device:
    """Make a root device of one PCI function, with all the conditions that plain Linux can tell.

    Args: drivers: kernel drivers that make this family usable. model: product name when the id is known.
    """
    detail = machine.pci_detail(function)
    unknown = {}
    if model is None and not function.is_dead:
        unknown["model"] = f"no name is known for {_ids(function)}"
    if function.class_code is None:
        unknown["attributes.pci_class"] = "the kernel does not say"
    if detail.position.numa_node is None:
        unknown["numa_node"] = detail.numa_reason or "the kernel does not say"
    return Device(
        id=f"{family}:{function.address}",
        family=family,
        level=Level.DEVICE,
        label=label,
        model=model,
        pci_addresses=(function.address,),
        conditions=tuple(function_conditions(function, detail, drivers)),
        numa_node=detail.position.numa_node,
        driver=detail.driver,
        is_counted=detail.physical_function is None,
        count_reason=_virtual_reason(detail),
        attributes=FrozenMap({"pci_id": _ids(function), "pci_class": function.class_code}),
        unknown=FrozenMap(unknown),
        is_simulated=machine.is_simulated,
    )


def _ids(function: PciFunction) -> str:
    vendor = "unknown" if function.vendor_id is None else f"{function.vendor_id:04x}"
    device = "unknown" if function.device_id is None else f"{function.device_id:04x}"
    return f"{vendor}:{device}"


def _virtual_reason(detail: PciDetail) -> str | None:
    if detail.physical_function is None:
        return None
    return f"virtual function of {detail.physical_function}, which is counted itself"


def function_conditions(function: PciFunction, detail: PciDetail, drivers: Sequence[str]) -> Iterable[Condition]:
    """Give the conditions that follow from one function's files."""
    if function.is_dead:
        yield Condition(
            "pci-dead",
            "not responding on PCI: reads return all ones",
            DeviceState.LOST,
            hint="reset or reseat the card, or reboot",
        )
    elif detail.driver is None:
        yield Condition(
            "no-driver",
            "no kernel driver is bound",
            DeviceState.UNUSABLE,
            hint=f"load the kernel driver ({' or '.join(drivers)})",
        )
    elif detail.driver not in drivers:
        yield _foreign_driver(detail.driver, drivers)
    if detail.runtime_status == "suspended":
        yield Condition("suspended", "runtime power management has put it to sleep", DeviceState.ASLEEP, Blocks.NOTHING)


def _foreign_driver(driver: str, drivers: Sequence[str]) -> Condition:
    if driver in _PASSED_THROUGH:
        return Condition(
            "passed-through",
            f"bound to {driver}, given to a virtual machine or user-space driver",
            DeviceState.UNUSABLE,
            hint=f"bind it to {' or '.join(drivers)} to use it here",
        )
    return Condition(
        "wrong-driver",
        f"bound to {driver}, which cannot compute on it",
        DeviceState.UNUSABLE,
        hint=f"bind it to {' or '.join(drivers)}",
    )


def node_condition(machine: Machine, path: str, *, is_container: bool | None) -> Condition | None:
    """Say what is wrong with a device file that a process must open, None when nothing is known to be."""
    fact = machine.node(path)
    if fact is None:
        return _missing_node(path, is_container=is_container)
    if fact.can_open is False:
        return _denied_node(machine, path, fact.group)
    return None


def _missing_node(path: str, *, is_container: bool | None) -> Condition:
    if is_container:
        return Condition(
            "node-not-granted",
            f"on the host, not accessible here: {path} is not in this container",
            DeviceState.BLOCKED,
            hint="start the container with this device",
        )
    return Condition("node-missing", f"device file {path} is missing", DeviceState.UNUSABLE)


def _denied_node(machine: Machine, path: str, group: str | None) -> Condition:
    name = group_name(group)
    groups = ", ".join(machine.user.groups) or "none"
    return Condition(
        "permission-denied",
        f"permission denied: {path} belongs to group {name}, this user is in {groups}",
        DeviceState.DENIED,
        hint=_group_hint(name),
    )


def _group_hint(name: str) -> str:
    if name in ("root", "wheel", "unknown") or name.isdigit():
        return "ask the administrator for a udev rule that gives a group of this user the device"
    return f"add the user to the group: sudo usermod -aG {name} $USER, then log in again"


def group_name(group: str | None) -> str:
    """Give a group's name for its number where this system knows it."""
    if group is None or not group.isdigit():
        return group or "unknown"
    try:
        import grp

        return grp.getgrgid(int(group)).gr_name
    except (ImportError, KeyError):
        return group
