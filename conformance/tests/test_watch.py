"""What a plugin opens around its machine is seen."""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from anyaccel_conformance.watch import watched


def do_open(path):
    Path(path).open().close()


def look_up_name():
    with socket.socket() as unused:
        unused.connect(("127.0.0.1", 1))


@pytest.mark.parametrize(
    ("deed", "told"),
    [
        (lambda: do_open("/proc/version"), "looked at '/proc/version' around Machine"),
        (lambda: os.scandir("/sys").close(), "looked at '/sys' around Machine"),
        (lambda: os.scandir(b"/dev").close(), "looked at '/dev' around Machine"),
        (lambda: ctypes.CDLL("libc.so.6"), "loaded the library 'libc.so.6'"),
        (lambda: subprocess.run([sys.executable, "-V"], capture_output=True, check=True), "started the program"),
        (look_up_name, "used a socket"),
    ],
)
def test_looks_are_seen(deed, told):
    """Files of the host, libraries, programs and sockets are named."""
    with watched() as deeds, contextlib.suppress(OSError):
        deed()

    assert deeds[0].sentence.startswith(told)
    assert not deeds[0].is_change


@pytest.mark.parametrize(
    ("deed", "told"),
    [
        (lambda folder: (folder / "a").write_text(""), "wrote to"),
        (lambda folder: os.close(os.open(folder / "a", os.O_CREAT | os.O_WRONLY)), "wrote to"),
        (lambda folder: (folder / "b").mkdir(), "changed the file"),
        (lambda folder: folder.rename(folder.with_name("c")), "changed the file"),
    ],
)
def test_changes_are_seen(deed, told, tmp_path):
    """Writing, making and moving files are changes."""
    folder = tmp_path / "folder"
    folder.mkdir()

    with watched() as deeds:
        deed(folder)

    assert [(d.sentence[: len(told)], d.is_change) for d in deeds] == [(told, True)]


def test_other_files_and_imports_are_not_the_machine(tmp_path):
    """Reading a module or a file of one's own is nobody's business."""
    (tmp_path / "own").write_text("")

    with watched() as deeds:
        do_open(tmp_path / "own")
        do_open(Path(os.__file__))

    assert deeds == []


def test_only_this_thread_is_watched():
    """What another thread opens is not blamed on the plugin."""
    with watched() as deeds:
        thread = threading.Thread(target=do_open, args=("/proc/version",))
        thread.start()
        thread.join()

    assert deeds == []


def test_nothing_is_seen_afterwards():
    """The watch ends with its block."""
    with watched() as deeds:
        pass
    do_open("/proc/version")

    assert deeds == []
