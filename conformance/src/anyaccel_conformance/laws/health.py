"""Laws of readings, findings and policies."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from anyaccel.device import FamilyView
from anyaccel.errors import AccelError, PluginError
from anyaccel.frozen import FrozenMap
from anyaccel.machine import Machine
from anyaccel.metrics import STANDARD_READINGS, Finding, FindingStatus, Reading, ReadingKind
from anyaccel.registry import Plugin
from anyaccel_conformance.laws.breach import need
from anyaccel_conformance.laws.devices import without_driver

__all__ = ["check_findings", "check_policy", "check_readings"]


def check_readings(plugin: Plugin, machine: Machine, view: FamilyView) -> bool:
    """MET-001: known device, name with unit, once, a finite value or None with a reason."""
    try:
        readings: tuple[Reading, ...] = plugin.call("accel_read_metrics", machine=machine, devices=view.devices)
    except PluginError:
        raise
    except AccelError:
        return False
    known = {device.id for device in view.devices}
    seen: set[tuple[str, str, FrozenMap[str]]] = set()
    for reading in readings:
        what = f"{reading.name} of {reading.device_id}"
        place = (reading.device_id, reading.name, reading.labels)
        need(reading.device_id in known, "MET-001", f"{what} belongs to no device")
        need(place not in seen, "MET-001", f"{what} comes twice")
        seen.add(place)
        _check_value(reading, what)
        _check_name(reading, what)
    return bool(readings)


def _check_value(reading: Reading, what: str) -> None:
    need((reading.value is None) == bool(reading.reason), "MET-001", f"{what} is {reading.value}, {reading.reason=}")
    need(reading.value is None or math.isfinite(reading.value), "MET-001", f"{what} is {reading.value}")
    is_growing = reading.kind is ReadingKind.COUNTER
    need(not is_growing or (reading.value or 0) >= 0, "MET-001", f"the counter {what} is {reading.value}")
    is_share = reading.name.endswith("_ratio") and reading.value is not None
    need(not is_share or 0 <= (reading.value or 0) <= 1, "MET-001", f"the share {what} is {reading.value}")


def _check_name(reading: Reading, what: str) -> None:
    standard = STANDARD_READINGS.get(reading.name)
    if standard is None:
        is_named = re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)+", reading.name)
        need(is_named, "MET-001", f"{what} is not named with its unit")
        return
    need(reading.kind is standard.kind, "MET-001", f"{what} is a {reading.kind.value}, not a {standard.kind.value}")
    labels = {standard.label} - {None}
    need(
        set(reading.labels) == labels, "MET-001", f"{what} has labels {sorted(reading.labels)}, not {labels or 'none'}"
    )
    words = set(reading.labels.values())
    need(not standard.words or words <= set(standard.words), "MET-001", f"{what} has {words}, not {standard.words}")


def check_findings(plugin: Plugin, machine: Machine, view: FamilyView) -> bool:
    """DIA-001: ids of this family, the same with and without the driver, said in words, with a hint where one is due."""
    findings = _findings(plugin, machine, view)
    silent = _findings(plugin, without_driver(machine), view)
    known = {device.id for device in view.devices}
    for finding in (*findings, *silent):
        what = f"finding {finding.check!r}"
        need(finding.check.startswith(f"{plugin.key}."), "DIA-001", f"{what} does not begin with {plugin.key!r}")
        need(finding.seen.strip(), "DIA-001", f"{what} does not say what was seen")
        needs_hint = finding.status in (FindingStatus.WARN, FindingStatus.FAIL)
        need(finding.hint or not needs_hint, "DIA-001", f"{what} is {finding.status.value} without a hint")
        need(finding.device_id in {None, *known}, "DIA-001", f"{what} is about {finding.device_id}, which is not there")
    if findings and silent:
        changed = {f.check for f in findings} ^ {f.check for f in silent}
        need(not changed, "DIA-001", f"checks {sorted(changed)} depend on whether the driver answers")
    return bool(findings or silent)


def _findings(plugin: Plugin, machine: Machine, view: FamilyView) -> tuple[Finding, ...]:
    try:
        findings: tuple[Finding, ...] = plugin.call("accel_diagnose", machine=machine, devices=view.devices)
    except PluginError:
        raise
    except AccelError:
        return ()
    return findings


def check_policy(plugin: Plugin, view: FamilyView) -> bool:
    """FIL-001: a policy names known devices with a reason, and the same each time."""
    reasons: Mapping[str, str] = plugin.call("accel_filter_devices", devices=view.devices)
    known = {device.id for device in view.devices}
    need(set(reasons) <= known, "FIL-001", f"the policy hides {sorted(set(reasons) - known)}, which are not there")
    unsaid = [device_id for device_id, reason in reasons.items() if not reason.strip()]
    need(not unsaid, "FIL-001", f"the policy hides {unsaid} without a reason")
    again = plugin.call("accel_filter_devices", devices=view.devices)
    need(dict(again) == dict(reasons), "FIL-001", "the policy hides something else at the second call")
    need(not plugin.call("accel_filter_devices", devices=()), "FIL-001", "the policy hides devices of an empty machine")
    return True
