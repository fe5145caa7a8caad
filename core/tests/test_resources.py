"""Helpers that families answer requests with."""

from __future__ import annotations

import pytest

from anyaccel.capabilities import ResourceName
from anyaccel.device import Level
from anyaccel.resources import MOST_SETS, LegalSet, all_sets, bounded_sets, find_resource, unknown_resource

RESOURCES = (ResourceName("chip", Level.DEVICE, "toy.org/chip", "TOY"), ResourceName("core", Level.CORE))


@pytest.mark.parametrize(
    ("key", "kind"), [("chip", "chip"), ("toy.org/chip", "chip"), ("TOY", "chip"), ("core", "core")]
)
def test_every_name_of_a_resource_finds_it(key, kind):
    """Our own, the Kubernetes and the Ray name mean the same."""
    found = find_resource(RESOURCES, key)

    assert found is not None
    assert found.kind == kind


def test_an_unknown_key_names_the_known():
    """Letter case counts, and the refusal lists every name."""
    assert find_resource(RESOURCES, "toy") is None
    assert unknown_resource("toy", "toy", RESOURCES).reason == (
        "toy knows no resource 'toy' (known: TOY, chip, core, toy.org/chip)"
    )


def test_every_set_of_some_devices_is_listed_in_order():
    """Sets come in the order of the devices given, without repeats."""
    sets = all_sets(("c", "a", "b"), 2, "others are divided")

    assert [s.device_ids for s in sets] == [("c", "a"), ("c", "b"), ("a", "b")]
    assert (sets.is_bounded, sets.reason) == (False, "others are divided")


def test_sets_are_read_no_further_than_the_bound():
    """An endless source of sets is cut, and the answer says that there are more."""

    def endless():
        number = 0
        while True:
            assert number <= MOST_SETS
            yield LegalSet((str(number),))
            number += 1

    sets = bounded_sets(endless())

    assert (len(sets.sets), sets.is_bounded) == (MOST_SETS, True)
