"""The hooks as a whole: declared, documented, and answering through the registry."""

from __future__ import annotations

import inspect
import re

import pytest

from anyaccel import hookspec
from anyaccel.capabilities import Capability, SupportState
from anyaccel.discovery import discover
from anyaccel.inventory import OutcomeStatus
from anyaccel.machine import Machine
from anyaccel.resources import Refusal, ResourceRequest
from anyaccel.simulation import find_machine
from anyaccel.visibility import Selection

HOOKS = [name for name in dir(hookspec) if name.startswith("accel_")]


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_of_the_contract_is_shown(hook, plugin):
    """The example answers every hook, so that each has one to copy from."""
    assert plugin.implements(hook)


@pytest.mark.parametrize("hook", HOOKS)
def test_example_of_the_hook_holds(hook, plugin, registry, make_machine):
    """The example in a hook's docstring is true on example-grid."""
    machine = make_machine("example-grid").for_plugin("example")
    view = discover(machine, registry).view("example")
    names = {
        "machine": machine,
        "description": find_machine("example-grid", registry),
        "view": view,
        "devices": view.devices,
        "Refusal": Refusal,
        "ResourceRequest": ResourceRequest,
        "Selection": Selection,
        hook: _positional(plugin, hook),
    }
    text = re.search(r"Example: (.*)", getattr(hookspec, hook).__doc__).group(1)

    assert eval(text, names) is True


def _positional(plugin, hook):
    arguments = list(inspect.signature(getattr(hookspec, hook)).parameters)
    return lambda *values: plugin.call(hook, **dict(zip(arguments, values, strict=True)))


def test_every_capability_is_declared(plugin):
    """Nothing is left unsaid, and what is refused has a reason."""
    declared = plugin.declaration.capabilities

    assert set(declared) == {capability.value for capability in Capability}
    assert all(s.reason for s in declared.values() if s.state is not SupportState.SUPPORTED)


def test_machine_without_cards_says_why(registry, make_machine):
    """Nothing found has a reason that names what was looked for."""
    empty = make_machine('name = "empty"\n')

    assert discover(empty, registry).outcomes[0].reason == "no PCI function of vendor 1de7"


def test_host_of_this_test_has_none(registry):
    """The vendor id belongs to nobody, so no real machine shows an example."""
    from anyaccel.machine import live_machine

    assert discover(live_machine(), registry).outcomes[0].status is OutcomeStatus.NOTHING


def test_runtime_sees_only_what_opens(plugin, make_machine):
    """In the container, the chip without a device file is not there for the runtime."""
    machine: Machine = make_machine("example-small").for_plugin("example")

    seen = plugin.call("accel_observe_runtime", machine=machine)

    assert seen == ("EX-0000410000-0", "EX-0000410000-1", "EX-0000410001-0", "EX-0000410001-1")


def test_diagnosis_survives_a_missing_driver(plugin, make_machine):
    """Without the driver's program the finding fails with its hint, and no check disappears."""
    text = '[[card]]\nplugin = "example"\nmodel = "ex1"\naddress = "0000:41:00.0"\n'
    fault = '[[fault]]\nkind = "driver-missing"\nplugin = "example"\n'
    machine = make_machine(text + fault).for_plugin("example")

    found = plugin.call("accel_diagnose", machine=machine, devices=())

    assert [(f.check, f.status.value) for f in found] == [
        ("example.driver.answers", "FAIL"),
        ("example.links.up", "SKIP"),
    ]
