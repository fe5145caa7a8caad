"""Masks against committed cases, whose expected results come from AMD's sources and documents."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from anyaccel.visibility import TokenEffect
from anyaccel_amd.masks import Listing, Slot, read_hip, read_rocr

CASES = json.loads((Path(__file__).parent / "mask_cases.json").read_text())

CARD = '[[card]]\nplugin = "amd"\nmodel = "{model}"\naddress = "0000:{bus:02x}:00.0"\n{more}\n'
HEADER_IDS = ("babababababababa", "abbaabbaabbaabba", "babaabbaabbababa", "abbabababaababba")


def _cards(*rows: tuple[str, str]) -> str:
    return "".join(CARD.format(model=model, bus=3 + n, more=more) for n, (model, more) in enumerate(rows))


MACHINES = {
    "four": _cards(*(("mi210", f'unique_id = "{unique}"') for unique in HEADER_IDS)),
    "eight": _cards(*[("mi300x", "")] * 8),
    "cpx": _cards(("mi300x", 'unique_id = "feedfacecafebeef"\ncompute_partition = "CPX"')),
    "apu": _cards(("rx7900xtx", ""), ("raphael", "")),
}


@pytest.fixture(scope="module")
def views(described, view_of):
    """The family view of each machine that the cases name."""
    return {name: view_of(described(text)) for name, text in MACHINES.items()}


def _indexes(view, resolution):
    return [view.device(unit.device_id).numbers["index"] for unit in resolution.units]


@pytest.mark.parametrize("case", CASES["cases"], ids=lambda case: f"{case['machine']}-{case['environ']}")
def test_mask_leaves_what_the_runtime_leaves(case, views, plugin):
    """Each committed case resolves to the devices, in the order, that its source says."""
    view = views[case["machine"]]

    resolution = plugin.call("accel_resolve_visibility", view=view, environ=case["environ"])

    assert _indexes(view, resolution) == case["visible"]
    assert [unit.ordinal for unit in resolution.units] == list(range(len(case["visible"])))


def test_every_case_names_a_known_source_and_machine():
    """No case stands without the document or source file it was taken from."""
    used = {case["source"] for case in CASES["cases"]}

    assert used == set(CASES["sources"])
    assert {case["machine"] for case in CASES["cases"]} == set(MACHINES) == set(CASES["machines"])


FOUR = Listing(tuple(Slot(f"amd:{n}", (f"amd:{n}",), uuid=f"GPU-{unique}") for n, unique in enumerate(HEADER_IDS)))
UNORDERED = Listing(FOUR.slots, is_ordered=False)


def _effects(result):
    return [report.effect for report in result.tokens]


def test_entries_behind_the_end_are_ignored_and_say_so():
    """The entry that ends a list is told apart from those it cuts off."""
    result = read_rocr("0,9,1", FOUR)

    assert _effects(result) == [TokenEffect.COUNTS, TokenEffect.ENDS_LIST, TokenEffect.IGNORED]
    assert "9 is out of range (0-3)" in result.tokens[1].reason


def test_an_empty_rocr_entry_empties_the_list():
    """What counted before an empty entry is lost too, since the runtime does not start."""
    result = read_rocr("0,,1", FOUR)

    assert _effects(result) == [TokenEffect.COUNTS, TokenEffect.EMPTIES_LIST, TokenEffect.IGNORED]
    assert result.slots == ()


def test_a_repeat_is_told_for_each_runtime():
    """ROCR ends the list at a repeat, HIP passes over it."""
    rocr, hip = read_rocr("1,1", FOUR), read_hip("HIP_VISIBLE_DEVICES", "1,1", FOUR)

    assert _effects(rocr)[1] is TokenEffect.ENDS_LIST
    assert _effects(hip)[1] is TokenEffect.IGNORED


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("-1", "negative"),
        ("7", "out of range"),
        (" 1", "blank, sign or leading zero"),
        ("", "nothing"),
        ("x", "neither a number nor a unique id"),
        ("NoDevFiles", "the batch system granted no GPU"),
        ("GPU-dead", "no GPU has this unique id"),
        (",", "empty entry"),
    ],
)
def test_hip_says_why_an_entry_ends_the_list(value, words):
    """Each way for HIP to stop reading has its own reason."""
    result = read_hip("HIP_VISIBLE_DEVICES", value, FOUR)

    assert result.slots == ()
    assert words in (result.tokens[0].reason if result.tokens else "nothing")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("-1", "negative"),
        ("GPU-", "5 to 20 characters"),
        ("GPU-BABA", "2 GPUs or partitions"),
        ("GPU-DEAD", "no GPU has this unique id"),
        ("none", "neither a number nor a unique id"),
    ],
)
def test_rocr_says_why_an_entry_ends_the_list(value, words):
    """Each way for ROCR to stop reading has its own reason."""
    result = read_rocr(value, FOUR)

    assert result.slots == ()
    assert words in result.tokens[0].reason


def test_a_unique_id_named_after_its_number_is_a_repeat():
    """ROCR compares devices, not spellings."""
    result = read_rocr(f"0,GPU-{HEADER_IDS[0]}", FOUR)

    assert result.tokens[1].effect is TokenEffect.ENDS_LIST
    assert "named before" in result.tokens[1].reason


def test_numbers_stay_unknown_without_the_runtimes_order():
    """Without KFD a number is never mapped by guess, and the hint names unique ids."""
    result = read_hip("HIP_VISIBLE_DEVICES", "0,1", UNORDERED)

    assert _effects(result) == [TokenEffect.UNKNOWN] * 2
    assert [slot.device_id for slot in result.slots] == [None, None]
    assert "unique ids" in (result.tokens[0].hint or "")


@pytest.mark.parametrize("read", [read_rocr, lambda value, listing: read_hip("HIP_VISIBLE_DEVICES", value, listing)])
def test_unique_ids_are_mapped_without_the_runtimes_order(read):
    """A unique id names its device even where the order is unknown."""
    result = read(f"GPU-{HEADER_IDS[2]}", UNORDERED)

    assert [slot.device_id for slot in result.slots] == ["amd:2"]


def test_an_ambiguous_id_is_unknown_to_hip_without_an_order():
    """Which of two fitting GPUs comes first cannot be told without the order."""
    result = read_hip("HIP_VISIBLE_DEVICES", "GPU-ba", UNORDERED)

    assert _effects(result) == [TokenEffect.UNKNOWN]


def test_an_unknown_slot_stays_unknown_through_the_next_layer():
    """HIP number 0 of a list whose first entry is unknown is unknown too."""
    first = read_rocr("3", UNORDERED)

    result = read_hip("HIP_VISIBLE_DEVICES", "0", Listing(first.slots))

    assert _effects(result) == [TokenEffect.UNKNOWN]
    assert result.slots[0].device_id is None


@pytest.mark.parametrize("text", ["9" * 5000, "0x" + "f" * 5000, "0" + "7" * 5000, "18446744073709551616"])
def test_a_number_beyond_all_bounds_is_out_of_range(text):
    """As long as it may be, it ends the list and does not raise."""
    assert _effects(read_rocr(f"0,{text}", FOUR)) == [TokenEffect.COUNTS, TokenEffect.ENDS_LIST]
    assert _effects(read_hip("HIP_VISIBLE_DEVICES", f"0,{text}", FOUR))[1] is TokenEffect.ENDS_LIST


def test_rocr_trims_what_c_calls_blank():
    """A no-break space, which Python would trim, stays and spoils the number."""
    assert _effects(read_rocr("\t1", FOUR)) == [TokenEffect.COUNTS]
    assert _effects(read_rocr("\xa01", FOUR)) == [TokenEffect.ENDS_LIST]


def test_long_entries_are_told_shortly():
    """A reason does not repeat thousands of characters."""
    assert len(read_rocr("x" * 5000, FOUR).tokens[0].reason) < 120
