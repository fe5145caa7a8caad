"""Matrices that vendors' tools print, carried through our own values and back.

Every word of `nvidia-smi topo -m` becomes a place below bridges and memory nodes or a link; the word that our nearness and links
give must be the one that was printed. The tables of `rocm-smi --showtopo` become the KFD topology the tool has them from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, permutations
from pathlib import Path

from anyaccel.cpus import cpu_list_text, parse_cpu_list
from anyaccel.device import Device, FamilyView
from anyaccel.frozen import FrozenMap
from anyaccel.inventory import Inventory
from anyaccel.topology import HostParts, Link, LinkState, Nic, NumaNode, PairLevel, PciPath, pci_level
from anyaccel_conformance.captures.claims import Claim
from anyaccel_conformance.captures.fake_sysfs import FakeSysfs
from anyaccel_conformance.captures.looking import Looker, health_claim
from anyaccel_conformance.readers.foreign import read_text_document
from anyaccel_conformance.readers.nvidia_topo import TopoMatrix, TopoRow, parse_topo_matrix, write_topo_matrix
from anyaccel_conformance.readers.rocm_topo import RocmTopology, parse_rocm_topology, write_rocm_topology

__all__ = ["compare_rocm_matrix", "compare_topo_matrix", "inventory_of_matrix", "word_between"]

_RANKS = ("PIX", "PXB", "PHB", "NODE")
_WORDS = {
    PairLevel.SELF: "X",
    PairLevel.SAME_SWITCH: "PIX",
    PairLevel.SEVERAL_SWITCHES: "PXB",
    PairLevel.SAME_HOST_BRIDGE: "PHB",
    PairLevel.SAME_NUMA: "NODE",
    PairLevel.ACROSS_NUMA: "SYS",
    PairLevel.UNKNOWN: "N/A",
}
_FAMILY = "nvidia"
_KFD = "/sys/class/kfd/kfd/topology"
_KFD_TYPES = {"XGMI": 11, "PCIE": 2}


def compare_topo_matrix(path: Path) -> tuple[Claim, ...]:
    """Compare a printed matrix with what our values say after they took it in."""
    matrix = parse_topo_matrix(read_text_document(path))
    inventory = inventory_of_matrix(matrix)
    claims = [Claim("written again", "the file", matrix, parse_topo_matrix(write_topo_matrix(matrix)))]
    for row in matrix.rows:
        for name, said in zip(matrix.columns, row.words, strict=True):
            if said is not None:
                answered = word_between(inventory, matrix, row.name, name)
                claims.append(Claim("word", f"{row.name} to {name}", _same_word(said), answered))
        claims += _row_claims(row, inventory)
    return tuple(claims)


def _same_word(word: str) -> str:
    """Old drivers print SOC for what newer ones call SYS."""
    return "SYS" if word == "SOC" else word


def _row_claims(row: TopoRow, inventory: Inventory) -> Iterable[Claim]:
    device = next((d for d in inventory.devices if d.id == _id(row.name)), None)
    if device is None or row.numa_affinity is None:
        return
    cpus = inventory.local_cpus(device)
    yield Claim("numa", row.name, row.numa_affinity, str(device.numa_node))
    yield Claim("cpus", row.name, row.cpu_affinity, None if cpus is None else cpu_list_text(cpus))


def _id(name: str) -> str:
    return f"{_FAMILY}:{name}"


def inventory_of_matrix(matrix: TopoMatrix) -> Inventory:
    """Make an inventory in which everything hangs where the words of a matrix put it."""
    groups = {rank: _groups(matrix, _RANKS[: place + 1]) for place, rank in enumerate(_RANKS)}
    paths = {name: _path(number, name, groups) for number, name in enumerate(matrix.columns)}
    gpus = [name for name in matrix.columns if name.startswith("GPU")]
    devices = tuple(_device(name, paths[name], matrix.row(name)) for name in gpus)
    links = tuple(_links(matrix, gpus))
    host = HostParts(
        numa_nodes=tuple(_numa_nodes(matrix)),
        nics=tuple(Nic(name, "infiniband", paths[name]) for name in matrix.columns if name not in gpus),
        paths=FrozenMap({path.address: path for path in paths.values()}),
    )
    return Inventory(views=(FamilyView(_FAMILY, devices, links),), host=host)


def _groups(matrix: TopoMatrix, words: Sequence[str]) -> Mapping[str, int]:
    """Number the sets of names that are connected by any of these words."""
    group = {name: number for number, name in enumerate(matrix.columns)}
    for a, b in combinations(matrix.columns, 2):
        if matrix.word(a, b) in words:
            old, new = group[b], group[a]
            group = {name: new if number == old else number for name, number in group.items()}
    return group


def _path(number: int, name: str, groups: Mapping[str, Mapping[str, int]]) -> PciPath:
    port, switch = groups["PXB"][name], groups["PIX"][name]
    bridges = (f"0000:01:{port:02x}.0", f"0000:02:{switch:02x}.0", f"0000:03:{number:02x}.0")
    return PciPath(f"0000:{number + 16:02x}:00.0", f"pci{groups['PHB'][name]:04x}:00", bridges, groups["NODE"][name])


def _device(name: str, path: PciPath, row: TopoRow | None) -> Device:
    text = None if row is None else row.numa_affinity
    node = int(text) if text is not None and text.isdigit() else None
    return Device(id=_id(name), family=_FAMILY, pci_addresses=(path.address,), numa_node=node)


def _links(matrix: TopoMatrix, gpus: Sequence[str]) -> Iterable[Link]:
    for a, b in combinations(gpus, 2):
        word = matrix.word(a, b) or ""
        if word.startswith("NV"):
            yield Link(
                _id(a), _id(b), "nvlink", word, count=int(word[2:]), state=LinkState.UP, reason="no speed is printed"
            )


def _numa_nodes(matrix: TopoMatrix) -> Iterable[NumaNode]:
    lists = {row.numa_affinity: row.cpu_affinity for row in matrix.rows if row.numa_affinity is not None}
    for node, cpus in lists.items():
        if node.isdigit():
            yield NumaNode(int(node), parse_cpu_list(cpus or ""))


def word_between(inventory: Inventory, matrix: TopoMatrix, a: str, b: str) -> str:
    """Give NVIDIA's word for how two ends of an inventory made of a matrix are connected."""
    paths = inventory.host.paths
    devices = {device.id: device for device in inventory.devices}
    first, second = devices.get(_id(a)), devices.get(_id(b))
    if first is not None and second is not None:
        link = inventory.link_between(first, second)
        return link.label if link is not None else _WORDS[inventory.pair_level(first, second)]
    ends = [f"0000:{matrix.columns.index(name) + 16:02x}:00.0" for name in (a, b)]
    return _WORDS[pci_level(paths[ends[0]], paths[ends[1]])]


def compare_rocm_matrix(path: Path, name: str, looker: Looker) -> tuple[Claim, ...]:
    """Compare the tables of rocm-smi with discovery of the KFD topology they stand for."""
    topology = parse_rocm_topology(read_text_document(path))
    inventory = looker.look(_kfd(topology).machine(name))
    devices = {device.numbers.get("kfd"): device for device in inventory.view("amd").devices}
    claims = [Claim("written again", "the file", topology, parse_rocm_topology(write_rocm_topology(topology)))]
    claims += [health_claim(inventory), Claim("count", "amd", len(topology.gpus), len(devices))]
    for a, b in permutations(range(len(topology.gpus)), 2):
        ends = devices.get(a + 1), devices.get(b + 1)
        link = None if ends[0] is None or ends[1] is None else inventory.link_between(ends[0], ends[1])
        said = topology.kind(topology.gpus[a], topology.gpus[b])
        claims.append(Claim("link type", f"GPU {a} to {b}", said, None if link is None else link.kind.upper()))
    return tuple(claims)


def _kfd(topology: RocmTopology) -> FakeSysfs:
    sysfs = FakeSysfs()
    sysfs.write(f"{_KFD}/generation_id", 1)
    sysfs.write(f"{_KFD}/nodes/0/gpu_id", 0)
    sysfs.write(f"{_KFD}/nodes/0/properties", "cpu_cores_count 1\nsimd_count 0")
    for number, gpu in enumerate(topology.gpus, start=1):
        folder = f"{_KFD}/nodes/{number}"
        sysfs.write(f"{folder}/gpu_id", number)
        values = f"simd_count 1\nvendor_id 4098\ndevice_id 26273\nlocation_id {number << 8}\ndomain 0"
        sysfs.write(f"{folder}/properties", values)
        for far, other in enumerate(topology.gpus, start=1):
            kind = _KFD_TYPES.get(topology.kind(gpu, other) or "")
            if kind is not None:
                weight = topology.weights[number - 1][far - 1] if topology.weights else 0
                lines = f"type {kind}\nnode_from {number}\nnode_to {far}\nweight {weight}\nflags 1"
                sysfs.write(
                    f"{folder}/{'io_links' if kind == _KFD_TYPES['XGMI'] else 'p2p_links'}/{far}/properties", lines
                )
    return sysfs
