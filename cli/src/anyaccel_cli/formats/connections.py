"""How near every two ends of a machine are: what one end needs is worked out once, so that a thousand devices are cheap. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from anyaccel.device import Device
from anyaccel.inventory import Inventory
from anyaccel.topology import Link, Nic, PairLevel, PciPath, pci_level
from anyaccel_cli.facts import numa_node_of
from anyaccel_cli.formats.words import link_word

__all__ = ["Connections", "MatrixCell", "nearest_nics"]


@dataclass(frozen=True)
class MatrixCell:
    """How two ends are connected. Args: link: the vendor's link, None = none known. level: nearness on PCIe, kept beside it."""

    level: PairLevel
    link: Link | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """What the cell says: the link's word first."""
        if self.level is PairLevel.SELF:
            return ("X",)
        return (self.level.value,) if self.link is None else (link_word(self.link), self.level.value)


@dataclass(frozen=True)
class _End:
    """What nearness depends on. Args: chain: the device's id and those above it, root last; empty for a network card."""

    id: str
    chain: tuple[str, ...]
    path: PciPath | None
    numa_node: int | None


class Connections:
    """The connections between devices of all vendors and network cards, in the order given."""

    def __init__(self, inventory: Inventory, ends: Sequence[Device | Nic]) -> None:
        self._hides_tree = inventory.hides_tree
        self._links = _best_links(inventory.links)
        self._ends = [_end(inventory, end) for end in ends]

    def cell(self, a: int, b: int) -> MatrixCell:
        """Give how the ends at two places are connected."""
        if a == b:
            return MatrixCell(PairLevel.SELF)
        end_a, end_b = self._ends[a], self._ends[b]
        return MatrixCell(self._level(end_a, end_b), self._link(end_a, end_b))

    def cells(self) -> tuple[tuple[MatrixCell, ...], ...]:
        """Give the whole square; each pair is worked out once and stands on both sides of the diagonal."""
        rows: list[list[MatrixCell]] = []
        places = range(len(self._ends))
        for a in places:
            rows.append([rows[b][a] if b < a else self.cell(a, b) for b in places])
        return tuple(map(tuple, rows))

    def _level(self, a: _End, b: _End) -> PairLevel:
        if a.chain and b.chain and a.chain[-1] == b.chain[-1]:
            return PairLevel.SAME_PACKAGE
        if a.path is not None and b.path is not None:
            is_one = a.chain and b.chain and a.path.address == b.path.address
            return PairLevel.SAME_PACKAGE if is_one else pci_level(a.path, b.path, hides_tree=self._hides_tree)
        if a.numa_node is None or b.numa_node is None or self._hides_tree:
            return PairLevel.UNKNOWN
        return PairLevel.SAME_NUMA if a.numa_node == b.numa_node else PairLevel.ACROSS_NUMA

    def _link(self, a: _End, b: _End) -> Link | None:
        if not self._links:
            return None
        found = (self._links.get(pair) for pair in product(a.chain, b.chain))
        return max((link for link in found if link is not None), key=_worth, default=None)


def _end(inventory: Inventory, end: Device | Nic) -> _End:
    if isinstance(end, Nic):
        return _End(end.id, (), end.path, end.path.numa_node)
    chain = (end.id, *inventory.view(end.family).ancestors(end.id))
    return _End(end.id, chain, inventory.path_of(end), numa_node_of(end, inventory))


def _best_links(links: Iterable[Link]) -> Mapping[tuple[str, str], Link]:
    """Give the fastest link of every two ends, seen from both."""
    best: dict[tuple[str, str], Link] = {}
    for link in links:
        for pair in ((link.a, link.b), (link.b, link.a)):
            if pair not in best or _worth(link) > _worth(best[pair]):
                best[pair] = link
    return best


def _worth(link: Link) -> tuple[int, int]:
    return (link.bytes_per_second_each_way or 0, link.count or 0)


def nearest_nics(levels: Mapping[str, PairLevel]) -> tuple[PairLevel, tuple[str, ...]] | None:
    """Give the network cards that are nearest, all that are equally near; None when nobody knows how near they are.

    Args: levels: how near each network card is, by name.
    """
    nearest = min(levels.values(), key=lambda level: level.rank, default=PairLevel.UNKNOWN)
    if nearest is PairLevel.UNKNOWN:
        return None
    return nearest, tuple(name for name, level in levels.items() if level is nearest)
