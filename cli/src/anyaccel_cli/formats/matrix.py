"""Topology as a square matrix, or as a list of pairs where the matrix would not fit. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from anyaccel.device import Device
from anyaccel.inventory import Inventory
from anyaccel.topology import Link, Nic, PairLevel, pci_level
from anyaccel_cli.facts import numa_node_of
from anyaccel_cli.formats.words import (
    LEVEL_MEANINGS,
    cpus_text,
    default_devices,
    device_names,
    link_meaning,
    link_word,
    numa_text,
)
from anyaccel_cli.table import Heading, Row
from anyaccel_cli.text import UNKNOWN

__all__ = ["Matrix", "MatrixCell", "MatrixTable", "matrix_table", "topology_matrix"]

NARROW = 80
"""Below this many columns pairs are listed, however small the matrix is."""

_GAP = 2


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
class Matrix:
    """A square over devices of all vendors, then network cards.

    Args: names: of rows and columns. cells: row by row. numa, cpus: the right-hand columns by row. device_count: how many of
        the names are devices, not network cards.
    """

    names: tuple[str, ...]
    cells: tuple[tuple[MatrixCell, ...], ...]
    numa: tuple[str, ...]
    cpus: tuple[str, ...]
    device_count: int


@dataclass(frozen=True)
class MatrixTable:
    """A matrix laid out for a width. Args: legend: one line for each word in use. is_pairs: a list of pairs instead."""

    headings: tuple[Heading, ...]
    rows: tuple[Row, ...]
    legend: tuple[str, ...]
    is_pairs: bool = False


def topology_matrix(inventory: Inventory, devices: Sequence[Device] | None = None, *, with_nics: bool = True) -> Matrix:
    """Give how every shown device is connected to every other.

    Args: devices: None = whole devices without integrated parts. with_nics: add the network cards as rows and columns.
    """
    shown = default_devices(inventory) if devices is None else tuple(devices)
    names = device_names(inventory, shown)
    ends: tuple[Device | Nic, ...] = (*shown, *(inventory.host.nics if with_nics else ()))
    return Matrix(
        names=tuple(names[end.id] if isinstance(end, Device) else end.id for end in ends),
        cells=tuple(tuple(_cell(inventory, a, b) for b in ends) for a in ends),
        numa=tuple(_numa(inventory, end) for end in ends),
        cpus=tuple(_cpus(inventory, end) for end in ends),
        device_count=len(shown),
    )


def _cell(inventory: Inventory, a: Device | Nic, b: Device | Nic) -> MatrixCell:
    if isinstance(a, Device) and isinstance(b, Device):
        link = None if a.id == b.id or a.family != b.family else inventory.link_between(a, b)
        return MatrixCell(inventory.pair_level(a, b), link)
    path_a = inventory.path_of(a) if isinstance(a, Device) else a.path
    path_b = inventory.path_of(b) if isinstance(b, Device) else b.path
    if path_a is not None and path_b is not None:
        return MatrixCell(pci_level(path_a, path_b, hides_tree=inventory.hides_tree))
    return MatrixCell(_numa_level(_node(inventory, a), _node(inventory, b), hides_tree=inventory.hides_tree))


def _numa_level(a: int | None, b: int | None, *, hides_tree: bool) -> PairLevel:
    if a is None or b is None or hides_tree:
        return PairLevel.UNKNOWN
    return PairLevel.SAME_NUMA if a == b else PairLevel.ACROSS_NUMA


def _node(inventory: Inventory, end: Device | Nic) -> int | None:
    return numa_node_of(end, inventory) if isinstance(end, Device) else end.path.numa_node


def _numa(inventory: Inventory, end: Device | Nic) -> str:
    if isinstance(end, Device):
        return numa_text(end, inventory)
    return UNKNOWN if end.path.numa_node is None else str(end.path.numa_node)


def _cpus(inventory: Inventory, end: Device | Nic) -> str:
    """Give the CPUs near a device; those of a network card are left to the devices beside it, as every such table does."""
    return cpus_text(inventory.local_cpus(end)) if isinstance(end, Device) else ""


def matrix_table(matrix: Matrix, width: int | None = None) -> MatrixTable:
    """Lay a matrix out: cells in one line where they fit, their words under each other where not, else a list of pairs.

    Where only the network cards make it too wide, the square is of devices and each device's nearest card stands below.
    Args: width: of the terminal, None = no limit.
    """
    if width is None or width >= NARROW:
        for square, notes in ((matrix, ()), (_without_nics(matrix), tuple(_nearest_nics(matrix)))):
            for rows in (_plain_rows(square), _stacked_rows(square)):
                if width is None or _width_of(square, rows) <= width:
                    return MatrixTable(_headings(square), tuple(rows), (*notes, *legend_lines(matrix)))
    return _pair_table(matrix)


def _without_nics(matrix: Matrix) -> Matrix:
    count = matrix.device_count
    cells = tuple(row[:count] for row in matrix.cells[:count])
    return Matrix(matrix.names[:count], cells, matrix.numa[:count], matrix.cpus[:count], count)


def _nearest_nics(matrix: Matrix) -> Iterable[str]:
    """Say for each device which network cards are nearest; cards that are equally near are all named."""
    for name, row in zip(matrix.names[: matrix.device_count], matrix.cells, strict=False):
        levels = {matrix.names[place]: row[place].level for place in range(matrix.device_count, len(row))}
        nearest = min(levels.values(), key=lambda level: level.rank, default=PairLevel.UNKNOWN)
        if nearest is not PairLevel.UNKNOWN:
            names = ", ".join(nic for nic, level in levels.items() if level is nearest)
            yield f"{name}: nearest network card {names}, {nearest.value}"


def _headings(matrix: Matrix) -> tuple[Heading, ...]:
    columns = (Heading(f"to {name}", name) for name in matrix.names)
    return (Heading("from", ""), *columns, Heading("numa", "NUMA"), Heading("cpus", "CPUs"))


def _width_of(matrix: Matrix, rows: Sequence[Row]) -> int:
    headings = [heading.title for heading in _headings(matrix)]
    widths = (max(map(len, column)) for column in zip(headings, *(row.cells for row in rows), strict=True))
    return sum(widths) + _GAP * (len(headings) - 1)


def _plain_rows(matrix: Matrix) -> list[Row]:
    return [
        Row((name, *(" · ".join(cell.words) for cell in cells), numa, cpus))
        for name, cells, numa, cpus in zip(matrix.names, matrix.cells, matrix.numa, matrix.cpus, strict=True)
    ]


def _stacked_rows(matrix: Matrix) -> list[Row]:
    """Give several rows for each device: the link's word, then the words of nearness one below the other."""
    rows = []
    for place, name in enumerate(matrix.names):
        columns = [_stacked(cell) for cell in matrix.cells[place]]
        for line in range(max((len(column) for column in columns), default=1)):
            cells = (column[line] if line < len(column) else "" for column in columns)
            ends = (matrix.numa[place], matrix.cpus[place]) if line == 0 else ("", "")
            rows.append(Row((name if line == 0 else "", *cells, *ends)))
    return rows


def _stacked(cell: MatrixCell) -> tuple[str, ...]:
    if cell.level is PairLevel.SELF:
        return ("X",)
    lines = [] if cell.link is None else [link_word(cell.link)]
    return (*lines, *_BROKEN.get(cell.level, (cell.level.value,)))


_BROKEN = {
    PairLevel.SAME_PACKAGE: ("same", "package"),
    PairLevel.SAME_SWITCH: ("same", "switch"),
    PairLevel.SEVERAL_SWITCHES: ("several", "switches"),
    PairLevel.SAME_HOST_BRIDGE: ("same host", "bridge"),
    PairLevel.SAME_NUMA: ("same", "NUMA node"),
    PairLevel.ACROSS_NUMA: ("across", "NUMA"),
}


def _pair_table(matrix: Matrix) -> MatrixTable:
    headings = (Heading("a", "from"), Heading("b", "to"), Heading("link", "link"), Heading("level", "PCIe"))
    rows = [
        Row((matrix.names[a], matrix.names[b], _link_or_none(matrix.cells[a][b]), matrix.cells[a][b].level.value))
        for a in range(len(matrix.names))
        for b in range(a + 1, len(matrix.names))
    ]
    places = (
        f"{name}: NUMA node {numa}" + (f", CPUs {cpus}" if cpus else "")
        for name, numa, cpus in zip(matrix.names, matrix.numa, matrix.cpus, strict=True)
    )
    return MatrixTable(headings, tuple(rows), (*places, *legend_lines(matrix)), is_pairs=True)


def _link_or_none(cell: MatrixCell) -> str:
    return "none known" if cell.link is None else link_word(cell.link)


def legend_lines(matrix: Matrix) -> tuple[str, ...]:
    """Give one line for each word that the matrix uses: links first, then nearness from best to worst."""
    cells = [cell for row in matrix.cells for cell in row]
    links = {(link_word(c.link), link_meaning(c.link)) for c in cells if c.link is not None}
    levels = {cell.level for cell in cells}
    lines = [*sorted(links, key=_link_order), *_level_lines(levels)]
    width = max((len(word) for word, _ in lines), default=0)
    return tuple(f"{word:<{width}}  {meaning}" for word, meaning in lines)


def _link_order(line: tuple[str, str]) -> tuple[int, str, str]:
    digits = "".join(letter for letter in line[0] if letter.isdigit())
    return (-int(digits or 0), *line)


def _level_lines(levels: Iterable[PairLevel]) -> Iterable[tuple[str, str]]:
    for level in sorted(levels, key=lambda level: level.rank):
        yield ("X" if level is PairLevel.SELF else level.value, LEVEL_MEANINGS[level])
