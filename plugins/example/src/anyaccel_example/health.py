"""The driver's answer → readings and findings."""

from __future__ import annotations

from typing import Any

from anyaccel.device import Device
from anyaccel.errors import UnavailableError
from anyaccel.metrics import Finding, FindingStatus, Reading, ReadingKind

SENSORS = {
    "power_watts": ReadingKind.GAUGE,
    "temperature_celsius": ReadingKind.GAUGE,
    "corrected_errors_total": ReadingKind.COUNTER,
}


def readings(devices: tuple[Device, ...], answer: Any) -> tuple[Reading, ...]:
    """Give every sensor of every chip; a chip or sensor that the driver leaves out is unknown, not 0."""
    told = {row["slot"]: row["sensors"] for row in answer["chips"]}
    chips = [device for device in devices if device.parent is None]
    return tuple(
        _reading(chip, name, told.get(chip.numbers["slot"], {}).get(name)) for chip in chips for name in SENSORS
    )


def _reading(chip: Device, name: str, value: object) -> Reading:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        value = None
    return Reading(chip.id, name, SENSORS[name], value, "the driver does not tell" if value is None else None)


def findings(answer: Any) -> tuple[Finding, ...]:
    """Judge what the driver told: does it answer, are the links of the grid up."""
    down = [f"slots {row['a']} and {row['b']}" for row in answer["links"] if not row["is_up"]]
    driver = Finding("example.driver.answers", FindingStatus.PASS, f"driver {answer['version']} answers")
    if not down:
        return (driver, Finding("example.links.up", FindingStatus.PASS, f"{len(answer['links'])} links up"))
    seen = f"down between {', '.join(down)}"
    return (driver, Finding("example.links.up", FindingStatus.WARN, seen, "reseat the bridge between the boards"))


def findings_without_driver(error: UnavailableError) -> tuple[Finding, ...]:
    """Say that nothing could be asked, and keep each check in the list."""
    return (
        Finding(
            "example.driver.answers", FindingStatus.FAIL, error.message, error.hint or "install the example driver"
        ),
        Finding("example.links.up", FindingStatus.SKIP, "the driver does not answer"),
    )
