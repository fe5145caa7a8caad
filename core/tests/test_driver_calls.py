"""Programs and libraries as a driver module asks them: real small programs, and every way in which they fail."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from anyaccel.driver_calls import find_program, load_library, run_program, run_program_json
from anyaccel.errors import UnavailableError


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Write a program that PATH finds first."""

    def write(body, name="vendor-query"):
        file = tmp_path / name
        file.write_text(f"#!/bin/sh\n{body}\n")
        file.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    return write


def test_output_is_given_as_text(program):
    """Standard output is the answer; odd bytes do not stop it, and stdin is empty."""
    program(r"cat; printf 'a\377b'; echo noise >&2")

    assert run_program(["vendor-query", "--all"]) == "a\ufffdb"


def test_variables_are_added(program):
    """A program that needs a variable gets it beside what is there."""
    program('echo "$TOY"')

    assert run_program(["vendor-query"], environ={"TOY": "7"}) == "7\n"


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ("echo 'no device' >&2; exit 3", "program-failed", "vendor-query ended with 3 and said: no device"),
        ("exit 1", "program-failed", "vendor-query ended with 1 and said: nothing"),
        ("exec sleep 30", "program-hangs", "vendor-query did not answer within 0.2 s"),
    ],
)
def test_failures_are_told(program, body, code, words):
    """How a program fails is told in its words with a code."""
    program(body)

    with pytest.raises(UnavailableError) as error:
        run_program(["vendor-query"], timeout_seconds=0.2 if "sleep" in body else 8.0)

    assert (error.value.reason_code, error.value.message) == (code, words)


@pytest.mark.parametrize("path", [".", "", "here:.", "{folder}"])
def test_a_program_in_the_current_folder_is_never_run(path, program, tmp_path, monkeypatch):
    """Neither a relative entry of PATH nor the current folder's own name leads to a program that lies here."""
    program("echo planted")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", path.format(folder=tmp_path))

    assert find_program("vendor-query") is None
    with pytest.raises(UnavailableError, match="program vendor-query is not installed"):
        run_program(["vendor-query"])


def test_the_vendors_folder_is_looked_at_after_path(program, tmp_path, monkeypatch):
    """A program that PATH does not hold is found where its vendor installs it."""
    program("echo found")
    monkeypatch.setenv("PATH", "/nowhere")

    assert run_program(["vendor-query"], folders=("relative", str(tmp_path))) == "found\n"


def test_a_missing_program_has_a_hint(monkeypatch):
    """Not installed is its own code, with what to do."""
    monkeypatch.setenv("PATH", "/nowhere")

    with pytest.raises(UnavailableError) as error:
        run_program(["vendor-query"], hint="install the vendor's tools")

    assert (error.value.reason_code, error.value.hint) == ("program-missing", "install the vendor's tools")


@pytest.mark.parametrize("text", ["hello", "", "[" * 200_000])
def test_no_json_is_told(program, text, tmp_path):
    """What is no JSON, however deep it goes, is a malformed answer."""
    (tmp_path / "answer").write_text(text)
    program(f"cat {tmp_path}/answer")

    with pytest.raises(UnavailableError) as error:
        run_program_json(["vendor-query"])

    assert error.value.reason_code == "malformed-answer"


def test_a_missing_library_is_told():
    """None of the names: not installed, with what to do."""
    with pytest.raises(UnavailableError) as error:
        load_library(("libnobody-has-this.so.1",), hint="install it")

    assert error.value.message == "library libnobody-has-this.so.1 is not installed"
    assert (error.value.reason_code, error.value.hint) == ("library-missing", "install it")


def test_a_damaged_library_is_told_in_the_loaders_words(tmp_path):
    """A library that is there and cannot be loaded is not called missing."""
    damaged = tmp_path / "libdamaged.so"
    damaged.write_bytes(b"nothing")

    with pytest.raises(UnavailableError, match=r"library cannot be loaded: .*libdamaged"):
        load_library((str(damaged),))


def test_the_first_library_that_loads_is_taken():
    """Names are tried in order."""
    assert load_library(("libnobody-has-this.so", "libc.so.6")).getpid() > 0


def test_silence_covers_python_and_c():
    """Neither print nor a write of C comes through, and afterwards both do."""
    code = (
        "import os, sys\n"
        "from anyaccel.driver_calls import silenced\n"
        "with silenced():\n"
        "    print('python'); os.write(1, b'c'); os.write(2, b'c')\n"
        "print('after'); sys.stdout.flush(); os.write(2, b'err')\n"
    )

    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=15, check=True)

    assert (child.stdout, child.stderr) == ("after\n", "err")


def test_a_vendors_program_ends_with_the_process_that_asked(program, tmp_path):
    """Who kills the asking process, however hard, leaves no vendor program running."""
    program(f"echo $$ > {tmp_path}/pid; exec sleep 60")
    code = "from anyaccel.driver_calls import run_program; run_program(['vendor-query'], timeout_seconds=50)"
    asking = subprocess.Popen([sys.executable, "-c", code])
    deadline = time.monotonic() + 15
    while not ((tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip()) and time.monotonic() < deadline:
        time.sleep(0.02)
    pid = int((tmp_path / "pid").read_text())
    asking.kill()
    asking.wait()
    while Path(f"/proc/{pid}").exists() and "State:\tZ" not in Path(f"/proc/{pid}/status").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)
