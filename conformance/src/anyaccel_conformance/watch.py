"""Watching what a plugin opens: Python tells every file, library, program and socket to an audit hook (PEP 578)."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

__all__ = ["Deed", "watched"]

_MACHINE = ("/sys", "/proc", "/dev", "/etc", "/run", "/var", "/opt")
_FILE_EVENTS = ("open", "os.listdir", "os.scandir")
_CHANGES = (
    "os.remove",
    "os.rename",
    "os.mkdir",
    "os.rmdir",
    "os.link",
    "os.symlink",
    "os.chmod",
    "os.chown",
    "os.truncate",
)
_PROGRAMS = ("subprocess.Popen", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.system")
_SOCKETS = ("socket.connect", "socket.bind", "socket.getaddrinfo")
_WRITING = ("w", "a", "x", "+")
_WRITING_FLAGS = 0o1 | 0o2 | 0o100


@dataclass(frozen=True)
class Deed:
    """One thing that was done; is_change tells a change of the machine from a look at it."""

    sentence: str
    is_change: bool = False


_journals: dict[int, list[Deed]] = {}


@contextmanager
def watched() -> Iterator[list[Deed]]:
    """Give what this thread opens or changes meanwhile; what an import reads and caches is left out."""
    _start()
    thread = threading.get_ident()
    journal = _journals[thread] = []
    try:
        yield journal
    finally:
        del _journals[thread]


_is_started = False


def _start() -> None:
    """Add the one hook of this process; Python has no way to take it away again, so it does nothing unless asked."""
    global _is_started  # noqa: PLW0603 - an audit hook stays for the life of the process
    if not _is_started:
        _is_started = True
        sys.addaudithook(_note)


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    journal = _journals.get(threading.get_ident()) if _journals else None
    deed = None if journal is None else _deed(event, arguments)
    if journal is not None and deed is not None:
        journal.append(deed)


def _deed(event: str, arguments: tuple[Any, ...]) -> Deed | None:
    if event in _FILE_EVENTS:
        return _file_deed(event, arguments)
    if event == "ctypes.dlopen" and arguments[0]:
        return Deed(f"loaded the library {arguments[0]!r}")
    if event in _PROGRAMS:
        return Deed(f"started the program {arguments[0]!r}" if arguments else f"called {event}")
    if event in _SOCKETS:
        return Deed(f"used a socket ({event})")
    if event in _CHANGES and not _is_cache(str(arguments[0])):
        return Deed(f"changed the file {arguments[0]!r} ({event})", is_change=True)
    return None


def _file_deed(event: str, arguments: tuple[Any, ...]) -> Deed | None:
    path = arguments[0]
    if isinstance(path, bytes):
        path = path.decode("utf-8", "replace")
    if not isinstance(path, str) or _is_cache(path):
        return None
    mode, flags = (arguments[1], arguments[2]) if event == "open" else ("r", 0)
    if (isinstance(mode, str) and any(letter in mode for letter in _WRITING)) or flags & _WRITING_FLAGS:
        return Deed(f"wrote to {path!r}", is_change=True)
    is_machine = _is_below(path, _MACHINE) and not _is_below(
        path, (sys.base_prefix, sys.prefix, *filter(None, sys.path))
    )
    return Deed(f"looked at {path!r} around Machine") if is_machine else None


def _is_below(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder.rstrip('/')}/") for folder in folders)


def _is_cache(path: str) -> bool:
    """Byte code that Python keeps beside a module it imports."""
    return "__pycache__" in path
