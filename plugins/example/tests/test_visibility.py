"""Masks: cases of the manual, held against the resolver and the runtime, then the laws over drawn environments."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyaccel.errors import NotGrantedError, SelectionNotExpressibleError
from anyaccel.topology import Boundary
from anyaccel.visibility import Gang, Order, Selection, TokenEffect, apply_change
from anyaccel_example.visibility import change_for, resolve

CASES = json.loads((Path(__file__).parent / "data" / "masks.json").read_text(encoding="utf-8"))
CONTAINER = Boundary("container", is_container=True, is_vm=False, reason="a test")


def full_id(short):
    bus, _, path = short.partition("/")
    return f"example:0000:{bus}:00.0/{path}"


@pytest.mark.parametrize("case", CASES, ids=[f"{n}-{c['rule']}" for n, c in enumerate(CASES)])
def test_resolver_follows_the_manual(case, look):
    """What the resolver leaves is what the rule cited says."""
    view = look(case["machine"]).view("example")

    assert resolve(view, case["environ"]).device_ids == tuple(full_id(short) for short in case["shows"])


@pytest.mark.parametrize("case", CASES, ids=[f"{n}-{c['rule']}" for n, c in enumerate(CASES)])
def test_runtime_follows_the_manual(case, plugin, look, make_machine):
    """The runtime, which knows nothing of the resolver, shows the same units."""
    view = look(case["machine"]).view("example")
    machine = make_machine(case["machine"]).with_environ(case["environ"]).for_plugin("example")

    seen = plugin.call("accel_observe_runtime", machine=machine)

    assert seen == tuple(view.device(full_id(short)).uuid for short in case["shows"])


# What a container was given is seen by its processes only as device files, so R7 is held against the resolver alone.
@pytest.mark.parametrize(
    ("value", "slots"),
    [
        ("2", {2}),
        ("2-4", {2, 3, 4}),
        ("2-4,9", {2, 3, 4, 9}),
        (" 2 , 10", {2, 10}),
        ("0-1", set()),
        ("4-2", set()),
        ("all", {2, 3, 4, 5, 6, 7, 9, 10}),
        ("", set()),
        ("x", set()),
        ("8", set()),
    ],
)
def test_grant_of_the_container_is_the_outer_layer(value, slots, grid):
    """In a container, only chips in the slots it was given are there."""
    view = replace(grid, boundary=CONTAINER)

    seen = resolve(view, {"EXAMPLE_CONTAINER_CHIPS": value, "EXAMPLE_CORES_PER_UNIT": "2"})

    assert {view.device(i).numbers["slot"] for i in seen.device_ids} == slots


def test_hidden_devices_name_what_hid_them(grid):
    """The grant hides what is outside it, the mask what is inside and not listed; chips follow their cores."""
    view = replace(grid, boundary=CONTAINER)

    hidden = resolve(view, {"EXAMPLE_CONTAINER_CHIPS": "2-3", "EXAMPLE_VISIBLE_UNITS": "0"}).hidden_by

    assert hidden["example:0000:42:00.0/0"] == "EXAMPLE_CONTAINER_CHIPS"
    assert hidden["example:0000:41:00.0/0/1"] == "EXAMPLE_VISIBLE_UNITS"
    assert hidden["example:0000:41:00.0/1"] == "EXAMPLE_VISIBLE_UNITS"
    assert "example:0000:41:00.0/0" not in hidden


@pytest.mark.parametrize(
    ("environ", "warning"),
    [
        ({"EXAMPLE_VISIBLE_UNITS": ""}, "nothing in it counts, so every unit is shown"),
        ({"EXAMPLE_VISIBLE_UNITS": "none"}, "nothing in it counts, so every unit is shown"),
        ({"EXAMPLE_CORES_PER_UNIT": "4"}, "a unit is a core"),
    ],
)
def test_values_that_do_not_do_what_they_seem_to_are_warned_about(environ, warning, grid):
    """A list that hides nothing and a count that does not count are said unasked."""
    assert [w.partition(": ")[2] for w in resolve(grid, environ).warnings] == [warning]


def test_container_variable_on_a_host_has_no_effect(grid):
    """The report says that nobody reads it here."""
    (report,) = resolve(grid, {"EXAMPLE_CONTAINER_CHIPS": "2"}).variables

    assert (report.has_effect, report.is_warning) == (False, False)


def test_number_that_may_belong_to_an_unknown_unit_is_unknown(look):
    """On a machine where a chip's number could not be read, a strange number is never guessed."""
    view = look("example-faults").view("example")

    seen = resolve(view, {"EXAMPLE_VISIBLE_UNITS": "30,1"})

    assert [(t.text, t.effect) for t in seen.tokens] == [("30", TokenEffect.UNKNOWN), ("1", TokenEffect.COUNTS)]
    assert [(u.ordinal, u.device_id) for u in seen.units] == [(None, "example:0000:41:00.0/0/1"), (None, None)]
    assert not seen.is_complete


def test_unit_of_unknown_number_is_hidden_by_a_certain_list(look):
    """When every entry is known, whatever else the number may be, it is not listed."""
    view = look("example-faults").view("example")

    hidden = [resolve(view, {"EXAMPLE_VISIBLE_UNITS": mask}).hidden_by for mask in ("1", "30,1")]

    assert ["example:10000:01:00.0/1" in names for names in hidden] == [True, False]


def test_unit_without_a_number_cannot_be_selected(look):
    """Its number is unknown, so no list can name it."""
    view = look("example-faults").view("example")

    with pytest.raises(SelectionNotExpressibleError, match=r"numbers of example:10000:01:00\.0/1/0 are unknown"):
        change_for(view, Selection(("example:10000:01:00.0/1/0",)), {}, None)


def test_selection_of_chips_counts_chips(grid):
    """Whole chips are written as whole chips, so that the process counts what was selected."""
    change = change_for(grid, Selection(("example:0000:82:00.0/0", "example:0000:41:00.0/1")), {}, None)

    assert change.set == (
        ("EXAMPLE_CORES_PER_UNIT", "2"),
        ("EXAMPLE_GANG", "0/1"),
        ("EXAMPLE_VISIBLE_UNITS", "1,9"),
    )
    assert (change.order, change.device_ids) == (
        Order.CANONICAL,
        ("example:0000:41:00.0/1", "example:0000:82:00.0/0"),
    )


def test_no_devices_cannot_be_expressed(grid):
    """An empty list would show everything, so it is refused and never written."""
    with pytest.raises(SelectionNotExpressibleError, match="no value of EXAMPLE_VISIBLE_UNITS hides every unit"):
        change_for(grid, Selection(), {}, None)


def test_chip_and_core_cannot_be_mixed(grid):
    """One process counts either cores or chips."""
    mixed = Selection(("example:0000:41:00.0/0", "example:0000:42:00.0/1/0"))

    with pytest.raises(SelectionNotExpressibleError, match="either cores or whole chips, not both"):
        change_for(grid, mixed, {}, None)


def test_mask_is_not_widened(grid):
    """What the inherited list hides is not granted."""
    with pytest.raises(NotGrantedError, match=r"example:0000:42:00\.0/0"):
        change_for(grid, Selection(("example:0000:42:00.0/0",)), {"EXAMPLE_VISIBLE_UNITS": "4"}, None)


def test_place_among_peers_is_written(grid):
    """A gang tells every member its rank, and one alone is pinned to be alone."""
    members = (Selection(("example:0000:41:00.0/0",)), Selection(("example:0000:41:00.0/1",)))

    change = change_for(grid, members[1], {"EXAMPLE_GANG": "7/9"}, Gang(1, members))

    assert dict(change.set)["EXAMPLE_GANG"] == "1/2"


entries = st.one_of(
    st.integers(0, 21).map(str),
    st.sampled_from(["", " ", "-1", "x", "all", "0-3", " 3 ", "007", "9" * 5000, "²", "1.0"]),
    st.text(max_size=3).filter(lambda text: "\0" not in text),
)
environs = st.fixed_dictionaries(
    {},
    optional={
        "EXAMPLE_VISIBLE_UNITS": st.lists(entries, max_size=6).map(",".join),
        "EXAMPLE_CORES_PER_UNIT": st.sampled_from(["1", "2", "", "3"]),
        "EXAMPLE_CONTAINER_CHIPS": st.lists(entries, max_size=4).map(",".join),
        "EXAMPLE_GANG": st.sampled_from(["0/1", "x"]),
    },
)


@given(environ=environs, is_container=st.booleans())
def test_every_list_resolves(environ, is_container, grid):
    """Whatever is written, units are in ascending order of their numbers and belong to the machine."""
    view = replace(grid, boundary=CONTAINER) if is_container else grid

    seen = resolve(view, environ)

    numbers = [view.device(i).numbers["unit"] for i in seen.device_ids]
    assert numbers == sorted(set(numbers))
    assert set(seen.hidden_by) == {d.id for d in view.devices if seen.leaves.isdisjoint(view.leaves(d.id))}


@given(environ=environs, is_container=st.booleans(), data=st.data())
def test_selection_survives_whatever_was_inherited(environ, is_container, data, grid):
    """The selection written is the selection read, from any starting environment that grants it."""
    view = replace(grid, boundary=CONTAINER) if is_container else grid
    level = data.draw(st.sampled_from(["core", "chip"]))
    granted = resolve(view, environ).leaves
    pool = [d.id for d in view.devices if d.label == level and set(view.leaves(d.id)) <= granted]
    chosen = data.draw(st.lists(st.sampled_from(pool), min_size=1, unique=True)) if pool else []
    if not chosen:
        return
    change = change_for(view, Selection(tuple(chosen)), environ, None)

    assert resolve(view, apply_change(environ, change)).device_ids == change.device_ids
    assert set(change.device_ids) == set(chosen)
