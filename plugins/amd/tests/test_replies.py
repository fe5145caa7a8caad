from __future__ import annotations

import copy

import pytest

from anyaccel.discovery import discover
from anyaccel.frozen import FrozenMap
from anyaccel.inventory import OutcomeStatus
from anyaccel.machine import StoredAnswers
from anyaccel.registry import Registry
from anyaccel.simulation import find_machine, simulate

NASTY = (None, True, -1, 1 << 70, 0.5, "[N/A]", "text", [], [None], {}, {"a": None})
MACHINES = ("amd-mi300x8-cpx-63", "amd-mi210x4")


@pytest.fixture(scope="module")
def registry():
    return Registry.of("anyaccel_amd.plugin")


def places(value, path=()):
    """Give the path of every value of a document, at most two rows of each list."""
    yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, (*path, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value[:2]):
            yield from places(inner, (*path, number))


def with_value(document, path, value):
    if not path:
        return value
    changed = copy.deepcopy(document)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return changed


@pytest.mark.parametrize("name", MACHINES)
def test_no_answer_can_raise_or_put_text_where_a_number_belongs(name, registry):
    """Whatever stands in one place of the answer, the rows of the files stay and numbers are numbers or unknown."""
    machine = simulate(find_machine(name, registry), registry)
    document = machine.answers["amd"].documents["amdsmi"]
    before = [(d.id, d.parent) for d in discover(machine, registry).devices]
    for number, path in enumerate(places(document)):
        answer = with_value(document, path, NASTY[number % len(NASTY)])
        asked = machine.with_answers({"amd": StoredAnswers(FrozenMap({"amdsmi": answer}))})
        inventory = discover(asked, registry)
        (outcome,) = inventory.outcomes

        assert outcome.status is OutcomeStatus.FOUND, (path, outcome.reason)
        assert [(d.id, d.parent) for d in inventory.devices] == before
        for device in inventory.devices:
            for key in ("hip", "hsa", "index", "kfd", "render"):
                assert not isinstance(device.numbers.get(key), str), (path, key)
