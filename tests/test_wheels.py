"""The wheels alone, in a clean environment: what they pull, what they hold, and that they work without the workspace."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
DIST = REPOSITORY / "dist"
PLUGINS = sorted(project.parent.name for project in REPOSITORY.glob("plugins/*/pyproject.toml"))
DISTRIBUTIONS = ("anyaccel", "anyaccel-cli", "anyaccel-conformance", *(f"anyaccel-{name}" for name in PLUGINS))

pytestmark = [pytest.mark.wheels, pytest.mark.timeout(600)]


@pytest.fixture(scope="session")
def wheels() -> dict[str, Path]:
    """The wheels that `make wheels` has built."""
    found = {wheel.name.split("-")[0].replace("_", "-"): wheel for wheel in DIST.glob("*.whl")}
    if not found:
        pytest.skip("no wheels were built: run make wheels")
    return found


def make_environment(folder: Path, *requirements: str) -> Path:
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=120)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run([*pip, "--find-links", str(DIST), *requirements], check=True, timeout=400)
    return folder


@pytest.fixture(scope="session")
def everything(wheels, tmp_path_factory) -> Path:
    """A clean environment with the command line and every plugin."""
    return make_environment(tmp_path_factory.mktemp("all") / "venv", "anyaccel-cli[all]", "anyaccel-example")


def run(environment: Path, *command: str, cwd: Path, code: int = 0) -> str:
    done = subprocess.run(
        [str(environment / "bin" / command[0]), *command[1:]],
        cwd=cwd,
        env={"PATH": "/usr/bin:/bin", "HOME": str(cwd), "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def installed(environment: Path, cwd: Path) -> set[str]:
    rows = json.loads(run(environment, "python", "-m", "pip", "list", "--format", "json", cwd=cwd))
    return {row["name"].lower() for row in rows} - {"pip", "setuptools"}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_wheel_holds_types_and_licence_and_no_tests(name, wheels):
    """Each wheel carries its licence and type marker, and nothing of tests or other packages."""
    with zipfile.ZipFile(wheels[name]) as wheel:
        names = wheel.namelist()
    package = name.replace("-", "_")

    assert f"{package}/py.typed" in names
    assert any(entry.endswith("/licenses/LICENSE") for entry in names)
    assert {entry.split("/")[0] for entry in names if ".dist-info" not in entry} == {package}
    assert not [entry for entry in names if "/tests/" in entry]


def test_plugin_pulls_core_and_its_binding_only(wheels, tmp_path):
    """A vendor's plugin brings no command line, no test tools and no framework."""
    environment = make_environment(tmp_path / "venv", "anyaccel-nvidia")

    expected = {"anyaccel", "anyaccel-nvidia", "nvidia-ml-py", "pluggy"}
    assert installed(environment, tmp_path) - {"tomli"} == expected


def test_commands_work_without_the_workspace(everything, tmp_path):
    """The commands run on this machine and on imaginary ones, from any folder."""
    assert "accel-cli" in run(everything, "accel-cli", "--version", cwd=tmp_path)
    shown = run(everything, "accel-cli", "discover", "--simulate", "nvidia-h100x8", cwd=tmp_path)
    assert "simulated" in shown
    assert "8 devices" in shown
    assert run(everything, "anyaccel-cli", "topology", "--simulate", "amd-mi300x8", cwd=tmp_path)
    plugins = json.loads(run(everything, "accel-cli", "plugins", "--json", cwd=tmp_path))
    assert {row["plugin"] for row in plugins["plugins"]} == set(PLUGINS)


def test_the_kit_runs_without_the_workspace(wheels, tmp_path):
    """The conformance kit certifies an installed plugin in replay, as its author would run it."""
    environment = make_environment(tmp_path / "venv", "anyaccel-conformance", "anyaccel-example")

    shown = run(
        environment,
        "python",
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--pyargs",
        "anyaccel_conformance.checks",
        "--accel-plugin",
        "example",
        cwd=tmp_path,
    )

    assert " passed" in shown
