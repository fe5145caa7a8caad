"""Physical GPUs → devices and partitions, with everything that files tell of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from anyaccel.device import Condition, Device, Discovery, Place, Scalar, Sharing
from anyaccel.frozen import FrozenMap
from anyaccel.machine import Machine
from anyaccel.pci import PciFunction, device_from_function
from anyaccel_amd.conditions import no_kfd_node, node_conditions, refused_by_kfd
from anyaccel_amd.counting import count_rule, is_integrated
from anyaccel_amd.joining import Gpu, hive_sizes, join_sources
from anyaccel_amd.kfd import KfdNode, KfdTopology, read_topology
from anyaccel_amd.memory import Memory, memory_of
from anyaccel_amd.numbering import Numbering, files_of, node_facts, read_numbering
from anyaccel_amd.partitions import Division, division_of, partition_devices
from anyaccel_amd.pci_names import TARGETS, product_name
from anyaccel_amd.presence import why_none
from anyaccel_amd.sysfs import CardFacts, driver_version, read_card
from anyaccel_amd.targets import target_name

__all__ = ["DRIVERS", "FAMILY", "discover_devices"]

FAMILY = "amd"
DRIVERS = ("amdgpu",)
_NO_DRIVER = ("no-driver", "passed-through", "wrong-driver")


@dataclass(frozen=True)
class _Around:
    """What all GPUs of one machine have in common."""

    machine: Machine
    topology: KfdTopology
    numbering: Numbering
    gpus: tuple[Gpu, ...]
    driver_version: str | None
    driver_reason: str | None
    hive_sizes: Mapping[int, int]


def discover_devices(machine: Machine) -> Discovery:
    """Find every AMD GPU and its partitions in the machine's files, or say why there is none."""
    topology = read_topology(machine)
    gpus = join_sources(machine, topology)
    if not gpus:
        return Discovery(reason=why_none(machine, topology.denied_count))
    facts = {gpu.key: _card_facts(machine, gpu) for gpu in gpus}
    version, reason = driver_version(machine)
    sizes = hive_sizes(gpus, {gpu.key: _hive(gpu, facts[gpu.key]) for gpu in gpus})
    around = _Around(machine, topology, read_numbering(machine, topology), gpus, version, reason, sizes)
    devices = tuple(device for gpu in gpus for device in _devices_of(gpu, facts[gpu.key], around))
    family: dict[str, Scalar] = {"driver_version": version, "kfd_generation": topology.generation}
    return Discovery(devices, notes=_notes(gpus, topology), facts=FrozenMap(family))


def _card_facts(machine: Machine, gpu: Gpu) -> CardFacts:
    if gpu.function is None or gpu.function.is_dead:
        return CardFacts(card=gpu.card)
    facts = read_card(machine, gpu.function.path)
    return facts if facts.card is not None else replace(facts, card=gpu.card)


def _hive(gpu: Gpu, facts: CardFacts) -> int | None:
    return next((node.hive_id for node in gpu.nodes if node.hive_id), facts.hive_id)


def _devices_of(gpu: Gpu, facts: CardFacts, around: _Around) -> tuple[Device, ...]:
    division = division_of(gpu, facts, around.topology, around.gpus)
    device = _whole_device(gpu, facts, around, division)
    partitions = partition_devices(device, division, around.numbering) if division.is_divided else ()
    return (device, *partitions)


def _whole_device(gpu: Gpu, facts: CardFacts, around: _Around, division: Division) -> Device:
    target = _target(gpu)
    integrated = is_integrated(gpu, target)
    base = _base_device(gpu, facts, around.machine)
    rule = count_rule(base, target, integrated, around.machine.environ)
    is_complete = not division.missing
    memory = memory_of(base.id, gpu.nodes, facts, is_complete=is_complete, integrated=integrated)
    numbers, nodes, unknown = _numbers(gpu, facts, around.numbering, division)
    unique = facts.unique_id or next((node.unique_id for node in gpu.nodes if node.unique_id), None)
    reasons = {**base.unknown, **unknown, **memory.reasons}
    if unique is None:
        reasons["uuid"] = "it reports no unique id"
    if target is None:
        reasons["attributes.target"] = "neither KFD nor its PCI id tells the graphics target"
    if integrated is None:
        reasons["is_integrated"] = "neither its PCI id nor its graphics target is known"
    if around.driver_version is None:
        reasons["driver_version"] = around.driver_reason or "the kernel does not say"
    return replace(
        base,
        uuid=None if unique is None else f"GPU-{unique:016x}",
        numbers=numbers,
        memory_bytes=memory.bytes,
        memory_owner=memory.owner,
        sharing=Sharing.SHARED,
        conditions=(*base.conditions, *_conditions(gpu, base, nodes, around, division)),
        places=_places(_hive(gpu, facts), around.hive_sizes),
        nodes=nodes,
        driver_version=around.driver_version if base.driver in DRIVERS else None,
        is_integrated=integrated,
        is_counted=rule.is_counted,
        count_reason=rule.reason,
        attributes=base.attributes.with_items(_attributes(gpu, facts, target, division, memory)),
        unknown=FrozenMap(reasons),
    )


def _base_device(gpu: Gpu, facts: CardFacts, machine: Machine) -> Device:
    """Make what plain Linux tells; a GPU without a folder of its own is driven when KFD or DRM say so."""
    model = facts.product_name or product_name(gpu.device_id)
    function = gpu.function or _function_of(gpu)
    device = device_from_function(machine, function, family=FAMILY, drivers=DRIVERS, label="GPU", model=model)
    unknown = dict(device.unknown)
    if gpu.address is None:
        unknown["pci_addresses"] = "its DRM card tells no PCI slot"
    if gpu.function is None:
        unknown["numa_node"] = "KFD alone does not tell it"
    if function.class_code is None:
        unknown["attributes.pci_class"] = "its PCI folder is not here"
    driver = device.driver or gpu.driver or ("amdgpu" if gpu.nodes else None)
    is_told = driver == device.driver
    return replace(
        device,
        id=f"{FAMILY}:{gpu.key}",
        pci_addresses=() if gpu.address is None else (gpu.address,),
        driver=driver,
        conditions=tuple(c for c in device.conditions if is_told or c.code != "no-driver"),
        unknown=FrozenMap(unknown),
    )


def _function_of(gpu: Gpu) -> PciFunction:
    """Stand in for a PCI function that only KFD tells of; its folder does not exist here."""
    properties = gpu.nodes[0].properties
    path = f"/sys/bus/pci/devices/{gpu.address}"
    return PciFunction(gpu.address or "", properties.get("vendor_id"), properties.get("device_id"), None, path)


def _target(gpu: Gpu) -> str | None:
    told = next((target_name(node.properties.get("gfx_target_version")) for node in gpu.nodes), None)
    return told or TARGETS.get(gpu.device_id or 0)


def _numbers(
    gpu: Gpu, facts: CardFacts, numbering: Numbering, division: Division
) -> tuple[FrozenMap[int | str | None], tuple[str, ...], dict[str, str]]:
    unknown = {} if facts.card is not None else {"numbers.card": "no DRM card leads to it here"}
    if gpu.nodes and not division.is_divided:
        node = node_facts(gpu.nodes[0], numbering)
        return node.numbers.with_items({"card": facts.card}), node.nodes, {**unknown, **node.unknown}
    why = "its partitions have numbers of their own" if division.nodes else numbering.reason
    render = None if division.nodes else facts.render
    numbers: FrozenMap[int | str | None] = FrozenMap({"index": None, "kfd": None, "render": render, "card": facts.card})
    unknown = {f"numbers.{space}": why for space in ("index", "kfd", "render") if numbers[space] is None} | unknown
    return numbers, files_of(render), unknown


def _conditions(
    gpu: Gpu, base: Device, files: tuple[str, ...], around: _Around, division: Division
) -> tuple[Condition, ...]:
    found = tuple(division.conditions())
    has_driver = not any(condition.code in _NO_DRIVER for condition in base.conditions)
    if not has_driver or (gpu.function is not None and gpu.function.is_dead):
        return found
    problems = node_conditions(around.machine, files, is_container=around.numbering.is_container)
    if gpu.nodes or problems or division.is_divided or not around.topology.is_present:
        return (*found, *problems)
    return (*found, refused_by_kfd() if around.topology.denied_count else no_kfd_node())


def _places(hive: int | None, sizes: Mapping[int, int]) -> tuple[Place, ...]:
    return () if hive is None else (Place("hive", f"{hive:016x}", size=sizes.get(hive)),)


def _attributes(
    gpu: Gpu, facts: CardFacts, target: str | None, division: Division, memory: Memory
) -> dict[str, Scalar]:
    attributes: dict[str, Scalar] = {"target": target, "memory_kind": memory.kind}
    units = [_compute_units(node) for node in gpu.nodes]
    known = [count for count in units if count is not None]
    if known and len(known) == len(units) and not division.missing:
        attributes["compute_units"] = sum(known)
    attributes |= division.attributes()
    if memory.kind == "host" and facts.vram_bytes is not None:
        attributes["carved_out_bytes"] = facts.vram_bytes
    if facts.hops:
        attributes["xgmi_most_hops"] = max(facts.hops)
    return attributes


def _compute_units(node: KfdNode) -> int | None:
    simds, per_unit = node.properties.get("simd_count"), node.properties.get("simd_per_cu")
    return None if not simds or not per_unit else simds // per_unit


def _notes(gpus: Sequence[Gpu], topology: KfdTopology) -> tuple[str, ...]:
    notes = []
    if not topology.is_stable:
        notes.append("the KFD topology kept changing while it was read; the runtime's numbers are left out")
    if any(gpu.is_domain_assumed for gpu in gpus):
        notes.append("this kernel's KFD tells no PCI domain; 0000 is assumed")
    crowded = sorted({gpu.address for gpu in gpus if gpu.address and gpu.key.startswith(f"{gpu.address}+")})
    notes.extend(f"several KFD nodes with different unique ids claim PCI slot {address}" for address in crowded)
    return tuple(notes)
