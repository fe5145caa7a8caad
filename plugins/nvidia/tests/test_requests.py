"""Requests: whole GPUs in any set, MIG instances one at a time."""

from __future__ import annotations

import pytest

from anyaccel.resources import AnySet, LegalSets, Refusal, ResourceRequest
from anyaccel_nvidia.requests import validate_request


@pytest.fixture
def mixed(card, divided, view_of):
    """One whole card, one divided in two, one whole card."""
    return view_of([card(0), *divided(card(1), 1, 2), card(2)])


@pytest.mark.parametrize("key", ["gpu", "nvidia.com/gpu", "GPU"])
def test_any_set_of_whole_gpus(key, card, view_of):
    """Without MIG every set is legal, under each of the three names."""
    assert validate_request(view_of([card(0), card(1)]), ResourceRequest(key, 2)) == AnySet()


def test_cards_in_mig_mode_are_no_whole_gpus(mixed):
    """Beside a divided card only the whole ones are offered."""
    answer = validate_request(mixed, ResourceRequest("gpu", 1))

    assert isinstance(answer, LegalSets)
    assert [legal.device_ids for legal in answer] == [("nvidia:0000:10:00.0",), ("nvidia:0000:30:00.0",)]


def test_more_than_there_are_is_refused_with_numbers(mixed):
    """Three whole GPUs can never be had here, and the refusal counts."""
    assert validate_request(mixed, ResourceRequest("gpu", 3)) == Refusal(
        "3 whole GPUs asked for, 2 here, 1 more in MIG mode"
    )


def test_one_instance_of_a_profile(mixed):
    """A profile offers its instances one by one."""
    answer = validate_request(mixed, ResourceRequest("nvidia.com/mig-1g.10gb", 1))

    assert [legal.device_ids for legal in answer] == [
        ("nvidia:0000:20:00.0/gi1/ci0",),
        ("nvidia:0000:20:00.0/gi2/ci0",),
    ]


@pytest.mark.parametrize("key", ["mig", "nvidia.com/mig-1g.10gb", "mig-1g.10gb"])
def test_two_instances_in_one_process_are_refused(key, mixed):
    """One process can use one MIG instance."""
    assert validate_request(mixed, ResourceRequest(key, 2)) == Refusal("one process can use one MIG instance, not 2")


def test_absent_profile_names_what_is_present(mixed):
    """An unknown profile is refused with the profiles that are here."""
    answer = validate_request(mixed, ResourceRequest("nvidia.com/mig-7g.80gb", 1))

    assert answer == Refusal("no MIG instance of profile 7g.80gb is here (present: 1g.10gb)")


def test_foreign_resource_is_refused(mixed):
    """A resource of another family is not ours."""
    assert isinstance(validate_request(mixed, ResourceRequest("amd.com/gpu", 1)), Refusal)


def test_large_families_are_bounded(card, divided, view_of):
    """More than 10,000 sets are cut there and say so."""
    view = view_of([*(card(number) for number in range(16)), *divided(card(20), 1)])

    answer = validate_request(view, ResourceRequest("gpu", 8))

    assert len(answer.sets) == 10_000
    assert answer.is_bounded
