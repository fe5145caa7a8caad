"""MET, DIA and FIL: readings, findings and policies."""

from __future__ import annotations

import pytest

from anyaccel_conformance.laws import check_findings, check_policy, check_readings
from anyaccel_conformance.policy import NOT_RUN, held
from anyaccel_conformance.subjects import Subject

__all__ = ["test_findings_are_whole", "test_policy_names_devices", "test_readings_are_whole"]


@pytest.mark.requirement("MET-001")
def test_readings_are_whole(kit_subject: Subject) -> None:
    """A reading has a device, a unit, and a value or a reason."""
    held(check_readings(kit_subject.plugin, kit_subject.machine, kit_subject.view))


@pytest.mark.requirement("DIA-001")
def test_findings_are_whole(kit_subject: Subject) -> None:
    """A finding has a stable id, what was seen, and a hint where one is due."""
    held(check_findings(kit_subject.plugin, kit_subject.machine, kit_subject.view))


@pytest.mark.requirement("FIL-001")
def test_policy_names_devices(kit_subject: Subject) -> None:
    """A policy hides known devices for a reason."""
    if not kit_subject.plugin.implements("accel_filter_devices"):
        pytest.skip(f"{NOT_RUN}the plugin has no policy")
    held(check_policy(kit_subject.plugin, kit_subject.view))
