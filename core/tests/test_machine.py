from __future__ import annotations

import os
import pickle

import pytest

from anyaccel.discovery import discover
from anyaccel.errors import DeadlineExceededError, UnavailableError
from anyaccel.files import HostTree, MemoryTree, NodeFact
from anyaccel.frozen import FrozenMap
from anyaccel.machine import Deadline, Journal, Machine, MachineKind, StoredAnswers, current_user, live_machine
from anyaccel.registry import Registry


def test_live_machine_is_this_one():
    """The live machine reads this host, has this environment and user, and leaves questions to the probe child."""
    machine = live_machine()

    assert machine.is_live
    assert machine.read_text("/proc/self/status").startswith("Name:")
    assert "self" in machine.list_folder("/proc")
    assert machine.resolve("/proc/self") == f"/proc/{os.getpid()}"
    assert machine.exists("/dev/null")
    assert dict(machine.environ) == dict(os.environ)
    assert machine.user == current_user()
    assert machine.user.uid == os.getuid()
    with pytest.raises(UnavailableError, match="probe child only"):
        machine.ask("x", dict)


def test_rights_of_a_live_device_file_come_from_its_status():
    """Device numbers and access are read without opening the file."""
    fact = live_machine().node("/dev/null")

    assert (fact.major, fact.minor, fact.can_open) == (1, 3, True)
    assert live_machine().node("/dev/nothing-of-this-name") is None


def test_discovery_of_this_machine_without_plugins_is_empty():
    """Without plugins there are no devices and no outcome, whatever this machine is."""
    inventory = discover(registry=Registry())

    assert inventory.devices == ()
    assert inventory.kind is MachineKind.LIVE


def test_folder_that_cannot_be_searched_denies_its_nodes():
    """A device file below a folder without search permission is denied, not missing."""

    class Locked(MemoryTree):
        def node(self, path):
            raise PermissionError(13, "denied")

    assert Machine(Locked()).node("/dev/x").can_open is False


def test_owner_needs_read_and_write():
    """The owner's own bits decide for the owner."""
    from anyaccel.machine import UserFacts

    tree = MemoryTree(nodes={"/dev/a": NodeFact(0o600, "1000"), "/dev/b": NodeFact(0o400, "1000")})
    machine = Machine(tree, user=UserFacts(1000))

    assert machine.node("/dev/a").can_open is True
    assert machine.node("/dev/b").can_open is False


def test_every_read_checks_the_deadline():
    """Once the time is over, files, folders, links, nodes and questions all say so."""
    machine = Machine(MemoryTree({"/a": b""}), answers={"*": StoredAnswers()}, deadline=Deadline(-1))

    for act in (
        lambda: machine.read_text("/a"),
        lambda: machine.list_folder("/"),
        lambda: machine.exists("/a"),
        lambda: machine.resolve("/a"),
        lambda: machine.node("/a"),
        lambda: machine.ask("x", dict),
    ):
        with pytest.raises(DeadlineExceededError):
            act()


def test_machine_without_answers_says_so():
    """A machine made without answers answers nothing."""
    with pytest.raises(UnavailableError, match="answers no questions"):
        Machine(MemoryTree()).ask("x", dict)


def test_each_plugin_has_its_own_answers():
    """A plugin is never given the answer of another."""
    answers = {"a": StoredAnswers(FrozenMap({"t": {"from": "a"}})), "*": StoredAnswers()}
    machine = Machine(MemoryTree(), answers=answers)

    assert machine.for_plugin("a").ask("t", dict) == {"from": "a"}
    with pytest.raises(UnavailableError, match="holds no answer"):
        machine.for_plugin("b").ask("t", dict)


def test_machine_travels_to_another_process():
    """Files, environment, answers and user survive; what was cached does not have to."""
    machine = Machine(MemoryTree({"/a": b"1"}), environ={"V": "1"}, kind=MachineKind.SIMULATED, name="m")
    machine.pci_functions()

    again = pickle.loads(pickle.dumps(machine))

    assert again.read_text("/a") == "1"
    assert (again.environ["V"], again.is_simulated, again.name) == ("1", True, "m")


def test_journal_notes_nodes_and_listed_names():
    """Rights and the names of a listing are part of what was looked at."""
    journal = Journal()
    machine = Machine(MemoryTree({"/d/a": b""}, nodes={"/dev/x": NodeFact(0o666)}), journal=journal)
    machine.node("/dev/x")
    machine.list_folder("/d")
    machine.exists("/d/a")

    other = Journal()
    other.merge(journal)
    assert set(other.nodes) == {"/dev/x"}
    assert {"/d", "/d/a"} <= other.folders
    assert HostTree().exists("/nothing-of-this-name") is False


def test_names_that_are_nobodys_business_are_not_noted():
    """With a pattern only matching names are given, and only they are part of what was looked at."""
    journal = Journal()
    tree = MemoryTree(nodes={"/dev/toy0": NodeFact(0o666), "/dev/vm-secret": NodeFact(0o600)})
    machine = Machine(tree, journal=journal)

    assert machine.list_folder("/dev", r"toy\d+") == ("toy0",)
    assert journal.folders == {"/dev", "/dev/toy0"}
