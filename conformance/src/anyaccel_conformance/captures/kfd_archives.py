"""Archives of the KFD topology, `/sys/class/kfd/kfd/topology`, read here a second time and in another way.

Nothing of the amd plugin is used: every node's files are taken as tables of numbers, GPUs are told by unique id or slot, and
where the kernel says one thing in two places (counts beside lists, a link at both of its ends), the other place is the judge.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from anyaccel.device import Device
from anyaccel.inventory import Inventory
from anyaccel.machine import Machine, MachineKind
from anyaccel_conformance.captures.archives import Archive
from anyaccel_conformance.captures.claims import Claim, claim_each
from anyaccel_conformance.captures.looking import Looker, count_claim, health_claim, id_of

__all__ = ["compare_kfd", "is_kfd_archive"]

_NODE = re.compile(r"^/sys/class/kfd/kfd/topology/nodes/([0-9]+)/properties$")
_XGMI = 11
_FAMILY = "amd"


@dataclass(frozen=True)
class _Node:
    """One KFD node as tables of numbers. Args: links: by far end, from `io_links`. banks: sizes of device memory."""

    number: int
    values: Mapping[str, int]
    links: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    banks: tuple[int, ...] = ()

    @property
    def is_gpu(self) -> bool:
        return self.values.get("simd_count", 0) > 0

    @property
    def slot(self) -> str:
        """PCI domain, bus and device as an address without function."""
        location = self.values["location_id"]
        return f"{self.values.get('domain', 0):04x}:{location >> 8 & 0xFF:02x}:{location >> 3 & 0x1F:02x}"

    @property
    def gpu(self) -> tuple[str, int]:
        """What tells physical GPUs apart: slot and, where there is one, unique id."""
        return self.slot, self.values.get("unique_id", 0)


def is_kfd_archive(archive: Archive) -> bool:
    """Whether an archive holds a KFD topology."""
    return any(_NODE.match(path) for path in archive.files)


def compare_kfd(archive: Archive, name: str, looker: Looker) -> tuple[Claim, ...]:
    """Compare GPUs, partitions, memory, hives and links with the node files."""
    nodes = _nodes(archive)
    gpus = [node for node in nodes.values() if node.is_gpu]
    inventory = looker.look(Machine(archive.tree(), kind=MachineKind.ROOT, name=name))
    groups: dict[tuple[str, int], list[_Node]] = defaultdict(list)
    for node in gpus:
        groups[node.gpu].append(node)
    claims = [health_claim(inventory), count_claim(inventory, _FAMILY, len(groups))]
    claims += _partition_claims(groups, inventory)
    claims += _unit_claims(gpus, inventory)
    claims += _hive_claims(gpus, inventory)
    claims += _link_claims(gpus, inventory)
    claims += _identity_claims(gpus, inventory)
    claims += _inner_claims(archive, nodes)
    return tuple(claims)


def _nodes(archive: Archive) -> dict[int, _Node]:
    found = {}
    for path in archive.files:
        match = _NODE.match(path)
        if match is not None:
            number, folder = int(match.group(1)), path.removesuffix("/properties")
            found[number] = _Node(number, _table(archive.text(path)), _links(archive, folder), _banks(archive, folder))
    return dict(sorted(found.items()))


def _table(text: str | None) -> dict[str, int]:
    return {key: int(value) for key, value in re.findall(r"^(\w+) ([0-9]+)$", text or "", re.MULTILINE)}


def _links(archive: Archive, folder: str) -> dict[int, Mapping[str, int]]:
    tables = [_table(archive.text(path)) for path in archive.below(f"{folder}/io_links")]
    return {table["node_to"]: table for table in tables if "node_to" in table}


def _banks(archive: Archive, folder: str) -> tuple[int, ...]:
    tables = [_table(archive.text(path)) for path in archive.below(f"{folder}/mem_banks")]
    return tuple(table["size_in_bytes"] for table in tables if table.get("heap_type") in (1, 2))


def _partition_claims(groups: Mapping[tuple[str, int], Sequence[_Node]], inventory: Inventory) -> Iterable[Claim]:
    """Compare how many partitions each GPU has; one node is a whole GPU, unless its equals are divided."""
    most = max((len(nodes) for nodes in groups.values()), default=1)
    said = {slot: Counter[str]() for slot, _ in groups}
    for (slot, _), nodes in groups.items():
        said[slot]["partitions"] += len(nodes) if most > 1 else 0
        said[slot]["gpus"] += 1
    answered: dict[str, Counter[str]] = defaultdict(Counter)
    view = inventory.view(_FAMILY)
    for root in view.roots:
        answered[_slot_of(root)]["gpus"] += 1
        answered[_slot_of(root)]["partitions"] += len(view.children(root.id))
    yield from claim_each(
        "partitions", {s: dict(c) for s, c in said.items()}, {s: dict(c) for s, c in answered.items()}
    )


def _slot_of(device: Device) -> str:
    return device.pci_addresses[0].rpartition(".")[0] if device.pci_addresses else device.id


def _units(inventory: Inventory) -> Mapping[object, Device]:
    """Give every smallest unit by its KFD number."""
    view = inventory.view(_FAMILY)
    return {d.numbers.get("kfd"): d for d in view.devices if not view.children(d.id)}


def _unit_claims(gpus: Sequence[_Node], inventory: Inventory) -> Iterable[Claim]:
    units, view = _units(inventory), inventory.view(_FAMILY)
    yield Claim("kfd nodes", "all", [node.number for node in gpus], sorted(n for n in units if isinstance(n, int)))
    for place, node in enumerate(gpus):
        unit = units.get(node.number)
        if unit is None:
            continue
        root = unit if unit.parent is None else view.device(unit.parent)
        subject = f"KFD node {node.number}"
        yield Claim("slot", subject, node.slot, _slot_of(root))
        yield Claim(
            "device id",
            subject,
            id_of(node.values["vendor_id"], node.values["device_id"]),
            root.attributes.get("pci_id"),
        )
        yield Claim("index", subject, place, unit.numbers.get("index"))
        yield Claim("render", subject, node.values["drm_render_minor"], unit.numbers.get("render"))
        if node.values.get("unique_id"):
            yield Claim("unique id", subject, f"GPU-{node.values['unique_id']:016x}", root.uuid)
        if unit.parent is not None:
            yield Claim("partition number", subject, node.values["location_id"] & 7, unit.numbers.get("partition"))
        elif not root.is_integrated and node.banks:
            yield Claim("memory", subject, sum(node.banks), root.memory_bytes)


def _hive_claims(gpus: Sequence[_Node], inventory: Inventory) -> Iterable[Claim]:
    """Compare hives, told by the xGMI links and not by the hive id: who is linked so is in one hive."""
    units, view = _units(inventory), inventory.view(_FAMILY)
    for node in gpus:
        unit = units.get(node.number)
        if unit is None:
            continue
        root = unit if unit.parent is None else view.device(unit.parent)
        ours = {place.name for place in root.places if place.kind == "hive"}
        peers = [n for n in gpus if node.links.get(n.number, {}).get("type") == _XGMI]
        said = {f"{peer.values['hive_id']:016x}" for peer in peers if peer.values.get("hive_id")}
        yield Claim("hive", f"KFD node {node.number}", said, ours)


def _link_claims(gpus: Sequence[_Node], inventory: Inventory) -> Iterable[Claim]:
    """Compare every link between GPU nodes, as each of its two ends tells it; the speed is the far end's word."""
    names = {unit.id: number for number, unit in _units(inventory).items()}
    numbers = {node.number: node for node in gpus}
    said = {
        _ends(node.number, far): _said_of(node, numbers[far], table)
        for node in gpus
        for far, table in node.links.items()
        if far in numbers and far != node.number
    }
    answered = {}
    for link in inventory.view(_FAMILY).links:
        a, b = names.get(link.a), names.get(link.b)
        if isinstance(a, int) and isinstance(b, int) and link.kind != "pcie":
            answered[_ends(a, b)] = answered[_ends(b, a)] = (link.kind, link.bytes_per_second_each_way)
    yield from claim_each("link", said, answered)


def _ends(a: int, b: int) -> str:
    return f"KFD node {a} to {b}"


def _said_of(node: _Node, far: _Node, table: Mapping[str, int]) -> tuple[str, int | None] | None:
    if table.get("type") != _XGMI:
        return None
    kind = "same-package" if node.slot == far.slot else "xgmi"
    return kind, far.links.get(node.number, {}).get("max_bandwidth", 0) * 1_000_000 or None


def _identity_claims(gpus: Sequence[_Node], inventory: Inventory) -> Iterable[Claim]:
    """Compare what must hold between values: one slot for a unique id, a render node for each node, links between GPUs only."""
    for unique in sorted({node.values.get("unique_id", 0) for node in gpus} - {0}):
        roots = [root for root in inventory.view(_FAMILY).roots if root.uuid == f"GPU-{unique:016x}"]
        yield Claim("slots of a gpu", f"GPU-{unique:016x}", 1, len({_slot_of(root) for root in roots}))
    renders = [unit.numbers.get("render") for unit in _units(inventory).values()]
    yield Claim("render nodes", "all", len(gpus), len(set(renders)))
    linked = {far for node in gpus for far, table in node.links.items() if table.get("type") == _XGMI}
    if linked:
        yield Claim("linked nodes", "all", linked, {number for number in _units(inventory) if isinstance(number, int)})


def _inner_claims(archive: Archive, nodes: Mapping[int, _Node]) -> Iterable[Claim]:
    """Compare what the kernel counts with what it lists, so that a file that was lost or changed shows."""
    root = "/sys/class/kfd/kfd/topology/nodes"
    for node in nodes.values():
        for word, folder in (
            ("io_links_count", "io_links"),
            ("p2p_links_count", "p2p_links"),
            ("mem_banks_count", "mem_banks"),
        ):
            listed = len({path.split("/")[9] for path in archive.below(f"{root}/{node.number}/{folder}")})
            if listed and word in node.values:
                yield Claim("complete lists", f"{folder} of KFD node {node.number}", node.values[word], listed)
