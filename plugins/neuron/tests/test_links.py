"""NeuronLink as files and neuron-ls tell it."""

from __future__ import annotations

import pytest

from anyaccel.device import Device
from anyaccel.errors import UnavailableError
from anyaccel.files import MemoryTree
from anyaccel.frozen import FrozenMap
from anyaccel.machine import Machine, MachineKind
from anyaccel.topology import LinkState
from anyaccel_neuron.links import describe_links


def device(number):
    return Device(f"neuron:{number}", "neuron", numbers=FrozenMap({"index": number}))


def links_of(files, answer=None, count=2):
    tree = {f"/sys/class/neuron_device/neuron{n}/connected_devices": text for n, text in files.items()}
    machine = Machine(MemoryTree(tree), kind=MachineKind.SIMULATED)

    def ask():
        if answer is None:
            pytest.fail("asked")
        return answer

    return describe_links(machine, [device(n) for n in range(count)], ask)


def rows(peers):
    return [{"neuron_device": number, "connected_to": others} for number, others in peers.items()]


def test_torus_has_two_links_a_device(server):
    """Each of sixteen devices has four neighbours; the speed is unknown with a reason."""
    assert len(server.links) == 32
    assert {link.bytes_per_second_each_way for link in server.links} == {None}
    assert "nothing public tells" in server.links[0].reason


def test_ring_closes(described):
    """The last device of a ring is next to the first, of a chain it is not."""
    ring, chain = (described(4, "inf2", f'links = "{shape}"').links for shape in ("ring", "chain"))

    assert (len(ring), len(chain)) == (4, 3)


def test_files_go_before_the_program():
    """Root reads the driver's own file."""
    (link,) = links_of({0: b"1\n", 1: b"0\n"}).links

    assert (link.a, link.b, link.kind, link.label, link.count) == ("neuron:0", "neuron:1", "neuronlink", "NL", 1)


def test_two_links_between_two_devices():
    """A device named twice is connected twice."""
    assert links_of({0: b"1, 1\n", 1: b"0, 0\n"}).links[0].count == 2


@pytest.mark.parametrize("text", [b"1;\n", b"\xff\n", b"one\n"])
def test_odd_file_makes_the_program_be_asked(text):
    """What cannot be read is asked for."""
    assert len(links_of({0: text, 1: b"0\n"}, rows({0: [1], 1: [0]})).links) == 1


def test_one_sided_link_is_unknown():
    """Both ends must tell of a link."""
    report = links_of({0: b"1\n", 1: b"\n"})

    assert report.links[0].state is LinkState.UNKNOWN
    assert report.notes == ("only one end tells of the link between neuron:0 and neuron:1",)


def test_link_of_which_one_end_was_silent_is_believed():
    """null is unknown, not none."""
    report = links_of({}, rows({0: [1], 1: None}))

    assert (report.links[0].state, report.notes) == (LinkState.UP, ())


def test_peers_outside_are_a_note():
    """A container may hold a part of the ring."""
    assert links_of({}, rows({0: [1, 7], 1: [0]})).notes == ("connected to devices that are not here: 7",)


def test_silence_is_no_empty_graph():
    """When the program tells nothing of any device, links are unknown."""
    with pytest.raises(UnavailableError, match="tells no connection of any device"):
        links_of({}, rows({0: None, 1: None}))


def test_one_device_has_no_links():
    """Nothing is asked."""
    assert links_of({}, count=1).reason == "fewer than two devices"


def test_two_that_are_not_connected():
    """Looked and found none."""
    assert links_of({0: b"\n", 1: b"\n"}).links == ()
