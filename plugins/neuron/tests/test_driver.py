"""The module that starts neuron-ls, held against a program of that name."""

from __future__ import annotations

import json
import stat

import pytest

ROW = {"neuron_device": 0, "nc_count": 2}


@pytest.fixture
def install(tmp_path):
    """Put a program on a path of its own and give the environment."""

    def make(script):
        program = tmp_path / "neuron-ls"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return {"PATH": f"{tmp_path}:/usr/bin:/bin"}

    return make


def test_document_passes_unchanged(install, ask_driver):
    """The program is asked for JSON once."""
    environ = install(f"test \"$*\" = --json-output && echo '{json.dumps([ROW])}'")

    assert ask_driver("anyaccel_neuron._driver:collect", environ) == [ROW]


def test_without_a_driver_the_program_fails(install, ask_driver):
    """Its one line on stderr is quoted."""
    environ = install("echo 'level=fatal msg=\"failed to discover Neuron devices\"' >&2; exit 1")

    told = ask_driver("anyaccel_neuron._driver:collect", environ)

    assert told["reason_code"] == "program-failed"
    assert "failed to discover Neuron devices" in told["unavailable"]


@pytest.mark.parametrize("script", ["true", "echo no JSON"])
def test_no_document_is_a_state(script, install, ask_driver):
    """Empty output is no list of no devices."""
    assert ask_driver("anyaccel_neuron._driver:collect", install(script))["reason_code"] == "malformed-answer"


def test_missing_program_has_a_hint(tmp_path, ask_driver):
    """Which package to install."""
    told = ask_driver("anyaccel_neuron._driver:collect", {"PATH": str(tmp_path)})

    assert (told["reason_code"], told["hint"]) == ("program-missing", "install the package aws-neuronx-tools")


@pytest.mark.parametrize("document", [None, "text", 3, {}, {"a": 1}])
def test_document_without_a_list(document):
    """Anything that holds no list is an answer that never came."""
    from anyaccel.errors import UnavailableError
    from anyaccel_neuron.reply import devices_told

    with pytest.raises(UnavailableError, match="another document") as caught:
        devices_told(document)

    assert caught.value.reason_code == "malformed-answer"
