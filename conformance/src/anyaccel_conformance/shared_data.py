"""Where tests find data of real machines that is not part of this repository."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["find_shared_folder", "shared_folder"]

_VARIABLE = "ANYACCEL_SHARED"


def find_shared_folder(name: str, start: Path | None = None) -> Path | None:
    """Give a folder or file below the shared data, None when it is not here.

    The shared data is `$ANYACCEL_SHARED`, else a folder `shared` beside the repository.
    Args: name: `captures`, `scenarios.jsonl`. start: a place in the repository, None = the working folder.
    """
    given = os.environ.get(_VARIABLE)
    roots = [Path(given)] if given else _beside_repository(start or Path.cwd())
    return next((root / name for root in roots if (root / name).exists()), None)


def _beside_repository(start: Path) -> list[Path]:
    here = start.resolve()
    return [folder.parent / "shared" for folder in (here, *here.parents) if (folder / ".git").exists()][:1]


def shared_folder(name: str) -> Path:
    """Give a folder or file below the shared data, or skip the running test, saying what is missing.

    Example: shared_folder("captures") / "nvidia"
    """
    import pytest

    found = find_shared_folder(name)
    if found is None:
        pytest.skip(
            f"shared data {name!r} is not here (set {_VARIABLE} or put a folder 'shared' beside the repository)"
        )
    return found
