"""The text that `lstopo -v --of console` prints: PCI functions, memory nodes, packages with their CPUs."""

from __future__ import annotations

import re
from dataclasses import dataclass

from anyaccel.pci import normal_address
from anyaccel_conformance.readers.foreign import ForeignFormatError

__all__ = ["ConsoleMachine", "ConsoleNode", "ConsolePci", "parse_hwloc_console"]

_PCI = re.compile(r"^PCI(?:Bridge)? L#[0-9]+ \(busid=(\S+) id=([0-9a-f]{4}):([0-9a-f]{4}) class=([0-9a-f]{4})")
_NODE = re.compile(r"^NUMANode(?:\((\w+)\))? L#[0-9]+ \(P#([0-9]+)[^)]*?(?: PCIBusID=([0-9a-f:.]+))?\)")
_PACKAGE = re.compile(r"^Package L#[0-9]+ \(P#([0-9]+)")
_PU = re.compile(r"^PU L#[0-9]+ \(P#([0-9]+)\)")


@dataclass(frozen=True)
class ConsolePci:
    """A PCI function. Args: package: number of the package it is printed under, None = under none."""

    address: str
    vendor_id: int
    device_id: int
    class_code: str
    package: int | None


@dataclass(frozen=True)
class ConsoleNode:
    """A memory node. Args: subtype: `GPUMemory` … address: of the card whose memory it is. package: it is printed under."""

    number: int
    subtype: str | None
    address: str | None
    package: int | None


@dataclass(frozen=True)
class ConsoleMachine:
    """All of it. Args: packages: number and CPU numbers of each, in the order printed."""

    functions: tuple[ConsolePci, ...]
    nodes: tuple[ConsoleNode, ...]
    packages: tuple[tuple[int, tuple[int, ...]], ...]


def parse_hwloc_console(text: str) -> ConsoleMachine:
    """Read the console output of lstopo. Raises: ForeignFormatError when it begins with no machine."""
    if not text.startswith("Machine"):
        raise ForeignFormatError("text is no console output of lstopo")
    functions: list[ConsolePci] = []
    nodes: list[ConsoleNode] = []
    packages: dict[int, list[int]] = {}
    package: int | None = None
    for line in text.splitlines():
        stripped = line.strip()
        found = _PACKAGE.match(stripped)
        if found is not None:
            package = int(found.group(1))
            packages[package] = []
        elif match := _PU.match(stripped):
            packages.setdefault(-1 if package is None else package, []).append(int(match.group(1)))
        elif match := _PCI.match(stripped):
            functions.append(_function(match, package))
        elif match := _NODE.match(stripped):
            address = None if match.group(3) is None else normal_address(match.group(3))
            nodes.append(ConsoleNode(int(match.group(2)), match.group(1), address, package))
    listed = tuple((number, tuple(sorted(cpus))) for number, cpus in packages.items())
    return ConsoleMachine(tuple(functions), tuple(nodes), listed)


def _function(match: re.Match[str], package: int | None) -> ConsolePci:
    address = normal_address(match.group(1))
    if address is None:
        raise ForeignFormatError(f"lstopo printed the bus id {match.group(1)!r}")
    return ConsolePci(address, int(match.group(2), 16), int(match.group(3), 16), match.group(4), package)
