"""Which cards may compute together."""

from __future__ import annotations

import pytest

from anyaccel.resources import AnySet, Refusal, ResourceRequest
from anyaccel_gaudi.requests import validate_request


def sets(view, count, key="hpu"):
    """Give the allowed sets by module ids."""
    answer = validate_request(view, ResourceRequest(key, count))
    if isinstance(answer, Refusal):
        return answer.reason
    return [tuple(view.device(i).numbers["module"] for i in legal.device_ids) for legal in answer]


def test_groups_of_modules(box):
    """Pairs, halves, all: of module ids, not of card numbers."""
    assert sets(box, 2) == [(0, 1), (2, 3), (4, 5), (6, 7)]
    assert sets(box, 4) == [(0, 1, 2, 3), (4, 5, 6, 7)]
    assert sets(box, 8) == [tuple(range(8))]


@pytest.mark.parametrize("count", [3, 5, 6, 7])
def test_other_sizes_are_refused(count, box):
    """With the groups there are."""
    assert sets(box, count).endswith(f"or all eight; not {count}")


def test_part_of_a_box(described):
    """Where a module is missing its groups are gone."""
    assert sets(described((1, 2, 3, 5)), 2) == [(2, 3)]
    assert sets(described((1, 2, 5)), 2).endswith("there are no 2 connected devices here")


def test_islands(view_of):
    """Any cards of one board, none across two, for each of twenty requests alike."""
    view = view_of("gaudi3-pcie-islands")

    assert all(sets(view, 4) == [(0, 1, 2, 3), (4, 5, 6, 7)] for _ in range(20))
    assert len(sets(view, 3)) == 8
    assert sets(view, 6) == "cards of one job are joined by one board: there are no 6 connected devices here"


def test_cards_without_wiring_are_taken_alone(described):
    """Old inference cards have no links."""
    assert "no 2 connected devices" in sets(described((0, 1), "goya"), 2)


@pytest.mark.parametrize("count", [0, 1])
def test_one_is_as_good_as_another(count, box):
    """A single card is not bound to a group."""
    assert validate_request(box, ResourceRequest("habana.ai/gaudi", count)) == AnySet()


@pytest.mark.parametrize(
    ("key", "amount", "words"),
    [("HPU", 0.5, "no fractions"), ("hpu", 9, "9 cards asked for, 8 present"), ("gpu", 1, "gaudi knows no resource")],
)
def test_refusals_say_why(key, amount, words, box):
    """In a clause."""
    assert words in validate_request(box, ResourceRequest(key, amount)).reason
