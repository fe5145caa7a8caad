"""Topology as a square matrix, or as a list of pairs where no matrix would fit. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from anyaccel.device import Device
from anyaccel.inventory import Inventory
from anyaccel.topology import Nic, PairLevel
from anyaccel_cli.formats.connections import Connections, MatrixCell, nearest_nics
from anyaccel_cli.formats.words import (
    LEVEL_CODES,
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

__all__ = ["MOST_DEVICES", "Matrix", "MatrixTable", "matrix_table", "topology_matrix"]

NARROW = 80
"""Below this many columns pairs are listed, however small the matrix is."""

MOST_DEVICES = 64
"""A matrix of more devices is nothing that a person reads."""

_GAP = 2


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
        cells=Connections(inventory, ends).cells(),
        numa=tuple(_numa(inventory, end) for end in ends),
        cpus=tuple(_cpus(inventory, end) for end in ends),
        device_count=len(shown),
    )


def _numa(inventory: Inventory, end: Device | Nic) -> str:
    if isinstance(end, Device):
        return numa_text(end, inventory)
    return UNKNOWN if end.path.numa_node is None else str(end.path.numa_node)


def _cpus(inventory: Inventory, end: Device | Nic) -> str:
    """Give the CPUs near a device; those of a network card are left to the devices beside it, as every such table does."""
    return cpus_text(inventory.local_cpus(end)) if isinstance(end, Device) else ""


def matrix_table(matrix: Matrix, width: int | None = None) -> MatrixTable:
    """Lay a matrix out in the first of these forms that fits.

    Words of nearness in one line a device, then below each other; the same of devices alone, with each device's nearest
    network cards below; short codes instead of the words; a list of pairs of devices.
    Args: width: of the terminal, None = no limit.
    """
    devices = _without_nics(matrix)
    if width is None or width >= NARROW:
        for table in _squares(matrix, devices):
            if width is None or _width_of(table) <= width:
                return table
    return _pair_table(matrix, devices)


def _squares(matrix: Matrix, devices: Matrix) -> Iterable[MatrixTable]:
    """Give every form of a square, the widest first."""
    nics = tuple(f"{name}: {text}" for name, text in _nearest_texts(matrix).items())
    below = tuple(_cells_below(matrix, devices))
    words, codes = legend_lines(below), legend_lines(below, has_codes=True)
    for rows in (_plain_rows(matrix), _stacked_rows(matrix)):
        yield MatrixTable(_headings(matrix), tuple(rows), legend_lines(_cells_of(matrix)))
    for rows in (_plain_rows(devices), _stacked_rows(devices)):
        yield MatrixTable(_headings(devices), tuple(rows), (*nics, *words))
    for rows in (_code_rows(devices), _stacked_code_rows(devices)):
        yield MatrixTable(_headings(devices, is_short=True), tuple(rows), (*nics, *codes))


def _without_nics(matrix: Matrix) -> Matrix:
    count = matrix.device_count
    cells = tuple(row[:count] for row in matrix.cells[:count])
    return Matrix(matrix.names[:count], cells, matrix.numa[:count], matrix.cpus[:count], count)


def _nearest(matrix: Matrix, place: int) -> tuple[PairLevel, tuple[str, ...]] | None:
    places = range(matrix.device_count, len(matrix.names))
    return nearest_nics({matrix.names[nic]: matrix.cells[place][nic].level for nic in places})


def _nearest_texts(matrix: Matrix) -> dict[str, str]:
    """Say for each device which network cards are nearest; cards that are equally near are all named."""
    texts = {}
    for place in range(matrix.device_count):
        found = _nearest(matrix, place)
        if found is not None:
            level, names = found
            texts[matrix.names[place]] = f"nearest network card {', '.join(names)}, {level.value}"
    return texts


def _cells_of(matrix: Matrix) -> Iterable[MatrixCell]:
    return (cell for row in matrix.cells for cell in row)


def _cells_below(matrix: Matrix, devices: Matrix) -> Iterable[MatrixCell]:
    """Give what is shown where network cards stand in the lines below: the devices' cells, and the nearest cards'."""
    yield from _cells_of(devices)
    nearest = (_nearest(matrix, place) for place in range(matrix.device_count))
    yield from (MatrixCell(found[0]) for found in nearest if found is not None)


def _headings(matrix: Matrix, *, is_short: bool = False) -> tuple[Heading, ...]:
    cut = _common_family(matrix.names) if is_short else 0
    columns = (Heading(f"to {name}", name[cut:]) for name in matrix.names)
    return (Heading("from", ""), *columns, Heading("numa", "NUMA"), Heading("cpus", "CPUs"))


def _common_family(names: Sequence[str]) -> int:
    """Give the length of the vendor's word when every name is that word and a number, else 0."""
    parts = [name.partition(":") for name in names]
    is_common = len({family for family, _, _ in parts}) == 1 and all(number.isdecimal() for _, _, number in parts)
    return len(parts[0][0]) if is_common else 0


def _width_of(table: MatrixTable) -> int:
    titles = [heading.title for heading in table.headings]
    widths = (max(map(len, column)) for column in zip(titles, *(row.cells for row in table.rows), strict=True))
    return sum(widths) + _GAP * (len(titles) - 1)


def _plain_rows(matrix: Matrix) -> list[Row]:
    return _rows(matrix, lambda cell: (" · ".join(cell.words),))


def _stacked_rows(matrix: Matrix) -> list[Row]:
    """Give several rows for each device: the link's word, then the words of nearness one below the other."""
    return _rows(matrix, _stacked)


def _code_rows(matrix: Matrix) -> list[Row]:
    return _rows(matrix, lambda cell: (" ".join(_codes(cell)),))


def _stacked_code_rows(matrix: Matrix) -> list[Row]:
    return _rows(matrix, _codes)


def _rows(matrix: Matrix, lines_of: Callable[[MatrixCell], tuple[str, ...]]) -> list[Row]:
    rows = []
    for place, name in enumerate(matrix.names):
        columns = [lines_of(cell) for cell in matrix.cells[place]]
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


def _codes(cell: MatrixCell) -> tuple[str, ...]:
    """Give the link's word and the code of nearness."""
    lines = () if cell.link is None else (link_word(cell.link),)
    return (*lines, LEVEL_CODES[cell.level])


_BROKEN = {
    PairLevel.SAME_PACKAGE: ("same", "package"),
    PairLevel.SAME_SWITCH: ("same", "switch"),
    PairLevel.SEVERAL_SWITCHES: ("several", "switches"),
    PairLevel.SAME_HOST_BRIDGE: ("same host", "bridge"),
    PairLevel.SAME_NUMA: ("same", "NUMA node"),
    PairLevel.ACROSS_NUMA: ("across", "NUMA"),
}


def _pair_table(matrix: Matrix, devices: Matrix) -> MatrixTable:
    """Give a row for every two devices, and below one line for each device with its place and nearest network cards."""
    headings = (Heading("a", "from"), Heading("b", "to"), Heading("link", "link"), Heading("level", "PCIe"))
    names, cells = devices.names, devices.cells
    rows = [
        Row((names[a], names[b], _link_or_none(cells[a][b]), cells[a][b].level.value))
        for a in range(len(names))
        for b in range(a + 1, len(names))
    ]
    legend = legend_lines(cell for cell in _cells_below(matrix, devices) if cell.level is not PairLevel.SELF)
    return MatrixTable(headings, tuple(rows), (*_place_lines(matrix, devices), *legend), is_pairs=True)


def _place_lines(matrix: Matrix, devices: Matrix) -> Iterable[str]:
    nics = _nearest_texts(matrix)
    for name, numa, cpus in zip(devices.names, devices.numa, devices.cpus, strict=True):
        parts = (f"NUMA node {numa}", f"CPUs {cpus}", nics.get(name))
        yield f"{name}: {', '.join(part for part in parts if part)}"


def _link_or_none(cell: MatrixCell) -> str:
    return "none known" if cell.link is None else link_word(cell.link)


def legend_lines(cells: Iterable[MatrixCell], *, has_codes: bool = False) -> tuple[str, ...]:
    """Give one line for each word that the cells use: links first, then nearness from best to worst.

    Args: has_codes: the cells show the codes of nearness; the legend gives our words beside them.
    """
    shown = set(cells)
    links = {(link_word(c.link), link_meaning(c.link)) for c in shown if c.link is not None}
    levels = sorted({cell.level for cell in shown}, key=lambda level: level.rank)
    lines = [*sorted(links, key=_link_order), *(_level_line(level, has_code=has_codes) for level in levels)]
    width = max((len(word) for word, _ in lines), default=0)
    return tuple(f"{word:<{width}}  {meaning}" for word, meaning in lines)


def _link_order(line: tuple[str, str]) -> tuple[int, str, str]:
    digits = "".join(letter for letter in line[0] if letter.isdigit())
    return (-int(digits or 0), *line)


def _level_line(level: PairLevel, *, has_code: bool) -> tuple[str, str]:
    meaning = LEVEL_MEANINGS[level]
    if level is PairLevel.SELF:
        return ("X", meaning)
    return (LEVEL_CODES[level], f"{level.value}: {meaning}") if has_code else (level.value, meaning)
