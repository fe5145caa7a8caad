"""Fixtures: the plugin alone in a registry, imaginary machines, and the folder of shared captures where it exists."""

from __future__ import annotations

import importlib.util
import json
import os
import posixpath
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from anyaccel.discovery import discover
from anyaccel.files import MemoryTree
from anyaccel.inventory import Inventory
from anyaccel.machine import Machine, MachineKind
from anyaccel.recording import open_root
from anyaccel.registry import Registry
from anyaccel.simulation import find_machine, parse_description, simulate

SHARED_CAPTURES = Path(__file__).resolve().parents[4] / "shared" / "captures" / "amd"


@pytest.fixture(scope="session")
def registry() -> Registry:
    """The amd plugin and no other."""
    registry = Registry.of("anyaccel_amd.plugin")
    assert registry.failures == ()
    return registry


@pytest.fixture(scope="session")
def plugin(registry):
    """The loaded plugin, for calling hooks."""
    return registry.plugin("amd")


@pytest.fixture(scope="session")
def shipped(registry) -> Callable[[str], Machine]:
    """Give a machine that the plugin ships, by name."""
    return lambda name: simulate(find_machine(name, registry), registry)


@pytest.fixture(scope="session")
def described(registry) -> Callable[[str], Machine]:
    """Give the machine of a description without its first line."""
    return lambda text: simulate(parse_description('schema = "anyaccel-machine/1"\n' + text), registry)


@pytest.fixture(scope="session")
def inventory_of(registry) -> Callable[..., Inventory]:
    """Discover a machine with this plugin."""
    return lambda machine: discover(machine, registry, isolate=False)


@pytest.fixture(scope="session")
def view_of(inventory_of):
    """Give the family view of a machine."""
    return lambda machine: inventory_of(machine).view("amd")


@pytest.fixture(scope="session")
def card() -> Callable[..., str]:
    """Give the description of one card: `card("mi300x", "0000:26:00.0", suspended="true")`."""

    def describe(model: str = "mi210", address: str = "0000:23:00.0", **options: str) -> str:
        more = "".join(f"{name} = {value}\n" for name, value in options.items())
        return f'[[card]]\nplugin = "amd"\nmodel = "{model}"\naddress = "{address}"\n{more}'

    return describe


def _real(tree: MemoryTree, path: str) -> str:
    folder, name = posixpath.split(path)
    return posixpath.join(tree.resolve(folder) if tree.exists(folder) else folder, name)


@pytest.fixture(scope="session")
def changed() -> Callable[..., Machine]:
    """Give a simulated machine with some files and device files replaced or gone."""

    def change(machine: Machine, files=None, nodes=None, gone=(), kind=MachineKind.SIMULATED, tree=MemoryTree):
        old = machine.tree
        files = {**old.files, **{_real(old, path): content for path, content in (files or {}).items()}}
        nodes = {**old.nodes, **(nodes or {})}
        for path in gone:
            files.pop(_real(old, path), None)
            nodes.pop(path, None)
        answers = machine.answers if kind is MachineKind.SIMULATED else None
        return Machine(
            tree(files, dict(old.links), nodes), environ=machine.environ, kind=kind, answers=answers, user=machine.user
        )

    return change


@pytest.fixture(scope="session")
def capture(tmp_path_factory) -> Callable[[str], Machine]:
    """Give the machine of a shared capture, or skip where the folder of captures is not here."""

    def open_capture(name: str) -> Machine:
        archives = sorted((SHARED_CAPTURES / name).glob("*.tar.gz")) if SHARED_CAPTURES.is_dir() else []
        if not archives:
            pytest.skip(f"no shared capture {name!r} beside this repository")
        folder = tmp_path_factory.mktemp(name)
        for archive in archives:
            with tarfile.open(archive) as content:
                content.extractall(folder, filter="data")
        return open_root(folder)

    return open_capture


# The stub library below the real binding.

STUB = Path(__file__).parent / "stub" / "amdsmi_stub.c"
_COLLECT = (
    "import json; from anyaccel.machine import LiveAnswers; from anyaccel_amd._driver import collect_amdsmi; "
    "print(json.dumps(LiveAnswers()._collect(collect_amdsmi)))"
)
"""Asking as the probe child does, so that a refusal comes back in the form in which it is kept."""


@pytest.fixture(scope="session")
def binding() -> Path:
    """The folder of the real binding, whose version the stub is made for."""
    spec = importlib.util.find_spec("amdsmi")
    if spec is None or spec.origin is None:
        pytest.skip("amdsmi is not installed")
    folder = Path(spec.origin).parent
    if '"7.0.2"' not in (folder / "_version.py").read_text():
        pytest.skip("the stub library is made for amdsmi 7.0.2")
    return folder


@pytest.fixture(scope="session")
def stub_root(binding: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as ROCM_PATH names it: its `lib` holds the stub with every symbol that the binding looks up."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler (cc) to build the stub library with")
    root = tmp_path_factory.mktemp("rocm")
    (root / "lib").mkdir()
    written = set(re.findall(r"^(?:int|void) (amdsmi_\w+)\(", STUB.read_text(), re.MULTILINE))
    wanted = re.findall(r"_libraries\['libamd_smi\.so'\]\.(\w+)", (binding / "amdsmi_wrapper.py").read_text())
    rest = sorted(set(wanted) - written)
    (root / "rest.c").write_text("".join(f"int {name}(void) {{ return 2; }}\n" for name in rest))
    command = [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o", root / "lib" / "libamd_smi.so"]
    subprocess.run([*command, STUB, root / "rest.c"], check=True)
    return root


@pytest.fixture(scope="session")
def run_collector() -> Callable[..., Any]:
    """Ask in a child process: `run_collector({"ROCM_PATH": …})` gives what would be stored; it must print nothing else."""

    def ask(environ: Mapping[str, str], *flags: str, before: str = "") -> Any:
        dropped = ("ROCM_HOME", "ROCM_PATH", "LD_LIBRARY_PATH")
        child = subprocess.run(
            [sys.executable, *flags, "-c", before + _COLLECT],
            env={name: value for name, value in os.environ.items() if name not in dropped} | dict(environ),
            capture_output=True,
            text=True,
            timeout=15,
            check=False,
        )
        assert (child.returncode, child.stderr) == (0, "")
        assert child.stdout.count("\n") == 1
        return json.loads(child.stdout)

    return ask


@pytest.fixture
def ask_stub(run_collector, stub_root, tmp_path) -> Callable[..., Any]:
    """Ask the real binding on the stub: `ask_stub(text)`."""

    def ask(text: str | bytes, **environ: str) -> Any:
        file = tmp_path / "stub.txt"
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return run_collector({"ROCM_PATH": str(stub_root), "AMDSMI_STUB_FILE": str(file), **environ})

    return ask


@pytest.fixture(scope="session")
def stub_text() -> Callable[[Mapping[str, Any]], str]:
    """Write the stub's file from the answer of an imaginary machine."""
    return lambda answer: "".join(f"{key}={value}\n" for key, value in _stub_lines(answer) if value is not None)


def _stub_lines(answer: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    rows = answer["processors"]
    slots = sorted({row["address"][:-1] for row in rows})
    places = {row["address"]: place for place, row in enumerate(rows)}
    yield "version", answer["library_version"]
    yield "sockets", len(slots)
    yield "processors", len(rows)
    for place, row in enumerate(rows):
        yield f"{place}.socket", slots.index(row["address"][:-1])
        for name, value in _row_lines(row):
            yield f"{place}.{name}", value
    for link in answer["links"]:
        for name in ("type", "hops", "weight"):
            yield f"p{places[link['a']]}.{places[link['b']]}.{name}", link[name]


def _row_lines(row: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    assert set(row["problems"].values()) <= {"AMDSMI_STATUS_NOT_SUPPORTED"}
    errors, links = row["errors_counted"], row["xgmi_links"]
    yield from ((n, v) for n, v in row.items() if n not in ("errors_counted", "xgmi_links", "problems"))
    yield "errors", None if errors is None else f"{errors['corrected']} {errors['uncorrected']}"
    yield "links", None if links is None else len(links)
    for number, link in enumerate(links or ()):
        yield from ((f"link{number}.{name}", value) for name, value in link.items())
