"""Imaginary machines: every shipped one is valid, and mistakes in a description are named."""

from __future__ import annotations

import pytest

from anyaccel.discovery import discover
from anyaccel.errors import RecordingError
from anyaccel.simulation import list_machines, simulate

CARD = '[[card]]\nplugin = "nvidia"\nmodel = "{model}"\naddress = "0000:01:00.0"\n{more}\n'


def test_shipped_machines_are_listed(registry, shipped_names):
    """All machines of the package are found by name."""
    assert list(list_machines(registry)) == list(shipped_names)


def test_shipped_machines_say_that_they_are_imaginary(registry, shipped, shipped_names):
    """Every device of every shipped machine is marked as simulated."""
    for name in shipped_names:
        devices = discover(simulate(shipped(name), registry), registry, timeout_seconds=2).devices

        assert devices, name
        assert all(device.is_simulated for device in devices), name


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (CARD.format(model="h200", more=""), "unknown NVIDIA model 'h200'"),
        (CARD.format(model="l4", more="") + "[nvidia]\ncolour = 1\n", "unknown option 'colour'"),
        (
            CARD.format(model="l4", more="") + '[[fault]]\nkind = "fire"\nplugin = "nvidia"\n',
            "unknown NVIDIA fault 'fire'",
        ),
        (CARD.format(model="a100-sxm4-40gb", more='mig = ["big"]'), "unknown MIG profile 'big'"),
        (CARD.format(model="a100-sxm4-40gb", more='mig = ["7g.40gb", "7g.40gb"]'), "too many MIG instances"),
    ],
)
def test_mistakes_are_named(text, words, machine_of):
    """A model, option, fault or profile that does not exist is one sentence with the known ones."""
    with pytest.raises(RecordingError, match=words):
        machine_of(text)


def test_files_and_answers_agree(machine_of, shipped, shipped_names):
    """Ids and device numbers in /proc are those of the driver's answer."""
    from anyaccel_nvidia.kernel_files import read_driver_files

    for name in shipped_names:
        machine = machine_of(shipped(name))
        cards = read_driver_files(machine, frozenset()).cards
        answer = machine.answers["nvidia"].documents["nvml"]
        for device in answer.get("devices", []):
            if device.get("pci_address") in cards:
                card = cards[device["pci_address"]]

                assert (card.uuid, card.minor, card.model) == (device["uuid"], device["minor"], device["name"])
