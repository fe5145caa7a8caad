"""Text for people: escaping what devices and plugins say, sizes, numbers of things. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["UNKNOWN", "counted", "escape", "fit_encoding", "memory_text", "nearest_hint", "one_line", "wrapped"]

UNKNOWN = "unknown"

_BREAKS = re.compile(r"[ \t\r\n\v\f]*[\t\r\n\v\f][ \t\r\n\v\f]*")
_FIRST_COLUMN = re.compile(r"^ *[^ ]+(?: [^ ]+)*  +")
_HANGING = 4

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_ASCII = str.maketrans({"·": "-", "×": "x", "≤": "<=", "≥": ">=", "→": "->", "…": "..."})


def escape(text: str) -> str:
    r"""Write everything that could steer a terminal or break a line as an escape sequence.

    Example: escape("a\nb\x1b[31m") == "a\\nb\\x1b[31m"
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def one_line(text: str) -> str:
    r"""Put one blank in place of line breaks and tabs, for sentences of others that stand in a line of ours.

    Example: one_line("choose from:\n\tbash,\n\tzsh") == "choose from: bash, zsh"
    """
    return _BREAKS.sub(" ", text.strip())


def wrapped(line: str, width: int | None) -> list[str]:
    """Break a line at blanks; what follows stands below the second column when there are columns, else indented.

    Args: width: of the terminal, None = no limit. A word that is longer stays whole.
    Example: wrapped("  amd  no GPU is here", 16) == ["  amd  no GPU is", "       here"]
    """
    if width is None or len(line) <= width:
        return [line]
    import textwrap

    column = _FIRST_COLUMN.match(line)
    hanging = column.end() if column is not None and column.end() <= width // 2 else _HANGING
    return textwrap.wrap(
        line,
        max(width, hanging + 1),
        subsequent_indent=" " * hanging,
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
    )


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
