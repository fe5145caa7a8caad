"""The text of `udevadm info --export-db`: one record a kernel object, with its properties."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from anyaccel.frozen import FrozenMap
from anyaccel_conformance.readers.foreign import ForeignFormatError

__all__ = ["UdevRecord", "parse_udev_db"]


@dataclass(frozen=True)
class UdevRecord:
    """One record.

    Args: path: below /sys, beginning with `/devices`. node: device file below /dev, None = none. links: further names of it.
        properties: by name.
    """

    path: str
    node: str | None = None
    links: tuple[str, ...] = ()
    properties: FrozenMap[str] = field(default_factory=FrozenMap)

    @property
    def subsystem(self) -> str | None:
        """The kernel subsystem (`pci`, `net`, `accel`)."""
        return self.properties.get("SUBSYSTEM")


def parse_udev_db(text: str) -> tuple[UdevRecord, ...]:
    """Read an exported database in its own order; letters this reader does not know are skipped.

    Raises: ForeignFormatError when no record is found.
    """
    records = tuple(_record(lines) for lines in _paragraphs(text) if lines[0].startswith("P: "))
    if not records:
        raise ForeignFormatError("text holds no record of udevadm info --export-db")
    return records


def _paragraphs(text: str) -> Iterable[list[str]]:
    lines: list[str] = []
    for line in [*text.splitlines(), ""]:
        if line.strip():
            lines.append(line)
        elif lines:
            yield lines
            lines = []


def _record(lines: list[str]) -> UdevRecord:
    node = None
    links: list[str] = []
    properties: dict[str, str] = {}
    for line in lines[1:]:
        letter, _, rest = line.partition(": ")
        if letter == "N":
            node = rest
        elif letter == "S":
            links.append(rest)
        elif letter == "E":
            name, _, value = rest.partition("=")
            properties[name] = value
    return UdevRecord(lines[0].removeprefix("P: ").strip(), node, tuple(links), FrozenMap(properties))
