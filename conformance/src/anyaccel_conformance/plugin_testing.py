"""Fixtures that every plugin's tests need: the plugin alone in a registry, imaginary machines, stub libraries.

A plugin's `tests/conftest.py` imports them all and says which module holds its hooks:

    from anyaccel_conformance.plugin_testing import *

    @pytest.fixture(scope="session")
    def plugin_module() -> str:
        return "anyaccel_example.plugin"
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from anyaccel.device import FamilyView
from anyaccel.discovery import discover
from anyaccel.inventory import Inventory
from anyaccel.machine import Machine
from anyaccel.registry import Plugin, Registry
from anyaccel.simulation import find_machine, parse_description, simulate

__all__ = ["ask_driver", "build_stub", "inventory_of", "machine_of", "plugin", "plugin_module", "registry", "view_of"]


@pytest.fixture(scope="session")
def plugin_module() -> str:
    """The module with the hooks; every plugin's conftest gives its own."""
    raise NotImplementedError("define a session fixture plugin_module that gives the module with the hooks")


@pytest.fixture(scope="session")
def registry(plugin_module: str) -> Registry:
    """A registry of this plugin and nothing else."""
    made = Registry.of(plugin_module)
    assert made.failures == ()
    return made


@pytest.fixture(scope="session")
def plugin(registry: Registry) -> Plugin:
    """The loaded plugin, for calling hooks: `plugin.call("accel_diagnose", machine=…, devices=…)`."""
    return registry.plugins[0]


@pytest.fixture(scope="session")
def machine_of(registry: Registry, plugin: Plugin) -> Callable[[str], Machine]:
    """Make a machine with this plugin's questions open: one it ships, by name, or one of a description's text.

    A text goes without its first line, the schema.
    """

    def make(source: str) -> Machine:
        if "\n" in source:
            description = parse_description(f'schema = "anyaccel-machine/1"\n{source}')
        else:
            description = find_machine(source, registry)
        return simulate(description, registry).for_plugin(plugin.key)

    return make


@pytest.fixture(scope="session")
def inventory_of(registry: Registry, machine_of: Callable[[str], Machine]) -> Callable[[str | Machine], Inventory]:
    """Discover a machine, or one named or described as for `machine_of`."""

    def look(machine: str | Machine) -> Inventory:
        return discover(machine_of(machine) if isinstance(machine, str) else machine, registry, isolate=False)

    return look


@pytest.fixture(scope="session")
def view_of(
    inventory_of: Callable[[str | Machine], Inventory], plugin: Plugin
) -> Callable[[str | Machine], FamilyView]:
    """Give the family of a machine, or of one named or described as for `machine_of`."""
    return lambda machine: inventory_of(machine).view(plugin.key)


@pytest.fixture(scope="session")
def build_stub(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Compile a stub of a vendor's library and give the folder that holds it: `build_stub(source, "libhlml.so", "-DOLD")`.

    Skips where there is no C compiler.
    """
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler (cc) to build the stub library with")
    built: dict[tuple[Any, ...], Path] = {}

    def build(source: Path, name: str, *flags: str) -> Path:
        place = (source, name, flags)
        if place not in built:
            folder = tmp_path_factory.mktemp("stub")
            command = [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", *flags]
            subprocess.run([*command, f"-Wl,-soname,{name}", "-o", str(folder / name), str(source)], check=True)
            built[place] = folder
        return built[place]

    return build


@pytest.fixture(scope="session")
def ask_driver() -> Callable[..., Any]:
    """Run a collecting function in a child, as the probe does: `ask_driver("anyaccel_x._driver:collect", environ)`.

    Gives what would be stored as the answer: the document, or the refusal in the form in which it is kept. Fails when the
    child prints anything of its own.
    Args: function: module and call (`pkg._driver:collect(())`). libraries: folder to put first where libraries are looked for.
    """

    def ask(
        function: str,
        environ: Mapping[str, str] | None = None,
        *,
        libraries: Path | None = None,
        timeout_seconds: float = 15.0,
    ) -> Any:
        module, _, call = function.partition(":")
        call = call if call.endswith(")") else f"{call}()"
        code = (
            f"import json; from anyaccel.answers import LiveAnswers; import {module} as m; "
            f"print(json.dumps(LiveAnswers()._collect(lambda: m.{call})))"
        )
        paths = {} if libraries is None else {"LD_LIBRARY_PATH": str(libraries)}
        child = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, **paths, **(environ or {})},
            capture_output=True,
            text=True,
            timeout=timeout_seconds,
            check=False,
        )
        assert child.returncode == 0, child.stderr
        assert child.stderr == ""
        return json.loads(child.stdout)

    return ask
