"""DEC: what a plugin says of itself."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from anyaccel.capabilities import Capability
from anyaccel_conformance.laws import RequirementBrokenError, check_capabilities, check_declaration, check_refusal
from anyaccel_conformance.subjects import KitPlugin, Subject

__all__ = [
    "test_every_capability_is_declared",
    "test_loading_looks_at_nothing",
    "test_plugin_loads",
    "test_rules_name_an_owner",
    "test_what_is_not_supported_is_refused",
]

_LOAD = """
import importlib, importlib.metadata, json, os, sys
path, module = json.loads(sys.argv[1])
sys.path[:0] = path
import anyaccel.registry, anyaccel.pci, anyaccel.machine_description
from anyaccel_conformance.watch import watched
written, sys.stdout, environ = sys.stdout, sys.stderr, dict(os.environ)
with watched() as deeds:
    importlib.import_module(module).accel_declare()
told = [deed.sentence for deed in deeds] + (["changed the environment"] if environ != dict(os.environ) else [])
written.write(json.dumps(told))
"""


@pytest.mark.requirement("DEC-001")
def test_plugin_loads(kit_plugin: KitPlugin) -> None:
    """The plugin loads, and core accepts what it declares."""
    failure = kit_plugin.failure
    if kit_plugin.plugin is None:
        reason = f"no plugin {kit_plugin.name!r} is installed" if failure is None else failure.reason
        requirement = None if failure is None else failure.requirement
        raise RequirementBrokenError(requirement or "DEC-001", f"the plugin cannot be loaded: {reason}")
    check_declaration(kit_plugin.plugin)


@pytest.mark.requirement("DEC-003")
def test_rules_name_an_owner(kit_plugin: KitPlugin) -> None:
    """Every match rule names a vendor, driver or class of its own."""
    assert kit_plugin.plugin is not None
    check_declaration(kit_plugin.plugin)


@pytest.mark.requirement("DEC-002")
def test_every_capability_is_declared(kit_plugin: KitPlugin) -> None:
    """Nothing is left unsaid, and what is supported has its hooks."""
    assert kit_plugin.plugin is not None
    check_capabilities(kit_plugin.plugin)


@pytest.mark.counter_check
@pytest.mark.requirement("DEC-002")
def test_what_is_not_supported_is_refused(kit_subject: Subject) -> None:
    """An honest no is tested too: asking anyway is refused."""
    for capability in Capability:
        if not kit_subject.plugin.declaration.supports(capability):
            check_refusal(kit_subject.plugin, kit_subject.machine, kit_subject.view, capability)


@pytest.mark.requirement("DEC-004")
def test_loading_looks_at_nothing(kit_plugin: KitPlugin) -> None:
    """Importing and declaring open nothing of the machine, change nothing and print nothing."""
    assert kit_plugin.plugin is not None
    check_declaration(kit_plugin.plugin)
    request = json.dumps([sys.path, kit_plugin.plugin.module_name])
    done = subprocess.run(
        [sys.executable, "-c", _LOAD, request], capture_output=True, text=True, check=False, timeout=60
    )
    told = [*json.loads(done.stdout or "[]"), *(f"printed {line!r}" for line in done.stderr.splitlines())]
    if told:
        raise RequirementBrokenError("DEC-004", f"loading the plugin {told[0]}")
