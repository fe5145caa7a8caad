"""Numbers at the start of a text, as the C library reads them."""

from __future__ import annotations

import pytest

from anyaccel.device import Condition, DeviceState
from anyaccel_nvidia.masks import read_number
from anyaccel_nvidia.visibility import resolve_visibility


@pytest.mark.parametrize(
    ("text", "number"),
    [("3", 3), (" +3ampere", 3), ("-0", 0), ("-2", -2), ("1x3", 1), ("00", 0), ("07", 7), ("010", None), ("08", None)],
)
def test_number(text, number):
    """Signs, blanks and tails are read over; where base 8 and base 10 disagree there is no answer."""
    assert read_number(text) == number


@pytest.mark.parametrize("text", ["", "x", "0x1", "٣", "²"])
def test_no_number(text):
    """Nothing, words, hexadecimal and digits of other scripts are no number."""
    assert read_number(text) is None


def test_number_of_any_length_is_out_of_range(card, view_of):
    """A number of thousands of digits is a result, not an error."""
    resolution = resolve_visibility(view_of([card(0)]), {"CUDA_VISIBLE_DEVICES": "9" * 5000})

    assert resolution.units == ()


def test_numbers_behind_a_lost_card_are_told_in_a_whole_sentence(card, view_of):
    """Which card a number names is unknown from the lost card on, and the note says so to its end."""
    lost = card(1, conditions=(Condition("pci-dead", "gone", DeviceState.LOST),))

    resolution = resolve_visibility(view_of([card(0), lost, card(2)]), {"CUDA_VISIBLE_DEVICES": "0,1"})

    assert resolution.tokens[1].reason == (
        "cannot be mapped: 0000:20:00.0 is lost, and whether CUDA still counts it is unknown, "
        "so which cards the numbers from 1 on name is unknown"
    )
