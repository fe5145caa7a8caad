"""VAL: which sets are legal."""

from __future__ import annotations

import pytest

from anyaccel.device import FamilyView
from anyaccel.registry import Plugin
from anyaccel_conformance.laws import check_request, check_requests_are_answered
from anyaccel_conformance.laws.requests import resource_names
from anyaccel_conformance.policy import NOT_RUN, held
from anyaccel_conformance.subjects import Subject

__all__ = ["test_every_amount_is_answered", "test_legal_sets_are_whole"]


def _asked(subject: Subject) -> tuple[Plugin, FamilyView]:
    if not subject.plugin.implements("accel_validate_request"):
        pytest.skip(f"{NOT_RUN}the plugin has no rules, any set may be asked for")
    return subject.plugin, subject.view


@pytest.mark.requirement("VAL-001")
def test_legal_sets_are_whole(kit_subject: Subject) -> None:
    """Sets have the size asked for and hold different units of the right level."""
    plugin, view = _asked(kit_subject)
    names = resource_names(plugin.declaration)
    counts = range(1, min(len(view.devices) + 2, 18))
    held([check_request(plugin, view, name, resource, count) for name, resource in names for count in counts])


@pytest.mark.requirement("VAL-002")
def test_every_amount_is_answered(kit_subject: Subject) -> None:
    """None, a part, one, all and far too many: each has an answer."""
    plugin, view = _asked(kit_subject)
    amounts = (0, 0.0001, 0.5, 1, 2, 3, len(view.roots), len(view.devices) + 1, 100_000)
    names = resource_names(plugin.declaration)
    held([check_requests_are_answered(plugin, view, name, r, amount) for name, r in names for amount in amounts])
