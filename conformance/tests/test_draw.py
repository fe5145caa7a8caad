"""Draws are the same in every run, and what is drawn is worth holding a law against."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

from anyaccel.discovery import discover
from anyaccel.registry import Registry
from anyaccel.simulation import find_machine, simulate
from anyaccel_conformance.draw import environs, for_all, plain_environs, selections


@pytest.fixture(scope="module")
def example():
    """The example plugin and its view of example-grid."""
    registry = Registry.of("anyaccel_example.plugin")
    inventory = discover(simulate(find_machine("example-grid", registry), registry), registry)
    return registry.plugin("example"), inventory.view("example")


def drawn(strategy, count=100):
    values = []
    for_all(count, strategy, values.append)
    return values


def test_two_runs_draw_the_same(example):
    """A result that cannot be repeated is worth nothing."""
    plugin, view = example
    strategy = environs(view, plugin.declaration, {})

    assert drawn(strategy) == drawn(strategy)


def test_environments_keep_their_base(example):
    """What the machine's environment holds stays unless a mask replaces it."""
    plugin, view = example

    assert all(e["PATH"] == "/bin" for e in drawn(environs(view, plugin.declaration, {"PATH": "/bin"})))


def test_environments_hold_every_variable_of_the_family(example):
    """Masks, view variables and grants are all drawn, grants only when asked for."""
    plugin, view = example
    names = {variable.name for variable in plugin.declaration.variables}

    with_grants = {name for e in drawn(environs(view, plugin.declaration, {})) for name in e}
    without = {name for e in drawn(environs(view, plugin.declaration, {}, with_grants=False)) for name in e}

    assert (with_grants, without) == (names, names - {"EXAMPLE_CONTAINER_CHIPS"})


def test_environments_can_be_given_to_a_process(example):
    """No value holds what an environment cannot."""
    plugin, view = example

    values = [v for e in drawn(environs(view, plugin.declaration, {})) for v in e.values()]
    assert all("\0" not in value and value.encode() for value in values if value)


def test_masks_hide_some_and_show_some(example):
    """Enough of what is drawn means something: masks with effect are not left to luck."""
    plugin, view = example

    def shown(environ):
        return len(plugin.call("accel_resolve_visibility", view=view, environ=environ).units)

    counts = {shown(environ) for environ in drawn(environs(view, plugin.declaration, {}))}
    assert {1, 2, 8, 16} <= counts


def test_plain_environments_set_one_variable_each(example):
    """What chance may miss is tried one by one."""
    plugin, view = example

    plain = list(plain_environs(view, plugin.declaration, {}))

    assert {len(environ) for environ in plain} == {1}
    assert {"EXAMPLE_CORES_PER_UNIT": "2"} in plain


def test_selections_name_no_device_twice():
    """Order is free, repetition is not drawn."""
    assert all(len(set(ids)) == len(ids) for ids in drawn(selections(("a", "b", "c"))))


def test_no_devices_draw_the_empty_selection():
    """A machine without devices is no reason to crash."""
    assert set(drawn(selections(()), 5)) == {()}


def test_count_leaves_out_what_had_nothing_to_say():
    """A law that was never held against anything is not passed."""
    assert for_all(20, st.just(0), lambda _: False) == 0
