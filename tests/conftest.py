"""Fixtures of the tests over the whole workspace."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def repository() -> Path:
    """The folder of this checkout."""
    return REPOSITORY


@pytest.fixture
def command_environ(tmp_path: Path) -> dict[str, str]:
    """The environment of a person who runs commands: ours first on the path, no colour, no masks, a fixed locale."""
    binaries = str(Path(sys.executable).parent)
    return {
        "PATH": os.pathsep.join((binaries, "/usr/local/bin", "/usr/bin", "/bin")),
        "HOME": str(tmp_path),
        "LANG": "C.UTF-8",
        "NO_COLOR": "1",
        "COLUMNS": "120",
    }
