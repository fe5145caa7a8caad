"""The text of `lspci`, with or without `-nn` and `-vvv`, with or without `-D`.

Without `-nn` there are no numbers: ids are then only known where the id list had no name and `Device 2330` was printed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from anyaccel.pci import normal_address
from anyaccel_conformance.readers.foreign import ForeignFormatError

__all__ = ["LspciFunction", "lspci_bridges", "parse_lspci"]

_HEAD = re.compile(
    r"^((?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) (?P<kind>[^:\[]+?)(?: \[(?P<code>[0-9a-f]{4})\])?: (?P<name>.*)$"
)
_IDS = re.compile(r"\[([0-9a-f]{4}):([0-9a-f]{4})\]")
_BARE_ID = re.compile(r"\bDevice ([0-9a-f]{4})\b")
_REVISION = re.compile(r"\(rev ([0-9a-f]{2})\)")
_SPEED = re.compile(r"Speed ([0-9.]+)GT/s[^,]*, Width x([0-9]+)")
_BUS = re.compile(r"Bus: primary=[0-9a-f]+, secondary=([0-9a-f]+), subordinate=([0-9a-f]+)")


@dataclass(frozen=True)
class LspciFunction:
    """One function.

    Args: kind: class in words. class_code: four hex digits. name: vendor and device in words. bus: own domain and bus.
        secondary, subordinate: bus numbers below a bridge. Speeds in GT/s. None = not printed.
    """

    address: str
    kind: str
    name: str
    class_code: str | None = None
    vendor_id: int | None = None
    device_id: int | None = None
    revision: int | None = None
    numa_node: int | None = None
    driver: str | None = None
    slot: str | None = None
    iommu_group: int | None = None
    secondary: int | None = None
    subordinate: int | None = None
    speed_gts: float | None = None
    width: int | None = None
    max_speed_gts: float | None = None
    max_width: int | None = None

    @property
    def domain(self) -> str:
        """The PCI domain as text."""
        return self.address.split(":")[0]

    @property
    def bus(self) -> int:
        """The bus the function sits on."""
        return int(self.address.split(":")[1], 16)


def parse_lspci(text: str) -> tuple[LspciFunction, ...]:
    """Read the output of lspci in the order it was printed.

    Raises: ForeignFormatError when no function is found.
    """
    functions = tuple(_function(lines) for lines in _blocks(text))
    if not functions:
        raise ForeignFormatError("text holds no PCI function of lspci")
    return functions


def _blocks(text: str) -> Iterable[list[str]]:
    block: list[str] = []
    for line in text.splitlines():
        if _HEAD.match(line):
            if block:
                yield block
            block = [line]
        elif block:
            block.append(line.strip())
    if block:
        yield block


def _function(lines: list[str]) -> LspciFunction:
    head = _HEAD.match(lines[0])
    assert head is not None
    name = head["name"]
    body = "\n".join(lines[1:])
    ids = _IDS.search(name)
    bare = _BARE_ID.search(name)
    device = ids.group(2) if ids else bare.group(1) if bare else None
    buses, now, most = _BUS.search(body), _field(body, "LnkSta", _SPEED), _field(body, "LnkCap", _SPEED)
    address = normal_address(head.group(1))
    assert address is not None
    return LspciFunction(
        address=address,
        kind=head["kind"],
        name=name,
        class_code=head["code"] or _code_in(head["kind"]),
        vendor_id=int(ids.group(1), 16) if ids else None,
        device_id=None if device is None else int(device, 16),
        revision=_hex(_REVISION.search(name)),
        numa_node=_decimal(_field(body, "NUMA node")),
        driver=_text(_field(body, "Kernel driver in use")),
        slot=_text(_field(body, "Physical Slot")),
        iommu_group=_decimal(_field(body, "IOMMU group")),
        secondary=int(buses.group(1), 16) if buses else None,
        subordinate=int(buses.group(2), 16) if buses else None,
        speed_gts=float(now.group(1)) if now else None,
        width=int(now.group(2)) if now else None,
        max_speed_gts=float(most.group(1)) if most else None,
        max_width=int(most.group(2)) if most else None,
    )


def _code_in(kind: str) -> str | None:
    match = re.search(r"Class ([0-9a-f]{4})", kind)
    return match.group(1) if match else None


def _field(body: str, name: str, pattern: re.Pattern[str] | None = None) -> re.Match[str] | None:
    match = re.search(rf"^{re.escape(name)}:\s*(.+)$", body, re.MULTILINE)
    return match if match is None or pattern is None else pattern.search(match.group(1))


def _text(match: re.Match[str] | None) -> str | None:
    return None if match is None else match.group(1).strip()


def _decimal(match: re.Match[str] | None) -> int | None:
    number = re.match(r"-?[0-9]+", match.group(1)) if match else None
    return None if number is None else int(number.group(0))


def _hex(match: re.Match[str] | None) -> int | None:
    return None if match is None else int(match.group(1), 16)


def lspci_bridges(functions: Iterable[LspciFunction], function: LspciFunction) -> tuple[str, ...]:
    """Give the addresses of the bridges above a function, from the root down, as the bus numbers tell.

    Every bridge whose range of buses holds the function's bus is above it; the widest range is nearest to the root.
    """
    above = [
        bridge
        for bridge in functions
        if bridge.secondary is not None
        and bridge.subordinate is not None
        and bridge.domain == function.domain
        and 0 < bridge.secondary <= function.bus <= bridge.subordinate
        and bridge.bus < function.bus
    ]
    above.sort(key=lambda bridge: (bridge.bus, -(bridge.subordinate or 0)))
    return tuple(bridge.address for bridge in above)
