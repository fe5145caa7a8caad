"""Fixtures: the plugin alone in a registry, imaginary machines, and the folder of shared captures where it exists."""

from __future__ import annotations

import posixpath
import tarfile
from collections.abc import Callable
from pathlib import Path

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
