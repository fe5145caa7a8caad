"""The one module that starts the vendor's program, held against a program on the path."""

from __future__ import annotations

import json
import stat

import pytest

from anyaccel.errors import UnavailableError
from anyaccel_example._driver import collect, run_imaginary_runtime

CHIPS = [{"unit": 4, "uuid": "EX-b", "cores": []}, {"unit": 2, "uuid": "EX-a", "cores": []}]


@pytest.fixture
def install_program(tmp_path, monkeypatch):
    """Put a program of the driver's name on the path, and nothing else that is called so."""

    def install(script):
        program = tmp_path / "example-query"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    return install


def test_answer_is_what_the_program_wrote(install_program):
    """The document passes unchanged."""
    install_program("""test "$1" = --json && echo '{"version": "1.4.0"}'""")

    assert collect() == {"version": "1.4.0"}


def test_missing_program_is_a_state_with_a_hint(tmp_path, monkeypatch):
    """No driver is no crash."""
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(UnavailableError, match="example-query is not installed") as caught:
        collect()

    assert (caught.value.reason_code, caught.value.hint) == ("program-missing", "install the example driver")


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("echo no board >&2; exit 3", "example-query ended with 3 and said: no board"),
        ("exit 1", "example-query ended with 1 and said: nothing"),
        ("echo hello", "example-query wrote no JSON"),
    ],
)
def test_failing_program_is_quoted(script, told, install_program):
    """The reason is what the program said."""
    install_program(script)

    with pytest.raises(UnavailableError, match=told):
        collect()


def test_runtime_is_a_program_of_its_own():
    """It runs without this package on its path and answers in its own order."""
    assert run_imaginary_runtime(CHIPS, {"EXAMPLE_CORES_PER_UNIT": "2"}) == ("EX-a", "EX-b")


def test_runtime_reads_nothing_of_the_caller(monkeypatch):
    """Only the environment handed over counts."""
    monkeypatch.setenv("EXAMPLE_VISIBLE_UNITS", "4")

    assert run_imaginary_runtime(CHIPS, {"EXAMPLE_CORES_PER_UNIT": "2"}) == ("EX-a", "EX-b")


def test_stored_answers_are_plain_json(plugin, registry):
    """What a simulation stores, the program could have written."""
    from anyaccel.simulation import find_machine

    family = plugin.call("accel_simulate", description=find_machine("example-grid", registry))

    assert json.loads(json.dumps(family.answers["driver"])) == family.answers["driver"]
