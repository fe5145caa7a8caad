"""The options that say how results are shown, shared by every command."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from anyaccel_cli.failures import WrongUsageError
from anyaccel_cli.output import Output, OutputOptions

__all__ = ["output_options"]


def output_options(
    *formats: str, has_file: bool = True, flag: str = "--format"
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the options that say how results are shown; the command gets an `output`.

    Args: formats: what the command can show, the default first; `json` is among them. has_file: False for a command whose
        own result is a file, so that what it prints is only about that. flag: the option's name where another is the habit.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def with_output(*, format_: str | None, is_json: bool, file: str | None = None, **rest: Any) -> Any:
            options = OutputOptions(
                format=_format(format_, formats[0], is_json=is_json),
                file=None if file == "-" else file,
                **{name: rest.pop(name) for name in ("color", "is_quiet", "is_verbose")},
            )
            return function(output=Output(options), **rest)

        file = click.option("--output", "file", metavar="FILE", help="Write the result to FILE, whole or not at all.")
        for option in reversed((*_options(formats, flag), *((file,) if has_file else ()))):
            with_output = option(with_output)
        return with_output

    return decorate


def _format(chosen: str | None, default: str, *, is_json: bool) -> str:
    if is_json and chosen not in (None, "json"):
        raise WrongUsageError(f"--json and --format {chosen} ask for two formats", hint="give one of them")
    return "json" if is_json else chosen or default


def _options(formats: tuple[str, ...], flag: str) -> tuple[Callable[..., Any], ...]:
    return (
        click.option(
            flag,
            "format_",
            type=click.Choice(formats),
            help=f"How to show the result.  [default: {formats[0]}]",
        ),
        click.option("--json", "is_json", is_flag=True, help=f"Short for {flag} json."),
        click.option(
            "--color",
            type=click.Choice(["auto", "always", "never"]),
            default="auto",
            show_default=True,
            help="auto: on a terminal, unless NO_COLOR is set; CLICOLOR_FORCE=1 turns it on elsewhere.",
        ),
        click.option("-q", "--quiet", "is_quiet", is_flag=True, help="No notes, no hints."),
        click.option(
            "-v", "--verbose", "is_verbose", is_flag=True, help="All reasons, and what each plugin looked at."
        ),
    )
