"""Archives of `/sys` and `/proc` that hwloc keeps for its own tests, each beside what hwloc makes of it.

The judge is hwloc's own result, as XML or as console text: PCI functions with ids, class and bridges, memory nodes with CPUs,
memory and distances, packages, network cards, and memory of cards that is a memory node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from anyaccel.host import read_boundary, read_host
from anyaccel.inventory import Inventory
from anyaccel.machine import Machine, MachineKind
from anyaccel.topology import HostParts
from anyaccel_conformance.captures.archives import Archive
from anyaccel_conformance.captures.claims import Claim, claim_each
from anyaccel_conformance.captures.looking import Looker, address_claims, by_address, count_claim, health_claim, id_of
from anyaccel_conformance.readers.foreign import read_document, read_text_document
from anyaccel_conformance.readers.hwloc_console import ConsoleMachine, parse_hwloc_console
from anyaccel_conformance.readers.hwloc_xml import (
    HwlocPci,
    HwlocTopology,
    hwloc_numa_nodes,
    hwloc_pci_devices,
    parse_hwloc_xml,
)

__all__ = ["compare_with_console", "compare_with_xml"]

_ALWAYS_LISTED = ("02", "03", "12")
"""Classes hwloc never filters out: network, display, accelerator."""


@dataclass(frozen=True)
class _Ours:
    """What core reads of the archive, and what the plugins make of it."""

    machine: Machine
    host: HostParts
    inventory: Inventory

    def ids(self) -> Mapping[str, object]:
        """Give id and class of every function but bridges."""
        return {
            f.address: (id_of(f.vendor_id, f.device_id), (f.class_code or "")[:4] or None)
            for f in self.machine.pci_functions()
            if not (f.class_code or "").startswith("0604")
        }


def _look(archive: Archive, name: str, looker: Looker) -> _Ours:
    machine = Machine(archive.tree(), kind=MachineKind.ROOT, name=name)
    addresses = [function.address for function in machine.pci_functions()]
    return _Ours(machine, read_host(machine, addresses, read_boundary(machine)), looker.look(machine))


def compare_with_xml(archive: Archive, document: Path, name: str, looker: Looker) -> tuple[Claim, ...]:
    """Compare with hwloc's XML of the same machine."""
    topology, ours = parse_hwloc_xml(read_document(document)), _look(archive, name, looker)
    devices = hwloc_pci_devices(topology)
    claims = [health_claim(ours.inventory)]
    claims += _id_claims({d.address: (id_of(d.vendor_id, d.device_id), d.class_code) for d in devices}, ours)
    claims += claim_each("bridges", _their_bridges(devices), _our_bridges(devices, ours))
    claims += _near_nodes(devices, archive, ours)
    claims += _memory_claims(topology, ours)
    claims += _network_claims(devices, ours)
    claims += _package_claims(topology, ours)
    claims += _accelerator_claims({device.address: device.vendor_id for device in devices}, ours)
    return tuple(claims)


def _id_claims(said: Mapping[str, object], ours: _Ours) -> Iterable[Claim]:
    """Compare ids and classes. hwloc leaves uninteresting functions out, so ours may have more, but not of these classes."""
    answered = ours.ids()
    extra = [a for a, ids in answered.items() if a not in said and str(_class_in(ids)).startswith(_ALWAYS_LISTED)]
    yield Claim("functions left out", "the machine", [], extra)
    yield from claim_each("pci id", said, {address: answered.get(address) for address in said})


def _class_in(ids: object) -> object:
    return ids[1] if isinstance(ids, tuple) else None


def _their_bridges(devices: Iterable[HwlocPci]) -> Mapping[str, object]:
    return {device.address: device.bridges for device in devices}


def _our_bridges(devices: Iterable[HwlocPci], ours: _Ours) -> Mapping[str, object]:
    paths = ours.host.paths
    return {device.address: paths[device.address].bridges for device in devices if device.address in paths}


def _near_nodes(devices: Iterable[HwlocPci], archive: Archive, ours: _Ours) -> Iterable[Claim]:
    """Compare the memory node near each function. hwloc places by CPUs: those of exactly one node mean that node.

    Where hwloc names a wider set (its tests override the place of whole buses) the kernel's own number is the judge. A
    machine of one node is left out: there hwloc places at the whole machine what the kernel says nothing of.
    """
    numbers = {node.cpus: node.number for node in ours.host.numa_nodes}
    folders = {function.address: function.path for function in ours.machine.pci_functions()}
    for device in devices if len(numbers) > 1 else ():
        path = ours.host.paths.get(device.address)
        kernel = int(archive.text(f"{folders.get(device.address)}/numa_node") or -1)
        said = numbers.get(device.cpus or (), None if kernel < 0 else kernel)
        yield Claim("numa", device.address, said, None if path is None else path.numa_node)


def _memory_claims(topology: HwlocTopology, ours: _Ours) -> Iterable[Claim]:
    nodes = hwloc_numa_nodes(topology)
    known = {str(node.number): node for node in ours.host.numa_nodes}
    yield from claim_each("numa cpus", {str(n.number): n.cpus for n in nodes}, {k: n.cpus for k, n in known.items()})
    yield from claim_each(
        "numa memory", {str(n.number): n.memory_bytes for n in nodes}, {k: n.memory_bytes for k, n in known.items()}
    )
    matrix = topology.matrix("NUMALatency")
    if matrix is not None:
        said = dict(zip(matrix.ends, matrix.values, strict=True))
        yield from claim_each("numa distances", said, {k: n.distances for k, n in known.items()})


def _network_claims(devices: Iterable[HwlocPci], ours: _Ours) -> Iterable[Claim]:
    """Compare network cards: of one with several names anyaccel shows one, the InfiniBand name before the Ethernet name."""
    nics = {nic.path.address: nic.id for nic in ours.host.nics}
    for device in devices:
        names = {name for name, types in device.os_devices if {"network", "openfabrics"} & set(types)}
        if names or device.address in nics:
            yield Claim("network card", device.address, True, nics.get(device.address) in names)


def _package_claims(topology: HwlocTopology, ours: _Ours) -> Iterable[Claim]:
    packages = (found for found in topology.root.walk() if found.kind == "Package")
    said = {str(found.os_index): found.cpus for found in packages}
    yield from claim_each("package cpus", said, dict(ours.host.packages))


def _accelerator_claims(vendors: Mapping[str, int], ours: _Ours) -> Iterable[Claim]:
    """Claim that no plugin takes a function of another vendor for its own."""
    families = {"nvidia": 0x10DE, "amd": 0x1002}
    for address, device in by_address(ours.inventory, families).items():
        yield Claim("vendor", address, families[device.family], vendors.get(address))


def compare_with_console(archive: Archive, text: Path, name: str, looker: Looker) -> tuple[Claim, ...]:
    """Compare with the console text of lstopo of the same machine."""
    console, ours = parse_hwloc_console(read_text_document(text)), _look(archive, name, looker)
    said = {f.address: (_known_id(f.vendor_id, f.device_id), f.class_code) for f in console.functions}
    claims = [health_claim(ours.inventory)]
    claims += _id_claims(said, ours)
    packages = {str(number): cpus for number, cpus in console.packages if number >= 0}
    claims += claim_each("package cpus", packages, dict(ours.host.packages))
    claims += _node_claims(console, ours)
    claims += _near_package_claims(console, ours)
    claims += _card_memory_claims(console, archive, ours)
    return tuple(claims)


def _known_id(vendor: int, device: int) -> str | None:
    return None if vendor == device == 0 else id_of(vendor, device)


def _node_claims(console: ConsoleMachine, ours: _Ours) -> Iterable[Claim]:
    said = {str(node.number): node.package for node in console.nodes if node.subtype is None}
    answered = {str(n.number): _package_of(n.cpus, ours.host) for n in ours.host.numa_nodes if n.cpus}
    yield from claim_each("numa package", said, answered)


def _package_of(cpus: Iterable[int], host: HostParts) -> int | None:
    """Give the one package that holds all of these CPUs that exist, None when there is none."""
    wanted = set(cpus) & {cpu for own in host.packages.values() for cpu in own}
    return next((int(number) for number, own in host.packages.items() if wanted <= set(own)), None)


def _near_package_claims(console: ConsoleMachine, ours: _Ours) -> Iterable[Claim]:
    """Compare where functions hang: below a package that has exactly one memory node means near that node."""
    nodes: dict[int | None, list[int]] = {}
    for node in console.nodes:
        if node.subtype is None:
            nodes.setdefault(node.package, []).append(node.number)
    for function in console.functions:
        near = nodes.get(function.package, [])
        if len(near) == 1 and function.package is not None:
            path = ours.host.paths.get(function.address)
            yield Claim("numa", function.address, near[0], None if path is None else path.numa_node)


def _card_memory_claims(console: ConsoleMachine, archive: Archive, ours: _Ours) -> Iterable[Claim]:
    """Compare cards whose memory is a memory node: the driver's own list of cards makes them NVIDIA's."""
    gpus = {node.address: node.number for node in console.nodes if node.address is not None}
    listed = {path.split("/")[5] for path in archive.below("/proc/driver/nvidia/gpus")}
    if not gpus and not listed:
        return
    yield count_claim(ours.inventory, "nvidia", len(listed))
    devices = by_address(ours.inventory, ("nvidia",))
    yield from address_claims(listed, devices)
    answered = {address: device.attributes.get("memory_numa_node") for address, device in devices.items()}
    if gpus:
        yield from claim_each("memory node", gpus, answered)
