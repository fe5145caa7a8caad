"""The matrix that `nvidia-smi topo -m` prints, read and written.

Column sets differ by driver, and texts pasted into reports lose tabs, so columns are found by name and what is missing is
None. Words as in the legend of the tool: X, NV#, PIX, PXB, PHB, NODE, SYS, and SOC of old drivers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from anyaccel.frozen import FrozenMap
from anyaccel_conformance.readers.foreign import ForeignFormatError

__all__ = ["TopoMatrix", "TopoRow", "parse_topo_matrix", "write_topo_matrix"]

_TERMINAL = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_HEADER = re.compile(r"^\s*GPU[0-9]+\s*(?:GPU[0-9]|NIC[0-9]|mlx[0-9]|CPU\s|$)")
_AFFINITY = re.compile(r"CPU\s+Affinity|NUMA\s+Affinity|GPU\s+NUMA\s+ID")
_GLUED = re.compile(r"(?<=[0-9])(?=(?:GPU|NIC|mlx)[0-9])")
_WORD = re.compile(r"\s*(X|NV[0-9]+|PIX|PXB|PHB|NODE|SYS|SOC|PSB|N/A)")
_CPUS = r"[0-9]+(?:-[0-9]+)?(?:,[0-9]+(?:-[0-9]+)?)*"
_TRAILING = re.compile(
    rf"^\s*(?P<cpu>{_CPUS}|N/A)?(?:\s+(?P<numa>[0-9,-]*[0-9](?![0-9/])|N/A))?\s*(?P<gpu>[0-9]+|N/A)?\s*$"
)
_NIC_NAME = re.compile(r"^\s*(NIC[0-9]+):\s*(\S+)\s*$")


@dataclass(frozen=True)
class TopoRow:
    """One row.

    Args: name: `GPU0`, `NIC3`, `mlx5_0`. words: by column, None = cell missing. cpu_affinity: CPU list as printed.
        numa_affinity, gpu_numa_id: node numbers as printed. None = blank, N/A or no such column.
    """

    name: str
    words: tuple[str | None, ...]
    cpu_affinity: str | None = None
    numa_affinity: str | None = None
    gpu_numa_id: str | None = None


@dataclass(frozen=True)
class TopoMatrix:
    """The whole matrix.

    Args: columns: device names in order. affinities: names of the right-hand columns that were printed.
        nic_names: kernel name by `NIC#`.
    """

    columns: tuple[str, ...]
    rows: tuple[TopoRow, ...]
    affinities: tuple[str, ...] = ()
    nic_names: FrozenMap[str] = field(default_factory=FrozenMap)

    def word(self, a: str, b: str) -> str | None:
        """Give the word between two devices, from whichever of the two rows has it; None = not printed."""
        return self._cell(a, b) or self._cell(b, a)

    def _cell(self, row_name: str, column: str) -> str | None:
        row = self.row(row_name)
        if row is None or column not in self.columns:
            return None
        return row.words[self.columns.index(column)]

    def row(self, name: str) -> TopoRow | None:
        """Give one row, None when it was cut off."""
        return next((row for row in self.rows if row.name == name), None)


def parse_topo_matrix(text: str) -> TopoMatrix:
    r"""Read the output of `nvidia-smi topo -m`.

    Raises: ForeignFormatError when no header line with a GPU is found.
    Example: parse_topo_matrix("\tGPU0\tGPU1\nGPU0\t X \tNV12\n").word("GPU1", "GPU0") == "NV12"
    """
    lines = [_TERMINAL.sub("", line) for line in text.splitlines()]
    start = next((n for n, line in enumerate(lines) if _HEADER.match(line)), None)
    if start is None:
        raise ForeignFormatError("text holds no header line of a topology matrix")
    columns, affinities = _header(lines[start])
    names = frozenset(columns)
    rows = []
    for line in lines[start + 1 :]:
        name = line.split(maxsplit=1)[0] if line.split() else ""
        if name in names:
            rows.append(_row(name, line.strip()[len(name) :], columns, affinities))
    found = (match for line in lines if (match := _NIC_NAME.match(line)))
    return TopoMatrix(columns, tuple(rows), affinities, FrozenMap({m.group(1): m.group(2) for m in found}))


def _header(line: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    affinities = tuple(re.sub(r"\s+", " ", match.group(0)) for match in _AFFINITY.finditer(line))
    devices = _AFFINITY.split(line)[0]
    columns = tuple(name for token in devices.split() for name in _GLUED.split(token))
    return columns, affinities


def _row(name: str, rest: str, columns: Sequence[str], affinities: Sequence[str]) -> TopoRow:
    words: list[str | None] = []
    position = 0
    while len(words) < len(columns):
        match = _WORD.match(rest, position) or re.compile(r"\s*([A-Z][A-Z0-9#*]*)").match(rest, position)
        if match is None:
            break
        words.append(match.group(1))
        position = match.end()
    words += [None] * (len(columns) - len(words))
    cpu, numa, gpu = _trailing(rest[position:], affinities)
    return TopoRow(name, tuple(words), cpu, numa, gpu)


def _trailing(text: str, affinities: Sequence[str]) -> tuple[str | None, str | None, str | None]:
    if not affinities or not text.strip():
        return None, None, None
    if "\t" in text:
        parts = [part.strip() for part in text.lstrip(" ").removeprefix("\t").split("\t")]
        # The tool prints an empty cell before "GPU NUMA ID", so that one is the last, not the third.
        has_gpu_column = "GPU NUMA ID" in affinities and len(parts) > 2
        last = parts[-1] if has_gpu_column else ""
        numa = parts[1] if len(parts) > 1 else ""
        return _known(parts[0]), _known(numa), _known(last)
    match = _TRAILING.match(text)
    if match is None:
        return None, None, None
    return _known(match["cpu"]), _known(match["numa"]), _known(match["gpu"])


def _known(text: str | None) -> str | None:
    return None if text in (None, "", "N/A") else text


_LEGEND = (
    ("SYS", "path crosses the connection between NUMA nodes"),
    ("SOC", "path crosses the connection between sockets"),
    ("NODE", "path crosses host bridges inside one NUMA node"),
    ("PHB", "path crosses one host bridge"),
    ("PXB", "path crosses several PCIe bridges"),
    ("PIX", "path crosses at most one PCIe bridge"),
    ("NV#", "path is a bundle of # NVLinks"),
)


def write_topo_matrix(matrix: TopoMatrix) -> str:
    """Write a matrix as the tool does, in tab-separated columns, with a legend of the words in use.

    What `parse_topo_matrix` reads of the result equals the matrix given.
    """
    lines = ["\t".join(("", *matrix.columns, *matrix.affinities))]
    lines += [_row_text(row, matrix.affinities) for row in matrix.rows]
    lines += ["", "Legend:", "", "  X    = Self", *_legend_lines(matrix)]
    if matrix.nic_names:
        lines += ["", "NIC Legend:", "", *(f"  {nic}: {name}" for nic, name in matrix.nic_names.items())]
    return "\n".join(lines) + "\n"


def _legend_lines(matrix: TopoMatrix) -> Iterable[str]:
    used = {re.sub(r"[0-9]+", "#", word) for row in matrix.rows for word in row.words if word is not None}
    return (f"  {word:<4} = {meaning}" for word, meaning in _LEGEND if word in used)


def _row_text(row: TopoRow, affinities: Sequence[str]) -> str:
    present = [word for word in row.words if word is not None]
    cells = [row.name, *(" X " if word == "X" else word for word in present)]
    if (row.cpu_affinity, row.numa_affinity, row.gpu_numa_id) != (None, None, None):
        cells += [row.cpu_affinity or "", row.numa_affinity or ""][: len(affinities)]
        if "GPU NUMA ID" in affinities:
            cells += ["", row.gpu_numa_id or "N/A"]
    return "\t".join(cells)
