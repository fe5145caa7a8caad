"""Whether a folder of captures still is what its own list says: a changed file shows even where nothing else states its value."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from anyaccel_conformance.captures.claims import Claim, Comparison

__all__ = ["MANIFEST", "compare_manifest"]

MANIFEST = "MANIFEST.json"


def compare_manifest(folder: Path) -> Comparison | None:
    """Compare every file with its size and digest in `MANIFEST.json`; None when the folder has no such list."""
    path = folder / MANIFEST
    if not path.is_file():
        return None
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
        claims = tuple(claim for row in rows for claim in _file_claims(folder, str(row["file"]), row))
    except (ValueError, TypeError, KeyError) as error:
        return Comparison(MANIFEST, reason=f"it is no list of files: {error}", is_required=True)
    return Comparison(MANIFEST, claims, is_required=True)


def _file_claims(folder: Path, name: str, row: dict[str, object]) -> Iterable[Claim]:
    path = folder / name
    content = path.read_bytes() if path.is_file() and ".." not in Path(name).parts else None
    yield Claim("digest", name, row["sha256"], None if content is None else hashlib.sha256(content).hexdigest())
