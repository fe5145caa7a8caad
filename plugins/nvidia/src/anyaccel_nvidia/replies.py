"""Reading what the driver's document says, whatever it holds: a missing, odd or textual value is unknown with a reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from anyaccel import replies

__all__ = ["LOST", "NOT_FOUND", "NOT_SUPPORTED", "NO_PERMISSION", "RESET_REQUIRED", "Reply", "code_words"]

NOT_SUPPORTED = 3
NO_PERMISSION = 4
NOT_FOUND = 6
LOST = 15
RESET_REQUIRED = 16

_WORDS = {
    1: "the library was not started",
    2: "the library does not know this question",
    3: "not supported by this device",
    4: "no permission",
    6: "not found",
    7: "the buffer was too small",
    9: "the driver is not loaded",
    12: "the library was not found",
    13: "the installed library is too old for this question",
    15: "the device is lost",
    16: "the device must be reset",
    17: "the operating system blocks it",
    18: "library and kernel module differ in version",
    25: "the library speaks another version of this structure",
    27: "not ready",
    999: "the driver answered with an unknown error",
}
"""What NVML's return codes mean (nvml.h, nvmlReturn_t); 12 is made up by the Python binding."""


def code_words(code: object) -> str:
    """Give a return code in words.

    Example: code_words(15) == "the device is lost"
    """
    if isinstance(code, bool) or not isinstance(code, int):
        return f"the driver answered {code!r}"
    return _WORDS.get(code, f"the driver answered with code {code}")


class Reply(replies.Reply):
    """One object of the driver's document, where what could not be had stands with its return code under `codes`."""

    def __init__(self, values: Any) -> None:
        super().__init__(values)
        codes = self._values.get("codes")
        self._codes: Mapping[str, Any] = codes if isinstance(codes, Mapping) else {}

    def is_empty_list(self, name: str) -> bool:
        """Whether the answer is a list that holds nothing."""
        return self._values.get(name) == []

    def code(self, name: str) -> int | None:
        """Give the return code that stands for a value, None when there is none."""
        return replies.whole_number(self._codes.get(name))

    def why(self, name: str) -> str:
        """Say why a value is unknown: the code in words, else what was answered instead."""
        if name in self._codes:
            return code_words(self._codes[name])
        value = self._values.get(name)
        if value is None:
            return "the driver was not asked"
        return "the driver answered with nothing" if value in ("", [], {}) else super().why(name)

    def inner(self, name: str) -> Reply:
        """Give an object inside this one, empty when there is none."""
        return Reply(self._values.get(name))

    def each(self, name: str) -> Iterator[Reply]:
        """Give every entry of a list inside this one; one that is no object holds nothing."""
        value = self._values.get(name)
        return iter([Reply(entry) for entry in value] if isinstance(value, list) else [])
