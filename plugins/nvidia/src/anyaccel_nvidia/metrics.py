"""Readings of sensors, each with the reason where there is none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from anyaccel.device import Device
from anyaccel.frozen import FrozenMap
from anyaccel.metrics import Reading, ReadingKind
from anyaccel_nvidia.replies import Reply

__all__ = ["read_metrics"]

_READINGS = (
    ("power_watts", "power_milliwatts", 1000, FrozenMap[str]()),
    ("temperature_celsius", "temperature_celsius", 1, FrozenMap({"sensor": "device"})),
    ("utilization_ratio", "utilization_percent", 100, FrozenMap[str]()),
    ("memory_used_bytes", "memory_used_bytes", 1, FrozenMap[str]()),
)
"""Name of the reading, name in the driver's document, what to divide by, and its labels."""


def read_metrics(devices: Sequence[Device], document: Any) -> tuple[Reading, ...]:
    """Give the readings of every card; what the driver refuses is None with its reason."""
    entries = {entry.text("pci_address"): entry for entry in Reply(document).each("devices")}
    cards = [device for device in devices if device.parent is None]
    return tuple(reading for card in cards for reading in _readings(card, _entry(card, len(cards), entries)))


def _entry(card: Device, count: int, entries: dict[str | None, Reply]) -> Reply | None:
    if card.pci_addresses:
        return next((entries[address] for address in card.pci_addresses if address in entries), None)
    return next(iter(entries.values())) if count == len(entries) == 1 else None


def _readings(card: Device, entry: Reply | None) -> Iterator[Reading]:
    for name, key, divisor, labels in _READINGS:
        value = None if entry is None else entry.number(key)
        reason = "the driver does not answer for this card" if entry is None else entry.why(key)
        yield Reading(
            card.id,
            name,
            ReadingKind.GAUGE,
            None if value is None else value / divisor,
            reason if value is None else None,
            labels,
        )
