"""Plugins that answer nonsense, in every hook and in every way: each costs its own rows only and is named."""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from anyaccel.discovery import discover
from anyaccel.inventory import OutcomeStatus
from anyaccel.machine import LiveAnswers
from anyaccel.registry import Registry

CARDS = (("0000:01:00.0", 0x1DE8, "120000"), ("0000:02:00.0", 0x1DE9, "120000"))
WRONG = """
from dataclasses import replace
import os, sys, time

class Str(str):
    def __hash__(self): raise RuntimeError("hashed")

class Endless(tuple):
    def __iter__(self):
        while True: yield 1

class Liar:
    @property
    def __class__(self): raise RuntimeError("asked")

class Unspeakable(Exception):
    def __str__(self): raise RuntimeError("spoken")

def dev(**fields):
    return replace(Device(id="toy:0", family="toy"), **fields)

@hookimpl
def accel_discover_devices(machine):
    devices = (dev(),)
    DISCOVER
    return Discovery(devices)

@hookimpl
def accel_inspect_devices(machine, devices):
    INSPECT
    return Inspection(devices)

@hookimpl
def accel_describe_topology(machine, devices):
    TOPOLOGY
    return TopologyReport()

@hookimpl
def accel_filter_devices(devices):
    FILTER
    return {}
"""


@pytest.fixture
def two(write_toy, pci_machine):
    """Look at a machine with a good plugin and one with these lines in its hooks; gives the inventory."""

    def look(*, is_live=False, timeout_seconds=10.0, **bodies):
        source = WRONG
        for hook in ("DISCOVER", "INSPECT", "TOPOLOGY", "FILTER"):
            body = textwrap.indent(bodies.get(hook.lower(), "pass"), "    ").strip()
            source = source.replace(f"    {hook}\n", f"    {body}\n")
        registry = Registry.of(write_toy(source), write_toy(key="good", vendor="0x1de9", variable="GOOD"))
        answers = {"toy": LiveAnswers()} if is_live else {}
        machine = pci_machine(*CARDS, answers=answers) if answers else pci_machine(*CARDS)
        return discover(machine, registry, timeout_seconds=timeout_seconds)

    return look


def _check_only_toy_is_broken(inventory):
    status = {outcome.plugin: outcome.status for outcome in inventory.outcomes}
    assert status == {"good": OutcomeStatus.FOUND, "toy": OutcomeStatus.BROKEN}
    assert [d.id for d in inventory.view("good").devices] == ["good:0000:02:00.0"]
    reason = next(o.reason for o in inventory.outcomes if o.plugin == "toy")
    assert reason
    return reason


@pytest.mark.parametrize(
    "body",
    [
        'devices = (dev(id=5),)',
        'devices = (dev(memory_bytes="1"),)',
        'devices = (dev(numa_node="0"),)',
        'devices = (dev(id=Str("toy:0")),)',
        'devices = Endless((dev(),))',
        'devices = (dev(pci_addresses=None),)',
        'devices = (dev(pci_addresses=(5,)),)',
        'devices = (dev(pci_addresses=("here",)),)',
        'devices = (dev(conditions=5),)',
        'devices = (dev(numbers=5),)',
        'devices = (dev(model=lambda: 1),)',
        'devices = (dev(family="other"),)',
        'return Discovery(devices, facts=5)',
        'return Discovery(devices, claimed=5)',
        'return Discovery(devices, notes=5)',
        'return Discovery((), reason=5)',
        'return Liar()',
        'devices = tuple(dev(id=f"toy:{n}", parent=f"toy:{n - 1}" if n else None) for n in range(2000))',
        'raise Unspeakable()',
        'from anyaccel.errors import DeviceError; raise DeviceError.__new__(DeviceError)',
        'raise KeyboardInterrupt',
        'sys.stdout.close(); print("still here")',
    ],
)  # fmt: skip
def test_a_wrong_discovery_costs_its_own_rows(body, two):
    """Every field that is not what the contract says, and every odd way to fail, breaks this plugin and no other."""
    _check_only_toy_is_broken(two(discover=body))


@pytest.mark.parametrize("is_live", [False, True], ids=["here", "child"])
@pytest.mark.parametrize(
    "bodies",
    [
        {"inspect": "return Inspection(devices, facts=5)"},
        {"inspect": "return Inspection(devices, notes=5)"},
        {"inspect": "return Inspection((replace(devices[0], id=None),))"},
        {"inspect": "return Inspection((replace(devices[0], model=lambda: 1),))"},
        {"inspect": "raise Unspeakable()"},
        {"topology": "return TopologyReport(links=5)"},
        {"topology": "return TopologyReport(links=(5,))"},
        {"topology": "return TopologyReport(nodes=5)"},
        {"topology": "return TopologyReport(notes=5)"},
        {"filter": "return {devices[0].id: Unspeakable()}"},
        {"filter": "print('here')"},
    ],
    ids=str,
)
def test_a_wrong_answer_later_on_costs_its_own_rows(bodies, is_live, two):
    """The same for what is asked in the probe child and in this process."""
    _check_only_toy_is_broken(two(is_live=is_live, **bodies))


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ('os.write(int(sys.argv[2]), b"\\0\\0\\0\\4abcd")', "answered with a damaged message"),
        ('os.write(int(sys.argv[2]), b"\\xff" * 8)', "answered with something that is no message"),
        ('import pickle; m = pickle.dumps(("answer", print)); import struct\n'
         'os.write(int(sys.argv[2]), struct.pack("!I", len(m)) + m)', "answered with a builtins.print, which is no value"),
        ('sys.executable = ""; os._exit(3)', "ended with exit code 3"),
    ],
)  # fmt: skip
def test_garbage_on_the_pipe_is_named(body, told, two):
    """What a child writes beside its answers is never rebuilt here, and never stops the others."""
    reason = _check_only_toy_is_broken(two(is_live=True, inspect=body))

    assert told in reason


def test_a_flood_on_the_pipe_ends_at_the_deadline(two):
    """A child that never stops answering is killed in time."""
    flood = 'os.write(int(sys.argv[2]), b"\\0\\0\\xff\\xff")\nwhile True: os.write(int(sys.argv[2]), b"x" * 65536)'
    started = time.monotonic()

    _check_only_toy_is_broken(two(is_live=True, inspect=flood, timeout_seconds=3))

    assert time.monotonic() - started < 15


def test_a_probe_that_cannot_be_started_costs_its_own_facts(two):
    """Without an interpreter to start, rows from files stay and the plugin is named."""
    before = sys.executable
    try:
        sys.executable = "/nowhere/python"
        reason = _check_only_toy_is_broken(two(is_live=True))
    finally:
        sys.executable = before

    assert "the probe cannot be started" in reason


def test_one_that_hangs_leaves_the_others_their_time(two):
    """Half of the time at most goes to one plugin's files; whose time ran out is not called hung."""
    inventory = two(discover="time.sleep(30)", timeout_seconds=2)

    reason = _check_only_toy_is_broken(inventory)
    assert "did not come back within 1 s" in reason


def test_no_time_left_is_not_called_a_hang(write_toy, pci_machine):
    """A driver that nobody had time to ask is not wedged."""
    source = "@hookimpl\ndef accel_inspect_devices(machine, devices):\n    return Inspection(devices)\n"
    from anyaccel import _probe

    request = _probe.ProbeRequest(
        "toy", write_toy(source), pci_machine(*CARDS), (), ("accel_inspect_devices",), 0.0, False
    )

    result = _probe.run_probes((request,))["toy"]

    assert (result.failure, result.hint) == ("no time was left to ask its driver", "raise the limit with --timeout")


# What is shared with the calling program.


def _program(code, tmp_path, **options):
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(code))
    environ = {**os.environ, "ANYACCEL_PLUGINS": "nobody", "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run([sys.executable, str(script)], env=environ, timeout=60, check=False, **options)


@pytest.fixture
def slow_module(write_module, write_toy):
    """The name of a plugin that prints and changes the environment while it takes its time."""
    return write_toy(
        """
        import os, time

        @hookimpl
        def accel_filter_devices(devices):
            for _ in range(10):
                print("from the plugin")
                os.environ["FROM_PLUGIN"] = "1"
                time.sleep(0.02)
            return {}
        """
    )


def test_the_calling_program_goes_on_while_another_thread_discovers(slow_module, pci_machine, capsys):
    """Its prints arrive, its variables stay, its threads are nobody's; what the plugin did is undone and named."""
    registry = Registry.of(slow_module)
    inventories = []
    looking = threading.Thread(target=lambda: inventories.append(discover(pci_machine(*CARDS), registry)))
    looking.start()
    number = 0
    while looking.is_alive():
        print(f"mark {number}")
        os.environ["FROM_PROGRAM"] = str(number)
        threading.Thread(target=time.sleep, args=(0.05,), name="of the program").start()
        number += 1
        time.sleep(0.005)
    looking.join()
    value = os.environ.pop("FROM_PROGRAM", None)

    assert capsys.readouterr().out.splitlines() == [f"mark {n}" for n in range(number)]
    assert (value, os.environ.get("FROM_PLUGIN")) == (str(number - 1), None)
    assert "printed 'from the plugin'" in inventories[0].outcomes[0].reason


def test_many_threads_and_tasks_discover_at_once(slow_module, pci_machine):
    """Afterwards stdout, stderr, environment calls and threads are the program's own again."""
    registry = Registry.of(slow_module)
    before = (sys.stdout, sys.stderr, os.putenv, os.unsetenv, threading.Thread.start)
    threads = [threading.Thread(target=discover, args=(pci_machine(*CARDS), registry)) for _ in range(6)]
    for thread in threads:
        thread.start()

    async def gather():
        return await asyncio.gather(*(asyncio.to_thread(discover, pci_machine(*CARDS), registry) for _ in range(4)))

    inventories = asyncio.run(gather())
    for thread in threads:
        thread.join()

    assert (sys.stdout, sys.stderr, os.putenv, os.unsetenv, threading.Thread.start) == before
    assert {len(inventory.devices) for inventory in inventories} == {1}


LIVE = """
    import os, sys
    from pathlib import Path
    from anyaccel.discovery import discover
    from anyaccel.files import MemoryTree
    from anyaccel.machine import LiveAnswers, Machine, MachineKind
    from anyaccel.registry import Registry
    SETUP
    files = {"/sys/bus/pci/devices/0000:01:00.0/vendor": b"0x1de8", "/sys/bus/pci/devices/0000:01:00.0/device": b"0x1"}
    machine = Machine(MemoryTree(files, {}, {}), environ={}, kind=MachineKind.LIVE, answers={"toy": LiveAnswers()})
    inventory = discover(machine, Registry.of("MODULE"))
    Path("OUT").write_text(f"{[o.status.value for o in inventory.outcomes]} {inventory.devices[0].model}")
"""
INSPECTED = """
@hookimpl
def accel_inspect_devices(machine, devices):
    from dataclasses import replace
    return Inspection(tuple(replace(d, model="asked") for d in devices))
"""


@pytest.mark.parametrize(
    "setup",
    [
        "os.close(0)",
        "os.close(1)",
        "os.close(0); os.close(1); os.close(2)",
        "sys.path.append(Path('/nowhere'))",
        "sys.path.insert(0, ''); os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone')",
        "held = [os.open('/dev/null', os.O_RDONLY) for _ in range(1100)]",
        "import signal; signal.signal(signal.SIGPIPE, signal.SIG_DFL)",
    ],
)
def test_odd_programs_ask_their_drivers_too(setup, write_toy, tmp_path):
    """Closed standard files, many open ones, odd module paths, a folder that is gone: the driver is asked all the same."""
    if "1100" in setup and resource.getrlimit(resource.RLIMIT_NOFILE)[0] < 1200:
        pytest.skip("fewer than 1,200 files may be open here")
    out = tmp_path / "out"
    code = LIVE.replace("SETUP", setup).replace("MODULE", write_toy(INSPECTED)).replace("OUT", str(out))

    _program(code, tmp_path, cwd=tmp_path)

    assert out.read_text() == "['found'] asked"


def test_repeating_leaves_nothing_behind(write_toy, pci_machine):
    """Thirty looks, good and bad in turn: no open file, no thread, no child more than before."""
    good = Registry.of(write_toy(INSPECTED))
    bad = Registry.of(
        write_toy("@hookimpl\ndef accel_inspect_devices(machine, devices):\n    import os; os._exit(3)\n")
    )
    machine = pci_machine(*CARDS, answers={"toy": LiveAnswers()})

    def state():
        return len(list(Path("/proc/self/fd").iterdir())), threading.active_count()

    discover(machine, good)
    before = state()
    for number in range(30):
        discover(machine, bad if number % 2 else good)

    assert state() == before
