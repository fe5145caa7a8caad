"""The one module that talks to the driver's programs; nothing else in this package starts or opens anything."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from anyaccel.errors import UnavailableError

PROGRAM = "example-query"
RUNTIME = Path(__file__).with_name("runtime.py")


def collect() -> Any:
    """Ask the imaginary vendor's program for everything; the answer is plain JSON, so it can be recorded and simulated."""
    program = shutil.which(PROGRAM)
    if program is None:
        raise UnavailableError(
            f"program {PROGRAM} is not installed", reason_code="driver-missing", hint="install the example driver"
        )
    done = subprocess.run([program, "--json"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        told = " ".join(done.stderr.split()) or "nothing"
        raise UnavailableError(f"{PROGRAM} ended with {done.returncode}: {told}", reason_code="driver-failed")
    try:
        return json.loads(done.stdout)
    except ValueError as error:
        raise UnavailableError(f"{PROGRAM} wrote no JSON: {error}", reason_code="driver-failed") from error


def run_imaginary_runtime(chips: list[Any], environ: Mapping[str, str]) -> tuple[str, ...]:
    """Start the runtime in a child with an environment and give the stable names it shows, in its order.

    A real plugin would load the vendor's runtime in this process; ours is a program that knows nothing of this package.
    """
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(RUNTIME)],
        input=json.dumps(chips),
        env=dict(environ),
        capture_output=True,
        text=True,
        check=True,
    )
    return tuple(json.loads(done.stdout))
