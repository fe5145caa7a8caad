"""The one module that talks to the driver's programs; nothing else in this package starts or opens anything."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from anyaccel.driver_calls import run_program_json

PROGRAM = "example-query"
RUNTIME = Path(__file__).with_name("runtime.py")


def collect() -> Any:
    """Ask the imaginary vendor's program for everything; the answer is plain JSON, so it can be recorded and simulated."""
    return run_program_json([PROGRAM, "--json"], hint="install the example driver")


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
