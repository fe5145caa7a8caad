from __future__ import annotations

import pytest

from anyaccel.replies import Reply, plain_text, told, whole_number


@pytest.mark.parametrize("value", [None, True, -1, 0.5, "7", "[N/A]", [], {}, 2**32 - 1, 1 << 70])
def test_only_whole_numbers_are_numbers(value):
    """Text, negative and fractional values, and all ones, which means unsupported, are no number."""
    assert whole_number(value, bits=32) is None
    assert told(value)


def test_placeholders_are_no_text():
    """The library's words for nothing say nothing."""
    assert [plain_text(v) for v in ("[N/A]", " N/A ", "", 7, "MI210 ")] == [None, None, None, None, "MI210"]


def test_a_reply_of_another_kind_is_empty():
    """What is no object has neither numbers nor rows."""
    for value in (None, 7, "text", [], [1]):
        reply = Reply(value)
        assert (reply.number("a"), reply.text("a"), reply.rows("a"), reply.inner("a").number("b")) == (
            None,
            None,
            (),
            None,
        )


def test_a_refusal_is_given_in_the_drivers_own_words():
    """What the driver said about a value it refused is the reason; without a word, what it answered instead."""
    reply = Reply({"power": None, "fan": "N/A", "problems": {"power": "not permitted"}}, source="toolx")

    assert [reply.why(name) for name in ("power", "fan", "clock")] == [
        "not permitted",
        "toolx answered 'N/A'",
        "toolx does not tell it",
    ]


@pytest.mark.parametrize(
    ("value", "read"), [(1, 1.0), (0.5, 0.5), (True, None), ("1", None), (float("nan"), None), (1e400, None)]
)
def test_a_measure_is_a_finite_number(value, read):
    """True, text and what is not finite are no measure."""
    assert Reply({"watts": value}).measure("watts") == read


def test_rows_that_are_no_objects_are_left_out_and_counted():
    """One odd row costs itself, and the reason says how many were odd."""
    reply = Reply({"cards": [{"id": 1}, None, 7]})

    assert [row.number("id") for row in reply.rows("cards")] == [1]
    assert reply.why_not_rows("cards") == "2 of 3 cards are no objects"
    assert reply.why_not_rows("links") == "no list of links: the driver does not tell it"
