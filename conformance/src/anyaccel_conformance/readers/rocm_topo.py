"""The tables that `rocm-smi --showtopo` prints, read and written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from anyaccel.frozen import FrozenMap
from anyaccel_conformance.readers.foreign import ForeignFormatError

__all__ = ["RocmTopology", "parse_rocm_topology", "write_rocm_topology"]

_TITLE = re.compile(r"^=+\s*(.*?)\s*=+$")
_NUMA = re.compile(r"^GPU\[([0-9]+)\]\s*:\s*\(Topology\) Numa (Node|Affinity):\s*(-?[0-9]+)")


@dataclass(frozen=True)
class RocmTopology:
    """All tables over one set of GPUs.

    Args: gpus: names in order. weights, hops: numbers row by row, None = no number printed. kinds: link type words
        (`XGMI`, `PCIE`), None on the diagonal. numa_nodes, numa_affinities: by name, as printed.
    """

    gpus: tuple[str, ...]
    weights: tuple[tuple[int | None, ...], ...] = ()
    hops: tuple[tuple[int | None, ...], ...] = ()
    kinds: tuple[tuple[str | None, ...], ...] = ()
    numa_nodes: FrozenMap[int] = field(default_factory=FrozenMap)
    numa_affinities: FrozenMap[int] = field(default_factory=FrozenMap)

    def kind(self, a: str, b: str) -> str | None:
        """Give the link type word between two GPUs, None when it was not printed."""
        if not self.kinds or a not in self.gpus or b not in self.gpus:
            return None
        return self.kinds[self.gpus.index(a)][self.gpus.index(b)]


def parse_rocm_topology(text: str) -> RocmTopology:
    """Read the output of `rocm-smi --showtopo`.

    Raises: ForeignFormatError when no table is found.
    """
    tables: dict[str, dict[str, tuple[str, ...]]] = {}
    numa: dict[str, dict[str, int]] = {"Node": {}, "Affinity": {}}
    gpus: tuple[str, ...] = ()
    title = ""
    for line in text.splitlines():
        match = _TITLE.match(line.strip())
        numa_match = _NUMA.match(line.strip())
        words = line.split()
        if match is not None:
            title = match.group(1).lower()
        elif numa_match is not None:
            numa[numa_match.group(2)][f"GPU{numa_match.group(1)}"] = int(numa_match.group(3))
        elif words and all(re.fullmatch(r"GPU[0-9]+", word) for word in words):
            gpus = tuple(words)
        elif words and words[0] in gpus:
            tables.setdefault(title, {})[words[0]] = tuple(words[1:])
    if not tables and not numa["Node"]:
        raise ForeignFormatError("text holds no table of rocm-smi --showtopo")
    return RocmTopology(
        gpus or tuple(numa["Node"]),
        _numbers(_table(tables, "weight", gpus)),
        _numbers(_table(tables, "hops", gpus)),
        _kinds(_table(tables, "link type", gpus)),
        FrozenMap(numa["Node"]),
        FrozenMap(numa["Affinity"]),
    )


def _table(
    tables: dict[str, dict[str, tuple[str, ...]]], word: str, gpus: Sequence[str]
) -> tuple[tuple[str | None, ...], ...]:
    for title, rows in tables.items():
        if title.startswith(word):
            return tuple(_padded(rows.get(gpu, ()), len(gpus)) for gpu in gpus)
    return ()


def _padded(cells: Sequence[str], length: int) -> tuple[str | None, ...]:
    return tuple(cells[n] if n < len(cells) else None for n in range(length))


def _numbers(table: tuple[tuple[str | None, ...], ...]) -> tuple[tuple[int | None, ...], ...]:
    return tuple(tuple(int(c) if c is not None and c.isdigit() else None for c in row) for row in table)


def _kinds(table: tuple[tuple[str | None, ...], ...]) -> tuple[tuple[str | None, ...], ...]:
    return tuple(tuple(c if c is not None and c.isalpha() else None for c in row) for row in table)


def write_rocm_topology(topology: RocmTopology) -> str:
    """Write the tables as the tool does; what `parse_rocm_topology` reads of the result equals what was given."""
    lines = []
    for title, table in (
        ("Weight between two GPUs", topology.weights),
        ("Hops between two GPUs", topology.hops),
        ("Link Type between two GPUs", topology.kinds),
    ):
        if table:
            lines += [f"{f' {title} ':=^80}", *_table_lines(topology.gpus, table), ""]
    for gpu, node in topology.numa_nodes.items():
        lines.append(f"GPU[{gpu.removeprefix('GPU')}]\t\t: (Topology) Numa Node: {node}")
        if gpu in topology.numa_affinities:
            affinity = topology.numa_affinities[gpu]
            lines.append(f"GPU[{gpu.removeprefix('GPU')}]\t\t: (Topology) Numa Affinity: {affinity}")
    return "\n".join(lines) + "\n"


def _table_lines(gpus: Sequence[str], table: Sequence[Sequence[object]]) -> list[str]:
    lines = [" " * 7 + "".join(f"{gpu:<13}" for gpu in gpus)]
    for gpu, row in zip(gpus, table, strict=True):
        cells = (
            "-" if c is None and number != gpus.index(gpu) else "0" if c is None else c for number, c in enumerate(row)
        )
        lines.append(f"{gpu:<7}" + "".join(f"{cell!s:<13}" for cell in cells))
    return lines
