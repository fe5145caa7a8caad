"""Machines of which only hwloc's XML exists. A `/sys` is made of it, with the driver's answer its NVLink matrix implies.

What vendors' libraries told hwloc (OS devices named after NVML, CUDA or ROCm SMI) is a second judge of which functions are GPUs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from anyaccel.host import read_boundary, read_host
from anyaccel.inventory import Inventory
from anyaccel.topology import HostParts
from anyaccel_conformance.captures.claims import Claim, claim_each
from anyaccel_conformance.captures.fake_sysfs import FakeSysfs
from anyaccel_conformance.captures.looking import Looker, address_claims, by_address, count_claim, health_claim, id_of
from anyaccel_conformance.readers.foreign import read_document
from anyaccel_conformance.readers.hwloc_xml import (
    HwlocMatrix,
    HwlocNuma,
    HwlocObject,
    HwlocPci,
    HwlocTopology,
    hwloc_numa_nodes,
    hwloc_pci_devices,
    parse_hwloc_xml,
    write_hwloc_xml,
)

__all__ = ["compare_hwloc_document"]

Json = Any

_FAMILIES = {0x10DE: "nvidia", 0x1002: "amd"}
_DRIVERS = {"nvidia": "nvidia", "amd": "amdgpu"}
_LIBRARY_NAME = re.compile(r"^(nvml|cuda|rsmi)[0-9]+$")
_MBS_OF_ONE_LINK = 25_000
"""One NVLink of version 2, the only one of which a document with a matrix was published."""


def compare_hwloc_document(path: Path, name: str, looker: Looker) -> tuple[Claim, ...]:
    """Compare with an hwloc document."""
    topology = parse_hwloc_xml(read_document(path))
    devices, nodes = hwloc_pci_devices(topology), hwloc_numa_nodes(topology)
    machine = _sysfs(topology, devices, nodes).machine(name, _answers(topology, devices))
    inventory = looker.look(machine)
    claims = [Claim("written again", "the file", topology, parse_hwloc_xml(write_hwloc_xml(topology)))]
    claims.append(health_claim(inventory))
    claims += _gpu_claims(devices, nodes, inventory)
    claims += _host_claims(topology, nodes, read_host(machine, (), read_boundary(machine)))
    claims += _link_claims(topology, devices, inventory)
    claims += _symmetry_claims(topology.matrices)
    return tuple(claims)


def _symmetry_claims(matrices: Iterable[HwlocMatrix]) -> Iterable[Claim]:
    """Claim that what is printed from one end is printed from the other: bandwidth of links and distance of memory nodes."""
    for matrix in matrices:
        if matrix.name in ("NVLinkBandwidth", "NUMALatency"):
            for a, b in combinations(range(len(matrix.ends)), 2):
                subject = f"{matrix.name} {matrix.ends[a]} and {matrix.ends[b]}"
                yield Claim("both directions", subject, matrix.values[a][b], matrix.values[b][a])


def _is_gpu(device: HwlocPci) -> bool:
    return device.vendor_id in _FAMILIES and device.class_code.startswith(("03", "12"))


def _sysfs(topology: HwlocTopology, devices: Sequence[HwlocPci], nodes: Sequence[HwlocNuma]) -> FakeSysfs:
    sysfs = FakeSysfs()
    matrix = topology.matrix("NUMALatency")
    distances = dict(zip(matrix.ends, matrix.values, strict=True)) if matrix is not None else {}
    for node in nodes:
        sysfs.add_numa(node.number, node.cpus or (), node.memory_bytes, distances.get(str(node.number), ()))
    for package in (found for found in topology.root.walk() if found.kind in ("Package", "Socket")):
        for cpu in package.cpus or ():
            sysfs.add_cpu(cpu, package.os_index or 0)
    roots = dict(_roots(topology.root))
    for device in devices:
        sysfs.add_function(
            device.address,
            bridges=device.bridges,
            root=roots.get(device.address),
            vendor=device.vendor_id,
            device=device.device_id,
            class_code=device.class_code,
            numa=_near(device, nodes),
            driver=_DRIVERS[_FAMILIES[device.vendor_id]] if _is_gpu(device) else None,
        )
        for network, types in device.os_devices:
            if {"network", "openfabrics"} & set(types):
                sysfs.add_network(network, device.address, is_infiniband="openfabrics" in types)
    return sysfs


def _roots(node: HwlocObject, root: str | None = None) -> Iterator[tuple[str, str]]:
    """Give the kernel's name of the host bridge above each PCI function: hwloc knows it by its range of buses."""
    match = re.match(r"^([0-9a-f]+):\[([0-9a-f]+)-", node.attributes.get("bridge_pci", ""))
    if node.kind == "Bridge" and node.attributes.get("bridge_type", "").startswith("0-") and match is not None:
        root = f"pci{match.group(1)}:{match.group(2)}"
    if node.kind == "PCIDev" and root is not None:
        yield node.attributes["pci_busid"], root
    for child in node.children:
        yield from _roots(child, root)


def _near(device: HwlocPci, nodes: Sequence[HwlocNuma]) -> int | None:
    """Give the one memory node that has exactly the CPUs a function is near to."""
    found = [node.number for node in nodes if node.cpus and node.cpus == device.cpus]
    return found[0] if len(found) == 1 else None


def _gpu_claims(devices: Sequence[HwlocPci], nodes: Sequence[HwlocNuma], inventory: Inventory) -> Iterable[Claim]:
    gpus = {device.address: device for device in devices if _is_gpu(device)}
    found = by_address(inventory)
    for vendor, family in _FAMILIES.items():
        yield count_claim(inventory, family, sum(gpu.vendor_id == vendor for gpu in gpus.values()))
    yield from address_claims(gpus, found)
    named = {d.address for d in devices if any(_LIBRARY_NAME.match(name) for name, _ in d.os_devices)}
    yield from (Claim("gpu by its library", address, True, address in found) for address in sorted(named))
    for address, gpu in gpus.items():
        device, path = found.get(address), inventory.host.paths.get(address)
        if device is not None and path is not None:
            yield Claim("id", address, id_of(gpu.vendor_id, gpu.device_id), device.attributes.get("pci_id"))
            yield Claim("numa", address, _near(gpu, nodes), device.numa_node)
            yield Claim("bridges", address, gpu.bridges, path.bridges)


def _host_claims(topology: HwlocTopology, nodes: Sequence[HwlocNuma], host: HostParts) -> Iterable[Claim]:
    known = {str(node.number): node for node in host.numa_nodes}
    yield from claim_each(
        "numa cpus", {str(n.number): n.cpus or () for n in nodes}, {k: n.cpus for k, n in known.items()}
    )
    said = {str(n.number): _whole_kib(n.memory_bytes) for n in nodes}
    yield from claim_each("numa memory", said, {k: n.memory_bytes for k, n in known.items()})
    matrix = topology.matrix("NUMALatency")
    if matrix is not None:
        distances = dict(zip(matrix.ends, matrix.values, strict=True))
        yield from claim_each("numa distances", distances, {k: n.distances for k, n in known.items()})


def _whole_kib(size: int | None) -> int | None:
    return None if size is None else size // 1024 * 1024


def _answers(topology: HwlocTopology, devices: Sequence[HwlocPci]) -> Mapping[str, Mapping[str, Json]]:
    matrix = topology.matrix("NVLinkBandwidth")
    gpus = [device for device in devices if _is_gpu(device) and device.vendor_id == 0x10DE]
    if matrix is None or not gpus:
        return {}
    ends = _ends(topology, devices)
    answers = [_answer(index, gpu, matrix, ends) for index, gpu in enumerate(gpus)]
    return {"nvidia": {"nvml": {"format": 1, "devices": answers, "pairs": []}}}


def _ends(topology: HwlocTopology, devices: Sequence[HwlocPci]) -> Mapping[str, str]:
    """Give the PCI address of every end of a matrix, by the name it has there."""
    ends = {f"PCIDev:{device.gp_index}": device.address for device in devices}
    for node in topology.root.walk():
        if node.kind == "PCIDev":
            for child in node.children:
                ends[f"OSDev:{child.attributes.get('gp_index')}"] = node.attributes["pci_busid"]
    return ends


def _answer(index: int, gpu: HwlocPci, matrix: HwlocMatrix, ends: Mapping[str, str]) -> Json:
    links = []
    for far, speed in _speeds(gpu.address, matrix, ends).items():
        links += [{"remote_address": far}] * (speed // _MBS_OF_ONE_LINK)
    common = {"state": 1, "version": 2, "remote_type": 2}
    return {
        "index": index,
        "uuid": f"GPU-{index:032x}",
        "name": "GPU of hwloc",
        "pci_address": gpu.address,
        "codes": {},
        "partitions": [],
        "nvlinks": [{"link": number, **common, **link} for number, link in enumerate(links)],
        "fabric": {},
    }


def _speeds(address: str, matrix: HwlocMatrix, ends: Mapping[str, str]) -> Mapping[str, int]:
    """Give MB/s from one GPU to every other end it is linked to; hwloc writes its own end as very fast."""
    row = next((row for end, row in zip(matrix.ends, matrix.values, strict=True) if ends.get(end) == address), ())
    pairs = zip(matrix.ends, row, strict=bool(row))
    return {ends[end]: speed for end, speed in pairs if speed and end in ends and ends[end] != address}


def _link_claims(topology: HwlocTopology, devices: Sequence[HwlocPci], inventory: Inventory) -> Iterable[Claim]:
    """Compare links to switches one by one, and pairs of GPUs with what each end can carry to its switches."""
    matrix = topology.matrix("NVLinkBandwidth")
    if matrix is None:
        return
    ends, found = _ends(topology, devices), by_address(inventory, ("nvidia",))
    said = {address: _speeds(address, matrix, ends) for address in found}
    answered = {(link.a, link.b): link for link in inventory.links}
    for address, device in found.items():
        for far, speed in said[address].items():
            link = answered.get((device.id, f"nvidia:{far}"))
            yield Claim(
                "link to switch", f"{address} and {far}", speed * 1_000_000, link and link.bytes_per_second_each_way
            )
    for a, b in combinations(found, 2):
        total = min(sum(said[a].values()), sum(said[b].values())) * 1_000_000
        between = inventory.link_between(found[a], found[b])
        yield Claim("link through switches", f"{a} and {b}", total, between and between.bytes_per_second_each_way)
