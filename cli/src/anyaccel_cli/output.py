"""The one place that prints: results to stdout or a file, notes, hints and errors to stderr.

Results are handed over whole and written once, so that a reader never sees half a document and a file is written whole
or not at all. rich is imported for tables only, and only here; what one format needs is imported when it is asked for.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from anyaccel_cli.text import escape, fit_encoding, one_line, wrapped

if TYPE_CHECKING:
    from rich.console import Console

    from anyaccel_cli.table import Heading, Row

__all__ = [
    "Output",
    "OutputOptions",
    "csv_text",
    "json_text",
    "lines_text",
    "print_error",
    "table_text",
    "table_width",
    "wants_color",
]

_GAP = 2
_INDENT = 4
_SHORTENED = frozenset({"model", "driver", "label", "reason", "title", "distribution"})
"""Columns of words for people: where even a word is too long for a narrow terminal, it is cut and ends in `…`. Names that
one copies (ids, addresses, files) stay whole."""
_NARROWEST = 8
_STYLES: Mapping[str, str] = {
    "ready": "green",
    "unknown": "yellow",
    "busy": "yellow",
    "hidden": "bright_black",
    "asleep": "bright_black",
    "partitioned": "cyan",
    "denied": "magenta",
    "blocked": "magenta",
    "unusable": "red",
    "lost": "red",
}


@dataclass(frozen=True)
class OutputOptions:
    """How results are wanted.

    Args: format: table, wide, json, csv, ids or a command's own. file: None = stdout. color: auto, always or never.
        is_quiet: no notes. is_verbose: more of them.
    """

    format: str = "table"
    file: str | None = None
    color: str = "auto"
    is_quiet: bool = False
    is_verbose: bool = False


class Output:
    """Where the result, the notes and the hints of one command go."""

    def __init__(self, options: OutputOptions) -> None:
        self.options = options
        self._hints: set[str] = set()
        self.has_color = wants_color(options.color, os.environ, is_terminal=self._is_terminal())

    def _is_terminal(self) -> bool:
        return self.options.file is None and sys.stdout is not None and sys.stdout.isatty()

    @property
    def width(self) -> int | None:
        """Columns of the terminal, None = not a terminal, so there is no limit."""
        import shutil

        return shutil.get_terminal_size().columns if self._is_terminal() else None

    @property
    def is_ascii(self) -> bool:
        """Whether the reader may only get ASCII."""
        return not _encoding(sys.stdout).lower().replace("-", "").startswith("utf")

    def result(self, text: str) -> None:
        """Write the result of the command; called once."""
        text = fit_encoding(text, _encoding(sys.stdout))
        if self.options.file is None:
            _write(text, sys.stdout)
        else:
            _write_file(self.options.file, text.encode(_encoding(sys.stdout)))

    def table(self, columns: Sequence[Heading], rows: Sequence[Row]) -> str:
        """Give a table as text for this output's width and colour."""
        return table_text(columns, rows, width=self.width, has_color=self.has_color)

    def lines(self, lines: Iterable[str]) -> str:
        """Give sentences as text, broken at blanks to this output's width."""
        width = self.width
        return "".join(f"{piece}\n" for line in lines for piece in wrapped(escape(line), width))

    def note(self, text: str) -> None:
        """Say something beside the result, unless quiet."""
        if not self.options.is_quiet:
            _print_line("note", text)

    def hint(self, text: str) -> None:
        """Say what could be done next, unless quiet or said before."""
        if not self.options.is_quiet and text not in self._hints:
            self._hints.add(text)
            _print_line("hint", text)

    def error(self, message: str, hint: str | None = None) -> None:
        """Say what went wrong beside the result; its hint is part of it."""
        print_error(message, None if hint in self._hints else hint)
        self._hints.update([hint] if hint else [])

    def detail(self, text: str) -> None:
        """Say something that only --verbose wants."""
        if self.options.is_verbose:
            _print_line("note", text)


def print_error(message: str, hint: str | None = None) -> None:
    """Say on stderr what went wrong and, when known, what to do."""
    _print_line("error", message)
    if hint:
        _print_line("hint", hint)


def _print_line(word: str, text: str) -> None:
    if sys.stderr is not None:
        _write(fit_encoding(f"{word}: {escape(one_line(text))}\n", _encoding(sys.stderr)), sys.stderr)


def _write(text: str, stream: TextIO | None) -> None:
    if stream is None:
        return
    stream.write(text)
    stream.flush()


def _encoding(stream: TextIO | None) -> str:
    return getattr(stream, "encoding", None) or "utf-8"


def wants_color(choice: str, environ: Mapping[str, str], *, is_terminal: bool) -> bool:
    """Decide about colour: the option beats the environment, NO_COLOR beats CLICOLOR_FORCE, both beat the terminal.

    Example: wants_color("auto", {"NO_COLOR": "1"}, is_terminal=True) is False
    """
    if choice != "auto":
        return choice == "always"
    if environ.get("NO_COLOR"):
        return False
    if environ.get("CLICOLOR_FORCE", "0") not in ("", "0"):
        return True
    return is_terminal and environ.get("TERM") != "dumb"


def json_text(document: Mapping[str, Any], *, is_compact: bool = False) -> str:
    """Give a document as JSON: ASCII only, so that no reader and no terminal can stumble; keys as they stand.

    Args: is_compact: in one line, for documents so large that nobody reads them.
    """
    import json

    return json.dumps(document, indent=None if is_compact else 2, ensure_ascii=True, allow_nan=False) + "\n"


def lines_text(lines: Iterable[str]) -> str:
    """Give plain lines as text, each made safe for a terminal."""
    return "".join(f"{escape(line)}\n" for line in lines)


def csv_text(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Give rows as CSV (RFC 4180 quoting, line feeds), text made safe for a terminal."""
    import csv

    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(titles)
    writer.writerows([escape(cell) for cell in row] for row in rows)
    return buffer.getvalue()


def table_text(
    columns: Sequence[Heading], rows: Sequence[Row], *, width: int | None = None, has_color: bool = False
) -> str:
    """Give rows as a table without frame; the lines below a row stand indented under it.

    Args: width: of the terminal, None = as wide as needed; long columns are broken at blanks to fit.
    """
    columns = [replace(column, title=escape(column.title)) for column in columns]
    safe = [[escape(cell) for cell in row.cells] for row in rows]
    widths = _column_widths(columns, safe, width)
    total = sum(widths) + _GAP * (len(widths) - 1)
    console, buffer = _console(max(total, width or 0) if width else None, has_color=has_color)
    table = _new_table(columns, widths, has_header=True)
    for row, cells in zip(rows, safe, strict=True):
        _add_row(table, columns, cells, row.state)
        if row.below:
            console.print(table)
            for line in row.below:
                _print_below(console, escape(one_line(line)))
            table = _new_table(columns, widths, has_header=False)
    if table.rows or not rows:
        console.print(table)
    return "".join(f"{line.rstrip()}\n" for line in buffer.getvalue().splitlines())


def _console(width: int | None, *, has_color: bool) -> tuple[Console, io.StringIO]:
    from rich.console import Console

    buffer = io.StringIO()
    console = Console(
        file=buffer,
        width=width or 1 << 16,
        force_terminal=has_color,
        color_system="standard" if has_color else None,
        no_color=not has_color,
        markup=False,
        emoji=False,
        highlight=False,
        legacy_windows=False,
        _environ={},
    )
    return console, buffer


def table_width(columns: Sequence[Heading], cells: Sequence[Sequence[str]]) -> int:
    """Give how wide a table would be if nothing were broken or cut."""
    widths = _natural_widths(columns, [[escape(cell) for cell in row] for row in cells])
    return sum(widths) + _GAP * (len(widths) - 1)


def _natural_widths(columns: Sequence[Heading], cells: Sequence[Sequence[str]]) -> list[int]:
    from rich.cells import cell_len

    titles = [column.title for column in columns]
    return [max(cell_len(row[place]) for row in (titles, *cells)) for place in range(len(columns))]


def _column_widths(columns: Sequence[Heading], cells: Sequence[Sequence[str]], limit: int | None) -> list[int]:
    """Give the width of each column: broken at blanks where there is no room, and only then cut within words."""
    widths = _natural_widths(columns, cells)
    if limit is None:
        return widths
    words = [_longest_word(column, place, cells) for place, column in enumerate(columns)]
    cut = [
        min(word, _NARROWEST) if column.name in _SHORTENED else word
        for column, word in zip(columns, words, strict=True)
    ]
    for least in (words, cut):
        _shrink(widths, least, sum(widths) + _GAP * (len(widths) - 1) - limit)
    return widths


def _longest_word(column: Heading, place: int, cells: Sequence[Sequence[str]]) -> int:
    """Give the least width at which no word is cut; the indent of a part goes with its first word."""
    from rich.cells import cell_len

    texts = [column.title, *(row[place] for row in cells)]
    indented = (len(text) - len(text.lstrip()) + cell_len((text.split() or [""])[0]) for text in texts)
    return max(*indented, *(cell_len(word) for text in texts for word in text.split()))


def _shrink(widths: list[int], least: Sequence[int], excess: int) -> None:
    """Take from the widest column that can be narrower, until enough is taken."""
    for _ in range(excess):
        places = [place for place, width in enumerate(widths) if width > least[place]]
        if not places:
            return
        widths[max(places, key=lambda place: widths[place])] -= 1


def _new_table(columns: Sequence[Heading], widths: Sequence[int], *, has_header: bool) -> Any:
    from rich.table import Table

    table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, show_header=has_header, header_style="")
    for column, width in zip(columns, widths, strict=True):
        side: Any = "right" if column.is_right else "left"
        table.add_column(_styled(column.title, "bold"), justify=side, width=width, overflow="ellipsis")
    return table


def _add_row(table: Any, columns: Sequence[Heading], cells: Sequence[str], state: str) -> None:
    style = _STYLES.get(state, "")
    table.add_row(*(_styled(cell, style if c.name == "state" else "") for c, cell in zip(columns, cells, strict=True)))


def _styled(text: str, style: str) -> Any:
    """Colour the words alone: the blanks that fill a column stay plain, so that they can be cut off at a line's end."""
    from rich.text import Text

    return Text.assemble((text, style))


def _print_below(console: Console, line: str) -> None:
    from rich.padding import Padding
    from rich.text import Text

    console.print(Padding(Text(line), (0, 0, 0, _INDENT), expand=False))


def _write_file(name: str, content: bytes) -> None:
    """Write a file whole or not at all: beside its place first, then renamed over it."""
    path = Path(name)
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    try:
        _replace_file(path.resolve(), content)
    except OSError as error:
        raise OSError(error.errno, error.strerror, name) from error


def _replace_file(path: Path, content: bytes) -> None:
    import tempfile

    descriptor, unfinished = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        Path(unfinished).chmod(_mode_for(path))
        Path(unfinished).replace(path)
    except BaseException:
        Path(unfinished).unlink(missing_ok=True)
        raise


def _mode_for(path: Path) -> int:
    """Give the rights the file has, or those a new file would get."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
