"""Imaginary machines: the shipped ones, their sameness, and descriptions that are refused."""

from __future__ import annotations

from importlib import resources

import pytest

from anyaccel.errors import RecordingError
from anyaccel.simulation import find_machine, list_machines

SHIPPED = (
    "amd-container-2-of-8",
    "amd-mi210x4",
    "amd-mi300x8",
    "amd-mi300x8-cpx-63",
    "amd-mi300x8-uncorrected",
    "amd-no-permission",
    "amd-strix-halo",
    "amd-workstation-dgpu-igpu",
)


def test_shipped_machines_are_found_by_name(registry):
    """Each is package data of the plugin, with a title."""
    machines = list_machines(registry)

    assert set(SHIPPED) == set(machines)
    assert all(find_machine(name, registry).title for name in SHIPPED)


def test_shipped_machines_lie_in_the_package():
    """The installed package carries the descriptions."""
    files = {file.name for file in (resources.files("anyaccel_amd") / "machines").iterdir()}

    assert files >= {f"{name}.toml" for name in SHIPPED}


@pytest.mark.parametrize(
    ("name", "devices", "links"),
    [
        ("amd-container-2-of-8", 8, 1),
        ("amd-mi210x4", 4, 6),
        ("amd-mi300x8", 8, 28),
        ("amd-mi300x8-cpx-63", 71, 63 * 31),
        ("amd-mi300x8-uncorrected", 8, 28),
        ("amd-no-permission", 2, 1),
        ("amd-strix-halo", 1, 0),
        ("amd-workstation-dgpu-igpu", 2, 0),
    ],
)
def test_shipped_machine_is_found_whole(name, devices, links, shipped, inventory_of):
    """Devices and links of every shipped machine."""
    inventory = inventory_of(shipped(name))

    assert (len(inventory.devices), len(inventory.links)) == (devices, links)
    assert all(outcome.reason is None for outcome in inventory.outcomes)


@pytest.mark.parametrize("name", SHIPPED)
def test_the_same_description_is_the_same_machine(name, shipped):
    """Ids and numbers are derived, never drawn."""
    first, second = shipped(name), shipped(name)

    assert first.tree == second.tree
    assert first.answers["amd"].documents == second.answers["amd"].documents


@pytest.mark.parametrize("name", SHIPPED)
def test_no_serial_number_is_made_up(name, shipped):
    """Neither files nor answers of an imaginary machine hold a serial number."""
    assert not [path for path in shipped(name).tree.files if "serial" in path]
    assert "serial" not in str(shipped(name).answers["amd"].documents)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[[card]]\nplugin = "amd"\nmodel = "mi999"\naddress = "0000:23:00.0"\n', "no model 'mi999'"),
        ('[[card]]\nplugin = "amd"\nmodel = "mi210"\n', "needs a PCI address"),
        (
            '[[card]]\nplugin = "amd"\nmodel = "mi210"\naddress = "0000:23:00.0"\ncolour = 1\n',
            "unknown option 'colour'",
        ),
        ("[amd]\ncolour = 1\n", "unknown option 'colour'"),
        ('[amd]\nhive = "ring"\n', "unknown hive 'ring'"),
        ('[amd]\n[[fault]]\nplugin = "amd"\nkind = "rust"\n', "unknown fault 'rust'"),
        (
            '[amd]\n[[fault]]\nplugin = "amd"\nkind = "uncorrected-errors"\ncard = "0000:99:00.0"\n',
            "fault uncorrected-errors names no card of amd: '0000:99:00.0'",
        ),
        (
            '[[card]]\nplugin = "amd"\nmodel = "mi210"\naddress = "0000:23:00.0"\ncompute_partition = "CPX2"\n',
            "no compute partition mode 'CPX2'",
        ),
        (
            '[[card]]\nplugin = "amd"\nmodel = "mi210"\naddress = "0000:23:00.0"\ncompute_partition = "DPX"\n',
            "a part of 1 dies has no compute partition mode 'DPX'",
        ),
    ],
)
def test_a_wrong_description_is_refused_with_the_known_words(text, words, described):
    """Nothing unknown is passed over in silence."""
    with pytest.raises(RecordingError, match=words.replace("(", r"\(")):
        described(text)


def test_amdsmi_answers_nothing_without_a_driven_card(described, card):
    """A machine whose cards are given away has no driver to answer."""
    answer = described(card(driver='"vfio-pci"')).answers["amd"].documents["amdsmi"]

    assert answer["reason_code"] == "driver-not-loaded"


def test_a_dead_card_is_left_out_of_the_answer(described, card):
    """amdsmi cannot tell of a card that does not respond."""
    text = card() + card(address="0000:26:00.0") + '[[fault]]\nkind = "dead-link"\ncard = "0000:23:00.0"\n'

    answer = described(text).answers["amd"].documents["amdsmi"]

    assert [row["address"] for row in answer["processors"]] == ["0000:26:00.0"]


@pytest.mark.parametrize("kind", ["hang", "crash"])
def test_acted_out_faults_are_the_core_s(kind, described, card):
    """A driver that hangs or crashes is left to the probe to act out."""
    text = card() + f'[[fault]]\nplugin = "amd"\nkind = "{kind}"\n'

    assert described(text).answers["amd"].documents["amdsmi"] == {"fault": kind}


def test_a_crashing_library_takes_no_device(described, registry, card):
    """The probe child dies; the GPUs stay, told from files."""
    from anyaccel.discovery import discover

    text = card() + '[[fault]]\nplugin = "amd"\nkind = "crash"\n'

    inventory = discover(described(text), registry)

    assert [device.id for device in inventory.devices] == ["amd:0000:23:00.0"]
    assert inventory.devices[0].numbers["index"] == 0
