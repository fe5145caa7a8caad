"""Other systems, missing rights and contradicting tables."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from anyaccel.registry import Registry

ELSEWHERE = """
import os, runpy, signal, sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in {"grp", "pwd", "fcntl", "resource", "termios"}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
for name in ("grp", "pwd", "fcntl", "resource", "termios"):
    sys.modules.pop(name, None)
for name in ("getuid", "geteuid", "getgroups", "fork", "setsid", "killpg", "sched_getaffinity", "O_NOFOLLOW"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGKILL", "SIGPIPE", "SIGHUP"):
    if hasattr(signal, name):
        delattr(signal, name)
sys.argv = ["accel-cli", "discover"]
runpy.run_module("anyaccel_cli", run_name="__main__")
"""


@pytest.fixture
def environ(tmp_path: Path, toy_source: Callable[..., str]) -> dict[str, str]:
    """The environment of a machine where the toy plugin is installed and no other is loaded."""
    folder = tmp_path / "installed"
    metadata = folder / "toy_dist-3.2.1.dist-info"
    metadata.mkdir(parents=True)
    (folder / "toy_dist.py").write_text(toy_source())
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-dist\nVersion: 3.2.1\n")
    (metadata / "entry_points.txt").write_text("[anyaccel.plugins]\ntoy = toy_dist\n")
    paths = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "VIRTUAL_ENV") if name in os.environ}
    return {**kept, "PYTHONPATH": paths, "ANYACCEL_PLUGINS": "toy"}


def test_a_system_that_is_not_posix_gets_a_sentence(environ: dict[str, str]) -> None:
    """Where Python has no users, groups and process groups, discovery of this machine ends with a reason, not an error."""
    command = [sys.executable, "-c", ELSEWHERE]
    result = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=20)

    is_told = "no accelerator found" in result.stdout
    assert (result.returncode, is_told, "Traceback" in result.stderr) == (3, True, False)


Invoke = Callable[..., Result]


def test_a_missing_group_leaves_stdout_to_the_document(invoke: Invoke) -> None:
    """What to do about a permission is on stderr and inside the document; stdout is that document and nothing else."""
    pytest.importorskip("anyaccel_amd", reason="anyaccel_amd is not installed")
    registry = Registry.of("anyaccel_amd.plugin")
    result = invoke("discover", "--simulate", "amd-no-permission", "--json", registry=registry)
    hints = {device["hint"] for device in json.loads(result.stdout)["devices"]}

    assert (result.exit_code, result.stderr.splitlines()) == (0, [f"hint: {hint}" for hint in hints])


def test_contradicting_tables_are_one_note_and_no_failure(
    invoke: Invoke, toy_registry: Registry, toy_root: Path
) -> None:
    """A guest whose packages and NUMA nodes disagree gets its topology, and one sentence that names both sources."""
    system = toy_root / "sys/devices/system"
    for cpu in range(8):
        folder = system / f"cpu/cpu{cpu}/topology"
        folder.mkdir(parents=True)
        (folder / "physical_package_id").write_text(f"{cpu % 4 // 2}\n")
    for node, cpus in enumerate(("0-3", "4-7")):
        (system / f"node/node{node}").mkdir(parents=True)
        (system / f"node/node{node}/cpulist").write_text(f"{cpus}\n")
    (toy_root / "sys/bus/pci/devices/0000:01:00.0/numa_node").write_text("0\n")
    result = invoke("topology", "--root", toy_root, "--select", "state=ready", registry=toy_registry)
    rows = [line.split() for line in result.stdout.splitlines() if line.startswith("toy")]

    assert (result.exit_code, rows[0][-1], result.stderr.count("contradicts itself")) == (0, "0-3", 1)
    assert "package 0 has CPUs 0-1,4-5" in result.stderr
    assert "NUMA node 0 has CPUs 0-3" in result.stderr
