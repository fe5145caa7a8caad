"""The driver's answer → readings and findings."""

from __future__ import annotations

from typing import Any

from anyaccel.device import Device
from anyaccel.errors import UnavailableError
from anyaccel.frozen import FrozenMap
from anyaccel.metrics import STANDARD_READINGS, Finding, FindingStatus, Reading
from anyaccel.replies import Reply

SENSORS: dict[str, tuple[str, FrozenMap[str]]] = {
    "power_watts": ("power_watts", FrozenMap()),
    "temperature_celsius": ("temperature_celsius", FrozenMap({"sensor": "device"})),
    "corrected_errors": ("errors_total", FrozenMap({"kind": "memory-corrected"})),
}
"""Name of the reading and its labels, by the driver's word for the sensor."""


def readings(devices: tuple[Device, ...], answer: Any) -> tuple[Reading, ...]:
    """Give every sensor of every chip; a chip or sensor that the driver leaves out is unknown, not 0."""
    told = {row["slot"]: Reply(row["sensors"]) for row in answer["chips"]}
    chips = [device for device in devices if device.parent is None]
    rows = ((chip, told.get(chip.numbers["slot"], Reply(None))) for chip in chips)
    return tuple(_reading(chip, sensor, row.measure(sensor)) for chip, row in rows for sensor in SENSORS)


def _reading(chip: Device, sensor: str, value: float | None) -> Reading:
    name, labels = SENSORS[sensor]
    reason = "the driver does not tell" if value is None else None
    return Reading(chip.id, name, STANDARD_READINGS[name].kind, value, reason, labels)


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
