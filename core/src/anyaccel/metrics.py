"""Readings of sensors and counters, with their unit or the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["Finding", "FindingStatus", "Reading", "ReadingKind"]


class ReadingKind(str, Enum):
    """Whether a value can fall: a gauge can, a counter only grows until a restart."""

    GAUGE = "gauge"
    COUNTER = "counter"


@dataclass(frozen=True)
class Reading:
    """One value of one device.

    Args: device_id: at any level of the tree. name: with its unit at the end (`power_watts`). value: None = unknown.
        reason: why it is unknown.
    """

    device_id: str
    name: str
    kind: ReadingKind
    value: float | None
    reason: str | None = None


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
