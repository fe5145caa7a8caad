"""INSP: what asking the driver adds, and what it never takes away."""

from __future__ import annotations

import pytest

from anyaccel_conformance.laws import check_inspection_keeps_devices, check_inspection_without_driver, check_memory
from anyaccel_conformance.policy import held
from anyaccel_conformance.subjects import Subject

__all__ = [
    "test_inspection_keeps_every_device",
    "test_memory_is_counted_once",
    "test_silent_driver_costs_no_row",
]


@pytest.mark.requirement("INSP-001")
def test_inspection_keeps_every_device(kit_subject: Subject) -> None:
    """Ids, parents and order are those of discovery."""
    held(check_inspection_keeps_devices(kit_subject.plugin, kit_subject.machine))


@pytest.mark.requirement("INSP-002")
def test_memory_is_counted_once(kit_subject: Subject) -> None:
    """Parts never own more than the whole."""
    held(check_memory(kit_subject.view))


@pytest.mark.requirement("INSP-003")
def test_silent_driver_costs_no_row(kit_subject: Subject) -> None:
    """With no answer, or with one answer less, every row is still there."""
    held(check_inspection_without_driver(kit_subject.plugin, kit_subject.machine))
