"""A change of the environment as lines that a shell runs. Pure functions."""

from __future__ import annotations

import shlex

from anyaccel.visibility import EnvironmentChange

__all__ = ["SHELLS", "bash_lines", "fish_lines"]


def bash_lines(change: EnvironmentChange) -> tuple[str, ...]:
    """Give lines for bash, zsh, dash and every other shell that reads `export`.

    Example: bash_lines(EnvironmentChange(set=(("A", ""),), unset=("B",))) == ("unset B", "export A=''")
    """
    return (*(f"unset {name}" for name in change.unset), *(f"export {n}={shlex.quote(v)}" for n, v in change.set))


def fish_lines(change: EnvironmentChange) -> tuple[str, ...]:
    r"""Give lines for fish, which knows neither `export` nor the quoting of other shells.

    Example: fish_lines(EnvironmentChange(set=(("A", "x'y"),), unset=("B",))) == ("set -e B", "set -gx A 'x\\'y'")
    """
    return (*(f"set -e {name}" for name in change.unset), *(f"set -gx {n} {_fish_quoted(v)}" for n, v in change.set))


def _fish_quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


SHELLS = {"bash": bash_lines, "fish": fish_lines}
