"""Errors of the command line itself; `main` turns each into an exit code."""

from __future__ import annotations

from anyaccel.errors import AccelError

__all__ = ["NothingMatchedError", "WrongUsageError"]


class WrongUsageError(AccelError):
    """An option or argument cannot mean anything here."""

    code = "wrong-usage"


class NothingMatchedError(AccelError):
    """What was asked for is understood and not there."""

    code = "nothing-matched"
