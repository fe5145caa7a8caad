"""Reading what amdsmi tells, whatever it holds: a missing, odd or textual value is unknown, with the vendor's word as reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["Reply", "plain_text", "told", "whole_number"]

_NOT_TOLD = "amdsmi does not tell it"
_PLACEHOLDERS = frozenset({"", "n/a", "na", "not supported", "unknown", "unknown error", "err!", "none", "null"})
_LONGEST_QUOTE = 80
_KINDS: dict[type, str] = {list: "a list", tuple: "a list", dict: "an object"}


def whole_number(value: Any, *, bits: int = 32) -> int | None:
    """Give a whole number that is not negative and fits its field, None for anything else.

    All ones is the library's word for unsupported.
    Example: whole_number("[N/A]") is None
    """
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**bits - 1:
        return None
    return int(value)


def plain_text(value: Any) -> str | None:
    """Give a text that says something, None for placeholders (`[N/A]`) and everything else.

    Example: plain_text(" AMD Instinct MI210 ") == "AMD Instinct MI210"
    """
    if not isinstance(value, str) or value.strip().strip("[]").strip().lower() in _PLACEHOLDERS:
        return None
    return value.strip().encode("utf-8", "replace").decode()


def told(value: Any) -> str:
    """Say what amdsmi answered, in one short clause.

    Example: told("[N/A]") == "amdsmi answered '[N/A]'"
    """
    if value is None:
        return _NOT_TOLD
    if isinstance(value, str):
        return f"amdsmi answered {value[:_LONGEST_QUOTE]!a}"
    if isinstance(value, bool):
        return f"amdsmi answered {str(value).lower()}"
    if isinstance(value, float) or (isinstance(value, int) and abs(value) < 2**64):
        return f"amdsmi answered {value}"
    return f"amdsmi answered {_KINDS.get(type(value), 'something that is no value')}"


class Reply:
    """One object of amdsmi's document: values by name, and under `problems` the status of what was refused.

    Args: values: from a recording or simulation too, so nothing about it is trusted.
    """

    def __init__(self, values: Any) -> None:
        self._values: Mapping[str, Any] = values if isinstance(values, Mapping) else {}
        problems = self._values.get("problems")
        self._problems: Mapping[str, Any] = problems if isinstance(problems, Mapping) else {}

    def number(self, name: str, *, bits: int = 32) -> int | None:
        """Give a whole number that is not negative, None when it is anything else."""
        return whole_number(self._values.get(name), bits=bits)

    def text(self, name: str) -> str | None:
        """Give a text that says something, None when it is anything else."""
        return plain_text(self._values.get(name))

    def inner(self, name: str) -> Reply:
        """Give an object inside this one, empty when there is none."""
        return Reply(self._values.get(name))

    def rows(self, name: str) -> tuple[Reply, ...]:
        """Give every object of a list inside this one; what is no object in it is left out."""
        value = self._values.get(name)
        return tuple(Reply(row) for row in value if isinstance(row, Mapping)) if isinstance(value, list) else ()

    def has(self, name: str) -> bool:
        """Whether a value is there, of whatever kind."""
        return self._values.get(name) is not None

    def why(self, name: str) -> str:
        """Say why a value is unknown: the status of the refused call, else what was answered instead."""
        return plain_text(self._problems.get(name)) or told(self._values.get(name))

    def why_not_rows(self, name: str) -> str | None:
        """Say what of a list cannot be read, None when all of it can."""
        value = self._values.get(name)
        if not isinstance(value, list):
            return f"no list of {name}: {told(value)}"
        odd = sum(1 for row in value if not isinstance(row, Mapping))
        return f"{odd} of {len(value)} {name} are no objects" if odd else None
