from __future__ import annotations

import pytest

from anyaccel.device import Device, FamilyView
from anyaccel.errors import DeviceNotFoundError, NotGrantedError, SelectionNotExpressibleError, VisibilityConflictError
from anyaccel.visibility import (
    Effect,
    EnvironmentChange,
    Order,
    Resolution,
    Selection,
    VariableReport,
    VisibleUnit,
    apply_change,
    check_granted,
    check_selection,
    hide_everything,
    merge_changes,
    number_tokens,
    resolution_of_all,
    split_tokens,
)

CARD = Device("toy:0", "toy")
PARTS = (Device("toy:0/0", "toy", parent="toy:0"), Device("toy:0/1", "toy", parent="toy:0"))
OTHER = Device("toy:1", "toy")
VIEW = FamilyView("toy", (CARD, *PARTS, OTHER))


@pytest.mark.parametrize(
    ("text", "tokens"), [("", ()), ("0", ("0",)), ("0, 1,", ("0", " 1", "")), (",", ("", "")), (" ", (" ",))]
)
def test_entries_are_kept_as_written(text, tokens):
    """Blanks and empty entries stay: runtimes treat them differently."""
    assert split_tokens(text) == tokens


def test_numbers_are_plain_decimals_only():
    """Signs, letters and foreign digits are no numbers here; a runtime that reads them says so itself."""
    assert [n for _, n in number_tokens(("0", " 12 ", "-1", "+1", "x", "1x", "²", "٣", "", "9" * 5000))] == [
        0,
        12,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
    ]


def test_leaves_are_the_smallest_units():
    """A card with parts stands for its parts, one without for itself."""
    assert VIEW.leaves("toy:0") == ("toy:0/0", "toy:0/1")
    assert VIEW.leaves_of(("toy:0/1", "toy:1")) == {"toy:0/1", "toy:1"}


def test_everything_is_visible_without_a_mask():
    """Without a mask each device has the ordinal of its place."""
    resolution = resolution_of_all((CARD, OTHER), VIEW)

    assert resolution.device_ids == ("toy:0", "toy:1")
    assert resolution.leaves == {"toy:0/0", "toy:0/1", "toy:1"}
    assert resolution.ordinal_of("toy:1") == 1
    assert resolution.ordinal_of("toy:9") is None


def test_a_selection_names_each_unit_once():
    """A device twice, or a device with one of its parts, is refused."""
    assert check_selection(VIEW, Selection(("toy:1", "toy:0"))) == (OTHER, CARD)
    for selection in (("toy:1", "toy:1"), ("toy:0", "toy:0/1"), ("toy:0/1", "toy:0")):
        with pytest.raises(SelectionNotExpressibleError, match="twice"):
            check_selection(VIEW, Selection(selection))
    with pytest.raises(DeviceNotFoundError, match="unknown toy device 'toy:7'"):
        check_selection(VIEW, Selection(("toy:7",)))


def test_a_mask_never_widens():
    """Devices outside the grant are named together with what is granted."""
    granted = Resolution((VisibleUnit(0, "toy:1", ("toy:1",)), VisibleUnit(1, None)))

    check_granted(VIEW, Selection(("toy:1",)), granted)
    with pytest.raises(NotGrantedError, match=r"toy:0 are outside .*\(toy:1, unknown\)"):
        check_granted(VIEW, Selection(("toy:1", "toy:0")), granted)


def test_change_sets_empty_values_and_removes_names():
    """An empty value is a value; a name that is both unset and set is set."""
    change = EnvironmentChange(set=(("A", ""), ("B", "1")), unset=("B", "C"))

    assert apply_change({"A": "x", "C": "y", "D": "z"}, change) == {"A": "", "B": "1", "D": "z"}


def test_hiding_writes_every_variable_in_order():
    """The change that hides a family names all of its variables."""
    change = hide_everything({"B": "-1", "A": ""}, unset=("C",))

    assert change.set == (("A", ""), ("B", "-1"))
    assert change.unset == ("C",)


def test_merge_joins_families_and_a_value_wins_over_its_removal():
    """What one family reads and another only clears is kept."""
    merged = merge_changes(
        {
            "b": EnvironmentChange((("B", "0"),), ("X", "A"), device_ids=("b:0",), effect=Effect.HONOURED),
            "a": EnvironmentChange((("A", "1"),), ("Y",), Order.CANONICAL, ("a:0",), Effect.HONOURED, ("note",)),
        }
    )

    assert merged.set == (("A", "1"), ("B", "0"))
    assert merged.unset == ("X", "Y")
    assert merged.order is Order.CANONICAL
    assert merged.device_ids == ("a:0", "b:0")
    assert merged.effect is Effect.HONOURED
    assert merged.notes == ("note",)


def test_merge_of_one_value_twice_is_no_conflict():
    """Two families may agree on a variable."""
    change = EnvironmentChange((("A", "1"),))

    assert merge_changes({"a": change, "b": change}).set == (("A", "1"),)


def test_merge_of_two_values_names_both_families():
    """Two families that write one variable differently cannot share a process."""
    with pytest.raises(VisibilityConflictError, match=r"a sets V='1' and b sets V='2'"):
        merge_changes({"a": EnvironmentChange((("V", "1"),)), "b": EnvironmentChange((("V", "2"),))})


@pytest.mark.parametrize(
    ("effects", "merged"),
    [
        ([], Effect.ASSUMED),
        ([Effect.HONOURED, Effect.ASSUMED], Effect.ASSUMED),
        ([Effect.HONOURED, Effect.NONE], Effect.NONE),
        ([Effect.HONOURED], Effect.HONOURED),
    ],
)
def test_merged_effect_is_the_weakest(effects, merged):
    """What was not observed for one family was not observed for all."""
    changes = {str(n): EnvironmentChange(effect=effect) for n, effect in enumerate(effects)}

    assert merge_changes(changes).effect is merged


def test_warnings_are_the_reports_marked_as_such():
    """Only what is worth showing unasked is a warning."""
    loud = VariableReport("V", "0,0", True, "names device 0 twice", is_warning=True)
    quiet = VariableReport("W", "all", False, "read by the container runtime only")

    assert Resolution(variables=(loud, quiet)).warnings == ("V='0,0': names device 0 twice",)
