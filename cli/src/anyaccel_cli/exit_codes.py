"""What the exit code says, in one place."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["EXIT_CODES_HELP", "ExitCode", "epilog"]


class ExitCode(IntEnum):
    """Every exit code of `accel-cli`; nothing else is used."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    NOTHING = 3
    BROKEN_PLUGIN = 4
    INTERRUPTED = 130
    BROKEN_PIPE = 141


EXIT_CODES_HELP = (
    "0 done; 1 failed; 2 wrong usage; 3 nothing to show or matched; 4 a plugin is broken (the rest was still shown); "
    "130 interrupted; 141 the reader went away (128 + the signal, as for every other: 129 hung up, 143 terminated)"
)


def epilog(*examples: str) -> str:
    """Give the end of a command's help: its examples, each on a line of its own, and the exit codes."""
    lines = "\n".join(f"  {example}" for example in examples)
    return f"\b\nExamples:\n{lines}\n\nExit codes: {EXIT_CODES_HELP}"
