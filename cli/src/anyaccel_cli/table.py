"""What a table is made of, whoever fills it. Pure values."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Heading", "Row"]


@dataclass(frozen=True)
class Heading:
    """One column: its name, its title in a table, and whether its cells stand at the right, as numbers do."""

    name: str
    title: str
    is_right: bool = False


@dataclass(frozen=True)
class Row:
    """One row: its cells, its state for colour, and the lines that stand indented below it."""

    cells: tuple[str, ...]
    state: str = ""
    below: tuple[str, ...] = ()
