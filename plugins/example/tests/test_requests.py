"""Which chips may compute together."""

from __future__ import annotations

import pytest

from anyaccel.resources import AnySet, LegalSets, Refusal, ResourceRequest
from anyaccel_example.requests import legal_sets


@pytest.mark.parametrize(
    ("key", "amount", "reason"),
    [
        ("example", 3, "sets of 1, 2 or 4 chips, not 3"),
        ("example", 8, "sets of 1, 2 or 4 chips, not 8"),
        ("example-core", 17, "17 cores asked for, 16 present"),
        ("example", 0.5, "a core belongs to one process at a time, so there are no fractions"),
        ("gpu", 1, "no resource 'gpu' (known: example, example-core)"),
    ],
)
def test_refusals_give_the_reason(key, amount, reason, grid):
    """What can never be given is refused with a clause for people."""
    assert legal_sets(grid, ResourceRequest(key, amount)) == Refusal(reason)


@pytest.mark.parametrize(("key", "amount"), [("example-core", 5), ("example.org/core", 16), ("example", 0)])
def test_cores_combine_freely(key, amount, grid):
    """Any set of cores is as good as every other."""
    assert legal_sets(grid, ResourceRequest(key, amount)) == AnySet()


@pytest.mark.parametrize("key", ["example", "example.org/chip", "EXAMPLE"])
def test_every_name_of_the_resource_counts_chips(key, grid):
    """Kubernetes' and Ray's names mean the same."""
    answer = legal_sets(grid, ResourceRequest(key, 1))

    assert isinstance(answer, LegalSets)
    assert [s.device_ids for s in answer] == [(chip.id,) for chip in grid.roots]


@pytest.mark.parametrize(("count", "all_sets", "slower"), [(2, 10, 0), (4, 5, 2)])
def test_sets_are_rectangles(count, all_sets, slower, grid):
    """A 4x2 grid has ten pairs of neighbours, three squares and two lines of four."""
    answer = legal_sets(grid, ResourceRequest("example", count))

    assert isinstance(answer, LegalSets)
    assert (len(answer.sets), sum(s.is_only_slower for s in answer)) == (all_sets, slower)
    assert all(len(set(s.device_ids)) == count for s in answer)


def test_square_comes_before_the_line(grid):
    """The first set is the family's preference."""
    first = next(iter(legal_sets(grid, ResourceRequest("example", 4))))

    assert first.device_ids == tuple(
        f"example:0000:{place}" for place in ("41:00.0/0", "42:00.0/0", "41:00.0/1", "42:00.0/1")
    )


def test_chips_without_a_place_form_no_rectangle(make_machine, registry):
    """Chips that are not neighbours cannot compute together."""
    from anyaccel.discovery import discover

    text = """
    [[card]]
    plugin = "example"
    model = "ex2"
    address = "0000:41:00.0"
    grid = [[0, 0], [2, 0]]
    """
    view = discover(make_machine(text), registry).view("example")

    answer = legal_sets(view, ResourceRequest("example", 2))

    assert answer == Refusal("chips of one job form a rectangle in the grid, and no 2 chips here do")
