"""The laws as functions that a plugin's own tests can call."""

from __future__ import annotations

from dataclasses import replace

import pytest

from anyaccel.device import Place
from anyaccel.discovery import discover
from anyaccel.registry import Registry
from anyaccel.simulation import find_machine, simulate
from anyaccel.visibility import Selection
from anyaccel_conformance import laws
from anyaccel_conformance.effect import observe

CORE = "example:0000:41:00.0/0/0"


@pytest.fixture(scope="module")
def registry():
    return Registry.of("anyaccel_example.plugin")


@pytest.fixture(scope="module")
def plugin(registry):
    return registry.plugin("example")


@pytest.fixture(scope="module")
def machine(registry):
    return simulate(find_machine("example-grid", registry), registry).for_plugin("example")


@pytest.fixture(scope="module")
def view(machine, registry):
    return discover(machine, registry).view("example")


def test_law_holds_for_an_accepted_selection(plugin, view):
    """The law tells that it was held against something."""
    assert laws.check_round_trip(plugin, view, Selection((CORE,)), {"EXAMPLE_CORES_PER_UNIT": "2"})


def test_law_says_when_it_was_not_held(plugin, view):
    """A selection that is refused says nothing about the round trip."""
    assert not laws.check_round_trip(plugin, view, Selection(), {})


def test_breach_names_the_requirement(plugin, view):
    """Whoever catches it learns which rule was broken."""
    wrong = replace(view.devices[0], memory_owner="example:elsewhere")
    broken = replace(view, devices=(wrong, *view.devices[1:]))

    with pytest.raises(laws.RequirementBrokenError, match=r"\[INSP-002\] .* draws memory from") as caught:
        laws.check_memory(broken)

    assert caught.value.requirement == "INSP-002"


def with_fields(view, number, **fields):
    devices = list(view.devices)
    devices[number] = replace(devices[number], **fields)
    return replace(view, devices=tuple(devices))


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"memory_bytes": 0}, "has memory_bytes=0"),
        ({"max_per_process": 0}, "has max_per_process=0"),
        ({"model": ""}, "has an empty model"),
        ({"model": None}, "has model=None without a reason"),
        ({"numa_node": -1}, "is on NUMA node -1"),
        ({"numa_node": None}, "has numa_node=None without a reason"),
        ({"memory_bytes": None}, "has memory_bytes=None without a reason"),
    ],
)
def test_unknown_that_looks_like_a_value_is_found(fields, told, view):
    """Neither 0, nor -1, nor an empty text stands for unknown, and None says why."""
    with pytest.raises(laws.RequirementBrokenError, match=told):
        laws.check_unknown_values(with_fields(view, 0, **fields).devices, was_inspected=True)


@pytest.mark.parametrize(
    ("coordinates", "told"),
    [((0, 1), "are both at"), ((0, 1, 0), "of 2 dimensions")],
)
def test_places_that_cannot_be_are_found(coordinates, told, view):
    """Two chips on one place, or a place in another space, are no grid."""
    broken = with_fields(view, 3, places=(Place("grid", "host", coordinates),))
    other = with_fields(broken, 0, places=(Place("grid", "host", (0, 1)),))

    with pytest.raises(laws.RequirementBrokenError, match=told):
        laws.check_places(other)


def test_child_above_its_parent_is_found(plugin, view):
    """A core cannot hold a chip."""
    chip, core = view.devices[:2]
    upside_down = (replace(core, parent=None), replace(chip, parent=core.id))

    with pytest.raises(laws.RequirementBrokenError, match=r"\[DISC-003\] .* is a device below a core"):
        laws.check_ids(plugin, upside_down)


def test_runtime_is_asked_in_a_process_with_the_environment(plugin, machine, view, monkeypatch):
    """The child sees the environment given, and no mask of this process."""
    monkeypatch.setenv("EXAMPLE_VISIBLE_UNITS", "5")

    seen = observe(plugin, machine, {"EXAMPLE_CORES_PER_UNIT": "2"})

    assert seen == tuple(view.device(i).uuid for i in laws_order(plugin, view))


def laws_order(plugin, view):
    """Whole chips in the runtime's order, as the resolver has it."""
    return plugin.call("accel_resolve_visibility", view=view, environ={"EXAMPLE_CORES_PER_UNIT": "2"}).device_ids
