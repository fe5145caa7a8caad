from __future__ import annotations

import pytest

from anyaccel.errors import UnavailableError
from anyaccel_example.answer import checked

CHIP = {"slot": 0, "node": "/dev/example0", "unit": 0, "uuid": "EX-0", "cores": [], "memory_bytes": None, "sensors": {}}
LINK = {"a": 0, "b": 1, "is_up": True, "lanes": 4, "bytes_per_second_each_way": 1}
ANSWER = {"version": "1.4.0", "chips": [CHIP], "links": [LINK]}


def test_a_whole_answer_is_given_as_it_is():
    """What the program promises passes."""
    assert checked(ANSWER) is ANSWER


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        "text",
        {},
        {**ANSWER, "version": None},
        {**ANSWER, "chips": None},
        {**ANSWER, "chips": [None]},
        {**ANSWER, "chips": [{**CHIP, "slot": -1}]},
        {**ANSWER, "chips": [{**CHIP, "slot": True}]},
        {**ANSWER, "chips": [{**CHIP, "memory_bytes": "[N/A]"}]},
        {**ANSWER, "chips": [{**CHIP, "cores": [{"unit": 0}]}]},
        {**ANSWER, "links": [{**LINK, "is_up": 1}]},
    ],
)
def test_another_shape_is_an_answer_that_never_came(answer):
    """A wrong type, a missing part or a negative number makes the answer one that cannot be used, not a crash."""
    with pytest.raises(UnavailableError, match="another shape") as caught:
        checked(answer)

    assert caught.value.reason_code == "malformed-answer"
