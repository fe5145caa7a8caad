"""Readings of sensors and counters, with their unit or the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from anyaccel.frozen import FrozenMap

__all__ = ["STANDARD_READINGS", "Finding", "FindingStatus", "Reading", "ReadingKind", "StandardReading"]


class ReadingKind(str, Enum):
    """Whether a value can fall: a gauge can, a counter only grows until a restart."""

    GAUGE = "gauge"
    COUNTER = "counter"


@dataclass(frozen=True)
class StandardReading:
    """A reading that has one name for every vendor.

    Args: label: the label that tells several of one device apart, None = there is one. words: the values it takes.
    """

    kind: ReadingKind
    help: str
    label: str | None = None
    words: tuple[str, ...] = ()


STANDARD_READINGS: FrozenMap[StandardReading] = FrozenMap(
    {
        "utilization_ratio": StandardReading(ReadingKind.GAUGE, "Share of time in which the device computed, 0 to 1."),
        "memory_used_bytes": StandardReading(ReadingKind.GAUGE, "Memory in use."),
        "memory_size_bytes": StandardReading(ReadingKind.GAUGE, "Memory the device has."),
        "temperature_celsius": StandardReading(
            ReadingKind.GAUGE, "Temperature by sensor.", "sensor", ("device", "hotspot", "memory", "board")
        ),
        "power_watts": StandardReading(ReadingKind.GAUGE, "Power drawn."),
        "energy_joules_total": StandardReading(ReadingKind.COUNTER, "Energy used since the driver was loaded."),
        "clock_hertz": StandardReading(ReadingKind.GAUGE, "Clock rate by domain.", "clock", ("compute", "memory")),
        "errors_total": StandardReading(
            ReadingKind.COUNTER,
            "Errors counted by kind.",
            "kind",
            ("memory-corrected", "memory-uncorrected", "pcie-replay", "link"),
        ),
        "link_sent_bytes_total": StandardReading(ReadingKind.COUNTER, "Bytes sent over the vendor's links.", "link"),
        "link_received_bytes_total": StandardReading(
            ReadingKind.COUNTER, "Bytes received over the vendor's links.", "link"
        ),
    }
)
"""What means the same for every vendor has one name, in base units; a plugin may add readings of its own with other names."""


@dataclass(frozen=True)
class Reading:
    """One value of one device.

    Args: device_id: at any level of the tree. name: one of `STANDARD_READINGS`, or an own name with its unit at the end.
        value: in base units (watts, bytes, celsius, hertz, a share of 1), None = unknown. reason: why it is unknown.
        labels: what tells several readings of one name apart (`sensor`, `clock`, `kind`, `link`).
    """

    device_id: str
    name: str
    kind: ReadingKind
    value: float | None
    reason: str | None = None
    labels: FrozenMap[str] = field(default_factory=FrozenMap)


class FindingStatus(str, Enum):
    """Result of one check."""

    PASS = "PASS"
    WARN = "WARN"
    FAIL = "FAIL"
    SKIP = "SKIP"


@dataclass(frozen=True)
class Finding:
    """One result of a diagnosis.

    Args: check: stable id, `<plugin>.<area>.<name>`. seen: what was found. hint: what to do about it.
    """

    check: str
    status: FindingStatus
    seen: str
    hint: str | None = None
    device_id: str | None = None
