"""What reaches stdout, stderr and files."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from anyaccel.device import Device
from anyaccel.inventory import Inventory
from anyaccel.registry import Registry
from anyaccel_cli.output import (
    Output,
    OutputOptions,
    csv_text,
    json_text,
    lines_text,
    print_error,
    table_text,
    wants_color,
)
from anyaccel_cli.rows import columns_named, device_rows
from anyaccel_cli.table import Heading, Row
from anyaccel_cli.text import escape, fit_encoding, memory_text, one_line, wrapped

HOSTILE = "Evil[red]\x1b[31m\nname\u009b\u202e"


def test_escape_keeps_text_on_one_line_without_control_characters() -> None:
    """Escapes, line breaks, C1 controls and direction marks are written out."""
    assert escape(HOSTILE) == r"Evil[red]\x1b[31m\nname\x9b\u202e"


def test_a_hostile_name_reaches_no_terminal(
    make_gpu: Callable[..., Device], make_inventory: Callable[..., Inventory]
) -> None:
    """Markup stays text and no escape byte appears, even with colour off and on."""
    inventory = make_inventory(make_gpu(0, model=HOSTILE))
    columns = columns_named(("model",))
    text = table_text(columns, device_rows(inventory, inventory.devices, columns), has_color=False)

    assert text.splitlines()[1:] == [r"Evil[red]\x1b[31m\nname\x9b\u202e"]


def test_json_keeps_a_hostile_name_as_data_in_ascii() -> None:
    """The value comes back whole, and nothing in the document could steer a terminal."""
    text = json_text({"model": HOSTILE})

    assert (json.loads(text)["model"], text.isascii(), "\x1b" in text) == (HOSTILE, True, False)


def test_csv_and_lines_are_escaped() -> None:
    """Every plain format is as safe as the table."""
    assert (csv_text(["a"], [["x\x1b\ny"]]), lines_text(["x\x1b\ny"])) == ("a\nx\\x1b\\ny\n", "x\\x1b\\ny\n")


def test_errors_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    """What a plugin says of itself is no more trusted than what a device says; a line break becomes a blank."""
    print_error("plugin 'x\x1b[2J' broke", "do\nthis")

    assert capsys.readouterr().err == "error: plugin 'x\\x1b[2J' broke\nhint: do this\n"


@pytest.mark.parametrize(
    ("choice", "environ", "is_terminal", "wanted"),
    [
        ("auto", {}, True, True),
        ("auto", {}, False, False),
        ("auto", {"NO_COLOR": "1"}, True, False),
        ("auto", {"NO_COLOR": ""}, True, True),
        ("auto", {"TERM": "dumb"}, True, False),
        ("auto", {"CLICOLOR_FORCE": "1"}, False, True),
        ("auto", {"CLICOLOR_FORCE": "0"}, False, False),
        ("auto", {"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, True, False),
        ("always", {"NO_COLOR": "1"}, False, True),
        ("never", {"CLICOLOR_FORCE": "1"}, True, False),
    ],
)
def test_colour_follows_option_then_environment_then_terminal(
    choice: str, environ: dict[str, str], is_terminal: bool, wanted: bool
) -> None:
    """--color beats everything, NO_COLOR beats CLICOLOR_FORCE, both beat what stdout is."""
    assert wants_color(choice, environ, is_terminal=is_terminal) is wanted


def test_colour_changes_no_word(masked_server: Inventory) -> None:
    """The state is a word as well as a colour: without the colour codes both outputs are equal."""
    columns = columns_named(("number", "model", "state"))
    rows = device_rows(masked_server, masked_server.devices, columns)
    plain, coloured = (table_text(columns, rows, has_color=flag) for flag in (False, True))
    import click

    assert (click.unstyle(coloured).splitlines(), "\x1b[" in coloured) == (plain.splitlines(), True)


def test_no_line_ends_in_blanks(masked_server: Inventory) -> None:
    """Tables compare and paste cleanly."""
    columns = columns_named(("number", "model", "state"))
    text = table_text(columns, device_rows(masked_server, masked_server.devices, columns))

    assert [line for line in text.splitlines() if line != line.rstrip()] == []


def test_columns_stay_aligned_across_reasons(masked_server: Inventory) -> None:
    """Reasons between rows do not shift the columns of the rows after them."""
    columns = columns_named(("number", "model", "state"))
    lines = table_text(columns, device_rows(masked_server, masked_server.devices, columns)).splitlines()
    places = {line.index("ACME") for line in lines if "ACME" in line}

    assert len(places) == 1


def test_a_narrow_terminal_folds_long_text_and_loses_none() -> None:
    """Long columns continue on the next line; nothing is cut off."""
    headings = (Heading("number", "#"), Heading("model", "model"), Heading("pci", "PCI"))
    rows = [Row(("0", "A very long product name indeed", "0000:01:00.0"))]
    lines = table_text(headings, rows, width=40).splitlines()

    assert (max(map(len, lines)) <= 40, "".join(line[3:24].strip() for line in lines[1:]).replace(" ", "")) == (
        True,
        "Averylongproductnameindeed",
    )


def test_a_narrow_terminal_breaks_at_blanks_only() -> None:
    """No word is cut while a break at a blank is enough."""
    headings = (Heading("number", "#"), Heading("model", "model"), Heading("pci", "PCI"))
    lines = table_text(headings, [Row(("0", "NVIDIA H100 80GB HBM3", "0000:01:00.0"))], width=30).splitlines()

    assert [line[3:14].strip() for line in lines[1:]] == ["NVIDIA H100", "80GB HBM3"]


def test_a_word_without_room_is_cut_and_says_so() -> None:
    """Where not even one word fits, the name ends in a sign that more belongs to it; ids stay whole."""
    headings = (Heading("model", "model"), Heading("id", "id"))
    lines = table_text(headings, [Row(("A100-SXM4-40GB", "gpu:0000:01:00.0"))], width=26).splitlines()

    assert lines[1:] == ["A100-SX…  gpu:0000:01:00.0"]


def test_sentences_break_below_their_second_column() -> None:
    """A reason continues below its own beginning, not below the plugin's name."""
    assert wrapped("  amd     no AMD GPU is on PCI here", 24) == ["  amd     no AMD GPU is", "          on PCI here"]


@pytest.mark.parametrize(
    ("text", "line"), [("a\n\tb,\n\tc", "a b, c"), ("not a gzip file\n", "not a gzip file"), ("a  b", "a  b")]
)
def test_a_sentence_of_others_stands_on_one_line(text: str, line: str) -> None:
    """Line breaks and tabs, with the blanks around them, become one blank; other blanks stay."""
    assert one_line(text) == line


def test_without_a_terminal_the_width_is_unlimited() -> None:
    """A file or a pipe gets one line a row, however long."""
    rows = [Row(("x" * 500,), below=("y" * 500,))]

    assert len(table_text((Heading("model", "model"),), rows).splitlines()) == 3


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1 << 30, "1 GiB"), (85520809984, "79.6 GiB"), (16 << 40, "16 TiB"), (512 << 20, "512 MiB")],
)
def test_memory_is_written_in_binary_units(size: int, text: str) -> None:
    """A blank between number and unit, at most one decimal."""
    assert memory_text(size) == text


def test_text_fits_the_encoding() -> None:
    """Our own signs become ASCII signs, names of others become escapes; UTF-8 stays as it is."""
    assert (fit_encoding("a · é", "ascii"), fit_encoding("a · é", "utf-8")) == (r"a - \xe9", "a · é")


def test_stdout_without_utf8_gets_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    """An ASCII terminal gets no byte it cannot show, and no error."""
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    Output(OutputOptions()).result("plugin not installed · é\n")

    assert raw.getvalue() == b"plugin not installed - \\xe9\n"


def test_a_file_gets_the_bytes_of_stdout(tmp_path: Path) -> None:
    """--output writes what would have been printed."""
    target = tmp_path / "result.txt"
    Output(OutputOptions(file=str(target))).result("a · b\n")

    assert target.read_bytes() == "a · b\n".encode()


def test_a_file_keeps_its_rights_and_no_unfinished_file_stays(tmp_path: Path) -> None:
    """Replacing a file changes its content only."""
    target = tmp_path / "result.txt"
    target.write_text("old")
    target.chmod(0o640)
    Output(OutputOptions(file=str(target))).result("new\n")

    assert (target.read_text(), oct(target.stat().st_mode & 0o777), [p.name for p in tmp_path.iterdir()]) == (
        "new\n",
        "0o640",
        ["result.txt"],
    )


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    """A full disk or a missing folder is an error that names the file asked for, never half a file."""
    target = str(tmp_path / "missing" / "result.txt")
    with pytest.raises(FileNotFoundError) as raised:
        Output(OutputOptions(file=target)).result("new\n")

    assert raised.value.filename == target


def test_a_link_is_written_through(tmp_path: Path) -> None:
    """The file that a symbolic link names is replaced, not the link."""
    target, link = tmp_path / "real.txt", tmp_path / "link.txt"
    link.symlink_to(target)
    Output(OutputOptions(file=str(link))).result("new\n")

    assert (target.read_text(), link.is_symlink()) == ("new\n", True)


def test_a_device_file_is_written_to_not_replaced() -> None:
    """`--output /dev/null` must not put a file in place of a device."""
    Output(OutputOptions(file="/dev/null")).result("x\n")

    assert Path("/dev/null").is_char_device()


def test_an_error_while_writing_leaves_nothing_behind(tmp_path: Path) -> None:
    """A place that cannot be replaced keeps no unfinished file beside it."""
    target = tmp_path / "result.txt"
    target.write_text("old")
    tmp_path.chmod(0o555)
    try:
        if os.access(tmp_path, os.W_OK):
            pytest.skip("this user may write everywhere")
        with pytest.raises(PermissionError):
            Output(OutputOptions(file=str(target))).result("new\n")
    finally:
        tmp_path.chmod(0o755)

    assert (target.read_text(), len(list(tmp_path.iterdir()))) == ("old", 1)


def test_a_hint_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Five cards with one cause, or an error with the same hint, do not repeat it."""
    output = Output(OutputOptions())
    output.error("it broke", "reboot")
    output.hint("reboot")

    assert capsys.readouterr().err == "error: it broke\nhint: reboot\n"


def test_quiet_says_neither_notes_nor_hints(capsys: pytest.CaptureFixture[str]) -> None:
    """-q leaves results and errors only."""
    output = Output(OutputOptions(is_quiet=True))
    output.note("n")
    output.hint("h")

    assert capsys.readouterr().err == ""


def test_only_verbose_says_details(capsys: pytest.CaptureFixture[str]) -> None:
    """Timings and the like appear with -v alone."""
    Output(OutputOptions()).detail("d")
    Output(OutputOptions(is_verbose=True)).detail("e")

    assert capsys.readouterr().err == "note: e\n"


NASTY_PLUGIN = """
from anyaccel.capabilities import Declaration, MatchRule
from anyaccel.device import Condition, Device, DeviceState, Discovery
from anyaccel.hookspec import hookimpl

NASTY = "\x1b[31m[red]\\n\x07"

@hookimpl
def accel_declare():
    return Declaration(key="nasty", title=NASTY, matches=(MatchRule(vendor_id=0x1234),))

@hookimpl
def accel_discover_devices(machine):
    bad = Condition("bad", NASTY, DeviceState.LOST, hint=NASTY)
    return Discovery(tuple(
        Device(id=f"nasty:{NASTY}{n}", family="nasty", label=NASTY, model=NASTY, uuid=NASTY, conditions=(bad,), driver=NASTY)
        for n in range(3)), notes=(NASTY,))
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ("discover",),
        ("discover", "--format", "wide"),
        ("discover", "--format", "csv"),
        ("discover", "--format", "ids"),
        ("discover", "--json"),
        ("discover", "--select", "nobody"),
        ("topology",),
        ("topology", "--format", "tree"),
        ("topology", "--format", "dot"),
        ("topology", "--format", "hwloc-xml"),
        ("topology", "--json"),
        ("plugins",),
        ("env", "--select", "nasty:*"),
    ],
    ids=" ".join,
)
def test_no_escape_of_a_device_reaches_the_terminal(invoke, write_module, make_root, arguments):
    """Whatever a device is called, in every format, on both streams: control characters are shown and never sent."""
    registry = Registry.of(write_module("nasty_plugin", NASTY_PLUGIN))
    machine = () if arguments == ("plugins",) else ("--root", make_root())

    result = invoke(*arguments, *machine, registry=registry)

    assert not set(result.output) & {"\x1b", "\x07"}
    assert result.exit_code in (0, 1, 2, 3)
