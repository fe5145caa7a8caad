"""Each hook's docstring holds an example; it is evaluated against the example plugin on its imaginary machine."""

from __future__ import annotations

import importlib
import re

import pytest

from anyaccel import hookspec
from anyaccel.discovery import discover
from anyaccel.frozen import FrozenMap
from anyaccel.machine_description import CardDescription
from anyaccel.registry import Registry
from anyaccel.resources import AnySet, LegalSets, Refusal, ResourceRequest
from anyaccel.simulation import find_machine, simulate
from anyaccel.visibility import EnvironmentChange, Selection

HOOKS = sorted(name for name in dir(hookspec) if name.startswith("accel_"))


@pytest.fixture
def names():
    """What an example may use: the hooks of the example plugin, and one machine with its devices."""
    registry = Registry.of("anyaccel_example.plugin")
    description = find_machine("example-grid", registry)
    machine = simulate(description, registry)
    plugin = importlib.import_module("anyaccel_example.plugin")
    inventory = discover(machine, registry)
    values = {name: getattr(plugin, name) for name in HOOKS if hasattr(plugin, name)}
    types = (AnySet, CardDescription, EnvironmentChange, FrozenMap, LegalSets, Refusal, ResourceRequest, Selection)
    values.update({cls.__name__: cls for cls in types})
    return {
        **values,
        "description": description,
        "machine": machine.for_plugin("example"),
        "devices": inventory.devices,
        "view": inventory.view("example"),
    }


@pytest.mark.parametrize("hook", HOOKS)
def test_example_of_a_hook_holds(hook, names):
    """The example in the reference is true."""
    text = getattr(hookspec, hook).__doc__
    example = re.search(r"^    Example: (.*)$", text, re.MULTILINE).group(1)

    assert eval(example, {}, names) is True, example
