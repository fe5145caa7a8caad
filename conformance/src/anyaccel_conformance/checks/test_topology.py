"""TOPO: links and places."""

from __future__ import annotations

import pytest

from anyaccel_conformance.laws import check_link_ends, check_link_values, check_places, check_unasked_links
from anyaccel_conformance.policy import held
from anyaccel_conformance.subjects import Subject

__all__ = ["test_links_are_whole", "test_links_join_what_is_there", "test_no_links_has_a_reason", "test_places_agree"]


@pytest.mark.requirement("TOPO-001")
def test_links_join_what_is_there(kit_subject: Subject) -> None:
    """Both ends of a link exist and differ."""
    held(check_link_ends(kit_subject.plugin, kit_subject.machine, kit_subject.view))


@pytest.mark.requirement("TOPO-002")
def test_links_are_whole(kit_subject: Subject) -> None:
    """A link comes once, and its numbers are positive or unknown with a reason."""
    held(check_link_values(kit_subject.plugin, kit_subject.machine, kit_subject.view))


@pytest.mark.requirement("TOPO-002")
def test_places_agree(kit_subject: Subject) -> None:
    """Places of one fabric speak of one grid."""
    held(check_places(kit_subject.view))


@pytest.mark.requirement("TOPO-003")
def test_no_links_has_a_reason(kit_subject: Subject) -> None:
    """When nobody answers, an empty report says so."""
    held(check_unasked_links(kit_subject.plugin, kit_subject.machine, kit_subject.view))
