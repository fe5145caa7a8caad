"""What importing a plugin does: nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

WATCH = """
import json, sys, threading
touched, children = [], []
def audit(event, arguments):
    if event == "open" and str(arguments[0]).startswith(("/dev", "/sys", "/proc")):
        touched.append(str(arguments[0]))
    if event in ("subprocess.Popen", "os.fork", "os.posix_spawn", "os.exec"):
        children.append(event)
sys.addaudithook(audit)
import {module}
loaded = sorted({{name.partition(".")[0] for name in sys.modules}} & {{"zmq", "pynvml", "amdsmi", "click", "rich"}})
print(json.dumps([touched, children, loaded, len(threading.enumerate())]))
"""


FAMILIES = sorted(p.parent.name for p in Path(__file__).parents[1].glob("plugins/*/pyproject.toml"))


@pytest.mark.parametrize("family", FAMILIES)
def test_importing_a_plugin_touches_nothing(family: str) -> None:
    """No file of the machine is opened, nothing is started, and no vendor's, messaging or terminal library is loaded."""
    pytest.importorskip(f"anyaccel_{family}", reason=f"anyaccel_{family} is not installed")
    code = WATCH.format(module=f"anyaccel_{family}.plugin")

    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=20)

    assert json.loads(child.stdout) == [[], [], [], 1]
