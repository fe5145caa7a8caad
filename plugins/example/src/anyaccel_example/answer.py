"""The shape of the driver's answer. An answer may come from a stranger's recording, so it is checked before it is read."""

from __future__ import annotations

from typing import Any

from anyaccel.errors import UnavailableError

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
    if not _fits(answer, _SHAPE):
        raise UnavailableError(
            "the driver's answer has another shape than its program promises", reason_code="malformed-answer"
        )
    return answer


def _fits(value: Any, shape: Any) -> bool:
    if isinstance(shape, dict):
        return isinstance(value, dict) and all(name in value and _fits(value[name], shape[name]) for name in shape)
    if isinstance(shape, list):
        return isinstance(value, list) and all(_fits(entry, shape[0]) for entry in value)
    if isinstance(value, bool) or not isinstance(value, int):
        return isinstance(value, shape) and (not isinstance(value, bool) or bool in shape)
    return int in shape and value >= 0
