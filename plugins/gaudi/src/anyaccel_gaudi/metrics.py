"""The library's answer → readings. Units: milliwatts, degrees Celsius, percent, bytes (HLML API reference)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from anyaccel.device import Device
from anyaccel.frozen import FrozenMap
from anyaccel.metrics import STANDARD_READINGS, Reading
from anyaccel.replies import Reply
from anyaccel_gaudi.inspection import told_by_address

__all__ = ["read_metrics"]

_SENSORS: tuple[tuple[str, str, float, dict[str, str]], ...] = (
    ("utilization_percent", "utilization_ratio", 100, {}),
    ("power_milliwatts", "power_watts", 1000, {}),
    ("temperature_celsius", "temperature_celsius", 1, {"sensor": "device"}),
    ("board_temperature_celsius", "temperature_celsius", 1, {"sensor": "board"}),
    ("corrected_errors", "errors_total", 1, {"kind": "memory-corrected"}),
    ("uncorrected_errors", "errors_total", 1, {"kind": "memory-uncorrected"}),
)
"""What the library calls it, our reading, what to divide by, labels."""


def read_metrics(devices: Sequence[Device], answer: Any) -> tuple[Reading, ...]:
    """Give every reading of every card; what the library refuses is None with its words.

    Raises: UnavailableError when the answer has another shape.
    """
    told = told_by_address(answer)
    return tuple(
        r for device in devices for r in _readings(device, told.get(device.pci_addresses[0], Reply(None, "libhlml")))
    )


def _readings(device: Device, reply: Reply) -> Iterator[Reading]:
    used = reply.inner("memory").number("used")
    yield _reading(device, "memory_used_bytes", used, reply.why("memory"), {})
    for word, name, divisor, labels in _SENSORS:
        value = reply.number(word)
        yield _reading(device, name, None if value is None else value / divisor, reply.why(word), labels)


def _reading(device: Device, name: str, value: float | None, why: str, labels: dict[str, str]) -> Reading:
    return Reading(
        device.id, name, STANDARD_READINGS[name].kind, value, why if value is None else None, FrozenMap(labels)
    )
