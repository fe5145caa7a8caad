"""The shape of the driver's answer. An answer may come from a stranger's recording, so it is checked before it is read."""

from __future__ import annotations

from typing import Any

from anyaccel.answers import check_shape

__all__ = ["checked"]

_CORE = {"unit": (int,), "uuid": (str,)}
_CHIP = {
    "slot": (int,),
    "node": (str,),
    "unit": (int,),
    "uuid": (str,),
    "cores": [_CORE],
    "memory_bytes": (int, type(None)),
    "sensors": {},
}
_LINK = {"a": (int,), "b": (int,), "is_up": (bool,), "lanes": (int,), "bytes_per_second_each_way": (int, type(None))}
_SHAPE = {"version": (str,), "chips": [_CHIP], "links": [_LINK]}


def checked(answer: Any) -> Any:
    """Give the answer when it has the shape that the program promises. Raises: UnavailableError when it has not."""
    return check_shape(answer, _SHAPE)
