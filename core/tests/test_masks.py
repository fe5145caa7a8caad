"""The frame of masks, filled with rules made up for the tests."""

from __future__ import annotations

import pytest

from anyaccel.device import Device, FamilyView
from anyaccel.frozen import FrozenMap
from anyaccel.masks import MaskLayer, Slot, Verdict, read_entries, read_range, resolution_of_layers, slots_of
from anyaccel.visibility import TokenEffect


def _chip(name, number, parent=None):
    return Device(id=f"toy:{name}", family="toy", parent=parent, numbers=FrozenMap({"index": number}), uuid=f"U{name}")


VIEW = FamilyView(
    "toy",
    (_chip("0", 0), _chip("0/a", 0, "toy:0"), _chip("0/b", 1, "toy:0"), _chip("1", 1), _chip("2", None)),
)
LISTED = slots_of(VIEW, ("toy:0/a", "toy:0/b", "toy:1"), "index")


def rule(text, chosen):
    """Letters name slots; `x` ends the list, `!` empties it, `?` is anything."""
    if text in ("x", "!"):
        return Verdict({"x": TokenEffect.ENDS_LIST, "!": TokenEffect.EMPTIES_LIST}[text], reason="a stop")
    if text == "?":
        return Verdict(TokenEffect.UNKNOWN, (Slot(None),), "may be anything")
    slot = LISTED["abc".index(text)]
    if any(slot.device_id == other.device_id for other in chosen):
        return Verdict(TokenEffect.IGNORED, reason="named before")
    return Verdict(TokenEffect.COUNTS, (slot,))


def test_slots_carry_the_number_of_one_space():
    """A number that is unknown stays unknown, and leaves are those of the tree."""
    slots = slots_of(VIEW, ("toy:0", "toy:2"), "index")

    assert [(s.number, s.leaves, s.uuid) for s in slots] == [
        (0, ("toy:0/a", "toy:0/b"), "U0"),
        (None, ("toy:2",), "U2"),
    ]


@pytest.mark.parametrize(
    ("value", "left", "effects"),
    [
        ("ca", ["toy:1", "toy:0/a"], ["counts", "counts"]),
        ("aac", ["toy:0/a", "toy:1"], ["counts", "ignored", "counts"]),
        ("axc", ["toy:0/a"], ["counts", "ends-list", "ignored"]),
        ("a!c", [], ["counts", "empties-list", "ignored"]),
        ("?a", [None, "toy:0/a"], ["unknown", "counts"]),
    ],
)
def test_a_list_is_read_until_it_ends(value, left, effects):
    """Each entry has its effect, what ends the list is followed by nothing, what empties it takes all back."""
    layer = read_entries("TOY", tuple(value), rule)

    assert [slot.device_id for slot in layer.slots] == left
    assert [token.effect.value for token in layer.tokens] == effects


def test_chosen_slots_name_their_entry():
    """A slot tells which entry of which variable chose it."""
    (slot,) = read_entries("TOY", ("c",), rule).slots

    assert (slot.variable, slot.token, slot.number) == ("TOY", "c", 1)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("4", (4,)),
        ("2-4", (2, 3, 4)),
        (" 2 - 3 ", (2, 3)),
        ("4-2", ()),
        ("", None),
        ("-1", None),
        ("1-", None),
        ("٣", None),
    ],
)
def test_ranges_are_plain_numbers_with_a_dash(text, numbers):
    """Both ends belong to a range, one that runs backwards is empty, signs and other digits are no numbers."""
    read = read_range(text)

    assert (None if read is None else tuple(read)) == numbers


def test_an_endless_number_is_no_number():
    """Thousands of digits fit no runtime's number and no conversion."""
    assert read_range("9" * 5000) is None


def test_each_layer_hides_what_it_left_out():
    """The outer layer's variable is named for what it took, the inner one's for the rest; a parent falls with its parts."""
    outer = MaskLayer("OUTER", (LISTED[2],))
    inner = MaskLayer("INNER", ())

    resolution = resolution_of_layers(VIEW, LISTED, (outer, inner))

    assert dict(resolution.hidden_by) == {
        "toy:0": "OUTER",
        "toy:0/a": "OUTER",
        "toy:0/b": "OUTER",
        "toy:1": "INNER",
    }
    assert resolution.units == ()
    assert resolution.is_masked


def test_what_may_be_anything_hides_nothing():
    """While one slot is unknown, no device is called hidden, and the resolution is not complete."""
    resolution = resolution_of_layers(VIEW, LISTED, (read_entries("TOY", ("?",), rule),))

    assert dict(resolution.hidden_by) == {}
    assert not resolution.is_complete
    assert resolution.units[0].reason == "may be anything"


def test_without_a_mask_everything_listed_is_left():
    """No layer: the runtime's own list, numbered from 0, or without numbers where its order is unknown."""
    ordered = resolution_of_layers(VIEW, LISTED, ())
    unordered = resolution_of_layers(VIEW, LISTED, (), unordered_reason="no file tells the order")

    assert [unit.ordinal for unit in ordered.units] == [0, 1, 2]
    assert not ordered.is_masked
    assert [(unit.ordinal, unit.reason) for unit in unordered.units] == [(None, "no file tells the order")] * 3
