"""Topology as an indented tree: memory nodes, PCIe roots, switches, devices with their parts, network cards; then the links."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from anyaccel.device import Device
from anyaccel.inventory import Inventory
from anyaccel.topology import FabricNode, Link, Nic
from anyaccel_cli.formats.places import Bridge, Function, NumaPlace, Root, places_of
from anyaccel_cli.formats.words import (
    cpus_text,
    device_names,
    link_meaning,
    link_word,
    memory_or_unknown,
    pcie_text,
)

__all__ = ["tree_lines"]

_UNICODE = ("├─ ", "└─ ", "│  ", "   ")
_ASCII = ("|- ", "`- ", "|  ", "   ")


@dataclass(frozen=True)
class _Node:
    """One line of the tree and what stands below it."""

    text: str
    below: tuple[_Node, ...] = ()


def tree_lines(
    inventory: Inventory, devices: Sequence[Device] | None = None, *, is_ascii: bool = False
) -> tuple[str, ...]:
    """Give the tree line by line.

    Args: devices: None = every device, parts included. is_ascii: draw with ASCII only.
    """
    shown = inventory.devices if devices is None else tuple(devices)
    writer = _Writer(inventory, device_names(inventory, shown))
    below = [writer.numa(place) for place in places_of(inventory, shown)]
    lines = [_machine_line(inventory)]
    lines += _drawn(below, "", _ASCII if is_ascii else _UNICODE)
    lines += _link_lines(inventory, writer.names)
    return tuple(lines)


def _machine_line(inventory: Inventory) -> str:
    words = ["machine", inventory.name] if inventory.name else ["machine"]
    if inventory.is_simulated:
        words.append("(simulated)")
    boundary = inventory.host.boundary
    if boundary.kind in ("container", "vm", "wsl"):
        words.append(f"({boundary.kind}: {boundary.reason})")
    return " ".join(words)


def _drawn(nodes: Sequence[_Node], indent: str, signs: tuple[str, str, str, str]) -> Iterable[str]:
    middle, last, through, blank = signs
    for place, node in enumerate(nodes):
        is_last = place + 1 == len(nodes)
        yield indent + (last if is_last else middle) + node.text
        yield from _drawn(node.below, indent + (blank if is_last else through), signs)


@dataclass(frozen=True)
class _Writer:
    inventory: Inventory
    names: dict[str, str]

    def numa(self, place: NumaPlace) -> _Node:
        """Give a memory node with everything on it."""
        below = [self.root(root) for root in place.roots] + [self.function(f) for f in place.unplaced]
        return _Node(self.numa_text(place.number), tuple(below))

    def numa_text(self, number: int | None) -> str:
        if number is None:
            return "NUMA node unknown"
        known = next((node for node in self.inventory.host.numa_nodes if node.number == number), None)
        if known is None:
            return f"NUMA node {number}, its CPUs and memory unknown"
        cpus = f"CPUs {cpus_text(known.cpus)}" if known.cpus else "no CPUs"
        return f"NUMA node {number}, {cpus}, memory {memory_or_unknown(known.memory_bytes)}"

    def root(self, root: Root) -> _Node:
        """Give a host bridge with everything on it."""
        name = "PCIe tree unknown" if root.name is None else f"PCIe root {root.name}"
        return _Node(name, self._below(root))

    def bridge(self, bridge: Bridge) -> _Node:
        """Give a bridge; bridges with nothing but one bridge below share its line, as a path."""
        path = [bridge.address]
        while len(bridge.bridges) == 1 and not bridge.functions:
            bridge = bridge.bridges[0]
            path.append(bridge.address)
        return _Node(f"bridge {' > '.join(path)}", self._below(bridge))

    def _below(self, place: Bridge | Root) -> tuple[_Node, ...]:
        return (*(self.bridge(b) for b in place.bridges), *(self.function(f) for f in place.functions))

    def function(self, function: Function) -> _Node:
        """Give what sits at one address."""
        if function.nic is not None:
            return _Node(_nic_text(function.nic))
        if function.fabric is not None:
            return _Node(_fabric_text(function.fabric))
        if function.also_of is not None:
            return _Node(f"{function.address} belongs to {self.names[function.also_of.id]}")
        tops = _tops(function.devices)
        if len(tops) == 1:
            return self.device(tops[0], function.devices)
        return _Node(f"{function.address}", tuple(self.device(top, function.devices) for top in tops))

    def device(self, device: Device, shown: Sequence[Device]) -> _Node:
        """Give a device with its shown parts."""
        parts = tuple(self.device(part, shown) for part in shown if part.parent == device.id)
        return _Node(self.device_text(device), parts)

    def device_text(self, device: Device) -> str:
        words = [self.names[device.id], device.model or device.label]
        if device.pci_addresses and device.pci_addresses[0] not in words[0]:
            words.append(device.pci_addresses[0])
        links = (self.inventory.host.pcie_links.get(address) for address in device.pci_addresses)
        pcie = next((text for link in links if (text := pcie_text(link))), None)
        return ", ".join([" ".join(words), *([pcie] if pcie else []), device.state.value])


def _tops(devices: Sequence[Device]) -> tuple[Device, ...]:
    ids = {device.id for device in devices}
    return tuple(device for device in devices if device.parent not in ids)


def _nic_text(nic: Nic) -> str:
    return f"{nic.id} {nic.kind} {nic.path.address}"


def _fabric_text(node: FabricNode) -> str:
    address = f" {node.pci_address}" if node.pci_address and node.pci_address not in node.id else ""
    return f"{node.id} {node.label}{address}"


def _link_lines(inventory: Inventory, names: dict[str, str]) -> list[str]:
    """Give the vendors' links, those that are alike and start at one end in one line."""
    fabric = {node.id for node in inventory.fabric}
    groups: dict[tuple[str, str, str], list[str]] = {}
    for link in inventory.links:
        if _is_shown(link, names, fabric):
            a, b = _end(link.a, names), _end(link.b, names)
            groups.setdefault((a, link_word(link), link_meaning(link)), []).append(b)
    lines = [f"  {a} to {', '.join(ends)}: {word} ({meaning})" for (a, word, meaning), ends in groups.items()]
    return ["links", *lines] if lines else []


def _is_shown(link: Link, names: dict[str, str], fabric: set[str]) -> bool:
    ends = (link.a, link.b)
    return any(end in names for end in ends) and all(e in names or e in fabric or e.startswith("numa:") for e in ends)


def _end(end: str, names: dict[str, str]) -> str:
    if end.startswith("numa:"):
        return f"NUMA node {end.removeprefix('numa:')}"
    return names.get(end, end)
