"""Compute partitions: which KFD nodes are slices of one GPU, how many there should be, and the devices made of them.

A divided GPU keeps its memory: the banks KFD lists per partition are shares of one VRAM, whatever the memory mode (NPS).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from anyaccel.device import Condition, Device, Level, Scalar
from anyaccel.frozen import FrozenMap
from anyaccel_amd.conditions import divided, partitions_missing, partitions_not_granted
from anyaccel_amd.joining import Gpu, is_part
from anyaccel_amd.kfd import KfdNode, KfdTopology
from anyaccel_amd.numbering import Numbering, node_facts
from anyaccel_amd.pci_names import DIES
from anyaccel_amd.sysfs import CardFacts

__all__ = ["Division", "division_of", "partition_devices"]

_FIXED_COUNTS = {"SPX": 1, "DPX": 2, "TPX": 3, "QPX": 4}
"""Partitions in each compute mode; CPX makes one of every die (kernel documentation, "Compute Partitioning")."""


@dataclass(frozen=True)
class Division:
    """How one GPU is divided.

    Args: nodes: KFD nodes of its partitions, in order of partition. expected: how many there should be, None = unknown.
        mode, memory_mode: `CPX`, `NPS4`, None = not told. source: where `expected` comes from.
        denied_count: KFD nodes of the machine that may not be used here, some of which may be partitions of this GPU.
    """

    is_divided: bool
    nodes: tuple[KfdNode, ...] = ()
    expected: int | None = None
    mode: str | None = None
    memory_mode: str | None = None
    source: str = ""
    denied_count: int = 0

    @property
    def missing(self) -> int:
        """How many partitions are not there."""
        return max(0, (self.expected or 0) - len(self.nodes)) if self.is_divided else 0

    @property
    def profile(self) -> str | None:
        """Name of the kind of partition, as AMD's Kubernetes plugin has it: `cpx_nps4`."""
        return f"{self.mode}_{self.memory_mode}".lower() if self.mode and self.memory_mode else None

    def conditions(self) -> Iterable[Condition]:
        """Give what the division does to the whole GPU."""
        if not self.is_divided:
            return
        if self.nodes:
            yield divided(len(self.nodes), self.mode, missing=self.missing)
        if self.missing and self.expected is not None and self.denied_count:
            yield partitions_not_granted(len(self.nodes), self.expected, self.denied_count)
        elif self.missing and self.expected is not None:
            yield partitions_missing(len(self.nodes), self.expected, self.mode, self.source)

    def attributes(self) -> dict[str, Scalar]:
        """Give what the whole GPU shows of it; nothing for a GPU that cannot be divided."""
        facts: dict[str, Scalar] = {"compute_partition": self.mode, "memory_partition": self.memory_mode}
        if self.is_divided:
            facts |= {"partition_count": len(self.nodes), "partition_profile": self.profile}
        return {name: value for name, value in facts.items() if value is not None}


def division_of(gpu: Gpu, facts: CardFacts, topology: KfdTopology, siblings: Sequence[Gpu]) -> Division:
    """Tell how a GPU is divided, from its mode where the driver says it, else from the dies each node holds.

    Args: siblings: all GPUs of the machine; one with more partitions than an equal other shows that the other lacks some.
    """
    nodes = tuple(sorted(gpu.nodes, key=lambda node: (node.partition, node.number)))
    whole = Division(False, nodes, None, facts.compute_partition, facts.memory_partition)
    if not nodes and (not topology.is_present or not topology.is_stable or topology.denied_count):
        return whole
    if len(nodes) <= 1 and _is_whole(facts.compute_partition, nodes):
        return whole
    expected, source = _expected(gpu, facts.compute_partition, siblings)
    mode = facts.compute_partition or _mode_of(gpu, nodes)
    return Division(True, nodes, expected, mode, facts.memory_partition, source, topology.denied_count)


def _is_whole(mode: str | None, nodes: Sequence[KfdNode]) -> bool:
    return mode == "SPX" or (mode is None and not any(is_part(node) for node in nodes))


def _expected(gpu: Gpu, mode: str | None, siblings: Sequence[Gpu]) -> tuple[int, str]:
    by_mode = _FIXED_COUNTS.get(mode or "")
    if by_mode is not None:
        return by_mode, "by its partition mode"
    by_dies = _expected_by_dies(gpu)
    if by_dies is not None:
        return by_dies, "by the dies of the GPU and of each partition"
    most = max((len(other.nodes) for other in siblings if other.device_id == gpu.device_id), default=len(gpu.nodes))
    return most, "by the equal GPUs of this machine"


def _expected_by_dies(gpu: Gpu) -> int | None:
    dies = DIES.get(gpu.device_id or 0)
    mine = max((node.properties.get("num_xcc", 0) for node in gpu.nodes), default=1)
    return dies // mine if dies and mine and dies % mine == 0 else None


def _mode_of(gpu: Gpu, nodes: Sequence[KfdNode]) -> str | None:
    """Name the mode by what it does: all nodes of one die = CPX, else by the number of equal parts."""
    count = _expected_by_dies(gpu)
    if count is None:
        return None
    is_single = all(node.properties.get("num_xcc") == 1 for node in nodes)
    return "CPX" if is_single else next((mode for mode, n in _FIXED_COUNTS.items() if n == count), None)


def partition_devices(parent: Device, division: Division, numbering: Numbering) -> tuple[Device, ...]:
    """Make a device of every partition that is there."""
    return tuple(_partition(parent, division, node, numbering) for node in division.nodes)


def _partition(parent: Device, division: Division, node: KfdNode, numbering: Numbering) -> Device:
    facts = node_facts(node, numbering)
    same = [other for other in division.nodes if other.partition == node.partition]
    place = str(node.partition) if len(same) == 1 else f"kfd{node.number}"
    attributes: dict[str, Scalar] = {
        "target": parent.attributes.get("target"),
        "partition_index": node.partition,
        "compute_partition": division.mode,
        "memory_partition": division.memory_mode,
        "partition_profile": division.profile,
        "kfd_memory_bytes": node.memory_bytes,
        "dies": node.properties.get("num_xcc"),
    }
    unknown = {
        "uuid": "the partitions of one GPU share its unique id; use the index",
        "pci_addresses": "a partition shares the PCI function of its GPU",
        "memory_bytes": "drawn from the GPU's memory" if parent.memory_owner else "drawn from the host's memory",
        "numbers.card": "a partition has a render node and no card of its own",
    }
    return replace(
        parent,
        id=f"{parent.id}/{place}",
        level=Level.PARTITION,
        label="XCP",
        parent=parent.id,
        uuid=None,
        pci_addresses=(),
        numbers=facts.numbers.with_items({"card": None, "partition": node.partition}),
        memory_bytes=None,
        memory_owner=parent.memory_owner,
        conditions=(*_inherited(parent), *facts.conditions),
        nodes=facts.nodes,
        attributes=FrozenMap({name: value for name, value in attributes.items() if value is not None}),
        unknown=FrozenMap({**_inherited_reasons(parent), **unknown, **facts.unknown}),
    )


def _inherited(parent: Device) -> tuple[Condition, ...]:
    """Give what hits the whole function: no driver, not responding, asleep."""
    own = (
        "partitioned",
        "partitions-missing",
        "partitions-not-granted",
        "permission-denied",
        "node-missing",
        "node-not-granted",
    )
    return tuple(condition for condition in parent.conditions if condition.code not in own)


def _inherited_reasons(parent: Device) -> dict[str, str]:
    kept = ("model", "numa_node", "driver_version", "is_integrated", "memory_owner")
    return {name: parent.unknown[name] for name in kept if name in parent.unknown}
