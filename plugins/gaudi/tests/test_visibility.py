"""Habana's variables, read and written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyaccel.errors import NotGrantedError, SelectionNotExpressibleError
from anyaccel.visibility import Gang, Selection, TokenEffect, apply_change
from anyaccel_gaudi.visibility import change_for, resolve

MODULES, ONE = "HABANA_VISIBLE_MODULES", "HLS_MODULE_ID"


def shown(view, **environ):
    """Give the module ids in the order of the process."""
    seen = resolve(view, environ)
    return [None if i is None else view.device(i).numbers["module"] for i in seen.device_ids]


@pytest.mark.parametrize(
    ("value", "modules"),
    [("0", [0]), ("5,2", [5, 2]), (" 3 , 1", [3, 1]), ("", []), ("4,4", [4])],
)
def test_modules_in_the_order_listed(value, modules, box):
    """hpu:0 is the first of the list; an empty list shows none."""
    assert shown(box, **{MODULES: value}) == modules


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("NoDevFiles", "is no module id"),
        ("0,", "is no module id"),
        ("0-3", "is no module id"),
        ("8", "no card has this module id (have 0, 1, 2, 3, 4, 5, 6, 7)"),
    ],
)
def test_value_with_which_a_process_fails(value, reason, box):
    """Nothing is visible, and the report says why."""
    seen = resolve(box, {MODULES: value})

    assert seen.units == ()
    assert reason in seen.warnings[0]
    assert "when it opens a card" in seen.warnings[0]


def test_without_a_list_any_card_is_first(box):
    """A process takes the first card that is free, so no card has a number; with one card there is no doubt."""
    assert {unit.ordinal for unit in resolve(box, {}).units} == {None}


def test_single_card_is_certain(described):
    """One card is number 0."""
    assert [unit.ordinal for unit in resolve(described((3,)), {}).units] == [0]


def test_one_module_of_a_launcher(box):
    """It chooses among what the list left."""
    assert shown(box, **{ONE: "6"}) == [6]
    assert shown(box, **{MODULES: "5,6", ONE: "6"}) == [6]
    assert shown(box, **{MODULES: "5,6", ONE: "7"}) == []
    assert len(shown(box, **{ONE: ""})) == 8


def test_card_numbers_hide_nothing_from_a_process(box):
    """The container runtime's variable is explained, and what to use instead."""
    seen = resolve(box, {"HABANA_VISIBLE_DEVICES": "4,6", "HL_VISIBLE_DEVICES": "0"})

    assert len(seen.units) == 8
    assert [report.has_effect for report in seen.variables] == [False, False]
    assert seen.variables[0].hint == f"use {MODULES} with module ids"


def test_cards_four_and_six_are_modules_two_and_three(box):
    """Card numbers are not what a process reads."""
    numbers = {d.numbers["index"]: d.id for d in box.roots}

    change = change_for(box, Selection((numbers[4], numbers[6])), {"HABANA_VISIBLE_DEVICES": "all"}, None)

    assert change.set == ((MODULES, "2,3"),)
    assert change.unset == (ONE,)
    assert "one process a card" in change.notes[0]


def test_member_of_a_gang_is_told_its_module(box):
    """As a launcher would; several cards have no single module."""
    ids = [d.id for d in box.roots]
    single = (Selection((ids[0],)), Selection((ids[1],)))
    double = (Selection((ids[0], ids[1])), Selection((ids[2], ids[3])))

    assert dict(change_for(box, single[1], {}, Gang(1, single)).set) == {MODULES: "4", ONE: "4"}
    assert ONE in change_for(box, double[0], {}, Gang(0, double)).unset


def test_nothing_hides_all(box):
    """An empty list, and no module of a launcher."""
    change = change_for(box, Selection(), {ONE: "3"}, None)

    assert resolve(box, apply_change({ONE: "3"}, change)).units == ()


def test_card_without_a_module_cannot_be_named(view_of):
    """A card without the driver tells none."""
    view = view_of("gaudi-faults")

    with pytest.raises(SelectionNotExpressibleError, match="shows no entry for the card"):
        change_for(view, Selection(("gaudi:0000:35:00.0",)), {}, None)


def test_module_of_an_unknown_card_is_unknown(described):
    """An entry may mean the card whose module id nobody tells."""
    fault = '[[fault]]\nkind = "file-vanishes"\npath = "/sys/devices/pci0000:10/0000:10:00.0/module_id"\n'
    gone = '[[fault]]\nkind = "not-listed"\nplugin = "gaudi"\ncard = "0000:10:00.0"\n'
    view = described((0, 1), more=fault + gone)

    seen = resolve(view, {MODULES: "7,1"})

    assert view.roots[0].numbers["module"] is None
    assert [token.effect for token in seen.tokens] == [TokenEffect.UNKNOWN, TokenEffect.COUNTS]
    assert not seen.is_complete
    assert "may be a card whose module id is unknown" in seen.warnings[0]


def test_mask_is_not_widened(box):
    """What the inherited list hides is not granted."""
    with pytest.raises(NotGrantedError):
        change_for(box, Selection((box.roots[1].id,)), {MODULES: "0,1"}, None)


entries = st.one_of(st.integers(0, 9).map(str), st.text(max_size=2).filter(lambda text: "\0" not in text))


@given(value=st.lists(entries, max_size=4).map(",".join), one=st.none() | entries)
def test_every_value_resolves(value, one, box):
    """Whatever is written, a card is visible at most once."""
    environ = {MODULES: value} | ({} if one is None else {ONE: one})

    seen = resolve(box, environ)

    assert len(seen.units) == len(set(seen.device_ids))
