"""The KFD topology: what the kernel's compute driver tells of every node, without opening `/dev/kfd`.

Files: `Documentation/gpu/amdgpu` and `drivers/gpu/drm/amd/amdkfd/kfd_topology.c` of the kernel. Old kernels leave keys out, and
inside a container the files of a GPU that was not granted answer EPERM (`kfd_devcgroup_check_permission`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from anyaccel.errors import FileUnavailableError
from anyaccel.frozen import FrozenMap
from anyaccel.machine import Machine
from anyaccel_amd.sysfs import whole_number

__all__ = ["LINK_PCIE", "LINK_XGMI", "KfdBank", "KfdLink", "KfdNode", "KfdTopology", "read_links", "read_topology"]

_ROOT = "/sys/class/kfd/kfd/topology"
_ATTEMPTS = 3

LINK_PCIE = 2
LINK_XGMI = 11
"""`CRAT_IOLINK_TYPE_PCIEXPRESS` and `CRAT_IOLINK_TYPE_XGMI` of the kernel's `kfd_crat.h`."""

_DEVICE_HEAPS = (1, 2)
"""Public and private memory of the device; 0 is memory of the host."""


@dataclass(frozen=True)
class KfdBank:
    """One memory bank of a node."""

    heap_type: int
    size_bytes: int


@dataclass(frozen=True)
class KfdLink:
    """One link as one node tells it.

    Args: weight: distance, smaller is nearer. min_mbs, max_mbs: MB/s each way; 0 = the kernel does not know.
        is_enabled: bit 0 of the flags. is_indirect: from `p2p_links`, which lead through something else.
    """

    node_from: int
    node_to: int
    type: int
    weight: int
    min_mbs: int
    max_mbs: int
    is_enabled: bool = False
    is_indirect: bool = False


@dataclass(frozen=True)
class KfdNode:
    """One node of the topology.

    Args: gpu_id: 0 = a CPU, None = not told. is_denied: its files cannot be read here.
    """

    number: int
    gpu_id: int | None = None
    properties: FrozenMap[int] = field(default_factory=FrozenMap)
    banks: tuple[KfdBank, ...] = ()
    is_denied: bool = False

    @property
    def is_gpu(self) -> bool:
        """Whether this node computes as a GPU and may be used here."""
        return not self.is_denied and self.properties.get("simd_count", 0) > 0

    @property
    def domain(self) -> int | None:
        """PCI domain; None on kernels too old to tell."""
        return self.properties.get("domain")

    @property
    def slot(self) -> tuple[int, int]:
        """PCI bus and device number."""
        location = self.properties.get("location_id", 0)
        return (location >> 8 & 0xFF, location >> 3 & 0x1F)

    @property
    def low_bits(self) -> int:
        """The function bits of the location: a PCI function, or the partition number of a divided GPU."""
        return self.properties.get("location_id", 0) & 0x7

    @property
    def partition(self) -> int:
        """Partition number: bits 31 to 28 in one kernel release of 2024, the function bits in all others."""
        return self.properties.get("location_id", 0) >> 28 & 0xF or self.low_bits

    @property
    def unique_id(self) -> int | None:
        """The GPU's own number, shared by its partitions; None where it has none."""
        return self.properties.get("unique_id") or None

    @property
    def hive_id(self) -> int | None:
        """Number of the xGMI hive; None outside one."""
        return self.properties.get("hive_id") or None

    @property
    def render_minor(self) -> int | None:
        """Minor number of the render node."""
        return self.properties.get("drm_render_minor") or None

    @property
    def memory_bytes(self) -> int | None:
        """Device memory in the banks of this node, None when none is listed."""
        banks = [bank.size_bytes for bank in self.banks if bank.heap_type in _DEVICE_HEAPS]
        return sum(banks) or self.properties.get("local_mem_size") or None


@dataclass(frozen=True)
class KfdTopology:
    """Every node, and how far it can be trusted.

    Args: is_present: the kernel shows a topology. is_stable: it did not change while it was read.
    """

    is_present: bool = False
    is_stable: bool = True
    generation: int | None = None
    nodes: tuple[KfdNode, ...] = ()

    @property
    def gpus(self) -> tuple[KfdNode, ...]:
        """GPU nodes that may be used here, in the order of the runtime."""
        return tuple(node for node in self.nodes if node.is_gpu)

    @property
    def denied_count(self) -> int:
        """How many GPU nodes may not be used here."""
        return sum(node.is_denied for node in self.nodes)


def read_topology(machine: Machine) -> KfdTopology:
    """Read every node but not its links; once more when the tree changed meanwhile.

    Example: read_topology(machine).gpus[0].properties["gfx_target_version"] == 90402
    """
    if not machine.list_folder(f"{_ROOT}/nodes"):
        return KfdTopology()
    topology = KfdTopology()
    for _ in range(_ATTEMPTS):
        before = _number(machine, f"{_ROOT}/generation_id")
        nodes = tuple(_read_node(machine, number) for number in _numbers(machine, f"{_ROOT}/nodes"))
        after = _number(machine, f"{_ROOT}/generation_id")
        topology = KfdTopology(is_present=True, is_stable=before == after, generation=after, nodes=nodes)
        if topology.is_stable:
            break
    return topology


def _read_node(machine: Machine, number: int) -> KfdNode:
    folder = f"{_ROOT}/nodes/{number}"
    gpu_id, is_id_denied = _guarded(machine, f"{folder}/gpu_id")
    text, is_text_denied = _guarded(machine, f"{folder}/properties")
    properties = _properties(text)
    gpu = whole_number(gpu_id)
    is_hidden = gpu == 0 and properties.get("simd_count", 0) > 0
    return KfdNode(
        number=number,
        gpu_id=gpu,
        properties=properties,
        banks=tuple(_banks(machine, folder)),
        is_denied=is_id_denied or is_text_denied or is_hidden,
    )


def _guarded(machine: Machine, path: str) -> tuple[str, bool]:
    """Read a file; the second value tells that it is there and cannot be read, or holds nothing."""
    try:
        text = machine.read_text(path)
    except FileUnavailableError as error:
        return "", not error.is_missing
    return text, not text


def _properties(text: str) -> FrozenMap[int]:
    pairs = (line.split() for line in text.splitlines())
    numbers = ((pair[0], whole_number(pair[1])) for pair in pairs if len(pair) == 2)
    return FrozenMap({name: number for name, number in numbers if number is not None})


def _banks(machine: Machine, folder: str) -> Iterable[KfdBank]:
    for number in _numbers(machine, f"{folder}/mem_banks"):
        bank = _properties(machine.read_text_or_none(f"{folder}/mem_banks/{number}/properties") or "")
        if "heap_type" in bank:
            yield KfdBank(bank["heap_type"], bank.get("size_in_bytes", 0))


def read_links(machine: Machine, topology: KfdTopology) -> tuple[KfdLink, ...]:
    """Read every link of the GPU nodes, direct ones first."""
    return tuple(link for node in topology.gpus for link in _node_links(machine, node))


def _node_links(machine: Machine, node: KfdNode) -> Iterable[KfdLink]:
    for name in ("io_links", "p2p_links"):
        folder = f"{_ROOT}/nodes/{node.number}/{name}"
        for number in _numbers(machine, folder):
            link = _properties(machine.read_text_or_none(f"{folder}/{number}/properties") or "")
            if "node_to" in link and "type" in link:
                yield KfdLink(
                    node_from=node.number,
                    node_to=link["node_to"],
                    type=link["type"],
                    weight=link.get("weight", 0),
                    min_mbs=link.get("min_bandwidth", 0),
                    max_mbs=link.get("max_bandwidth", 0),
                    is_enabled=bool(link.get("flags", 0) & 1),
                    is_indirect=name == "p2p_links",
                )


def _numbers(machine: Machine, folder: str) -> tuple[int, ...]:
    numbers = (whole_number(name) for name in machine.list_folder(folder))
    return tuple(sorted(number for number in numbers if number is not None))


def _number(machine: Machine, path: str) -> int | None:
    return whole_number(machine.read_text_or_none(path) or "")
