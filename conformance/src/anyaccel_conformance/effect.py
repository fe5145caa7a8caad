"""The effect child: one process started with an environment, in which the vendor's runtime is asked what it sees."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from anyaccel.errors import AccelError, PluginError, UnavailableError
from anyaccel.machine import LiveAnswers, Machine
from anyaccel.registry import Plugin, load_plugin

__all__ = ["observe"]

TIMEOUT_SECONDS = 60.0


def observe(plugin: Plugin, machine: Machine, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Give the stable names that the vendor's runtime shows in a process of its own with this environment.

    Raises: UnavailableError when there is no runtime here; PluginError when the child failed.
    """
    masks = {variable.name for variable in plugin.declaration.variables}
    inherited = {name: value for name, value in os.environ.items() if name not in masks}
    path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
    done = subprocess.run(
        [sys.executable, "-c", "from anyaccel_conformance.effect import main; main()"],
        input=pickle.dumps((plugin.key, plugin.module_name, machine.with_environ(environ))),
        env={**inherited, **environ, "PYTHONPATH": path},
        capture_output=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        last = (done.stderr.decode("utf-8", "replace").strip().splitlines() or ["it said nothing"])[-1]
        raise PluginError(f"the runtime's process ended with {done.returncode}: {last}", plugin=plugin.key)
    answer = json.loads(done.stdout)
    if "unavailable" in answer:
        raise UnavailableError(answer["unavailable"])
    return tuple(answer["seen"])


def main() -> None:
    """Run inside the child: read the machine, ask the hook, write one JSON document."""
    key, module_name, machine = pickle.load(sys.stdin.buffer)
    plugin = load_plugin(key, module_name)
    if machine.is_live:
        machine = machine.with_answers({"*": LiveAnswers()})
    try:
        seen = plugin.call("accel_observe_runtime", machine=machine.for_plugin(key))
    except PluginError:
        raise
    except AccelError as error:
        sys.stdout.write(json.dumps({"unavailable": error.message}))
    else:
        sys.stdout.write(json.dumps({"seen": seen}))
