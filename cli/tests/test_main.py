"""The group itself: help, versions, errors and exit codes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from anyaccel.registry import Registry
from anyaccel_cli.exit_codes import ExitCode
from anyaccel_cli.main import _COMMANDS, cli

Invoke = Callable[..., Result]


def test_the_bare_command_prints_help(invoke: Invoke) -> None:
    """Whoever types the name alone learns what there is, and nothing has failed."""
    result = invoke()

    assert (result.exit_code, "discover" in result.stdout, result.stderr) == (0, True, "")


@pytest.mark.parametrize("command", ["", *_COMMANDS])
@pytest.mark.parametrize("option", ["-h", "--help"])
def test_every_help_ends_with_examples_and_exit_codes(invoke: Invoke, command: str, option: str) -> None:
    """The end of a help page is where people look."""
    text = invoke(*command.split(), option).stdout
    examples = [line for line in text.splitlines() if line.startswith("    ") and "accel-cli" in line]

    assert ("Exit codes: 0 done" in text, command == "" or len(examples) == 2) == (True, True)


@pytest.mark.parametrize("command", ["", *_COMMANDS])
def test_help_is_ascii(invoke: Invoke, command: str) -> None:
    """Help is printed before anything knows the encoding of the terminal."""
    assert invoke(*command.split(), "--help").stdout.isascii()


@pytest.mark.parametrize("name", list(_COMMANDS))
def test_the_group_knows_the_first_line_of_every_help(name: str) -> None:
    """The list of commands is written without importing them; it must not drift from what they say."""
    import click

    command = cli.get_command(click.Context(cli), name)

    assert command is not None
    assert (command.help or "").startswith(_COMMANDS[name].rstrip("."))


def test_the_version_names_the_program(invoke: Invoke) -> None:
    """One line, exit 0."""
    assert invoke("--version").stdout == "accel-cli 0.1.0\n"


def test_an_unknown_command_suggests_the_nearest(invoke: Invoke) -> None:
    """A typing error is wrong usage with the known names."""
    result = invoke("discoverr")

    assert (result.exit_code, result.stderr.splitlines()) == (
        2,
        [
            "error: unknown command 'discoverr' (known: discover, topology, env, metrics, plugins, record, simulate, completion)",
            "hint: did you mean 'discover'?",
        ],
    )


def test_an_unknown_option_suggests_the_nearest(invoke: Invoke) -> None:
    """The same for options, in the same form."""
    result = invoke("discover", "--vendr", "x")

    assert (result.exit_code, result.stderr.splitlines()) == (
        2,
        ["error: unknown option '--vendr'", "hint: did you mean '--vendor'?"],
    )


def test_an_unknown_vendor_is_wrong_usage_with_a_suggestion(invoke: Invoke, toy_registry: Registry) -> None:
    """A vendor nobody installed is a typing error first."""
    result = invoke("discover", "--vendor", "toyy", registry=toy_registry)

    assert (result.exit_code, result.stdout, result.stderr.splitlines()) == (
        2,
        "",
        ["error: unknown vendor 'toyy' (installed: toy)", "hint: did you mean 'toy'?"],
    )


def test_an_unreadable_root_is_a_failure(invoke: Invoke, toy_registry: Registry, tmp_path: Path) -> None:
    """A folder that is not there is no empty machine."""
    result = invoke("discover", "--root", tmp_path / "missing", registry=toy_registry)

    assert (result.exit_code, result.stdout, "is no readable folder" in result.stderr) == (1, "", True)


def test_an_unwritable_output_is_a_failure(invoke: Invoke, toy_registry: Registry, toy_root: Path) -> None:
    """A result that cannot be written is said, with the system's word for it."""
    result = invoke("discover", "--root", toy_root, "--output", toy_root / "no/such/file", registry=toy_registry)

    assert (result.exit_code, "No such file or directory" in result.stderr) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--root", "a", "--replay", "b"), "--root and --replay name two machines"),
        (("--env", "A=1"), "--env changes the environment of a machine that is not this one"),
        (("--root", ".", "--env", "A"), "--env 'A' is not NAME=VALUE"),
        (("--json", "--format", "csv"), "--json and --format csv ask for two formats"),
        (("--json", "--columns", "id"), "--columns has no meaning for --format json"),
        (("--columns", "modle"), "unknown column 'modle'"),
        (("--timeout", "0"), "invalid value for '--timeout'"),
        (("--simulate", "nowhere"), "unknown machine 'nowhere'"),
    ],
)
def test_contradicting_options_are_wrong_usage(
    invoke: Invoke, toy_registry: Registry, arguments: tuple[str, ...], message: str
) -> None:
    """What cannot be meant is refused before anything is looked at."""
    result = invoke("discover", *arguments, registry=toy_registry)

    assert (result.exit_code, result.stdout) == (2, "")
    assert f"error: {message}" in result.stderr


def test_the_exit_codes_are_those_of_the_help() -> None:
    """Every code the program can use is in its help, and the other way round."""
    from anyaccel_cli.exit_codes import EXIT_CODES_HELP

    listed = [int(part.split()[0]) for part in EXIT_CODES_HELP.split("; ")]

    assert listed == [code.value for code in ExitCode]
