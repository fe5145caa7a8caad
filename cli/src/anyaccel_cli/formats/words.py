"""The words every topology format uses: names of devices, of links and of nearness. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from anyaccel.cpus import cpu_list_text
from anyaccel.device import Device
from anyaccel.inventory import Inventory
from anyaccel.topology import Link, LinkState, PairLevel, PcieLink
from anyaccel_cli.facts import MAIN_SPACE, depth_of, main_number, numa_node_of
from anyaccel_cli.text import UNKNOWN, counted, memory_text

__all__ = [
    "LEVEL_CODES",
    "LEVEL_MEANINGS",
    "cpus_text",
    "default_devices",
    "device_names",
    "link_meaning",
    "link_word",
    "memory_or_unknown",
    "numa_text",
    "pcie_text",
    "speed_text",
]

LEVEL_MEANINGS = {
    PairLevel.SELF: "the device itself",
    PairLevel.SAME_PACKAGE: "parts of one device, or functions of one board",
    PairLevel.SAME_SWITCH: "the path crosses one PCIe switch",
    PairLevel.SEVERAL_SWITCHES: "the path crosses several PCIe switches, not the CPU",
    PairLevel.SAME_HOST_BRIDGE: "the path crosses one host bridge of the CPU",
    PairLevel.SAME_NUMA: "the path crosses host bridges of one NUMA node",
    PairLevel.ACROSS_NUMA: "the path crosses the connection between NUMA nodes",
    PairLevel.UNKNOWN: "this machine does not show how near they are",
}
"""What each word of nearness says, for legends."""

LEVEL_CODES = {
    PairLevel.SELF: "X",
    PairLevel.SAME_PACKAGE: "PKG",
    PairLevel.SAME_SWITCH: "PIX",
    PairLevel.SEVERAL_SWITCHES: "PXB",
    PairLevel.SAME_HOST_BRIDGE: "PHB",
    PairLevel.SAME_NUMA: "NODE",
    PairLevel.ACROSS_NUMA: "SYS",
    PairLevel.UNKNOWN: "?",
}
"""A short code for each word of nearness, for terminals without room; most are those of `nvidia-smi topo`."""


def default_devices(inventory: Inventory) -> tuple[Device, ...]:
    """Give the devices a topology shows when nobody chose: whole devices, integrated parts left out."""
    roots = (device for view in inventory.views for device in view.roots)
    return tuple(device for device in roots if device.is_counted or not device.is_integrated)


def device_names(inventory: Inventory, devices: Sequence[Device]) -> dict[str, str]:
    """Give a short name for each device id: vendor and number where `--select` takes that for just this device, else the id.

    Example: device_names(inventory, devices) == {"nvidia:0000:1b:00.0": "nvidia:0"}
    """
    owners = _owners(inventory)
    names = {}
    for device in devices:
        short = _short_name(device)
        names[device.id] = short if short is not None and owners.get(short) == [device.id] else device.id
    return names


def _owners(inventory: Inventory) -> dict[str, list[str]]:
    """Give the ids that each short name means: of devices with one number only those nearest to the root of the tree."""
    owners: dict[str, list[str]] = {}
    for device in sorted(inventory.devices, key=lambda device: depth_of(device, inventory)):
        short = _short_name(device)
        known = owners.setdefault(short, []) if short is not None else []
        if not known or depth_of(inventory.view(device.family).device(known[0]), inventory) == depth_of(
            device, inventory
        ):
            known.append(device.id)
    return owners


def _short_name(device: Device) -> str | None:
    """Give vendor and number; a part has one only in the space that whole devices count in."""
    if device.parent is not None and MAIN_SPACE not in device.numbers:
        return None
    number = main_number(device)
    return None if number is None else f"{device.family}:{number}"


def link_word(link: Link) -> str:
    """Give what a cell says of a link: the vendor's short word, and that it is down when it is."""
    return f"{link.label} down" if link.state is LinkState.DOWN else link.label


def link_meaning(link: Link) -> str:
    """Say what a link is made of: kind, number of links, hops, speed. Unknown is said, nothing is derived from a label.

    Example: link_meaning(link) == "nvlink, 18 links, 450 GB/s each way"
    """
    parts = [link.kind]
    parts.append("number of links unknown" if link.count is None else counted(link.count, "link"))
    if link.via is not None:
        parts.append("through a switch")
    if link.hops is not None and link.hops > 1:
        parts.append(counted(link.hops, "hop"))
    parts.append(speed_text(link.bytes_per_second_each_way))
    if link.state is LinkState.DOWN:
        parts.append("down")
    return ", ".join(parts)


def speed_text(bytes_per_second: int | None) -> str:
    """Give a speed in decimal GB/s, or that it is unknown.

    Example: speed_text(25_000_000_000) == "25 GB/s each way"
    """
    if bytes_per_second is None:
        return "speed unknown"
    return f"{bytes_per_second / 1e9:.1f}".removesuffix(".0") + " GB/s each way"


def numa_text(device: Device, inventory: Inventory) -> str:
    """Give a device's NUMA node, from the node it is part of where it has none of its own."""
    node = numa_node_of(device, inventory)
    return UNKNOWN if node is None else str(node)


def cpus_text(cpus: Sequence[int] | None) -> str:
    """Give a CPU list; that none of the allowed CPUs is near is not the same as not knowing."""
    if cpus is None:
        return UNKNOWN
    return cpu_list_text(cpus) or "none of the allowed CPUs is local"


def memory_or_unknown(size: int | None) -> str:
    """Give a size in IEC units, or the word unknown."""
    return UNKNOWN if size is None else memory_text(size)


def pcie_text(link: PcieLink | None) -> str | None:
    """Give a PCIe link as trained now, and the best it could be when that is more; None when nothing is known.

    Example: pcie_text(link) == "PCIe 8 GT/s x8 (of 16 GT/s x16)"
    """
    if link is None or link.speed_gts is None:
        return None
    now = _rate(link.speed_gts, link.width)
    most = None if link.max_speed_gts is None else _rate(link.max_speed_gts, link.max_width)
    return f"PCIe {now}" if most in (None, now) else f"PCIe {now} (of {most})"


def _rate(speed: float, width: int | None) -> str:
    lanes = "" if width is None else f" x{width}"
    return f"{speed:g} GT/s{lanes}"
