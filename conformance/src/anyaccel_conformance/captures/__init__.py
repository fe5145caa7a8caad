"""Comparing what anyaccel answers with what real machines' own tools said, on a folder of captures."""

from __future__ import annotations

from anyaccel_conformance.captures.claims import Claim, Comparison
from anyaccel_conformance.captures.folder import REQUIRED_FAMILIES, compare_folder
from anyaccel_conformance.captures.looking import Looker

__all__ = ["REQUIRED_FAMILIES", "Claim", "Comparison", "Looker", "compare_folder"]
