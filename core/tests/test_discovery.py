from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from anyaccel import discovery as discovery_module
from anyaccel.capabilities import MatchRule
from anyaccel.device import DeviceState
from anyaccel.discovery import KnownFamily, discover
from anyaccel.frozen import FrozenMap
from anyaccel.inventory import OutcomeStatus
from anyaccel.machine import LiveAnswers, StoredAnswers
from anyaccel.registry import Registry

CARDS = (("0000:01:00.0", 0x1DE8, "120000"), ("0000:02:00.0", 0x1DE8, "120000"))
OTHER = ("0000:03:00.0", 0x1DE9, "120000")

INSPECT = """
@hookimpl
def accel_inspect_devices(machine, devices):
    {body}
"""


def outcome(inventory, key="toy"):
    return next(o for o in inventory.outcomes if o.plugin == key)


def ids(inventory):
    return [device.id for device in inventory.devices]


def planted(body: str) -> str:
    return INSPECT.format(body=body)


def test_devices_of_every_plugin_in_order(write_toy, pci_machine):
    """Families stand in order of key, devices in numeric order of address, a 32-bit domain after ffff."""
    machine = pci_machine(("10000:01:00.0", 0x1DE8, "120000"), ("ffff:01:00.0", 0x1DE8, "120000"), OTHER)
    registry = Registry.of(write_toy(), write_toy(key="alpha", vendor="0x1de9", variable="ALPHA"))

    inventory = discover(machine, registry)

    assert ids(inventory) == ["alpha:0000:03:00.0", "toy:ffff:01:00.0", "toy:10000:01:00.0"]
    assert inventory.is_complete


def test_nothing_found_has_a_reason(write_toy, pci_machine):
    """A plugin without devices says why."""
    inventory = discover(pci_machine(), Registry.of(write_toy()))

    assert outcome(inventory).status is OutcomeStatus.NOTHING
    assert outcome(inventory).reason == "no toy card on PCI"


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("raise OSError('bus error')", "raised OSError in accel_discover_devices: bus error"),
        ("return None", "returned NoneType from accel_discover_devices"),
        ("return {}", "returned dict from accel_discover_devices"),
        ("return Discovery((Device(id='toy:1', family='toy'), Device(id='toy:1', family='toy')))", "'toy:1' twice"),
        ("return Discovery((Device(id='toy:1', family='toy', memory_bytes=-1),))", "memory_bytes=-1"),
        ("return Discovery((Device(id='other:1', family='other'),))", "DISC-003"),
        ("return Discovery((Device(id='toy:1', family='toy', parent='toy:0'),))", "before its parent"),
        ("return Discovery()", "gives no reason"),
    ],
)
def test_wrong_answers_cost_only_their_own_rows(body, told, write_toy, write_module, pci_machine):
    """Whatever one plugin answers, the other's devices are listed and the culprit is named."""
    bad = write_module(
        f"""
        from anyaccel.capabilities import Declaration
        from anyaccel.device import Device, Discovery
        from anyaccel.hookspec import hookimpl

        @hookimpl
        def accel_declare():
            return Declaration(key="toy", title="Bad")

        @hookimpl
        def accel_discover_devices(machine):
            {body}
        """
    )
    registry = Registry.of(bad, write_toy(key="good"))

    inventory = discover(pci_machine(*CARDS), registry)

    assert ids(inventory) == ["good:0000:01:00.0", "good:0000:02:00.0"]
    assert outcome(inventory).status is OutcomeStatus.BROKEN
    assert told in outcome(inventory).reason


def test_hanging_discovery_is_given_up(write_toy, write_module, pci_machine, monkeypatch):
    """A plugin that hangs in its file reading is named; the other's rows stand."""
    monkeypatch.setattr(discovery_module, "DISCOVER_TIMEOUT_SECONDS", 0.3)
    bad = write_module(
        """
        import time
        from anyaccel.capabilities import Declaration
        from anyaccel.hookspec import hookimpl

        @hookimpl
        def accel_declare():
            return Declaration(key="slow", title="Slow")

        @hookimpl
        def accel_discover_devices(machine):
            time.sleep(15)
        """
    )

    inventory = discover(pci_machine(*CARDS), Registry.of(bad, write_toy()), timeout_seconds=1)

    assert len(inventory.devices) == 2
    assert "did not come back within 0.3 s" in outcome(inventory, "slow").reason


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("import os; os.kill(os.getpid(), 11)", "killed by signal 11 (SIGSEGV) while running accel_inspect_devices"),
        ("import os; os._exit(3)", "ended with exit code 3"),
        ("raise ValueError('odd')", "raised ValueError in accel_inspect_devices: odd"),
        ("return None", "returned NoneType from accel_inspect_devices"),
        ("return Inspection(devices[::-1])", "changed the id, parent or order"),
        ("print('noise'); return Inspection(devices)", "printed 'noise'"),
        ("import os; os.write(1, b'raw noise'); return Inspection(devices)", "printed 'raw noise'"),
        (
            "import threading; threading.Thread(target=__import__('time').sleep, args=(5,), name='leftover', "
            "daemon=True).start(); return Inspection(devices)",
            "left the thread 'leftover' running",
        ),
    ],
)
def test_faults_in_the_probe_child_are_contained(body, told, write_toy, pci_machine, capfd):
    """A crash, an exit, a raise, a lie, a print or a leftover thread in one probe is named; the rows from files stay."""
    registry = Registry.of(write_toy(planted(body)), write_toy(key="good", vendor="0x1de9", variable="GOOD"))

    inventory = discover(pci_machine(*CARDS, OTHER), registry, isolate=True)

    assert [d.id for d in inventory.view("good").devices] == ["good:0000:03:00.0"]
    assert outcome(inventory).status is OutcomeStatus.BROKEN
    assert told in outcome(inventory).reason
    assert capfd.readouterr().out == ""


def test_rows_of_a_crashed_probe_are_unknown_with_the_cause(write_toy, pci_machine):
    """The devices that files told of stay, and each says that its driver was not heard."""
    registry = Registry.of(write_toy(planted("import os; os.kill(os.getpid(), 11)")))

    inventory = discover(pci_machine(*CARDS), registry, isolate=True)

    assert [d.state for d in inventory.devices] == [DeviceState.UNKNOWN] * 2
    assert "signal 11" in inventory.devices[0].reason


def test_hanging_probe_is_killed_and_names_the_question(write_toy, pci_machine):
    """A driver that never answers costs its deadline; the sentence names what was asked and a reboot."""
    body = "machine.ask('library', lambda: __import__('time').sleep(60)); return Inspection(devices)"
    registry = Registry.of(write_toy(planted(body)))
    notes = []
    started = time.monotonic()

    inventory = discover(
        pci_machine(*CARDS, answers={"toy": LiveAnswers()}),
        registry,
        isolate=True,
        timeout_seconds=3,
        on_progress=notes.append,
    )

    assert time.monotonic() - started < 15
    assert "asking 'library' in accel_inspect_devices" in outcome(inventory).reason
    assert "reboot" in outcome(inventory).hint
    assert notes == ["still waiting for plugin 'toy', asking 'library' in accel_inspect_devices"]


def test_children_of_the_probe_die_with_it(write_toy, pci_machine, tmp_path):
    """What a plugin started in the probe is gone when discovery returns."""
    pid_file = tmp_path / "pid"
    body = (
        "import subprocess, pathlib; p = subprocess.Popen(['sleep', '60']); "
        f"pathlib.Path({str(pid_file)!r}).write_text(str(p.pid)); return Inspection(devices)"
    )

    discover(pci_machine(*CARDS), Registry.of(write_toy(planted(body))), isolate=True)

    deadline = time.monotonic() + 10
    pid = int(pid_file.read_text())
    while _is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _is_running(pid)


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_link_to_an_unknown_device_is_refused(write_toy, pci_machine):
    """A topology that names a stranger is dropped whole and named with its requirement."""
    more = """
    @hookimpl
    def accel_describe_topology(machine, devices):
        return TopologyReport((Link(devices[0].id, "toy:nowhere", "bus", "B"),))
    """

    inventory = discover(pci_machine(*CARDS), Registry.of(write_toy(more)))

    assert inventory.links == ()
    assert len(inventory.devices) == 2
    assert outcome(inventory).requirement == "TOPO-001"
    assert "'toy:nowhere'" in outcome(inventory).reason


def test_link_from_a_device_to_itself_is_refused(write_toy, pci_machine):
    """A device has no link to itself."""
    more = """
    @hookimpl
    def accel_describe_topology(machine, devices):
        return TopologyReport((Link(devices[0].id, devices[0].id, "bus", "B"),))
    """

    assert "to itself" in outcome(discover(pci_machine(*CARDS), Registry.of(write_toy(more)))).reason


def test_two_plugins_with_one_card_count_it_once(write_toy, pci_machine):
    """The owner of the PCI vendor id keeps a card that two plugins claim; both are named."""
    registry = Registry.of(write_toy(key="alpha"), write_toy())

    inventory = discover(pci_machine(CARDS[0]), registry)

    assert ids(inventory) == ["alpha:0000:01:00.0"]
    assert inventory.conflicts == (
        "0000:01:00.0 is claimed by plugins alpha and toy; alpha keeps it because its key comes first",
    )
    assert not inventory.is_complete


def test_owner_of_the_vendor_id_wins_over_the_first_key(write_toy, pci_machine):
    """A plugin whose match rules name another vendor does not take the card."""
    more = """
    @hookimpl
    def accel_declare():
        return Declaration(key=KEY, title="Thief", matches=(MatchRule(vendor_id=0x9999),))
    """
    registry = Registry.of(write_toy(more, key="alpha"), write_toy())

    inventory = discover(pci_machine(CARDS[0]), registry)

    assert ids(inventory) == ["toy:0000:01:00.0"]
    assert "toy keeps it because it owns the PCI vendor id" in inventory.conflicts[0]


def test_mask_of_the_machine_hides_devices_by_name(write_toy, pci_machine):
    """The machine's own environment decides what is visible; the hidden device says which variable hid it."""
    inventory = discover(pci_machine(*CARDS, environ={"TOY_VISIBLE": "1"}), Registry.of(write_toy()))

    assert [d.state for d in inventory.devices] == [DeviceState.HIDDEN, DeviceState.READY]
    assert inventory.devices[0].reason == "hidden by TOY_VISIBLE"
    assert [inventory.visible_ordinal(d) for d in inventory.devices] == [None, 0]


def test_site_policy_hides_devices_of_other_families(write_toy, write_module, pci_machine):
    """A policy plugin hides by id; the device stays listed with the policy's reason."""
    policy = write_module(
        """
        from anyaccel.capabilities import Declaration
        from anyaccel.device import Discovery
        from anyaccel.hookspec import hookimpl

        @hookimpl
        def accel_declare():
            return Declaration(key="site", title="Site policy")

        @hookimpl
        def accel_discover_devices(machine):
            return Discovery(reason="a policy has no devices")

        @hookimpl
        def accel_filter_devices(devices):
            return {devices[0].id: "reserved for the display"}
        """
    )

    inventory = discover(pci_machine(*CARDS), Registry.of(policy, write_toy()))

    assert inventory.devices[0].state is DeviceState.HIDDEN
    assert "reserved for the display" in inventory.devices[0].reason
    assert inventory.devices[1].state is DeviceState.READY


KNOWN = KnownFamily("toy", "Toy", "anyaccel-toy", (MatchRule(vendor_id=0x1DE8),), FrozenMap({"1de8:0001": "Toy One"}))


def test_hardware_without_plugin_is_named_with_the_command(pci_machine):
    """A card whose plugin is not installed is listed with the line that installs it."""
    inventory = discover(pci_machine(CARDS[0]), Registry(), known=(KNOWN,))

    (row,) = inventory.unclaimed
    assert (row.location, row.name, row.plugin) == ("0000:01:00.0", "Toy One", "toy")
    assert row.reason == "plugin not installed"
    assert row.hint == "pip install anyaccel-toy"


def test_accelerator_that_nobody_knows_is_named(pci_machine):
    """A processing accelerator of an unknown vendor is no silence."""
    inventory = discover(pci_machine(OTHER, ("0000:04:00.0", 0x8086, "020000")), Registry())

    (row,) = inventory.unclaimed
    assert "1de9:0001" in row.reason


def test_dead_function_that_nobody_claims_is_named(pci_machine):
    """A function that reads all ones is listed by its address."""
    inventory = discover(pci_machine(("0000:1c:00.0", 0xFFFF, "ffffff")), Registry())

    assert inventory.unclaimed[0].reason == "not responding on PCI: reads return all ones"


def test_accelerator_node_of_another_vendor_is_unclaimed(pci_machine):
    """A node of the kernel's accel class that no plugin owns is listed as such, and counted as nothing else."""
    machine = pci_machine(
        ("0000:05:00.0", 0x1022, "118000"), files={"/sys/class/accel/accel0/uevent": "", "/sys/class/accel/x": ""}
    )
    machine.tree.links["/sys/class/accel/accel0/device"] = "/sys/devices/pci0000:05/0000:05:00.0"

    inventory = discover(machine, Registry())

    assert [(r.location, r.reason) for r in inventory.unclaimed] == [
        ("/dev/accel/accel0", "unclaimed accelerator node")
    ]


def test_stranger_with_a_node_is_named_once(pci_machine):
    """An accelerator that nobody knows and its node of the accel class are one row."""
    machine = pci_machine(OTHER, files={"/sys/class/accel/accel0/uevent": ""})
    machine.tree.links["/sys/class/accel/accel0/device"] = "/sys/devices/pci0000:03/0000:03:00.0"

    assert [r.location for r in discover(machine, Registry()).unclaimed] == ["0000:03:00.0"]


def test_discovery_leaves_environment_and_children_alone(write_toy, pci_machine):
    """The driver's process has the same environment before and after."""
    before = dict(os.environ)
    registry = Registry.of(write_toy(planted("import os; os.environ['X_TOY'] = '1'; return Inspection(devices)")))

    inventory = discover(pci_machine(*CARDS), registry)

    assert dict(os.environ) == before
    assert "X_TOY" in outcome(inventory).reason


def test_generation_changes_with_the_units(write_toy, pci_machine):
    """The digest a grant is made for is the same for the same units and another for other units."""
    registry = Registry.of(write_toy())
    two, again, one = (discover(pci_machine(*rows), registry) for rows in (CARDS, CARDS, CARDS[:1]))

    assert two.generation == again.generation
    assert two.generation != one.generation


def test_fault_answers_are_acted_out_by_the_child(write_toy, pci_machine):
    """A simulated crash of a driver call kills the probe child and nothing else."""
    body = "machine.ask('library', dict); return Inspection(devices)"
    answers = {"toy": StoredAnswers(FrozenMap({"library": {"fault": "crash"}}))}

    inventory = discover(pci_machine(*CARDS, answers=answers), Registry.of(write_toy(planted(body))))

    assert "killed by signal 11 (SIGSEGV) while asking 'library'" in outcome(inventory).reason


def test_a_longer_limit_is_also_one_for_reading_files(write_module, pci_machine, monkeypatch):
    """Who gives the command more time gives it to the plugins that read files, too."""
    monkeypatch.setattr(discovery_module, "DISCOVER_TIMEOUT_SECONDS", 0.05)
    slow = write_module(
        """
        import time
        from anyaccel.capabilities import Declaration
        from anyaccel.device import Discovery
        from anyaccel.hookspec import hookimpl

        @hookimpl
        def accel_declare():
            return Declaration(key="slow", title="Slow")

        @hookimpl
        def accel_discover_devices(machine):
            time.sleep(0.5)
            return Discovery(reason="looked well")
        """
    )

    inventory = discover(pci_machine(), Registry.of(slow), timeout_seconds=60)

    assert outcome(inventory, "slow").reason == "looked well"


def test_late_print_of_an_abandoned_plugin_does_not_reach_stdout(write_module, pci_machine, monkeypatch, capsys):
    """A plugin that was given up cannot write into the program's output afterwards; the program itself can."""
    monkeypatch.setattr(discovery_module, "DISCOVER_TIMEOUT_SECONDS", 0.2)
    late = write_module(
        """
        import time
        from anyaccel.capabilities import Declaration
        from anyaccel.hookspec import hookimpl

        @hookimpl
        def accel_declare():
            return Declaration(key="late", title="Late")

        @hookimpl
        def accel_discover_devices(machine):
            time.sleep(0.6)
            print("late noise")
        """
    )
    streams = (sys.stdout, sys.stderr)

    discover(pci_machine(), Registry.of(late))
    time.sleep(0.8)
    print("own words")
    sys.stdout.flush()
    sys.stdout, sys.stderr = streams

    assert capsys.readouterr().out == "own words\n"
