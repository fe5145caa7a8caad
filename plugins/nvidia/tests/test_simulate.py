"""Imaginary machines: every shipped one is valid, and mistakes in a description are named."""

from __future__ import annotations

import pytest

from anyaccel.device import DeviceState
from anyaccel.discovery import discover
from anyaccel.errors import RecordingError
from anyaccel.simulation import list_machines, parse_description, simulate
from anyaccel_nvidia.simulate import simulate_family
from anyaccel_nvidia.simulated_options import CARD_OPTIONS, FAMILY_OPTIONS

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
        (CARD.format(model="l4", more="foo = 1"), "unknown option 'foo' of NVIDIA card 0000:01:00.0 .known: .*minor"),
        (CARD.format(model="nvswitch-h100", more="minor = 1"), "unknown option 'minor' of NVIDIA card 0000:01:00.0"),
        (
            CARD.format(model="l4", more="") + CARD.format(model="t4", more="").replace("address", "adress"),
            "unknown option 'adress' of NVIDIA card number 2 .'t4', without address. .known: address, ",
        ),
        (
            CARD.format(model="l4", more="").replace("address", "# address"),
            "NVIDIA card number 1 .'l4', without address. needs a PCI address .boards without PCI: orin",
        ),
        (CARD.format(model="nvswitch-h100", more="").replace("address", "# address"), "needs a PCI address"),
        (
            CARD.format(model="l4", more="") + '[[fault]]\nkind = "lost-card"\nplugin = "nvidia"\ncards = 1\n',
            "unknown option 'cards' of fault 'lost-card' .known: none",
        ),
        (
            CARD.format(model="l4", more="")
            + '[[fault]]\nkind = "lost-card"\nplugin = "nvidia"\ncard = "0000:02:00.0"\n',
            "concerns card '0000:02:00.0', which is no NVIDIA card here",
        ),
        (CARD.format(model="a100-sxm4-40gb", more='mig = ["big"]'), "unknown MIG profile 'big'"),
        (CARD.format(model="a100-sxm4-40gb", more='mig = ["7g.40gb", "7g.40gb"]'), "too many MIG instances"),
    ],
)
def test_mistakes_are_named(text, words, machine_of):
    """A model, option, fault or profile that does not exist is one sentence with the known ones."""
    with pytest.raises(RecordingError, match=words):
        machine_of(text)


def test_near_word_is_suggested(machine_of):
    """A misspelt key is answered with the one that was meant."""
    with pytest.raises(RecordingError) as caught:
        machine_of(CARD.format(model="l4", more="").replace("address", "adress"))

    assert caught.value.hint == "did you mean 'address'?"


def test_fault_finds_its_card_however_the_address_is_written(registry):
    """The address of a fault may be spelled as the driver prints it."""
    fault = '[[fault]]\nkind = "lost-card"\nplugin = "nvidia"\ncard = "00000000:0A:00.0"\n'
    text = 'schema = "anyaccel-machine/1"\n' + CARD.format(model="l4", more="").replace("01:00", "0a:00") + fault

    (device,) = discover(simulate(parse_description(text), registry), registry).devices

    assert device.state is DeviceState.LOST


CARD_SAMPLES = {
    "minor": "3",
    "uuid": '"GPU-1"',
    "runtime_status": '"suspended"',
    "never_used": "true",
    "driver_numa_node": "1",
    "mig": '["1g.5gb"]',
    "mig_holes": "true",
    "mig_pending": "1",
    "compute_mode": "2",
    "display_active": "true",
    "processes": "[7]",
    "ecc_uncorrected": "2",
    "remapped_rows": "[0, 1, 1, 0]",
    "retired_pages": "3",
    "retired_pages_pending": "1",
    "fabric_cluster": '"1"',
    "fabric_clique": "2",
    "fabric_health_mask": "1",
    "power_milliwatts": "90000",
    "temperature_celsius": "80",
    "utilization_percent": "50",
}
FAMILY_SAMPLES = {
    "driver_version": '"1.2"',
    "library_version": '"1.2"',
    "cuda_version": "13000",
    "flavour": '"proprietary"',
    "wsl_first_copy": "9",
    "board_chip": '"tegra234"',
    "board_name": '"a board"',
}


@pytest.mark.parametrize("option", CARD_OPTIONS)
def test_every_option_of_a_card_changes_something(option):
    """No option is known by name only."""
    model = {"retired_pages": "t4", "retired_pages_pending": "t4"}.get(option, "h100-sxm5-80gb")
    before = CARD.format(model=model, more='mig = ["1g.5gb"]' if option == "mig_holes" else "")

    assert family(before) != family(f"{before}{option} = {CARD_SAMPLES[option]}\n")


@pytest.mark.parametrize("option", FAMILY_OPTIONS)
def test_every_option_of_the_family_changes_something(option):
    """No option is known by name only."""
    fault = '[[fault]]\nkind = "driver-mismatch"\nplugin = "nvidia"\n' if option == "library_version" else ""
    chip = 'board_chip = "tegra234"\n' if option == "board_name" else ""
    before = CARD.format(model="l4", more="") + fault + "[nvidia]\n" + chip

    assert family(before) != family(f"{before}{option} = {FAMILY_SAMPLES[option]}\n")


def family(text):
    return simulate_family(parse_description('schema = "anyaccel-machine/1"\n' + text))


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
