"""Inspection: what the driver's document adds to the cards that files told of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from anyaccel.device import Blocks, Condition, Device, DeviceState, Inspection, Level, Place, Scalar, Sharing
from anyaccel.errors import UnavailableError
from anyaccel.frozen import FrozenMap
from anyaccel_nvidia.declaration import FAMILY
from anyaccel_nvidia.devices import NOT_ASKED
from anyaccel_nvidia.display import without_display_cards
from anyaccel_nvidia.fabric import fabric_condition, fabric_place
from anyaccel_nvidia.health import counter_conditions, process_conditions, xid_conditions
from anyaccel_nvidia.matching import InspectionScene, Match, match_answers, with_instead
from anyaccel_nvidia.partitions import parent_with_partitions, partitions_from_driver
from anyaccel_nvidia.replies import NO_PERMISSION, Reply, code_words

__all__ = ["inspect_devices", "inspect_without_driver"]

_MAKES_UNUSABLE = frozenset({"driver-mismatch", "driver-not-loaded"})
_RULES_LOST = "nvml-999"
"""NVML's "unknown error" at its start: in a container the usual sign of lost device rules."""
_EXCLUSIVE_MODES = (1, 3)
_PROHIBITED_MODE = 2
_RENEWED = (NOT_ASKED, "node-missing", "node-unknown", "mig-divided")
"""Codes of conditions from files that an answer of the driver disproves or gives anew."""


def inspect_without_driver(devices: Sequence[Device], error: UnavailableError, scene: InspectionScene) -> Inspection:
    """Give the devices when the driver could not be asked: the reason takes the place of "not asked"."""
    has_lost_rules = error.reason_code == _RULES_LOST and bool(scene.boundary.is_container)
    state = DeviceState.UNUSABLE if error.reason_code in _MAKES_UNUSABLE else DeviceState.UNKNOWN
    hint = error.hint
    if has_lost_rules:
        state = DeviceState.BLOCKED
        hint = "restart the container: its device rules are lost after systemctl daemon-reload on the host"
    blocks = Blocks.NOTHING if state is DeviceState.UNKNOWN else Blocks.COMPUTE
    condition = Condition(error.reason_code, _unasked_reason(error, scene), state, blocks, hint)
    return Inspection(tuple(with_instead(device, condition) for device in devices))


def _unasked_reason(error: UnavailableError, scene: InspectionScene) -> str:
    if error.reason_code == "driver-mismatch" and scene.kernel_version is not None:
        return f"{error.message}, the kernel module {scene.kernel_version}"
    if error.reason_code in _MAKES_UNUSABLE:
        return error.message
    return f"the driver was not asked: {error.message}"


def inspect_devices(devices: Sequence[Device], document: Any, scene: InspectionScene) -> Inspection:
    """Give the devices with what the driver's document tells of them.

    Args: document: what `collect_nvml` gave, now or when it was recorded; its values are not trusted.
    """
    reply = Reply(document)
    match = match_answers(devices, reply, scene)
    children = _nodes_below_roots(devices)
    result: list[Device] = []
    for root in without_display_cards(tuple(_root(root, match) for root in match.roots)):
        result += _with_children(root, children.get(root.id, ()), match)
    return Inspection(tuple(result), tuple(match.notes()), FrozenMap(_facts(reply)))


def _nodes_below_roots(devices: Sequence[Device]) -> Mapping[str, tuple[Device, ...]]:
    root_of: dict[str, str] = {}
    below: dict[str, tuple[Device, ...]] = {}
    for device in devices:
        if device.parent is None:
            root_of[device.id] = device.id
            continue
        root = root_of[device.id] = root_of[device.parent]
        below[root] = (*below.get(root, ()), device)
    return below


def _root(root: Device, match: Match) -> Device:
    entry = match.entry_for(root)
    if entry is not None:
        return _enriched(root, entry, match)
    if match.stands_for_several(root):
        kept = tuple(condition for condition in root.conditions if condition.code != NOT_ASKED)
        reason = f"stands for {len(match.entries)} GPUs, which are counted instead"
        return replace(root, level=Level.CARD, conditions=kept, is_counted=False, count_reason=reason)
    return match.without_answer(root)


def _enriched(root: Device, entry: Reply, match: Match) -> Device:
    numa_node, numa_reason, numa_source = _numa(root, entry)
    memory, memory_reason = _memory(root, entry)
    minor = root.numbers.get("minor") if entry.number("minor") is None else entry.number("minor")
    uuid, name = entry.text("uuid") or root.uuid, entry.text("name") or root.model
    attributes, attribute_reasons = _attributes(entry, numa_source, match.scene)
    unknown = {
        **root.unknown,
        "model": None if name else entry.why("name"),
        "uuid": None if uuid else entry.why("uuid"),
        "memory_bytes": memory_reason,
        "numa_node": numa_reason,
        "numbers.index": None if entry.number("index") is not None else entry.why("index"),
        "numbers.minor": None if minor is not None else entry.why("minor"),
        **attribute_reasons,
    }
    return replace(
        root,
        model=name,
        uuid=uuid,
        numbers=root.numbers.with_items({"index": entry.number("index"), "minor": minor}),
        memory_bytes=memory,
        sharing=_sharing(entry),
        conditions=tuple(_conditions(root, entry, match.scene)),
        places=_places(entry),
        numa_node=numa_node,
        driver_version=root.driver_version or match.driver_version,
        attributes=root.attributes.with_items(attributes),
        unknown=FrozenMap({key: why for key, why in unknown.items() if why is not None}),
    )


def _places(entry: Reply) -> tuple[Place, ...]:
    place = fabric_place(entry.inner("fabric"))
    return () if place is None else (place,)


def _numa(root: Device, entry: Reply) -> tuple[int | None, str | None, str | None]:
    """Give the NUMA node, why it is unknown, and who says it: the kernel first, then the driver when it names one node."""
    if root.numa_node is not None:
        return root.numa_node, None, "kernel"
    nodes = [node for node in entry.numbers("numa_nodes") if node is not None]
    if len(nodes) == 1:
        return nodes[0], None, "driver"
    kernel = root.why_unknown("numa_node") or "the kernel does not say"
    return None, f"{kernel}; {_driver_nodes_words(entry, len(nodes))}", None


def _driver_nodes_words(entry: Reply, count: int) -> str:
    """Say what the driver answered where it names no single node."""
    if count:
        return f"the driver names {count} nodes"
    if entry.is_empty_list("numa_nodes"):
        return "the driver names none"
    return f"the driver does not name it ({entry.why('numa_nodes')})"


def _memory(root: Device, entry: Reply) -> tuple[int | None, str | None]:
    size = entry.number("memory_bytes")
    if size:
        return size, None
    if root.is_integrated:
        return None, root.why_unknown("memory_bytes") or "memory is shared with the host"
    if entry.code("memory_bytes") == NO_PERMISSION:
        return None, "no permission (in a container NVIDIA_MIG_MONITOR_DEVICES=all would give it)"
    return None, "the driver reports 0" if size == 0 else entry.why("memory_bytes")


def _sharing(entry: Reply) -> Sharing:
    mode = entry.number("compute_mode")
    if mode is None:
        return Sharing.UNKNOWN
    return Sharing.ONE_PROCESS if mode in _EXCLUSIVE_MODES else Sharing.SHARED


def _conditions(root: Device, entry: Reply, scene: InspectionScene) -> Iterable[Condition]:
    yield from (condition for condition in root.conditions if condition.code not in _RENEWED)
    if entry.number("compute_mode") == _PROHIBITED_MODE:
        yield Condition(
            "compute-prohibited",
            "compute mode is prohibited: no process may use it",
            DeviceState.UNUSABLE,
            hint="sudo nvidia-smi -c DEFAULT -i UUID",
        )
    yield from counter_conditions(entry)
    fabric = fabric_condition(entry)
    if fabric is not None:
        yield fabric
    if not scene.boundary.is_container and not _is_divided(entry):
        yield from process_conditions(entry)
    for address in root.pci_addresses:
        yield from xid_conditions(scene.xids, address)


def _is_divided(entry: Reply) -> bool:
    modes = entry.numbers("mig_mode")
    return bool(modes and modes[0]) or any(True for _ in entry.each("partitions"))


def _attributes(
    entry: Reply, numa_source: str | None, scene: InspectionScene
) -> tuple[dict[str, Scalar], dict[str, str]]:
    """Give further facts, and for those that are unknown the reason."""
    capability, ecc = entry.numbers("compute_capability"), entry.numbers("ecc_mode")
    links = tuple(entry.each("nvlinks"))
    facts: dict[str, tuple[Scalar, str]] = {
        "compute_capability": (_dotted(capability), "compute_capability"),
        "cuda_cores": (entry.number("cores"), "cores"),
        "sm_clock_max_mhz": (entry.number("sm_clock_mhz"), "sm_clock_mhz"),
        "memory_reserved_bytes": (entry.number("memory_reserved_bytes"), "memory_reserved_bytes"),
        "is_ecc_on": (_flag(ecc[0] if ecc else None), "ecc_mode"),
        "is_display_active": (_flag(entry.number("display_active")), "display_active"),
        "processes": (None if scene.boundary.is_container else _process_count(entry), "processes"),
    }
    values: dict[str, Scalar] = {name: value for name, (value, _) in facts.items()}
    values |= {"index_source": "driver", "nvlinks": len(links)}
    values["nvlinks_active"] = sum(link.number("state") == 1 for link in links)
    if numa_source is not None:
        values["numa_source"] = numa_source
    reasons = {f"attributes.{name}": entry.why(key) for name, (value, key) in facts.items() if value is None}
    if scene.boundary.is_container:
        reasons["attributes.processes"] = "inside a container the driver does not show the processes of others"
    return values, reasons


def _dotted(parts: tuple[int | None, ...]) -> str | None:
    return ".".join(str(part) for part in parts) if len(parts) == 2 and None not in parts else None


def _flag(value: int | None) -> bool | None:
    return None if value is None else bool(value)


def _process_count(entry: Reply) -> int | None:
    return len(entry.numbers("processes")) if entry.has("processes") else None


def _with_children(root: Device, known: Sequence[Device], match: Match) -> tuple[Device, ...]:
    entry = match.entry_for(root)
    if entry is None:
        gpus = _gpus_of(root, match) if match.stands_for_several(root) else ()
        return (root, *gpus, *(_like_parent(child, root) for child in known))
    is_container = match.scene.boundary.is_container
    children = partitions_from_driver(root, known, tuple(entry.each("partitions")), is_container=is_container)
    if _is_divided(entry):
        root = parent_with_partitions(root, sum(child.is_counted for child in children))
    return (root, *children)


def _like_parent(child: Device, root: Device) -> Device:
    """Give an instance of a card that did not answer the card's own trouble."""
    worst = next((condition for condition in root.conditions if condition.state is root.state), None)
    return child if worst is None else with_instead(child, worst)


def _gpus_of(root: Device, match: Match) -> tuple[Device, ...]:
    """Give the GPUs behind the one adapter that files show (WSL), by the driver's numbers."""
    return tuple(_enriched(_gpu_below(root, entry), entry, match) for entry in match.entries if not entry.has("code"))


def _gpu_below(root: Device, entry: Reply) -> Device:
    why = "WSL shows no files of the GPU"
    return Device(
        id=f"{root.id}/gpu{entry.number('index')}",
        family=FAMILY,
        label="GPU",
        parent=root.id,
        nodes=root.nodes,
        driver=root.driver,
        is_integrated=None,
        unknown=FrozenMap({"is_integrated": why, "numa_node": why}),
        is_simulated=root.is_simulated,
    )


def _facts(reply: Reply) -> dict[str, Scalar]:
    library = reply.inner("library")
    cuda = reply.number("cuda_version")
    skipped = [f"{entry.text('name')} ({code_words(entry.number('code'))})" for entry in library.each("skipped")]
    return {
        "driver_version": reply.text("driver_version"),
        "library": library.text("name"),
        "library_version": library.text("version"),
        "library_skipped": ", ".join(skipped) or None,
        "cuda_version": None if cuda is None else f"{cuda // 1000}.{cuda % 1000 // 10}",
    }
