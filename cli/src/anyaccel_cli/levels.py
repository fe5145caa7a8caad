"""What may be promised of a plugin: the table `levels.json`, made from the evidence of the conformance kit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

__all__ = ["UNVERIFIED", "known_levels", "level_of"]

UNVERIFIED = "unverified"

Levels = Mapping[str, Mapping[str, str]]


def known_levels() -> Levels:
    """Give the level of each release that there is evidence for, by distribution and version."""
    levels: Levels = json.loads(Path(__file__).with_name("levels.json").read_text(encoding="utf-8"))["levels"]
    return levels


def level_of(distribution: str | None, version: str | None, levels: Levels) -> str:
    """Give the level of exactly this release; another version, or a plugin that was handed in, is unverified.

    Example: level_of("anyaccel-nvidia", "9.9", levels) == "unverified"
    """
    if distribution is None or version is None:
        return UNVERIFIED
    return levels.get(distribution, {}).get(version, UNVERIFIED)
