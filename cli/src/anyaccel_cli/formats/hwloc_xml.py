"""Topology as XML of hwloc version 2, for `lstopo --input FILE` and every other reader of hwloc. Pure functions.

Format: hwloc's manual, "Importing and exporting topologies from/to XML files". CPUs, packages and memory nodes are those the
kernel named; caches and cores are not known here and not made up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import quoteattr

from anyaccel.device import Device
from anyaccel.inventory import Inventory
from anyaccel.topology import HostParts, NumaNode, PcieLink
from anyaccel_cli.formats.places import Bridge, Function, NumaPlace, Root, places_of
from anyaccel_cli.text import escape

__all__ = ["hwloc_xml_text"]

_NETWORK, _OPENFABRICS, _COPROCESSOR = "2", "3", "5"
_BANDWIDTH_BETWEEN_UNLIKE = "25"
"""From the system (1), means bandwidth (8), ends of several types (16), as hwloc itself writes vendors' matrices."""

_MATRIX_NAMES = {"nvlink": "NVLinkBandwidth", "xgmi": "XGMIBandwidth"}
_NO_CPUS = "unknown: the machine does not show them"
_NO_NODES = "unknown: the machine does not show them; hwloc needs one memory node, so node 0 stands in"


@dataclass
class _Object:
    """One element while the document is made."""

    kind: str
    attributes: dict[str, str] = field(default_factory=dict)
    infos: list[tuple[str, str]] = field(default_factory=list)
    below: list[_Object] = field(default_factory=list)
    number: int = 0


def hwloc_xml_text(inventory: Inventory, devices: Sequence[Device] | None = None) -> str:
    """Give the document. Every device is an OS device; links of known speed stand in one bandwidth matrix a kind, in MB/s.

    Args: devices: None = every device, parts included.
    """
    shown = inventory.devices if devices is None else tuple(devices)
    machine = _Machine(inventory, shown)
    machine.number_all()
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<!DOCTYPE topology SYSTEM "hwloc2.dtd">',
        '<topology version="2.0">',
        *_object_lines(machine.top, 1),
        *_latency_lines(inventory.host.numa_nodes),
        *machine.bandwidth_lines(),
        "</topology>",
    ]
    return "\n".join(lines) + "\n"


class _Machine:
    """The tree of objects, and which object stands for which device."""

    def __init__(self, inventory: Inventory, devices: Sequence[Device]) -> None:
        self.inventory = inventory
        self.ends: dict[str, _Object] = {}
        places = places_of(inventory, devices)
        nodes = inventory.host.numa_nodes
        numbers = [node.number for node in nodes] or [0]
        cpus = [cpu for node in nodes for cpu in node.cpus]
        self.top = _Object("Machine", {"os_index": "0", **_sets(cpus, numbers, is_machine=True)}, _infos(inventory))
        self._homes: dict[int | None, _Object] = {None: self.top}
        self._add_nodes(inventory.host, cpus)
        for place in places:
            self._add_place(place)

    def number_all(self) -> None:
        """Give every object its own number, by which matrices name their ends."""
        for number, found in enumerate(_walk(self.top), start=1):
            found.number = number

    def _add_nodes(self, host: HostParts, cpus: Sequence[int]) -> None:
        """Put memory nodes and CPUs below packages where both agree, else below the machine."""
        if not host.numa_nodes:
            self.top.below.append(_memory_node(NumaNode(0), cpus))
        packages = _nested_packages(host)
        for number, members in packages.items():
            own = [cpu for node in members for cpu in node.cpus]
            package = _Object("Package", {"os_index": number, **_sets(own, [n.number for n in members])})
            self.top.below.append(package)
            for node in members:
                self._add_node(node, package, cpus)
        placed = {node.number for members in packages.values() for node in members}
        # A node without CPUs is near all of them, and memory stands before everything else below an object.
        bare = [node for node in host.numa_nodes if not node.cpus]
        self.top.below[:0] = [_memory_node(node, cpus) for node in bare]
        for node in host.numa_nodes:
            if node.cpus and node.number not in placed:
                self._add_node(node, self.top, cpus)

    def _add_node(self, node: NumaNode, parent: _Object, cpus: Sequence[int]) -> None:
        group = _Object("Group", _sets(node.cpus, [node.number]))
        group.below.append(_memory_node(node, cpus))
        group.below += [_Object("PU", {"os_index": str(cpu), **_sets([cpu], [node.number])}) for cpu in node.cpus]
        parent.below.append(group)
        self._homes[node.number] = group

    def _add_place(self, place: NumaPlace) -> None:
        home = self._homes.get(place.number, self.top)
        home.below += [bridge for root in place.roots for bridge in self._root(root)]
        home.below += [found for function in place.unplaced for found in self._os_devices(function)]

    def _root(self, root: Root) -> Iterator[_Object]:
        """Give the host bridges of one root, one for each PCI domain where the machine shows no tree.

        hwloc as distributions build it drops what sits in a domain above ffff; such devices stand there without PCI.
        """
        domains: dict[str, list[_Object]] = {}
        for bridge in root.bridges:
            if _is_wide(bridge.address):
                yield from (found for function in _functions_below(bridge) for found in self._os_devices(function))
            else:
                domains.setdefault(_domain(bridge.address), []).append(self._bridge(bridge, 1))
        for function in root.functions:
            if _is_wide(function.address or ""):
                yield from self._os_devices(function)
            else:
                domains.setdefault(_domain(function.address or ""), []).append(self._function(function))
        for domain, below in domains.items():
            yield _Object(
                "Bridge", {"bridge_type": "0-1", "depth": "0", "bridge_pci": _bus_range(domain, below)}, [], below
            )

    def _bridge(self, bridge: Bridge, depth: int) -> _Object:
        below = [self._bridge(found, depth + 1) for found in bridge.bridges]
        below += [self._function(function) for function in bridge.functions]
        attributes = {
            "bridge_type": "1-1",
            "depth": str(depth),
            "bridge_pci": _bus_range(_domain(bridge.address), below),
            "pci_busid": bridge.address,
            "pci_type": _pci_type("0604", None),
            "pci_link_speed": "0.000000",
        }
        return _Object("Bridge", attributes, [], below)

    def _function(self, function: Function) -> _Object:
        device = function.devices[0] if function.devices else function.also_of
        link = self.inventory.host.pcie_links.get(function.address or "")
        attributes = {
            "pci_busid": function.address or "",
            "pci_type": _pci_type(_class_of(function, device), _text(device, "pci_id")),
            "pci_link_speed": _gigabytes(link),
        }
        found = _Object("PCIDev", attributes, [], list(self._os_devices(function)))
        if function.fabric is not None:
            found.attributes["subtype"] = function.fabric.label
            self.ends[function.fabric.id] = found
        return found

    def _os_devices(self, function: Function) -> Iterator[_Object]:
        if function.nic is not None:
            kind = _OPENFABRICS if function.nic.kind == "infiniband" else _NETWORK
            yield _Object("OSDev", {"name": function.nic.id, "osdev_type": kind})
        for device in function.devices:
            found = _Object(
                "OSDev",
                {"name": device.id, "subtype": device.family, "osdev_type": _COPROCESSOR},
                list(_device_infos(device)),
            )
            self.ends[device.id] = found
            yield found

    def bandwidth_lines(self) -> Iterator[str]:
        """Give one matrix a kind of link; a pair whose speed is unknown has 0, as everywhere in hwloc."""
        speeds: dict[str, dict[tuple[str, str], int]] = {}
        for link in self.inventory.links:
            is_placed = link.a in self.ends and link.b in self.ends
            if is_placed and link.bytes_per_second_each_way is not None:
                table = speeds.setdefault(link.kind, {})
                for pair in ((link.a, link.b), (link.b, link.a)):
                    table[pair] = max(table.get(pair, 0), link.bytes_per_second_each_way // 1_000_000)
        for kind, table in speeds.items():
            ends = [end for end in self.ends if any(end == a for a, _ in table)]
            yield from self._matrix(_MATRIX_NAMES.get(kind, f"{kind.capitalize()}Bandwidth"), ends, table)

    def _matrix(self, name: str, ends: Sequence[str], table: dict[tuple[str, str], int]) -> Iterator[str]:
        yield f'  <distances2hetero nbobjs="{len(ends)}" kind="{_BANDWIDTH_BETWEEN_UNLIKE}" name={quoteattr(name)}>'
        yield _numbers("indexes", [f"{self.ends[end].kind}:{self.ends[end].number}" for end in ends])
        for a in ends:
            yield _numbers("u64values", [str(table.get((a, b), 0)) for b in ends])
        yield "  </distances2hetero>"


def _walk(top: _Object) -> Iterator[_Object]:
    yield top
    for found in top.below:
        yield from _walk(found)


def _infos(inventory: Inventory) -> list[tuple[str, str]]:
    host = inventory.host
    infos = [("Backend", "anyaccel"), ("AnyaccelMachine", inventory.kind.value)]
    if inventory.name:
        infos.append(("AnyaccelName", inventory.name))
    if not any(node.cpus for node in host.numa_nodes):
        infos.append(("AnyaccelCpus", _NO_CPUS))
    if not host.numa_nodes:
        infos.append(("AnyaccelNumaNodes", _NO_NODES))
    return infos + [("AnyaccelWarning", warning) for warning in host.warnings]


def _nested_packages(host: HostParts) -> dict[str, list[NumaNode]]:
    """Give the memory nodes of each package; none when the kernel's two lists do not nest."""
    packages: dict[str, list[NumaNode]] = {}
    for node in host.numa_nodes:
        homes = [number for number, cpus in host.packages.items() if set(node.cpus) <= set(cpus)]
        if node.cpus and len(homes) != 1:
            return {}
        if node.cpus:
            packages.setdefault(homes[0], []).append(node)
    return packages


def _memory_node(node: NumaNode, cpus: Sequence[int]) -> _Object:
    attributes = {"os_index": str(node.number), **_sets(node.cpus or cpus, [node.number])}
    attributes["local_memory"] = str(node.memory_bytes or 0)
    infos = [] if node.memory_bytes is not None else [("AnyaccelMemory", "unknown")]
    return _Object("NUMANode", attributes, infos)


def _sets(cpus: Iterable[int], nodes: Iterable[int], *, is_machine: bool = False) -> dict[str, str]:
    """Give the sets every CPU-side object has. hwloc refuses an empty machine, so unknown CPUs are an unused bit 0."""
    cpuset, nodeset = _bitmap(cpus) if (cpus := list(cpus)) else "0x00000001", _bitmap(nodes)
    words = ("", "complete_", "allowed_") if is_machine else ("", "complete_")
    return {f"{word}{name}": text for name, text in (("cpuset", cpuset), ("nodeset", nodeset)) for word in words}


def _bitmap(bits: Iterable[int]) -> str:
    number = sum(1 << bit for bit in set(bits))
    words: list[str] = []
    while number or not words:
        words.append(f"0x{number & 0xFFFFFFFF:08x}")
        number >>= 32
    return ",".join(reversed(words))


def _domain(address: str) -> str:
    return address.partition(":")[0]


def _is_wide(address: str) -> bool:
    return len(_domain(address)) > 4


def _functions_below(bridge: Bridge) -> Iterator[Function]:
    yield from bridge.functions
    for below in bridge.bridges:
        yield from _functions_below(below)


def _bus_range(domain: str, below: Iterable[_Object]) -> str:
    addresses = [f.attributes["pci_busid"] for top in below for f in _walk(top) if "pci_busid" in f.attributes]
    buses = [int(address.split(":")[1], 16) for address in addresses]
    return f"{domain}:[{min(buses):02x}-{max(buses):02x}]"


def _class_of(function: Function, device: Device | None) -> str:
    if function.nic is not None:
        return "0207" if function.nic.kind == "infiniband" else "0200"
    return (_text(device, "pci_class") or ("0680" if function.fabric is not None else "0000"))[:4]


def _text(device: Device | None, key: str) -> str | None:
    value = None if device is None else device.attributes.get(key)
    return value if isinstance(value, str) else None


def _pci_type(class_code: str, pci_id: str | None) -> str:
    known = pci_id if pci_id is not None and "unknown" not in pci_id else "0000:0000"
    return f"{class_code} [{known}] [0000:0000] 00 00"


def _gigabytes(link: PcieLink | None) -> str:
    speed = None if link is None else link.bytes_per_second_each_way
    return f"{(speed or 0) / 1e9:.6f}"


def _device_infos(device: Device) -> Iterator[tuple[str, str]]:
    yield "AnyaccelLevel", device.level.value
    yield "AnyaccelState", device.state.value
    yield from (("AnyaccelPciAddress", address) for address in device.pci_addresses)
    for name, value in (("Model", device.model), ("AnyaccelUuid", device.uuid), ("AnyaccelParent", device.parent)):
        if value is not None:
            yield name, value
    if device.memory_bytes is not None:
        yield "AnyaccelMemoryBytes", str(device.memory_bytes)


def _object_lines(found: _Object, depth: int) -> Iterator[str]:
    indent = "  " * depth
    attributes = "".join(f" {name}={_attribute(value)}" for name, value in found.attributes.items())
    start = f'{indent}<object type="{found.kind}"{attributes} gp_index="{found.number}"'
    if not found.infos and not found.below:
        yield f"{start}/>"
        return
    yield f"{start}>"
    yield from (f"{indent}  <info name={_attribute(name)} value={_attribute(value)}/>" for name, value in found.infos)
    for below in found.below:
        yield from _object_lines(below, depth + 1)
    yield f"{indent}</object>"


def _attribute(text: str) -> str:
    """Quote a value; what XML cannot hold is written as an escape sequence."""
    return quoteattr(escape(text))


def _latency_lines(nodes: Sequence[NumaNode]) -> Iterator[str]:
    if len(nodes) < 2 or any(len(node.distances) != len(nodes) for node in nodes):
        return
    yield f'  <distances2 type="NUMANode" nbobjs="{len(nodes)}" kind="5" name="NUMALatency" indexing="os">'
    yield _numbers("indexes", [str(node.number) for node in nodes])
    for node in nodes:
        yield _numbers("u64values", [str(distance) for distance in node.distances])
    yield "  </distances2>"


def _numbers(tag: str, words: Iterable[str]) -> str:
    text = "".join(f"{word} " for word in words)
    return f'    <{tag} length="{len(text)}">{text}</{tag}>'
