"""Topology files of NCCL and RCCL: what a provider or a lab says sits below which switch and memory node, and on which links.

A `/sys` is made of the file (for AMD with the KFD topology that would have told the links), and discovery of it is compared
with the file's own nesting. The file is also written again and must read as the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from anyaccel.inventory import Inventory
from anyaccel.pci import address_key
from anyaccel.topology import PairLevel, PciPath, pci_level
from anyaccel_conformance.captures.claims import Claim, claim_each
from anyaccel_conformance.captures.fake_sysfs import FakeSysfs
from anyaccel_conformance.captures.looking import Looker, address_claims, by_address, count_claim, health_claim
from anyaccel_conformance.readers.foreign import read_document
from anyaccel_conformance.readers.nccl_xml import NcclPci, NcclSystem, parse_nccl_xml, write_nccl_xml

__all__ = ["compare_library_topology"]

_VENDORS = {"nvidia": 0x10DE, "amd": 0x1002}
_GPU_CLASSES = ("03", "12")
_NETWORK_CLASSES = ("0200", "0207")
_SPEED = re.compile(r"^([0-9.]+) GT/s")
_XGMI, _WEIGHT = 11, 15
_KFD = "/sys/class/kfd/kfd/topology"


@dataclass(frozen=True)
class _Part:
    """A GPU or network card of the file. Args: bridges: from the root down. numa: of the CPU it stands below."""

    pci: NcclPci
    bridges: tuple[str, ...]
    numa: int | None

    @property
    def address(self) -> str:
        return self.pci.address

    @property
    def speed(self) -> float | None:
        match = _SPEED.match(self.pci.attributes.get("link_speed", ""))
        return float(match.group(1)) if match else None

    @property
    def width(self) -> int | None:
        text = self.pci.attributes.get("link_width", "")
        return int(text) if text.isdigit() and int(text) else None


def compare_library_topology(path: Path, name: str, looker: Looker, family: str) -> tuple[Claim, ...]:
    """Compare with a topology file. Args: family: whose GPUs the file describes where it does not say the vendor."""
    system = parse_nccl_xml(read_document(path))
    gpus, nics = _parts(system, _GPU_CLASSES), _parts(system, _NETWORK_CLASSES)
    inventory = looker.look(_sysfs(system, family, gpus, nics).machine(name))
    claims = [Claim("written again", "the file", system, parse_nccl_xml(write_nccl_xml(system)))]
    claims += [health_claim(inventory), count_claim(inventory, family, len(gpus))]
    devices = by_address(inventory, (family,))
    claims += address_claims((gpu.address for gpu in gpus), devices)
    claims += claim_each("numa", {g.address: g.numa for g in gpus}, {a: d.numa_node for a, d in devices.items()})
    claims += claim_each(
        "numa cpus",
        {str(cpu.number): cpu.cpus for cpu in system.cpus if cpu.number is not None},
        {str(node.number): node.cpus for node in inventory.host.numa_nodes},
    )
    claims += _speed_claims(gpus, inventory)
    claims += _level_claims((*gpus, *nics), inventory)
    claims += _link_claims(gpus, inventory, family)
    return tuple(claims)


def _parts(system: NcclSystem, classes: Sequence[str]) -> tuple[_Part, ...]:
    parts = [
        _Part(pci, above, cpu.number)
        for cpu in system.cpus
        for pci, above in cpu.walk()
        if (pci.class_code or "").startswith(tuple(classes))
    ]
    return tuple(sorted(parts, key=lambda part: address_key(part.address)))


def _sysfs(system: NcclSystem, family: str, gpus: Iterable[_Part], nics: Iterable[_Part]) -> FakeSysfs:
    """Make a `/sys` of a file. A file tells no host bridges, so everything at its top gets a root of its own."""
    sysfs = FakeSysfs()
    roots: dict[str, str] = {}
    for cpu in system.cpus:
        if cpu.number is not None:
            sysfs.add_numa(cpu.number, cpu.cpus)
        for pci, above in cpu.walk():
            top = above[0] if above else pci.address
            sysfs.add_function(
                pci.address,
                bridges=above,
                root=roots.setdefault(top, f"pci{len(roots):04x}:00"),
                vendor=_hex(pci, "vendor") or _vendor_of(pci, family),
                device=_hex(pci, "device"),
                class_code=pci.class_code,
                numa=cpu.number,
                driver=_driver_of(pci, family),
            )
            part = _Part(pci, above, cpu.number)
            sysfs.add_link_speed(pci.address, (part.speed, part.width))
    for nic in nics:
        for net in (net for entry in nic.pci.nics for net in entry.nets):
            sysfs.add_network(net["name"], nic.address, is_infiniband=(nic.pci.class_code or "").startswith("0207"))
    if family == "amd":
        _add_kfd(sysfs, system, [gpu for gpu in gpus if gpu.pci.gpu is not None])
    return sysfs


def _hex(pci: NcclPci, name: str) -> int | None:
    text = pci.attributes.get(name)
    return None if text is None else int(text, 16)


def _vendor_of(pci: NcclPci, family: str) -> int | None:
    return _VENDORS[family] if (pci.class_code or "").startswith(_GPU_CLASSES) else None


def _driver_of(pci: NcclPci, family: str) -> str | None:
    is_gpu = (pci.class_code or "").startswith(_GPU_CLASSES)
    return {"nvidia": "nvidia", "amd": "amdgpu"}[family] if is_gpu else None


def _add_kfd(sysfs: FakeSysfs, system: NcclSystem, gpus: Sequence[_Part]) -> None:
    """Put the KFD topology: CPU nodes first, then GPUs in the library's order, with the links the file names."""
    sysfs.write(f"{_KFD}/generation_id", 1)
    first = len(system.cpus)
    for number in range(first):
        sysfs.write(f"{_KFD}/nodes/{number}/gpu_id", 0)
        sysfs.write(f"{_KFD}/nodes/{number}/properties", "cpu_cores_count 1\nsimd_count 0")
    ordered = sorted(gpus, key=_library_number)
    numbers = {gpu.address: first + place for place, gpu in enumerate(ordered)}
    for gpu in ordered:
        folder = f"{_KFD}/nodes/{numbers[gpu.address]}"
        domain, bus, device, function = address_key(gpu.address)
        location = bus << 8 | device << 3 | function
        lines = {"simd_count": 1, "vendor_id": _VENDORS["amd"], "location_id": location, "domain": domain}
        sysfs.write(f"{folder}/gpu_id", location + 1)
        sysfs.write(f"{folder}/properties", "\n".join(f"{key} {value}" for key, value in lines.items()))
        for place, target in enumerate(_targets(gpu, numbers)):
            text = f"type {_XGMI}\nnode_from {numbers[gpu.address]}\nnode_to {target}\nweight {_WEIGHT}\nflags 1"
            sysfs.write(f"{folder}/io_links/{place}/properties", text)


def _library_number(gpu: _Part) -> int:
    number = None if gpu.pci.gpu is None else gpu.pci.gpu.number
    return -1 if number is None else number


def _targets(gpu: _Part, numbers: Mapping[str, int]) -> list[int]:
    links = () if gpu.pci.gpu is None else gpu.pci.gpu.links
    targets = (link.target for link in links if link.kind == "xgmi" and link.target is not None)
    return [numbers[target] for target in targets if target in numbers]


def _speed_claims(gpus: Iterable[_Part], inventory: Inventory) -> Iterable[Claim]:
    """Compare PCIe links, for cards without a bridge of their own: those show the link of their upper port."""
    for gpu in gpus:
        link = inventory.host.pcie_links.get(gpu.address)
        if gpu.speed is not None and (link is None or link.at == gpu.address):
            yield Claim("link", gpu.address, (gpu.speed, gpu.width), link and (link.speed_gts, link.width))


def _level_claims(parts: Sequence[_Part], inventory: Inventory) -> Iterable[Claim]:
    """Compare how near every two GPUs or network cards are with their places in the file."""
    paths: dict[str, PciPath] = {**inventory.host.paths, **{nic.path.address: nic.path for nic in inventory.host.nics}}
    for a, b in combinations([part for part in parts if part.address in paths], 2):
        level = pci_level(paths[a.address], paths[b.address], hides_tree=inventory.hides_tree)
        yield Claim("level", f"{a.address} and {b.address}", _said_level(a, b), _coarse(level))


def _said_level(a: _Part, b: _Part) -> str:
    if a.address.rpartition(".")[0] == b.address.rpartition(".")[0]:
        return "one board"
    shared = len([bridge for bridge in a.bridges if bridge in b.bridges])
    if shared:
        return "one switch" if max(len(a.bridges), len(b.bridges)) - shared <= 1 else "several switches"
    if a.numa is None or b.numa is None:
        return "unknown"
    return "one node" if a.numa == b.numa else "two nodes"


def _coarse(level: PairLevel) -> str:
    """Give a level in the words that a file can tell: it has no host bridges."""
    return {
        PairLevel.SAME_PACKAGE: "one board",
        PairLevel.SAME_SWITCH: "one switch",
        PairLevel.SEVERAL_SWITCHES: "several switches",
        PairLevel.SAME_HOST_BRIDGE: "one node",
        PairLevel.SAME_NUMA: "one node",
        PairLevel.ACROSS_NUMA: "two nodes",
    }.get(level, level.value)


def _link_claims(gpus: Sequence[_Part], inventory: Inventory, family: str) -> Iterable[Claim]:
    """Compare which GPUs are linked, whichever end the file names."""
    said = {
        _pair(gpu.address, link.target): link.kind
        for gpu in gpus
        for link in (gpu.pci.gpu.links if gpu.pci.gpu is not None else ())
        if link.target is not None
    }
    names = {device.id: address for address, device in by_address(inventory, (family,)).items()}
    links = [link for link in inventory.view(family).links if link.a in names and link.b in names]
    ends = {
        (gpu.address, link.target): link.count for gpu in gpus for link in (gpu.pci.gpu.links if gpu.pci.gpu else ())
    }
    for (a, b), count in ends.items():
        yield Claim("link at both ends", f"{a} to {b}", count, ends.get((str(b), a)))
    yield from claim_each("vendor link", said, {_pair(names[link.a], names[link.b]): link.kind for link in links})


def _pair(a: str, b: str) -> str:
    return f"{min(a, b)} and {max(a, b)}"
