"""The group `accel-cli`, its commands loaded on first use, and the one place where errors become exit codes."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import threading
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import click

from anyaccel_cli import __version__
from anyaccel_cli.exit_codes import EXIT_CODES_HELP, ExitCode

__all__ = ["cli", "main"]

_COMMANDS: dict[str, str] = {
    "discover": "List the accelerators of this machine and say why one is not usable.",
    "topology": "Show how accelerators, NUMA nodes and network cards are connected.",
    "env": "Print what to set and unset so that a program sees exactly certain devices.",
    "metrics": "Show load, memory, temperature and power of every accelerator.",
    "plugins": "List the installed plugins and their state.",
    "record": "Write what this machine says of its accelerators to a file.",
    "simulate": "List imaginary machines, or write one to a folder.",
    "completion": "Print the completion script of a shell.",
}
"""Every command with its line in the help; its module is imported only when it is called."""


class _Group(click.Group):
    """A group that imports a command when it is asked for, and turns every error into an exit code."""

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, *_: Any, **extra: Any) -> NoReturn:
        """Run the command line and exit; the only way out.

        click's own `main` turns a broken pipe into exit code 1 and writes to stderr on Ctrl-C, so it is not used.
        """
        name = prog_name or "accel-cli"
        variable = f"_{name}_COMPLETE".replace("-", "_").upper()
        if os.environ.get(variable):
            from click.shell_completion import shell_complete

            sys.exit(shell_complete(self, extra, name, variable, os.environ[variable]))
        _end_orderly()
        sys.exit(_exit_code(lambda: self._call(name, sys.argv[1:] if args is None else args, extra)))

    def _call(self, name: str, args: Sequence[str], extra: dict[str, Any]) -> Any:
        with self.make_context(name, list(args), **extra) as ctx:
            return self.invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = import_module(f"anyaccel_cli.commands.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            from anyaccel_cli.failures import WrongUsageError
            from anyaccel_cli.text import nearest_hint

            raise WrongUsageError(
                f"unknown command {args[0]!r} (known: {', '.join(_COMMANDS)})", hint=nearest_hint(args[0], _COMMANDS)
            ) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(
    "accel-cli",
    cls=_Group,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=f"Exit codes: {EXIT_CODES_HELP}",
)
@click.version_option(__version__, "--version", message="%(prog)s %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Find, understand and use AI accelerators of any vendor.

    Which accelerator did I get, and why not the other one: start with `accel-cli discover`.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


class _EndedError(BaseException):
    """Somebody ends this process; what it started is ended on the way out."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def _end_orderly() -> None:
    """Let the signals that end a process pass through everything that has to be put away first."""
    import signal

    def end(number: int, _frame: object) -> NoReturn:
        raise _EndedError(number)

    is_main = threading.current_thread() is threading.main_thread()
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if is_main and number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, end)


def _exit_code(call: Callable[[], Any]) -> int:
    try:
        return _code_of_call(call)
    except _EndedError as end:
        return 128 + end.number
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        _drop_stdout()
        return ExitCode.BROKEN_PIPE


def _code_of_call(call: Callable[[], Any]) -> int:
    from anyaccel.errors import AccelError

    try:
        result = call()
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.UsageError as error:
        return _fail(ExitCode.USAGE, _usage_message(error), _usage_hint(error))
    except click.ClickException as error:
        return _fail(ExitCode.FAILED, error.format_message())
    except AccelError as error:
        return _fail(_code_of(error), error.message, error.hint)
    except BrokenPipeError:
        raise
    except OSError as error:
        _drop_stdout()
        return _fail(ExitCode.FAILED, _system_message(error))
    return result if isinstance(result, int) else ExitCode.DONE


def _code_of(error: Exception) -> ExitCode:
    from anyaccel.errors import CapabilityNotSupportedError, PluginError
    from anyaccel_cli.failures import NothingMatchedError, WrongUsageError

    codes: tuple[tuple[type[Exception], ExitCode], ...] = (
        (WrongUsageError, ExitCode.USAGE),
        (NothingMatchedError, ExitCode.NOTHING),
        (CapabilityNotSupportedError, ExitCode.FAILED),
        (PluginError, ExitCode.BROKEN_PLUGIN),
    )
    return next((code for kind, code in codes if isinstance(error, kind)), ExitCode.FAILED)


def _fail(code: ExitCode, message: str, hint: str | None = None) -> ExitCode:
    from anyaccel_cli.output import print_error

    print_error(message, hint)
    return code


def _usage_message(error: click.UsageError) -> str:
    """Give click's sentence in our manner: lower case, no final period, suggestions left to the hint."""
    if isinstance(error, click.NoSuchOption):
        return f"unknown option {error.option_name!r}"
    message = error.format_message().rstrip(".")
    return message[:1].lower() + message[1:]


def _usage_hint(error: click.UsageError) -> str | None:
    from anyaccel_cli.text import nearest_hint

    if isinstance(error, click.NoSuchOption) and error.possibilities:
        return nearest_hint(error.option_name, error.possibilities)
    return f"see {error.ctx.command_path} --help" if error.ctx is not None else None


def _system_message(error: OSError) -> str:
    what = f"cannot use {error.filename!r}" if error.filename else "cannot write the result"
    return f"{what}: {error.strerror or type(error).__name__}"


def _drop_stdout() -> None:
    """Send what is still buffered nowhere, so that the interpreter ends without a complaint."""
    if sys.stdout is None:
        return
    with contextlib.suppress(io.UnsupportedOperation):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main() -> None:
    """Start here from the scripts `accel-cli` and `anyaccel-cli`."""
    name = Path(sys.argv[0]).stem
    cli.main(prog_name=name if name == "anyaccel-cli" else "accel-cli")
