"""The JSON of `rocm-smi --showallinfo --json`. Key names change between ROCm releases, so each fact has several."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from anyaccel.pci import normal_address
from anyaccel_conformance.readers.foreign import ForeignFormatError

__all__ = ["RocmCard", "RocmLog", "parse_rocm_json"]


@dataclass(frozen=True)
class RocmCard:
    """One card. None = N/A or not there.

    Args: name: the tool's `card0`. pcie_speed_gts, pcie_width: now. numa_node, numa_affinity: as printed, -1 kept as None.
        node_id: number of the KFD node. guid: KFD's number of the GPU.
    """

    name: str
    address: str | None = None
    device_id: int | None = None
    revision: int | None = None
    unique_id: int | None = None
    series: str | None = None
    memory_bytes: int | None = None
    pcie_speed_gts: float | None = None
    pcie_width: int | None = None
    numa_node: int | None = None
    numa_affinity: int | None = None
    gfx_version: str | None = None
    node_id: int | None = None
    guid: int | None = None


@dataclass(frozen=True)
class RocmLog:
    """A whole document."""

    cards: tuple[RocmCard, ...]
    driver_version: str | None = None


def parse_rocm_json(document: bytes | str) -> RocmLog:
    """Read the JSON of rocm-smi. Raises: ForeignFormatError."""
    try:
        content = json.loads(document)
    except (ValueError, RecursionError) as error:
        raise ForeignFormatError(f"document is no JSON: {error}") from error
    if not isinstance(content, dict):
        raise ForeignFormatError("JSON document of rocm-smi is no object")
    cards = tuple(
        _card(name, fields)
        for name, fields in content.items()
        if re.fullmatch(r"card[0-9]+", name) and isinstance(fields, dict)
    )
    if not cards:
        raise ForeignFormatError("JSON document of rocm-smi holds no card")
    system = content.get("system")
    return RocmLog(cards, _text(system, "Driver version") if isinstance(system, dict) else None)


def _card(name: str, fields: Mapping[str, object]) -> RocmCard:
    speed = re.search(r"\(([0-9.]+)GT/s x([0-9]+)\)", _text(fields, "pcie clock level") or "")
    return RocmCard(
        name=name,
        address=normal_address(_text(fields, "PCI Bus") or ""),
        device_id=_number(fields, "Device ID", "GPU ID"),
        revision=_number(fields, "Device Rev"),
        unique_id=_number(fields, "Unique ID"),
        series=_text(fields, "Card Series", "Card series"),
        memory_bytes=_number(fields, "VRAM Total Memory (B)"),
        pcie_speed_gts=float(speed.group(1)) if speed else None,
        pcie_width=int(speed.group(2)) if speed else None,
        numa_node=_node(fields, "(Topology) Numa Node"),
        numa_affinity=_node(fields, "(Topology) Numa Affinity"),
        gfx_version=_text(fields, "GFX Version"),
        node_id=_number(fields, "Node ID"),
        guid=_number(fields, "GUID"),
    )


def _text(fields: Mapping[str, object], *names: str) -> str | None:
    found = next((str(fields[name]).strip() for name in names if name in fields), "N/A")
    return None if found in ("N/A", "") else found


def _number(fields: Mapping[str, object], *names: str) -> int | None:
    text = _text(fields, *names)
    if text is None:
        return None
    try:
        return int(text, 16 if text.startswith("0x") else 10)
    except ValueError:
        return None


def _node(fields: Mapping[str, object], name: str) -> int | None:
    number = _number(fields, name)
    return None if number is None or number < 0 else number
