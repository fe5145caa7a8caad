"""`accel-cli completion`: the script that teaches a shell our commands, options, vendors and machines."""

from __future__ import annotations

import click
from click.shell_completion import ShellComplete, get_completion_class

from anyaccel_cli.exit_codes import ExitCode, epilog
from anyaccel_cli.output import Output, OutputOptions

__all__ = ["command"]


@click.command(
    "completion",
    epilog=epilog(
        'eval "$(accel-cli completion bash)"     # in ~/.bashrc; zsh likewise in ~/.zshrc',
        "accel-cli completion fish > ~/.config/fish/completions/accel-cli.fish",
    ),
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> int:
    """Print the completion script of a shell.

    Completing opens no driver and imports no plugin.
    """
    root = ctx.find_root()
    scripts = (_script(shell, root.command, name) for name in ("accel-cli", "anyaccel-cli"))
    Output(OutputOptions()).result("".join(scripts))
    return ExitCode.DONE


def _script(shell: str, group: click.Command, name: str) -> str:
    """Give click's script; its own `source` for bash would first start a bash to ask its version."""
    kind = get_completion_class(shell)
    assert kind is not None
    variable = f"_{name}_COMPLETE".replace("-", "_").upper()
    return ShellComplete.source(kind(group, {}, name, variable)) + "\n"
