"""DISC: what discovery finds, and what every hook leaves alone."""

from __future__ import annotations

import pytest

from anyaccel.device import Device, Discovery
from anyaccel.files import MemoryTree
from anyaccel.inventory import OutcomeStatus
from anyaccel.machine import Machine, MachineKind, StoredAnswers
from anyaccel_conformance.calls import child_processes, hook_calls
from anyaccel_conformance.laws import (
    RequirementBrokenError,
    check_discovery_is_stable,
    check_discovery_without_driver,
    check_ids,
    check_unknown_values,
)
from anyaccel_conformance.laws.breach import need
from anyaccel_conformance.laws.devices import discover_again
from anyaccel_conformance.policy import held
from anyaccel_conformance.subjects import KitPlugin, Subject
from anyaccel_conformance.watch import watched

__all__ = [
    "test_core_accepts_what_was_found",
    "test_discovery_is_a_discovery",
    "test_discovery_needs_no_driver",
    "test_empty_machine_has_a_reason",
    "test_hooks_go_through_machine",
    "test_hooks_leave_everything_alone",
    "test_ids_form_a_tree",
    "test_nothing_found_has_a_reason",
    "test_second_discovery_agrees",
    "test_unknown_has_a_reason",
]


@pytest.mark.requirement("DISC-001")
def test_discovery_is_a_discovery(kit_subject: Subject) -> None:
    """The answer has the promised type, inside too."""
    discovery = discover_again(kit_subject.plugin, kit_subject.machine)
    need(isinstance(discovery, Discovery), "DISC-001", f"discovery gives {discovery!r}")
    devices = discovery.devices
    is_tuple = isinstance(devices, tuple) and all(isinstance(device, Device) for device in devices)
    need(is_tuple, "DISC-001", f"discovery holds {devices!r}")


@pytest.mark.requirement("DISC-001")
def test_core_accepts_what_was_found(kit_subject: Subject) -> None:
    """Core has nothing to complain about; a driver that fails on purpose is not the plugin's fault."""
    outcome = kit_subject.outcome
    if outcome.status is OutcomeStatus.BROKEN and outcome.code != "probe-failed":
        raise RequirementBrokenError(outcome.requirement or "DISC-001", outcome.reason or "the plugin is broken")


@pytest.mark.requirement("DISC-002")
def test_nothing_found_has_a_reason(kit_subject: Subject) -> None:
    """On every machine there are devices, or a reason why there are none."""
    discovery = discover_again(kit_subject.plugin, kit_subject.machine)
    need(discovery.devices or discovery.reason, "DISC-002", "nothing was found and no reason given")


@pytest.mark.requirement("DISC-002")
def test_empty_machine_has_a_reason(kit_plugin: KitPlugin) -> None:
    """A machine without any hardware is no error, and has a reason."""
    assert kit_plugin.plugin is not None
    machine = Machine(MemoryTree(), kind=MachineKind.SIMULATED, answers={"*": StoredAnswers()})
    discovery = discover_again(kit_plugin.plugin, machine.for_plugin(kit_plugin.key))
    need(not discovery.devices, "DISC-002", f"an empty machine has {discovery.devices}")
    need(discovery.reason, "DISC-002", "an empty machine has no device and no reason")


@pytest.mark.requirement("DISC-003")
def test_ids_form_a_tree(kit_subject: Subject) -> None:
    """Ids are the family's own, unique, and parents stand before and above their children."""
    held(check_ids(kit_subject.plugin, discover_again(kit_subject.plugin, kit_subject.machine).devices))
    check_ids(kit_subject.plugin, kit_subject.view.devices)


@pytest.mark.requirement("DISC-004")
def test_second_discovery_agrees(kit_subject: Subject) -> None:
    """The machine did not change, so the answer does not either."""
    held(check_discovery_is_stable(kit_subject.plugin, kit_subject.machine))


@pytest.mark.requirement("DISC-005")
def test_hooks_leave_everything_alone(kit_subject: Subject) -> None:
    """No hook writes, prints, leaves a process or thread behind, or changes the environment or the logger."""
    plugin = kit_subject.plugin
    need(not plugin.misdeeds, "DISC-005", f"loading the plugin {', '.join(plugin.misdeeds)}")
    for hook, arguments in hook_calls(kit_subject):
        before = child_processes()
        with watched() as deeds:
            guarded = plugin.call_guarded(hook, timeout_seconds=None, **arguments)
        done = [*guarded.misdeeds, *(deed.sentence for deed in deeds if deed.is_change)]
        need(not done, "DISC-005", f"{hook} {', '.join(done)}")
        left = child_processes() - before
        need(not left, "DISC-005", f"{hook} left the processes {sorted(left)} behind")


@pytest.mark.requirement("DISC-006")
def test_discovery_needs_no_driver(kit_subject: Subject) -> None:
    """The driver is not asked, and its answers would change nothing."""
    held(check_discovery_without_driver(kit_subject.plugin, kit_subject.machine))


@pytest.mark.requirement("DISC-007")
def test_unknown_has_a_reason(kit_subject: Subject) -> None:
    """Nothing unknown is a number, before the driver was asked and after."""
    discovered = discover_again(kit_subject.plugin, kit_subject.machine).devices
    held(check_unknown_values(discovered, was_inspected=False))
    check_unknown_values(kit_subject.view.devices, was_inspected=True)


@pytest.mark.requirement("DISC-008")
def test_hooks_go_through_machine(kit_subject: Subject) -> None:
    """Files, libraries, programs and sockets of this host stay closed while another machine is looked at."""
    for hook, arguments in hook_calls(kit_subject):
        with watched() as deeds:
            kit_subject.plugin.call_guarded(hook, timeout_seconds=None, **arguments)
        looked = [deed.sentence for deed in deeds if not deed.is_change]
        need(not looked, "DISC-008", f"{hook} {', '.join(looked)}")
