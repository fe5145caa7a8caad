"""Reading what a driver told, whatever it holds: a missing, odd or textual value is unknown, with a reason.

A driver's document may come from a stranger's recording, so nothing about it is trusted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["Reply", "plain_text", "told", "whole_number"]

_PLACEHOLDERS = frozenset(
    {
        "",
        "n/a",
        "na",
        "not supported",
        "unknown",
        "unknown error",
        "err!",
        "none",
        "null",
        "insufficient permissions",
    }
)
_LONGEST_QUOTE = 80
_KINDS: dict[type, str] = {list: "a list", tuple: "a list", dict: "an object"}


def whole_number(value: Any, *, bits: int | None = None) -> int | None:
    """Give a whole number that is not negative, None for anything else.

    Args: bits: width of the field, where all ones is the library's word for unsupported.
    Example: whole_number(0xFFFFFFFF, bits=32) is None
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        return None
    return value if bits is None or value < 2**bits - 1 else None


def plain_text(value: Any) -> str | None:
    """Give a text that says something, None for placeholders (`[N/A]`) and everything else.

    Example: plain_text(" Instinct MI210 ") == "Instinct MI210"
    """
    if not isinstance(value, str) or value.strip().strip("[]").strip().lower() in _PLACEHOLDERS:
        return None
    return value.strip().encode("utf-8", "replace").decode()


def told(value: Any, source: str = "the driver") -> str:
    """Say what was answered, in one short clause.

    Example: told("[N/A]") == "the driver answered '[N/A]'"
    """
    if value is None:
        return f"{source} does not tell it"
    if isinstance(value, str):
        return f"{source} answered {value[:_LONGEST_QUOTE]!a}"
    if isinstance(value, bool):
        return f"{source} answered {str(value).lower()}"
    if isinstance(value, float) or (isinstance(value, int) and abs(value) < 2**64):
        return f"{source} answered {value}"
    return f"{source} answered {_KINDS.get(type(value), 'something that is no value')}"


class Reply:
    """One object of a driver's document: values by name, and under `problems` in words why one was refused.

    Args: values: what the document holds there, of whatever type. source: who answered, for reasons.
    """

    def __init__(self, values: Any, source: str = "the driver") -> None:
        self._values: Mapping[str, Any] = values if isinstance(values, Mapping) else {}
        self._source = source
        problems = self._values.get("problems")
        self._problems: Mapping[str, Any] = problems if isinstance(problems, Mapping) else {}

    def number(self, name: str, *, bits: int | None = None) -> int | None:
        """Give a whole number that is not negative, None when it is anything else."""
        return whole_number(self._values.get(name), bits=bits)

    def measure(self, name: str) -> float | None:
        """Give a finite number, whole or not, None when it is anything else."""
        value = self._values.get(name)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not -1e300 < value < 1e300:
            return None
        return float(value)

    def flag(self, name: str) -> bool | None:
        """Give true or false, None when it is anything else."""
        value = self._values.get(name)
        return value if isinstance(value, bool) else None

    def text(self, name: str) -> str | None:
        """Give a text that says something, None when it is anything else."""
        return plain_text(self._values.get(name))

    def numbers(self, name: str) -> tuple[int | None, ...]:
        """Give a list of numbers, each None when it is none; empty when it is no list."""
        value = self._values.get(name)
        return tuple(whole_number(entry) for entry in value) if isinstance(value, list) else ()

    def flags(self, name: str) -> tuple[bool, ...]:
        """Give a list of true and false; empty when it is no list, or something else is in it."""
        value = self._values.get(name)
        is_plain = isinstance(value, list) and all(isinstance(entry, bool) for entry in value)
        return tuple(value) if is_plain and isinstance(value, list) else ()

    def inner(self, name: str) -> Reply:
        """Give an object inside this one, empty when there is none."""
        return Reply(self._values.get(name), self._source)

    def rows(self, name: str) -> tuple[Reply, ...]:
        """Give every object of a list inside this one; what is no object in it is left out."""
        value = self._values.get(name)
        rows = value if isinstance(value, list) else ()
        return tuple(Reply(row, self._source) for row in rows if isinstance(row, Mapping))

    def has(self, name: str) -> bool:
        """Whether a value is there, of whatever kind."""
        return self._values.get(name) is not None

    def why(self, name: str) -> str:
        """Say why a value is unknown: the refusal in the driver's words, else what was answered instead."""
        return plain_text(self._problems.get(name)) or told(self._values.get(name), self._source)

    def why_not_rows(self, name: str) -> str | None:
        """Say what of a list cannot be read, None when all of it can."""
        value = self._values.get(name)
        if not isinstance(value, list):
            return f"no list of {name}: {told(value, self._source)}"
        odd = sum(1 for row in value if not isinstance(row, Mapping))
        return f"{odd} of {len(value)} {name} are no objects" if odd else None
