"""What discovery asks, how often, and of whom; and which requirement a wrong answer breaks."""

from __future__ import annotations

from collections import Counter

import pytest

from anyaccel.discovery import discover
from anyaccel.files import MemoryTree
from anyaccel.machine import LiveAnswers, Machine, MachineKind, StoredAnswers
from anyaccel.registry import Registry

CARDS = (("0000:01:00.0", 0x1DE8, "120000"), ("0000:02:00.0", 0x1DE8, "120000"))


OTHER = ("0000:03:00.0", 0x1DE9, "120000")


class CountingTree(MemoryTree):
    """Files in memory that count how often each is read."""

    def read_bytes(self, path: str) -> bytes:
        self.__dict__.setdefault("reads", Counter())[self.resolve(path)] += 1
        return super().read_bytes(path)


def test_no_pci_file_is_read_twice(write_toy, pci_machine):
    """However many plugins look at the PCI functions, each of their files is read once at most."""
    stranger = ("0000:04:00.0", 0x8086, "020000")
    tree = pci_machine(*CARDS, OTHER, stranger).tree
    counting = CountingTree(tree.files, tree.links, tree.nodes)
    machine = Machine(counting, kind=MachineKind.SIMULATED, answers={"*": StoredAnswers()})

    discover(machine, Registry.of(write_toy(), write_toy(key="alpha", vendor="0x1de9", variable="ALPHA")))

    reads = {path: count for path, count in counting.reads.items() if path.startswith("/sys/devices/pci")}
    assert len([path for path in reads if path.endswith("/vendor")]) == 4
    assert set(reads.values()) == {1}


def test_a_question_that_hung_is_not_asked_again(write_toy, pci_machine, tmp_path):
    """A wedged driver is asked once; asking again would only cost the same time again."""
    asked = tmp_path / "asked"
    registry = Registry.of(
        write_toy(
            f"""
            def _hang():
                import time
                with open({str(asked)!r}, "a") as file:
                    file.write("asked\\n")
                time.sleep(60)

            @hookimpl
            def accel_inspect_devices(machine, devices):
                machine.ask("library", _hang)
            """
        )
    )
    machine = pci_machine(*CARDS, answers={"toy": LiveAnswers()})

    inventory = discover(machine, registry, isolate=True, timeout_seconds=2)

    assert not inventory.is_complete
    assert asked.read_text() == "asked\n"


NOTING = """
def _note(devices):
    with open({path!r}, "a") as file:
        file.writelines(f"{{KEY}} {{device.id}}\\n" for device in devices)

@hookimpl
def accel_inspect_devices(machine, devices):
    _note(devices)
    return Inspection(devices)

@hookimpl
def accel_describe_topology(machine, devices):
    _note(devices)
    return TopologyReport()
"""


def test_no_plugin_is_asked_about_a_device_of_another(write_toy, pci_machine, tmp_path):
    """Inspection and topology of a family are given the devices of that family only."""
    path = tmp_path / "asked"
    more = NOTING.format(path=str(path))
    registry = Registry.of(write_toy(more), write_toy(more, key="alpha", vendor="0x1de9", variable="ALPHA"))

    inventory = discover(pci_machine(*CARDS, OTHER), registry)

    asked = {tuple(line.split()) for line in path.read_text().splitlines()}
    assert inventory.is_complete
    assert asked == {(device.family, device.id) for device in inventory.devices}


@pytest.mark.parametrize(
    ("body", "requirement"),
    [
        ("return None", "DISC-001"),
        ("return {}", "DISC-001"),
        ("return Discovery()", "DISC-002"),
        ("return Discovery((Device(id='toy:1', family='toy'), Device(id='toy:1', family='toy')))", "DISC-003"),
        ("return Discovery((Device(id='toy:1', family='toy', memory_bytes=-1),))", "DISC-007"),
    ],
)
def test_a_wrong_answer_names_the_requirement_it_breaks(body, requirement, write_toy, pci_machine):
    """Whoever wrote the plugin can look the rule up; no device of the answer is kept."""
    more = f"@hookimpl\ndef accel_discover_devices(machine):\n    {body}\n"

    inventory = discover(pci_machine(*CARDS), Registry.of(write_toy(more)))

    (outcome,) = inventory.outcomes
    assert (outcome.requirement, inventory.devices) == (requirement, ())
    assert f"[{requirement}]" in outcome.reason
