"""What an imaginary machine of this family is made of: cards, partitions, numbers, links and faults."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from anyaccel.errors import RecordingError
from anyaccel.machine_description import CardDescription, FaultDescription, MachineDescription
from anyaccel.pci import normal_address
from anyaccel_amd.models import Model, find_model

__all__ = ["ImaginaryGpu", "ImaginaryLink", "ImaginaryPartition", "Plan", "plan_machine"]

Json = Any

_FIRST_RENDER = 128
_PARTS = {"SPX": 1, "DPX": 2, "TPX": 3, "QPX": 4}
_CARD_OPTIONS = frozenset(
    {
        *(
            "unique_id",
            "compute_partition",
            "memory_partition",
            "missing_partitions",
            "granted_partitions",
            "suspended",
        ),
        *("granted", "has_kfd_node", "product_name", "render"),
    }
)
_FAMILY_OPTIONS = frozenset(
    {"driver_version", "smi", "library_version", "binding_version", "hive", "node_group", "node_mode", "kfd", "gtt_gib"}
)
_FAULTS = frozenset(
    {
        *(
            "library-missing",
            "binding-missing",
            "symbol-missing",
            "library-version",
            "driver-not-loaded",
            "hang",
            "crash",
        ),
        *("uncorrected-errors", "corrected-errors", "errors-unreadable"),
    }
)


@dataclass(frozen=True)
class ImaginaryPartition:
    """One KFD node of a GPU; an undivided GPU has one. kfd_node None = KFD offers none."""

    number: int
    render: int
    kfd_node: int | None
    platform_number: int
    is_granted: bool


@dataclass(frozen=True)
class ImaginaryGpu:
    """One GPU with everything decided."""

    card: CardDescription
    model: Model
    driver: str | None
    card_number: int
    unique_id: int
    hive_id: int
    compute_partition: str
    memory_partition: str
    partitions: tuple[ImaginaryPartition, ...]
    product_name: str
    is_suspended: bool
    is_granted: bool
    is_dead: bool
    error_texts: Mapping[str, str] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """Its PCI address as sysfs writes it."""
        return normal_address(self.card.address or "") or ""

    @property
    def vram_bytes(self) -> int:
        """Own memory, or the carve-out of an integrated part."""
        return self.model.vram_bytes

    @property
    def part_count(self) -> int:
        """How many partitions its mode makes, missing ones included."""
        return _part_count(self.model, self.compute_partition)


@dataclass(frozen=True)
class ImaginaryLink:
    """A link between two GPUs, named by PCI address."""

    a: str
    b: str
    kind: str
    count: int
    hops: int


@dataclass(frozen=True)
class Plan:
    """Everything decided about this family's part of an imaginary machine."""

    gpus: tuple[ImaginaryGpu, ...]
    links: tuple[ImaginaryLink, ...]
    cpu_nodes: int
    driver_version: str | None
    node_group: str
    node_mode: int
    has_kfd: bool
    gtt_bytes: int
    host_memory_bytes: int
    smi: Mapping[str, str]
    faults: tuple[FaultDescription, ...]

    @property
    def is_driver_loaded(self) -> bool:
        """Whether some card is bound to amdgpu."""
        return any(gpu.driver == "amdgpu" for gpu in self.gpus)

    def link_between(self, a: str, b: str) -> ImaginaryLink | None:
        """Give the xGMI link of two GPUs."""
        return next((link for link in self.links if {link.a, link.b} == {a, b}), None)

    def hops_of(self, gpu: ImaginaryGpu) -> tuple[int, ...]:
        """Give the hops to every GPU of the hive, itself included, as `xgmi_num_hops` does."""
        members = [other for other in self.gpus if other.hive_id == gpu.hive_id]
        links = (self.link_between(gpu.address, other.address) for other in members)
        return tuple(0 if link is None else link.hops for link in links)

    def faults_of(self, kind: str) -> tuple[FaultDescription, ...]:
        """Give the faults of one kind."""
        return tuple(fault for fault in self.faults if fault.kind == kind)


def plan_machine(description: MachineDescription) -> Plan:
    """Decide everything from a description. Raises: RecordingError for what it does not know."""
    options = description.family_options("amd")
    _check_known("option", options, _FAMILY_OPTIONS, "the table [amd]")
    faults = tuple(fault for fault in description.faults if fault.plugin == "amd")
    for fault in faults:
        _check_known("fault", (fault.kind,), _FAULTS, "the faults of amd")
    cards = description.cards_of("amd")
    _check_fault_cards(faults, cards)
    links = _links(description, cards, str(options.get("hive", "")))
    gpus = _gpus(cards, links, description.faults, len(description.host.numa_cpus))
    return Plan(
        gpus=gpus,
        links=links,
        cpu_nodes=len(description.host.numa_cpus),
        driver_version=options.get("driver_version"),
        node_group=str(options.get("node_group", "render")),
        node_mode=int(str(options.get("node_mode", "0660")), 8),
        has_kfd=bool(options.get("kfd", True)),
        gtt_bytes=int(options.get("gtt_gib", 16)) << 30,
        host_memory_bytes=sum(description.host.numa_memory_bytes),
        smi={name: str(options.get(name, value)) for name, value in _SMI_DEFAULTS.items()},
        faults=faults,
    )


_SMI_DEFAULTS = {"smi": "answers", "library_version": "26.0.2", "binding_version": "7.0.2"}


def _check_known(what: str, names: Sequence[str] | Mapping[str, Json], known: frozenset[str], where: str) -> None:
    for name in names:
        if name not in known:
            raise RecordingError(f"unknown {what} {name!r} in {where} (known: {', '.join(sorted(known))})")


def _check_fault_cards(faults: Sequence[FaultDescription], cards: Sequence[CardDescription]) -> None:
    known = {normal_address(card.address or "") for card in cards}
    for fault in faults:
        if fault.card is not None and normal_address(fault.card) not in known:
            raise RecordingError(f"fault {fault.kind} names no card of amd: {fault.card!r}")


def _links(description: MachineDescription, cards: Sequence[CardDescription], hive: str) -> tuple[ImaginaryLink, ...]:
    addresses = [normal_address(card.address or "") or "" for card in cards]
    known = set(addresses)
    links = [
        ImaginaryLink(a, b, link.kind, link.count, int(link.options.get("hops", 1)))
        for link in description.links
        if (a := normal_address(link.a) or "") in known and (b := normal_address(link.b) or "") in known
    ]
    if hive == "mesh":
        pairs = [(a, b) for place, a in enumerate(addresses) for b in addresses[place + 1 :]]
        links.extend(ImaginaryLink(a, b, "xgmi", 1, 1) for a, b in pairs)
    elif hive:
        raise RecordingError(f"unknown hive {hive!r} in the table [amd] (known: 'mesh')")
    return tuple(links)


def _gpus(
    cards: Sequence[CardDescription],
    links: Sequence[ImaginaryLink],
    faults: Sequence[FaultDescription],
    cpu_nodes: int,
) -> tuple[ImaginaryGpu, ...]:
    gpus: list[ImaginaryGpu] = []
    render, node, platform = _FIRST_RENDER, cpu_nodes, 0
    for number, card in enumerate(cards):
        _check_known("option", card.options, _CARD_OPTIONS, f"card {card.address}")
        model = find_model(card.model)
        render = int(card.options.get("render", render))
        parts = _partitions(card, _part_count(model, _mode(card)), render, node, platform)
        gpus.append(_gpu(card, number, parts, links=links, faults=faults))
        render += max(1, len(parts))
        node += sum(part.kfd_node is not None for part in parts)
        platform += max(0, len(parts) - 1)
    return tuple(gpus)


def _driver(card: CardDescription) -> str | None:
    return "amdgpu" if card.driver == "default" else card.driver


def _mode(card: CardDescription) -> str:
    return str(card.options.get("compute_partition", "SPX"))


def _part_count(model: Model, mode: str) -> int:
    count = model.dies if mode == "CPX" else _PARTS.get(mode)
    if count is None or model.dies % count:
        raise RecordingError(f"a part of {model.dies} dies has no compute partition mode {mode!r}")
    return count


def _partitions(
    card: CardDescription, count: int, render: int, node: int, platform: int
) -> tuple[ImaginaryPartition, ...]:
    missing = frozenset(card.options.get("missing_partitions", ()))
    granted = card.options.get("granted_partitions")
    is_granted = bool(card.options.get("granted", True))
    has_node = _driver(card) == "amdgpu" and bool(card.options.get("has_kfd_node", True))
    present = [number for number in range(count) if number not in missing]
    return tuple(
        ImaginaryPartition(
            number=number,
            render=render + place,
            kfd_node=node + place if has_node else None,
            platform_number=platform + place - 1,
            is_granted=is_granted and (granted is None or number in granted),
        )
        for place, number in enumerate(present)
    )


def _gpu(
    card: CardDescription,
    number: int,
    partitions: tuple[ImaginaryPartition, ...],
    *,
    links: Sequence[ImaginaryLink],
    faults: Sequence[FaultDescription],
) -> ImaginaryGpu:
    address = normal_address(card.address or "") or ""
    model = find_model(card.model)
    island = sorted(_island(address, links))
    return ImaginaryGpu(
        card=card,
        model=model,
        driver=_driver(card),
        card_number=number,
        unique_id=0 if model.is_integrated else _unique_id(card, address),
        hive_id=_digest("hive " + island[0]) if len(island) > 1 else 0,
        compute_partition=_mode(card),
        memory_partition=str(card.options.get("memory_partition", "NPS1")),
        partitions=partitions,
        product_name=str(card.options.get("product_name", model.product_name)),
        is_suspended=bool(card.options.get("suspended", False)),
        is_granted=bool(card.options.get("granted", True)),
        is_dead=any(fault.kind == "dead-link" and normal_address(fault.card or "") == address for fault in faults),
        error_texts=_error_texts(model, address, faults),
    )


def _unique_id(card: CardDescription, address: str) -> int:
    given = card.options.get("unique_id")
    return _digest(address) if given is None else int(str(given), 16)


def _digest(text: str) -> int:
    """Make a number that no real GPU is likely to have, the same one every time."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") | 1 << 63


def _island(address: str, links: Sequence[ImaginaryLink]) -> set[str]:
    found, edge = {address}, [address]
    while edge:
        here = edge.pop()
        for link in links:
            if here in (link.a, link.b) and link.kind == "xgmi":
                there = link.b if link.a == here else link.a
                if there not in found:
                    found.add(there)
                    edge.append(there)
    return found


def _error_texts(model: Model, address: str, faults: Sequence[FaultDescription]) -> dict[str, str]:
    counts = {block: [0, 0] for block in model.ras_blocks}
    here = [fault for fault in faults if normal_address(fault.card or "") == address]
    for fault in here:
        block, count = str(fault.options.get("block", "umc")), int(fault.options.get("count", 1))
        if fault.kind in ("uncorrected-errors", "corrected-errors"):
            counts.setdefault(block, [0, 0])[0 if fault.kind == "uncorrected-errors" else 1] += count
    if any(fault.kind == "errors-unreadable" for fault in here):
        return dict.fromkeys(counts, "Query currently inaccessible")
    return {block: f"ue: {uncorrected}\nce: {corrected}" for block, (uncorrected, corrected) in counts.items()}
