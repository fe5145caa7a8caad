"""How a law says that it was broken."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping

__all__ = ["RequirementBrokenError", "need", "shown"]


class RequirementBrokenError(AssertionError):
    """A plugin does not keep a requirement; `requirement` is its id."""

    def __init__(self, requirement: str, message: str) -> None:
        super().__init__(f"[{requirement}] {message}")
        self.requirement = requirement


def need(condition: object, requirement: str, message: str) -> None:
    """Raise RequirementBrokenError unless the condition holds."""
    if not condition:
        raise RequirementBrokenError(requirement, message)


def shown(environ: Mapping[str, str]) -> str:
    """Write variables for a message, long values cut."""
    short = reprlib.Repr()
    short.maxstring = 60
    return "{" + ", ".join(f"{name}={short.repr(value)}" for name, value in sorted(environ.items())) + "}"
