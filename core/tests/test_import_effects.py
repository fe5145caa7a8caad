from __future__ import annotations

import json
import subprocess
import sys

import pytest

from anyaccel import hookspec

WATCH = """
import json, sys, threading
touched, children = [], []
def audit(event, arguments):
    if event == "open" and str(arguments[0]).startswith(("/dev", "/sys", "/proc")):
        touched.append(str(arguments[0]))
    if event in ("subprocess.Popen", "os.fork", "os.posix_spawn", "os.exec"):
        children.append(event)
sys.addaudithook(audit)
before = set(sys.modules)
import {module}
print(json.dumps({{"touched": touched, "children": children, "modules": sorted(set(sys.modules) - before),
                  "threads": len(threading.enumerate())}}))
"""

CONTRACT = (
    "anyaccel",
    "anyaccel.hookspec",
    "anyaccel.capabilities",
    "anyaccel.device",
    "anyaccel.topology",
    "anyaccel.visibility",
    "anyaccel.resources",
    "anyaccel.metrics",
    "anyaccel.machine",
    "anyaccel.errors",
    "anyaccel.discovery",
)


def effects_of(module):
    done = subprocess.run(
        [sys.executable, "-c", WATCH.format(module=module)], capture_output=True, text=True, check=True, timeout=20
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("module", CONTRACT)
def test_import_touches_nothing(module):
    """Importing core opens no file of the machine, starts nothing and loads no messaging, vendor or terminal library."""
    effects = effects_of(module)

    assert effects["touched"] == []
    assert effects["children"] == []
    assert effects["threads"] == 1
    loaded = {name.partition(".")[0] for name in effects["modules"]}
    assert not loaded & {"zmq", "pynvml", "amdsmi", "click", "rich", "pytest", "ctypes"}


def test_importing_the_package_loads_none_of_its_parts():
    """The names of the package are resolved on first use."""
    assert [m for m in effects_of("anyaccel")["modules"] if m.startswith("anyaccel.")] == []


def hooks():
    return [getattr(hookspec, name) for name in dir(hookspec) if name.startswith("accel_")]


@pytest.mark.parametrize("hook", hooks(), ids=lambda hook: hook.__name__)
def test_every_hook_is_documented_in_full(hook):
    """Each docstring holds the sections of a reference, in order."""
    sections = ["Called:", "Args:", "Returns:", "Raises:", "Budget:", "Requirements:", "Example:"]
    text = hook.__doc__

    places = [text.find(section) for section in sections]

    assert -1 not in places
    assert places == sorted(places)
