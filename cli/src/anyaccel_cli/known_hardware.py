"""Hardware that a plugin we could install would know: the table made by `cli/generate_known_hardware.py`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anyaccel.discovery import KnownFamily

__all__ = ["known_families"]


def known_families() -> tuple[KnownFamily, ...]:
    """Give every family of the table, in order of key."""
    text = Path(__file__).with_name("known_hardware.json").read_text(encoding="utf-8")
    return tuple(_family(row) for row in json.loads(text)["families"])


def _family(row: Mapping[str, Any]) -> KnownFamily:
    from anyaccel.capabilities import MatchRule
    from anyaccel.discovery import KnownFamily
    from anyaccel.frozen import FrozenMap

    matches = tuple(MatchRule(**_rule(rule)) for rule in row["matches"])
    return KnownFamily(row["key"], row["title"], row["distribution"], matches, FrozenMap(row["models"]))


def _rule(rule: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in rule.items()}
