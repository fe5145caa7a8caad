"""Which devices and cores may compute together."""

from __future__ import annotations

from itertools import combinations

import pytest

from anyaccel.resources import AnySet, Refusal, ResourceRequest
from anyaccel_neuron.requests import validate_request


def sets(view, key, count):
    """Give the allowed sets by the devices' numbers."""
    answer = validate_request(view, ResourceRequest(key, count))
    if isinstance(answer, Refusal):
        return answer.reason
    space = "index" if key != "neuroncore" else "core"
    return [tuple(view.device(i).numbers[space] for i in legal.device_ids) for legal in answer]


def test_torus_takes_rows(server):
    """Four devices are a row, eight two rows."""
    assert sets(server, "neuron", 4) == [(0, 1, 2, 3), (4, 5, 6, 7), (8, 9, 10, 11), (12, 13, 14, 15)]
    assert sets(server, "neuron", 8) == [tuple(range(8)), tuple(range(8, 16))]
    assert sets(server, "neuron", 16) == [tuple(range(16))]


@pytest.mark.parametrize("count", [2, 3, 5, 12])
def test_torus_refuses_other_sizes(count, server):
    """With the sizes it takes."""
    assert f"1, 4, 8 or 16 devices: rows of four, or pairs of rows, not {count}" in sets(server, "neuron", count)


def test_torus_with_a_hole(described):
    """Seven devices hold one whole row and no pair of rows."""
    view = described(7, "trn1", 'links = "torus"')

    assert sets(view, "neuron", 4) == [(0, 1, 2, 3)]
    assert sets(view, "neuron", 8) == "8 devices asked for, 7 present"


def test_torus_without_a_whole_row(view_of):
    """Four devices that are no row are no set."""
    text = '[[card]]\nplugin = "neuron"\nmodel = "trn1"\naddress = "0000:1{n}:00.0"\nindex = {n}\n'
    view = view_of("".join(text.format(n=n) for n in (1, 2, 3, 4)))

    assert sets(view, "neuron", 4).endswith("pairs of rows, and no 4 here are")


@pytest.mark.parametrize("count", range(2, 13))
def test_ring_takes_neighbours(count, described):
    """Every set of neighbours, by brute force over all sets of twelve, the wrap included."""
    view = described(12, "inf2", 'links = "ring"')

    def is_arc(chosen):
        return any(set(chosen) == {(start + step) % 12 for step in range(count)} for start in range(12))

    expected = {frozenset(chosen) for chosen in combinations(range(12), count) if is_arc(chosen)}
    found = [frozenset(chosen) for chosen in sets(view, "neuron", count)]
    assert len(found) == len(set(found))
    assert set(found) == expected


def test_chain_has_no_wrap(described):
    """Inferentia's four devices in a chain have three pairs."""
    assert sets(described(4, "inf1", 'links = "chain"'), "neuron", 2) == [(0, 1), (1, 2), (2, 3)]


def test_broken_ring_is_a_chain(described):
    """Without any link neighbours are told by number."""
    view = described(4, "inf2", 'links = "none"')

    assert sets(view, "neuron", 3) == [(0, 1, 2), (1, 2, 3)]
    assert sets(view, "neuron", 4) == [(0, 1, 2, 3)]


def test_no_neighbours_at_all(view_of):
    """Two devices far from each other are no set."""
    text = '[[card]]\nplugin = "neuron"\nmodel = "inf2"\naddress = "0000:1{n}:00.0"\nindex = {n}\n'
    view = view_of(text.format(n=0) + text.format(n=5))

    assert sets(view, "neuron", 2) == "devices of one job are neighbours on the ring, and no 2 here are"


def test_cores_follow_one_another(described):
    """Runs inside one device come before those across two."""
    assert sets(described(2), "neuroncore", 2) == [(0, 1), (2, 3), (1, 2)]


def test_cores_with_a_gap(view_of):
    """No run goes over a device that is not there."""
    text = '[[card]]\nplugin = "neuron"\nmodel = "trn1"\naddress = "0000:1{n}:00.0"\nindex = {n}\n'
    view = view_of(text.format(n=0) + text.format(n=2))

    assert sets(view, "neuroncore", 3) == "cores of one process have numbers that follow one another, and no 3 here do"


@pytest.mark.parametrize(
    ("key", "amount", "words"),
    [
        ("neuron_cores", 0.5, "cores of this family cannot be shared"),
        ("aws.amazon.com/neuron", 17, "17 devices asked for, 16 present"),
        ("neuroncore", 65, "65 cores asked for, 64 present"),
        ("gpu", 1, "neuron knows no resource 'gpu'"),
    ],
)
def test_refusals_say_why(key, amount, words, server):
    """A whole number of cores is one more than a fraction of them."""
    assert words in validate_request(server, ResourceRequest(key, amount)).reason


@pytest.mark.parametrize("count", [0, 1])
def test_one_or_none_is_free(count, server):
    """One device of sixteen is as good as another."""
    assert validate_request(server, ResourceRequest("neuron", count)) == AnySet()


def test_devices_and_cores_draw_on_the_same_leaves(server):
    """A device and its cores cannot both be given away: they stand for the same leaves."""
    device = server.leaves_of(["neuron:3"])
    cores = server.leaves_of(core.id for core in server.children("neuron:3"))

    assert device == cores
    assert len(device) == 8
