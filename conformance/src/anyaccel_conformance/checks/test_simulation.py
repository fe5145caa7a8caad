"""SIM: imaginary machines are made the same each time, and never pass for real ones."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from anyaccel.device import Device
from anyaccel.discovery import discover
from anyaccel.errors import AccelError, RecordingError
from anyaccel.machine_description import FaultDescription, MachineDescription, SimulatedFamily
from anyaccel.recording import open_recording, pack_machine, write_recording
from anyaccel_conformance.laws.breach import RequirementBrokenError, need
from anyaccel_conformance.laws.devices import discover_again
from anyaccel_conformance.policy import NOT_RUN, held
from anyaccel_conformance.subjects import DISCOVER_SECONDS, Subject

__all__ = [
    "test_imaginary_devices_say_so",
    "test_imaginary_machine_survives_a_folder",
    "test_machine_is_as_described",
    "test_unknown_words_are_refused",
]


def _description(subject: Subject) -> MachineDescription:
    if subject.description is None:
        pytest.skip(f"{NOT_RUN}a recorded machine has no description")
    return subject.description


@pytest.mark.requirement("SIM-001")
def test_machine_is_as_described(kit_subject: Subject) -> None:
    """The same description gives the same machine, every card is found, and answers are plain JSON."""
    description, plugin = _description(kit_subject), kit_subject.plugin
    first: SimulatedFamily = plugin.call("accel_simulate", description=description)
    need(first == plugin.call("accel_simulate", description=description), "SIM-001", "two simulations differ")
    for topic, answer in first.answers.items():
        need(_is_plain(answer), "SIM-001", f"the answer to {topic!r} is not plain JSON")
    discovery = discover_again(plugin, kit_subject.machine)
    found = {a for device in discovery.devices for a in device.pci_addresses} | set(discovery.claimed)
    on_pci = {function.address for function in kit_subject.machine.pci_functions()}
    missing = [card.address for card in description.cards_of(plugin.key) if card.address in on_pci - found]
    need(not missing, "SIM-001", f"the cards at {missing} are described and not found")


def _is_plain(answer: Any) -> bool:
    try:
        return bool(json.loads(json.dumps(answer, allow_nan=False)) == answer)
    except (TypeError, ValueError):
        return False


@pytest.mark.requirement("SIM-001")
def test_unknown_words_are_refused(kit_subject: Subject) -> None:
    """A model or fault that nobody knows is an error, not another machine."""
    description, plugin = _description(kit_subject), kit_subject.plugin
    cards = description.cards_of(plugin.key)
    held(cards)
    stranger = replace(cards[0], model="no-such-model")
    fault = FaultDescription("no-such-fault", card=cards[0].address, plugin=plugin.key)
    for changed in (replace(description, cards=(stranger,)), replace(description, faults=(fault,))):
        try:
            plugin.call("accel_simulate", description=changed)
        except RecordingError:
            continue
        except AccelError as error:
            raise RequirementBrokenError("SIM-001", f"an unknown word raises {error!r}") from error
        need(False, "SIM-001", f"an unknown word is taken for a known one: {changed.cards[0].model}, {changed.faults}")


@pytest.mark.requirement("SIM-002")
def test_imaginary_devices_say_so(kit_subject: Subject) -> None:
    """No imaginary device can be taken for a real one."""
    _description(kit_subject)
    real = [device.id for device in kit_subject.view.devices if not device.is_simulated]
    need(not real, "SIM-002", f"{real} do not say that they are simulated")
    held(kit_subject.view.devices)


@pytest.mark.requirement("SIM-002")
def test_imaginary_machine_survives_a_folder(kit_subject: Subject, tmp_path: Path) -> None:
    """Written to a folder and read back, the machine shows the same devices."""
    _description(kit_subject)
    write_recording(pack_machine(kit_subject.make_machine()), tmp_path / "machine")
    machine = open_recording(tmp_path / "machine")
    again = discover(machine, kit_subject.registry, timeout_seconds=DISCOVER_SECONDS).view(kit_subject.plugin.key)
    before, after = _essence(kit_subject.view.devices), _essence(again.devices)
    for one, other in zip(before, after, strict=False):
        need(one == other, "SIM-002", f"{one} becomes {other} in a folder")
    need(len(before) == len(after), "SIM-002", f"{len(before)} devices become {len(after)} in a folder")
    held(before)


def _essence(devices: tuple[Device, ...]) -> list[tuple[Any, ...]]:
    return [(d.id, d.parent, d.uuid, d.numbers, d.memory_bytes, d.state, d.numa_node) for d in devices]
