"""MIG: instances of a divided GPU as children in the unit tree, from files and from what the driver tells.

A MIG device is one compute instance (CI) inside one GPU instance (GI). Usually a GI has one CI and both are one node here.
Where a GI is shared by several CIs, it is a node of its own that owns the memory. Files: MIG user guide, chapter on
device nodes and capabilities.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from anyaccel.device import Blocks, Condition, Device, DeviceState, Level, Sharing
from anyaccel.frozen import FrozenMap
from anyaccel.host import read_boundary
from anyaccel.machine import Machine
from anyaccel_nvidia.replies import Reply

__all__ = ["MIG_LABEL", "is_divided", "parent_with_partitions", "partitions_from_driver", "partitions_from_files"]

MIG_LABEL = "MIG instance"
_SHARED_LABEL = "GPU instance"
_SLICE_LABEL = "compute instance"
_CAPABILITIES = "/proc/driver/nvidia/capabilities"


def is_divided(device: Device) -> bool:
    """Whether MIG mode is on, with or without instances."""
    return any(condition.code in ("mig-divided", "mig-empty") for condition in device.conditions)


def partitions_from_files(machine: Machine, parent: Device) -> tuple[Device, ...]:
    """Give the instances of a card that the kernel driver's capability files tell of; none when its minor is unknown."""
    minor = parent.numbers.get("minor")
    if minor is None:
        return ()
    folder = f"{_CAPABILITIES}/gpu{minor}/mig"
    pairs = [
        (gi, ci)
        for gi in _numbered_folders(machine, folder, "gi")
        for ci in _numbered_folders(machine, f"{folder}/gi{gi}", "ci")
    ]
    nodes = _nodes(machine, folder, pairs)
    return tuple(_node_from_files(machine, node, nodes) for node in _tree(parent, pairs))


def _numbered_folders(machine: Machine, folder: str, prefix: str) -> tuple[int, ...]:
    names = machine.list_folder(folder, rf"{prefix}[0-9]{{1,9}}")
    return tuple(sorted(int(name.removeprefix(prefix)) for name in names))


def _nodes(
    machine: Machine, folder: str, pairs: Iterable[tuple[int, int]]
) -> Mapping[tuple[int, int], tuple[str, ...]]:
    """Give the device files of each instance: one to open the GI, one to open the CI."""
    return {
        (gi, ci): tuple(
            node
            for path in (f"{folder}/gi{gi}/access", f"{folder}/gi{gi}/ci{ci}/access")
            if (node := _capability_node(machine, path)) is not None
        )
        for gi, ci in pairs
    }


def _capability_node(machine: Machine, path: str) -> str | None:
    match = re.search(r"DeviceFileMinor:\s*([0-9]{1,9})", machine.read_text_or_none(path) or "")
    return f"/dev/nvidia-caps/nvidia-cap{match.group(1)}" if match is not None else None


def _node_from_files(machine: Machine, node: Device, nodes: Mapping[tuple[int, int], tuple[str, ...]]) -> Device:
    own = nodes.get(_pair(node), ())
    missing = next((path for path in own if machine.node(path) is None), None)
    condition = Condition("not-asked", "the driver was not asked", DeviceState.UNKNOWN, Blocks.NOTHING)
    if missing is not None and read_boundary(machine).is_container:
        reason = f"on the host, not accessible here: {missing} is not in this container"
        condition = Condition(
            "node-not-granted", reason, DeviceState.BLOCKED, hint="start the container with this instance"
        )
    return replace(node, nodes=own, conditions=(condition,))


def _pair(node: Device) -> tuple[int, int]:
    gi, ci = node.numbers.get("gpu_instance"), node.numbers.get("compute_instance")
    return (gi if isinstance(gi, int) else -1, ci if isinstance(ci, int) else -1)


def _tree(parent: Device, pairs: Sequence[tuple[int, int]]) -> list[Device]:
    """Make the nodes below a card, in order: one a GI with one CI, else the GI followed by its CIs."""
    nodes: list[Device] = []
    for gi in sorted({gi for gi, _ in pairs}):
        cis = sorted(ci for other, ci in pairs if other == gi)
        if len(cis) == 1:
            nodes.append(_node(parent, gi, cis[0]))
        else:
            shared = _shared_node(parent, gi)
            nodes += [shared, *(_slice_node(shared, gi, ci) for ci in cis)]
    return nodes


def _node(parent: Device, gi: int, ci: int) -> Device:
    """Make the node of a MIG device that has its GPU instance for itself."""
    why = {name: reason for name in ("model", "numa_node") if (reason := parent.why_unknown(name)) is not None}
    return Device(
        id=f"{parent.id}/gi{gi}/ci{ci}",
        family=parent.family,
        level=Level.PARTITION,
        label=MIG_LABEL,
        parent=parent.id,
        model=parent.model,
        numbers=FrozenMap({"gpu_instance": gi, "compute_instance": ci}),
        memory_owner=parent.id,
        sharing=Sharing.SHARED,
        max_per_process=1,
        numa_node=parent.numa_node,
        driver=parent.driver,
        driver_version=parent.driver_version,
        is_integrated=parent.is_integrated,
        unknown=FrozenMap({**why, "memory_bytes": "only the driver knows it", "uuid": "the driver was not asked"}),
        is_simulated=parent.is_simulated,
    )


def _shared_node(parent: Device, gi: int) -> Device:
    """Make the node of a GPU instance that several compute instances share; it owns their memory."""
    return replace(
        _node(parent, gi, 0),
        id=f"{parent.id}/gi{gi}",
        label=_SHARED_LABEL,
        numbers=FrozenMap({"gpu_instance": gi}),
        is_counted=False,
        count_reason="its compute instances are used instead",
    )


def _slice_node(shared: Device, gi: int, ci: int) -> Device:
    node = _node(shared, gi, ci)
    return replace(
        node,
        id=f"{shared.id}/ci{ci}",
        level=Level.CORE,
        label=_SLICE_LABEL,
        unknown=node.unknown.with_items({"memory_bytes": f"shared with the other parts of {shared.id}"}),
    )


def partitions_from_driver(
    parent: Device, known: Sequence[Device], replies: Sequence[Reply], *, is_container: bool | None
) -> tuple[Device, ...]:
    """Give the instances of a card: those known from files in their order, then those only the driver tells of.

    Args: known: from files. replies: one an instance that the driver lists.
    """
    by_pair: dict[tuple[int, int], Reply] = {}
    for reply in replies:
        by_pair[(_number(reply, "gpu_instance"), _number(reply, "compute_instance"))] = reply
    known_pairs = {_pair(node) for node in known}
    extra = [pair for pair in by_pair if pair not in known_pairs]
    nodes = [*known, *(_node(parent, *pair) for pair in extra)] if known else _tree(parent, extra)
    return tuple(_enriched(parent, node, by_pair, is_container=is_container) for node in nodes)


def _number(reply: Reply, name: str) -> int:
    value = reply.number(name)
    return -1 if value is None else value


def _enriched(
    parent: Device, node: Device, replies: Mapping[tuple[int, int], Reply], *, is_container: bool | None
) -> Device:
    reply = replies.get(_pair(node))
    if node.label == _SHARED_LABEL:
        return _with_shared_memory(parent, node, [r for (gi, _), r in replies.items() if gi == _pair(node)[0]])
    if reply is None:
        return replace(node, conditions=(_not_shown(is_container),), model=parent.model)
    memory = reply.number("memory_bytes") if node.memory_owner == parent.id else None
    facts = {
        "profile": _profile(reply),
        "multiprocessors": reply.number("multiprocessors"),
        "compute_slices": reply.number("compute_slices"),
    }
    index, uuid = reply.number("index"), reply.text("uuid")
    unknown = {
        **{name: why for name in ("model", "numa_node") if (why := parent.why_unknown(name)) is not None},
        **{f"attributes.{name}": reply.why(name) for name, value in facts.items() if value is None},
        **({} if memory is not None else {"memory_bytes": _memory_reason(node, parent, reply)}),
        **({} if uuid is not None else {"uuid": reply.why("uuid")}),
        **({} if index is not None else {"numbers.mig_index": reply.why("index")}),
    }
    return replace(
        node,
        model=reply.text("name") or parent.model,
        uuid=uuid,
        numbers=node.numbers.with_items({"mig_index": index}),
        memory_bytes=memory,
        conditions=_without_unasked(node),
        numa_node=parent.numa_node,
        driver_version=parent.driver_version,
        attributes=FrozenMap(facts),
        unknown=FrozenMap(unknown),
    )


def _without_unasked(node: Device) -> tuple[Condition, ...]:
    return tuple(condition for condition in node.conditions if condition.code != "not-asked")


def _memory_reason(node: Device, parent: Device, reply: Reply) -> str:
    if node.memory_owner != parent.id:
        return f"shared with the other parts of {node.memory_owner}"
    return reply.why("memory_bytes")


def _with_shared_memory(parent: Device, node: Device, replies: Sequence[Reply]) -> Device:
    sizes = [size for reply in replies if (size := reply.number("memory_bytes")) is not None]
    reason = (
        {} if sizes else {"memory_bytes": replies[0].why("memory_bytes") if replies else "the driver was not asked"}
    )
    return replace(
        node,
        memory_bytes=max(sizes, default=None),
        numa_node=parent.numa_node,
        conditions=_without_unasked(node),
        unknown=FrozenMap({**reason, "uuid": "a GPU instance has none, its compute instances have"}),
    )


def _not_shown(is_container: bool | None) -> Condition:
    if is_container:
        return Condition(
            "not-shown", "on the host, not accessible here: not given to this container", DeviceState.BLOCKED
        )
    return Condition("not-shown", "the driver does not list this instance to this process", DeviceState.BLOCKED)


def _profile(reply: Reply) -> str | None:
    """Give the profile as people write it, `1g.10gb`: from the name the driver gives, else from slices and memory."""
    match = re.search(r"\bMIG (\S+)$", reply.text("name") or "")
    if match is not None:
        return match.group(1)
    slices, memory = reply.number("gpu_slices"), reply.number("memory_bytes")
    return f"{slices}g.{round(memory / 2**30)}gb" if slices and memory else None


def parent_with_partitions(parent: Device, count: int) -> Device:
    """Give a card in MIG mode: not usable itself, its instances are; without instances it says how to make one."""
    if count:
        condition = Condition("mig-divided", f"divided into {count} MIG instances", DeviceState.PARTITIONED)
        reason = "divided into MIG instances, which are counted instead"
    else:
        condition = Condition(
            "mig-empty",
            "MIG mode is on and no instance exists",
            DeviceState.PARTITIONED,
            hint="make one (sudo nvidia-smi mig -cgi PROFILE -C) or switch MIG mode off (sudo nvidia-smi -mig 0)",
        )
        reason = "MIG mode is on and no instance exists"
    return replace(parent, conditions=(*parent.conditions, condition), is_counted=False, count_reason=reason)
