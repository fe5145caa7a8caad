"""Each hook's docstring holds an example; it is evaluated against the example plugin on its imaginary machine."""

from __future__ import annotations

import inspect
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
    inventory = discover(machine, registry)
    values = {name: _callable(registry.plugin("example"), name) for name in HOOKS}
    types = (AnySet, CardDescription, EnvironmentChange, FrozenMap, LegalSets, Refusal, ResourceRequest, Selection)
    values.update({cls.__name__: cls for cls in types})
    return {
        **values,
        "description": description,
        "machine": machine.for_plugin("example"),
        "devices": inventory.devices,
        "view": inventory.view("example"),
    }


def _callable(plugin, hook):
    """Call a hook by position, as the reference writes it; an implementation may take fewer arguments."""
    parameters = list(inspect.signature(getattr(hookspec, hook)).parameters)
    return lambda *arguments: plugin.call(hook, **dict(zip(parameters, arguments, strict=True)))


@pytest.mark.parametrize("hook", HOOKS)
def test_example_of_a_hook_holds(hook, names):
    """The example in the reference is true."""
    text = getattr(hookspec, hook).__doc__
    example = re.search(r"^    Example: (.*)$", text, re.MULTILINE).group(1)

    assert eval(example, {}, names) is True, example
