"""Text for people: escaping what devices and plugins say, sizes, numbers of things. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["UNKNOWN", "counted", "escape", "fit_encoding", "memory_text", "nearest_hint"]

UNKNOWN = "unknown"

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_ASCII = str.maketrans({"·": "-", "×": "x", "≤": "<=", "≥": ">=", "→": "->", "…": "..."})


def escape(text: str) -> str:
    r"""Write everything that could steer a terminal or break a line as an escape sequence.

    Example: escape("a\nb\x1b[31m") == "a\\nb\\x1b[31m"
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def fit_encoding(text: str, encoding: str) -> str:
    r"""Write what an encoding cannot hold in ASCII: our own signs as their nearest, the rest as escape sequences.

    Example: fit_encoding("a · é", "ascii") == r"a - \xe9"
    """
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_ASCII).encode(encoding, "backslashreplace").decode(encoding)
    return text


def memory_text(size: int) -> str:
    """Give a size in the largest fitting IEC unit with at most one decimal.

    Example: memory_text(85899345920) == "80 GiB"
    """
    value, unit = float(size), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:.1f}".removesuffix(".0") + f" {_UNITS[unit]}"


def counted(number: int, noun: str) -> str:
    """Give a number of things in words.

    Example: counted(1, "device") == "1 device"
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def nearest_hint(name: str, known: Iterable[str]) -> str | None:
    """Give the sentence that suggests the nearest known name, None when none is near."""
    from difflib import get_close_matches

    near = get_close_matches(name.lower(), sorted(known), n=1)
    return f"did you mean {near[0]!r}?" if near else None
