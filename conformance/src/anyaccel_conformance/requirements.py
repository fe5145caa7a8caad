"""The specification: numbered requirements, loaded and checked."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from importlib.resources import files
from typing import Any

from anyaccel.capabilities import Capability

__all__ = ["Requirement", "RequirementLevel", "SpecificationError", "load_requirements", "parse_requirements"]

_ID = re.compile(r"^[A-Z]{2,5}-\d{3}$")
_KEYS = {"id", "level", "text", "since", "capability"}
_CAPABILITIES = frozenset(capability.value for capability in Capability)


class SpecificationError(ValueError):
    """The file of requirements contradicts itself."""


class RequirementLevel(str, Enum):
    """Whether a plugin has to keep a requirement or should."""

    MUST = "MUST"
    SHOULD = "SHOULD"


@dataclass(frozen=True)
class Requirement:
    """One numbered requirement.

    Args: id: `VIS-003`, never reused. capability: holds only where this is declared as supported, None = always.
        since: version of the contract that brought it.
    """

    id: str
    level: RequirementLevel
    text: str
    since: str
    capability: str | None = None


def load_requirements() -> Mapping[str, Requirement]:
    """Give the requirements of this kit by id, in the order of the file."""
    text = (files(__package__) / "requirements.toml").read_text(encoding="utf-8")
    return parse_requirements(text)


def parse_requirements(text: str) -> Mapping[str, Requirement]:
    """Read requirements from TOML.

    Raises: SpecificationError naming the entry that is incomplete, repeated or unknown.
    """
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    found: dict[str, Requirement] = {}
    for row in tomllib.loads(text).get("requirement", []):
        requirement = _requirement(row)
        if requirement.id in found:
            raise SpecificationError(f"requirement {requirement.id} is there twice")
        found[requirement.id] = requirement
    return found


def _requirement(row: Mapping[str, Any]) -> Requirement:
    name = row.get("id")
    missing = sorted({"id", "level", "text", "since"} - set(row))
    if missing or set(row) - _KEYS:
        raise SpecificationError(f"requirement {name!r} lacks {missing} or has unknown keys {sorted(set(row) - _KEYS)}")
    if not _ID.match(row["id"]):
        raise SpecificationError(f"requirement id {name!r} is not like VIS-003")
    if row["level"] not in {level.value for level in RequirementLevel}:
        raise SpecificationError(f"requirement {name} has level {row['level']!r}, which is neither MUST nor SHOULD")
    if row.get("capability", "inspect") not in _CAPABILITIES:
        raise SpecificationError(f"requirement {name} has the unknown capability {row['capability']!r}")
    if not row["text"].strip() or not re.fullmatch(r"\d+\.\d+", row["since"]):
        raise SpecificationError(f"requirement {name} has no text, or a `since` that is no MAJOR.MINOR")
    return Requirement(row["id"], RequirementLevel(row["level"]), row["text"], row["since"], row.get("capability"))
