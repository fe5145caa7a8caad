"""Questions to plugins, again and again: children are kept while they behave, and one bad plugin costs only its own answer."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import pytest

from anyaccel.asking import Asker
from anyaccel.discovery import discover
from anyaccel.machine import Machine, MachineKind
from anyaccel.registry import Registry

READING = """
from anyaccel.capabilities import Declaration, MatchRule
from anyaccel.device import Discovery, Device
from anyaccel.hookspec import hookimpl
from anyaccel.metrics import Reading, ReadingKind
from anyaccel.errors import UnavailableError
import os, signal, time

CALLS = []

@hookimpl
def accel_declare():
    return Declaration(key="KEY", title="KEY", matches=(MatchRule(vendor_id=VENDOR),))

@hookimpl
def accel_discover_devices(machine):
    return Discovery((Device(id="KEY:0", family="KEY"),))

@hookimpl
def accel_read_metrics(machine, devices):
    CALLS.append(1)
    BODY
    return (Reading(devices[0].id, "calls_total", ReadingKind.COUNTER, float(len(CALLS))),
            Reading(devices[0].id, "child_pid", ReadingKind.GAUGE, float(os.getpid())))
"""


@pytest.fixture
def asker(write_module: Callable[[str], str]) -> Callable[..., Asker]:
    """Make an asker over plugins whose reading hook has these bodies, on a machine that counts as live."""
    made: list[Asker] = []

    def make(**bodies: str) -> Asker:
        names = []
        for number, (key, body) in enumerate(bodies.items()):
            source = READING.replace("KEY", key).replace("BODY", body).replace("VENDOR", str(0x1DE8 + number))
            names.append(write_module(source))
        registry = Registry.of(*names)
        assert registry.failures == ()
        from anyaccel.files import MemoryTree

        machine = Machine(MemoryTree({}, {}, {}), environ={}, kind=MachineKind.LIVE)
        inventory = discover(machine, registry, isolate=False)
        made.append(Asker(inventory, machine, registry))
        return made[-1]

    yield make
    for one in made:
        one.close()


def _values(asked):
    return {reading.name: reading.value for reading in asked.answer}


def test_a_child_is_kept_between_questions(asker):
    """The second question reaches the same process, where the driver is started already."""
    one = asker(toy="pass")

    first, second = (_values(one.ask("accel_read_metrics")[0]) for _ in range(2))

    assert (first["calls_total"], second["calls_total"]) == (1, 2)
    assert first["child_pid"] == second["child_pid"] != os.getpid()


def test_a_child_that_dies_is_started_anew(asker):
    """The question it died over is a failure with the signal, the next one is answered."""
    one = asker(toy="len(CALLS) == 2 and os.kill(os.getpid(), signal.SIGSEGV)")
    first, second, third = (one.ask("accel_read_metrics")[0] for _ in range(3))

    assert (second.answer, second.is_broken) == (None, True)
    assert "killed by signal 11 (SIGSEGV)" in second.reason
    assert _values(third)["calls_total"] == 1
    assert _values(third)["child_pid"] != _values(first)["child_pid"]


def test_a_child_killed_between_questions_is_started_anew(asker):
    """A child that somebody killed costs nothing."""
    one = asker(toy="pass")
    pid = int(_values(one.ask("accel_read_metrics")[0])["child_pid"])
    os.kill(pid, signal.SIGKILL)
    time.sleep(0.2)

    assert _values(one.ask("accel_read_metrics")[0])["calls_total"] == 1


def test_one_that_hangs_costs_its_own_answer(asker):
    """The others answer, the one that hangs is named, killed, and asked again next time."""
    one = asker(bad="len(CALLS) == 1 and os.environ.get('X') is None and time.sleep(60)", good="pass")

    bad, good = one.ask("accel_read_metrics", timeout_seconds=2)

    assert "hung: no answer within 2 s while running accel_read_metrics" in bad.reason
    assert _values(good)["calls_total"] == 1


def test_what_the_driver_refuses_is_not_the_plugins_fault(asker):
    """UnavailableError is a reason, any other error breaks the plugin; both are told apart."""
    one = asker(refused="raise UnavailableError('no driver', hint='load it')", wrong="raise KeyError('x')")

    refused, wrong = one.ask("accel_read_metrics")

    assert (refused.reason, refused.hint, refused.is_broken) == ("no driver", "load it", False)
    assert wrong.is_broken
    assert "KeyError" in wrong.reason


def test_prints_are_blamed_and_the_answer_kept(asker):
    """A print in a hook reaches nobody's stdout; the answer stands."""
    (asked,) = asker(toy="print('hello')").ask("accel_read_metrics")

    assert _values(asked)["calls_total"] == 1
    assert asked.misdeeds == ("plugin 'toy' printed 'hello' in accel_read_metrics",)


def test_a_hook_nobody_implements_is_no_failure(asker):
    """Without the hook there is neither an answer nor a reason."""
    (asked,) = asker(toy="pass").ask("accel_diagnose")

    assert (asked.answer, asked.reason, asked.is_broken) == (None, None, False)


def test_closing_leaves_no_child(asker):
    """After close the child is gone."""
    one = asker(toy="pass")
    pid = int(_values(one.ask("accel_read_metrics")[0])["child_pid"])

    one.close()

    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
