"""The numbers of a KFD node: its position in the runtime's order, its KFD number and its render node; and the device files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from anyaccel.device import Condition
from anyaccel.frozen import FrozenMap
from anyaccel.host import read_boundary
from anyaccel.machine import Machine
from anyaccel_amd.conditions import KFD_FILE, knows_device_files, node_conditions
from anyaccel_amd.kfd import KfdNode, KfdTopology

__all__ = ["NodeFacts", "Numbering", "files_of", "node_facts", "read_numbering"]


@dataclass(frozen=True)
class Numbering:
    """How the runtime counts the KFD nodes of one machine.

    Args: indexes: position by node number. reason: why a node has none. is_container: as core sees it.
    """

    machine: Machine
    indexes: Mapping[int, int]
    reason: str
    is_container: bool | None


@dataclass(frozen=True)
class NodeFacts:
    """What one KFD node gives the device or partition that stands for it."""

    numbers: FrozenMap[int | str | None]
    nodes: tuple[str, ...]
    conditions: tuple[Condition, ...]
    unknown: FrozenMap[str]


def read_numbering(machine: Machine, topology: KfdTopology) -> Numbering:
    """Number the GPU nodes as ROCR does: in KFD order, without those whose render node is not there.

    `topology_sysfs_check_node_supported` of libhsakmt leaves a node out when its files answer EPERM or its render node does
    not exist; ROCR's `BuildTopology` then counts every node with compute cores, integrated ones included.
    """
    nodes = topology.gpus if topology.is_stable else ()
    if knows_device_files(machine):
        nodes = tuple(node for node in nodes if machine.node(_render_file(node.render_minor or 0)) is not None)
    indexes = {node.number: index for index, node in enumerate(nodes)}
    return Numbering(machine, indexes, _why_none(topology), read_boundary(machine).is_container)


def _why_none(topology: KfdTopology) -> str:
    if not topology.is_present:
        return "there is no KFD topology here, in whose order the runtime counts"
    if not topology.is_stable:
        return "the KFD topology changed while it was read"
    return "the runtime does not count it: KFD offers no node for it, or its render node is missing"


def files_of(render_minor: int | None) -> tuple[str, ...]:
    """Give the device files that a process must open; `/dev/dri/cardN` is for display and not among them."""
    return (KFD_FILE,) if render_minor is None else (KFD_FILE, _render_file(render_minor))


def _render_file(minor: int) -> str:
    return f"/dev/dri/renderD{minor}"


def node_facts(node: KfdNode, numbering: Numbering) -> NodeFacts:
    """Give the numbers, device files and their conditions of one node."""
    index = numbering.indexes.get(node.number)
    unknown = {}
    if index is None:
        unknown["numbers.index"] = numbering.reason
    if node.render_minor is None:
        unknown["numbers.render"] = "KFD tells no render minor"
    files = files_of(node.render_minor)
    return NodeFacts(
        numbers=FrozenMap({"index": index, "kfd": node.number, "render": node.render_minor}),
        nodes=files,
        conditions=node_conditions(numbering.machine, files, is_container=numbering.is_container),
        unknown=FrozenMap(unknown),
    )
