"""What a description may say of Neuron cards."""

from __future__ import annotations

import pytest

from anyaccel.errors import RecordingError

CARD = '[[card]]\nplugin = "neuron"\nmodel = "trn1"\naddress = "0000:10:00.0"\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (CARD.replace("trn1", "trn9"), "trn9"),
        (CARD + "colour = 1\n", "colour"),
        (CARD + 'index = "0"\n', "whole number"),
        (CARD + "index = true\n", "whole number"),
        (CARD + CARD.replace("10:", "11:") + "index = 0\n", "same index"),
        ('[neuron]\nlinks = "star"\n' + CARD, "'star'"),
        ('[neuron]\ntool = "golden"\n' + CARD, "'golden'"),
        (CARD + '[[fault]]\nkind = "melted"\nplugin = "neuron"\n', "melted"),
    ],
)
def test_what_nobody_knows_is_refused(text, words, machine_of):
    """Each with a sentence that names it."""
    with pytest.raises(RecordingError, match=words):
        machine_of(text)


@pytest.mark.parametrize("tool", ["new", "old", "wrapped"])
def test_every_version_of_the_program_gives_the_same_devices(tool, view_of):
    """The answer's form changes nothing."""
    view = view_of(f'[neuron]\ntool = "{tool}"\nlinks = "ring"\n' + CARD + CARD.replace("10:", "11:"))

    assert [(d.id, d.pci_addresses, d.memory_bytes) for d in view.roots] == [
        ("neuron:0", ("0000:10:00.0",), 32 << 30),
        ("neuron:1", ("0000:11:00.0",), 32 << 30),
    ]
    assert len(view.links) == 1


@pytest.mark.parametrize(("fault", "code"), [("tool-missing", "program-missing"), ("tool-hangs", "fault")])
def test_a_silent_program_leaves_the_files(fault, code, view_of):
    """Devices are listed, memory is unknown."""
    view = view_of(CARD + f'[[fault]]\nkind = "{fault}"\nplugin = "neuron"\n')

    assert view.roots[0].memory_bytes is None


def test_a_one_sided_link(view_of):
    """One device of three tells of no link to the first."""
    text = '[neuron]\nlinks = "ring"\n' + "".join(CARD.replace("10:", f"1{n}:") for n in range(3))

    view = view_of(text + '[[fault]]\nkind = "one-sided"\nplugin = "neuron"\ncard = "0000:10:00.0"\n')

    assert sorted(link.state.value for link in view.links) == ["unknown", "unknown", "up"]


def test_without_a_bound_card_the_program_fails(machine_of):
    """It ends with 1, as it does without a driver."""
    machine = machine_of(CARD + 'driver = "vfio-pci"\n')

    assert not machine.exists("/dev/neuron0")
    assert not machine.exists("/sys/module/neuron/version")
