"""Fixtures: broken plugins written as text, and runs of the kit in a process of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

STUCK_SECONDS = 40
"""After so long a run of the kit prints where it stands, after twice as long it is ended; it usually takes a tenth."""

HEADER = """
from dataclasses import replace

import anyaccel_example.plugin as good
from anyaccel.capabilities import MatchRule, not_implemented, supported, unsupported
from anyaccel.device import Inspection
from anyaccel.errors import CapabilityNotSupportedError, SelectionNotExpressibleError, UnavailableError
from anyaccel.frozen import FrozenMap
from anyaccel.hookspec import hookimpl
from anyaccel.resources import LegalSet, LegalSets
from anyaccel.topology import TopologyReport
from anyaccel.visibility import Order, Selection
from anyaccel_example._driver import collect
from anyaccel_example.plugin import *

"""


@pytest.fixture
def write_plugin(tmp_path: Path) -> Callable[..., str]:
    """Write a package that is the example plugin with a part replaced; gives the module's name."""
    import anyaccel_example

    shipped = Path(anyaccel_example.__file__).parent / "machines"

    def write(text: str, name: str = "broken_example") -> str:
        package = tmp_path / name
        (package / "machines").mkdir(parents=True)
        (package / "__init__.py").write_text("")
        (package / "plugin.py").write_text(HEADER + text)
        for machine in shipped.glob("*.toml"):
            (package / "machines" / machine.name).write_text(machine.read_text())
        return f"{name}.plugin"

    return write


@pytest.fixture
def run_kit(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Run the kit in a process of its own; gives what came of every requirement, the output and the exit code.

    `own` is a file of tests to run in place of the kit's checks, `ini` a further line of the ini file.
    """

    def run(*arguments: str, examples: int = 10, own: Path | None = None, ini: str = "") -> dict[str, Any]:
        options = "addopts = --import-mode=importlib -p no:cacheprovider"
        (tmp_path / "pytest.ini").write_text(f"[pytest]\n{options}\n{ini}\n")
        report = tmp_path / "report.json"
        checks = ["--pyargs", "anyaccel_conformance.checks"] if own is None else [str(own)]
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            *checks,
            *arguments,
            "-o",
            f"faulthandler_timeout={STUCK_SECONDS}",
        ]
        quiet = ["-p", "no:xdist", "-p", "no:cov", "--accel-examples", str(examples), "--accel-report", str(report)]
        environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
        environ.pop("PYTEST_ADDOPTS", None)
        try:
            done = subprocess.run(
                [*command, *quiet],
                cwd=tmp_path,
                env=environ,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=2 * STUCK_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            said = (error.stdout or b"") + (error.stderr or b"")
            pytest.fail(f"the kit did not end within {error.timeout:.0f} s; it said:\n{said.decode()}")
        plugins = json.loads(report.read_text())["plugins"] if report.exists() else {}
        return {"plugins": plugins, "output": (done.stdout + done.stderr).decode(), "code": done.returncode}

    return run
