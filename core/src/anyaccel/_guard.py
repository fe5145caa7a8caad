"""Calling a plugin without trusting it: time limit, captured prints, restored environment and logger, named leftovers."""

from __future__ import annotations

import io
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Guarded", "OverrunError", "call_guarded"]


class OverrunError(Exception):
    """The call did not come back in time; its thread is left behind."""


@dataclass
class Guarded:
    """What came of a guarded call: a value or an error, and what it did beside its job."""

    value: Any = None
    error: BaseException | None = None
    misdeeds: list[str] = field(default_factory=list)


class _Record:
    """What the threads of one guarded call did: everything is put down to the thread that did it."""

    def __init__(self) -> None:
        self.printed = io.StringIO()
        self.environ: dict[str, str | None] = {}
        self.threads: list[threading.Thread] = []
        self.is_abandoned = False

    def note_variable(self, name: str) -> None:
        """Keep a variable's value from before it was first changed."""
        if name not in self.environ:
            self.environ[name] = os.environ.get(name)


def call_guarded(function: Callable[[], Any], *, timeout_seconds: float | None, name: str) -> Guarded:
    """Run a plugin's code and watch it. Other threads of the program may go on, and may be guarded themselves.

    Args: timeout_seconds: None runs in this thread without a limit. name: of the thread, for debuggers.
    Returns: the value or the error; `OverrunError` when it did not come back. Ctrl-C passes through.
    """
    result, record = Guarded(), _Record()
    with _WATCH:
        logger = _logger_state()
        if timeout_seconds is None:
            with _WATCH.owning(record):
                _run(function, result)
        else:
            _run_in_thread(function, result, record, timeout_seconds, name)
        _judge(result, record, logger)
    return result


def _run(function: Callable[[], Any], result: Guarded) -> None:
    try:
        result.value = function()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - the guard: whatever a plugin raises is kept as its result
        result.error = error


def _run_in_thread(
    function: Callable[[], Any], result: Guarded, record: _Record, timeout_seconds: float, name: str
) -> None:
    inner = Guarded()

    def run() -> None:
        with _WATCH.owning(record):
            try:
                _run(function, inner)
            except KeyboardInterrupt as error:
                inner.error = error

    thread = threading.Thread(target=run, name=f"accel-guard-{name}", daemon=True)
    thread.start()
    thread.join(timeout_seconds)
    if thread.is_alive():
        record.is_abandoned = True
        result.error = OverrunError(f"did not come back within {timeout_seconds:.2g} s")
    else:
        result.value, result.error = inner.value, inner.error


def _judge(result: Guarded, record: _Record, logger: _LoggerState) -> None:
    """Undo and name what was done beside the job."""
    printed = record.printed.getvalue()
    if printed:
        result.misdeeds.append(f"printed {_excerpt(printed)}")
    changed = sorted(name for name, value in record.environ.items() if os.environ.get(name) != value)
    for name in changed:
        _put_back(name, record.environ[name])
    if changed:
        result.misdeeds.append(f"changed the environment variable {changed[0]}")
    if _logger_state() != logger:
        _restore_logger(logger)
        result.misdeeds.append("changed the root logger")
    left = [thread for thread in record.threads if thread.is_alive()]
    if left:
        result.misdeeds.append(f"left the thread {left[0].name!r} running")


def _put_back(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


class _Stream(io.TextIOBase):
    """A text stream that keeps what guarded threads write and passes everything else on."""

    def __init__(self, stream: Any, owner: Callable[[], _Record | None]) -> None:
        self.stream = stream
        self._owner = owner

    def write(self, text: str) -> int:
        record = self._owner()
        if record is None:
            return len(text) if self.stream is None else int(self.stream.write(text))
        if not record.is_abandoned:
            record.printed.write(text)
        return len(text)

    def flush(self) -> None:
        if self._owner() is None and self.stream is not None:
            self.stream.flush()

    def close(self) -> None:
        """Leave the program's stream open, also when this one is no longer needed."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class _Watch:
    """Stands between guarded threads and what they share with the program, while at least one is guarded.

    It replaces `sys.stdout` and `sys.stderr`, `os.putenv` and `os.unsetenv` (which `os.environ` calls for every change), and
    `threading.Thread.start`; for threads that are not guarded each does what it did before.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._records: dict[int, _Record] = {}
        self._guards = 0
        self._streams: dict[str, _Stream] = {}
        self._calls: tuple[Any, ...] = ()

    def __enter__(self) -> _Watch:
        with self._lock:
            self._guards += 1
            if self._guards == 1:
                self._install()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._guards -= 1
            if self._guards == 0:
                self._remove()

    @contextmanager
    def owning(self, record: _Record) -> Iterator[None]:
        """Put down to a record what this thread does."""
        ident = threading.get_ident()
        before = self._records.get(ident)
        self._records[ident] = record
        try:
            yield
        finally:
            if before is None:
                del self._records[ident]
            else:
                self._records[ident] = before

    def owner(self) -> _Record | None:
        """Give the record of the running thread, None when it is not guarded."""
        return self._records.get(threading.get_ident())

    def _install(self) -> None:
        self._streams = {name: self._between(getattr(sys, name)) for name in ("stdout", "stderr")}
        sys.stdout, sys.stderr = self._streams["stdout"], self._streams["stderr"]
        self._calls = (os.putenv, os.unsetenv, threading.Thread.start)
        os.putenv, os.unsetenv = self._noting(os.putenv), self._noting(os.unsetenv)
        threading.Thread.start = self._starting(threading.Thread.start)  # type: ignore[method-assign, assignment]

    def _between(self, stream: Any) -> _Stream:
        return stream if isinstance(stream, _Stream) else _Stream(stream, self.owner)

    def _remove(self) -> None:
        for name, stream in self._streams.items():
            is_in_use = any(record.is_abandoned for record in self._records.values())
            if getattr(sys, name) is stream and not is_in_use:
                setattr(sys, name, stream.stream)
        os.putenv, os.unsetenv, threading.Thread.start = self._calls  # type: ignore[method-assign]

    def _noting(self, call: Callable[..., None]) -> Callable[..., None]:
        def change(name: Any, *value: Any) -> None:
            record = self.owner()
            if record is not None:
                record.note_variable(os.fsdecode(name))
            call(name, *value)

        return change

    def _starting(self, start: Callable[[threading.Thread], None]) -> Callable[[threading.Thread], None]:
        def start_watched(thread: threading.Thread) -> None:
            record = self.owner()
            if record is not None:
                record.threads.append(thread)
                thread.run = self._owned(thread.run, record)  # type: ignore[method-assign]
            start(thread)

        return start_watched

    def _owned(self, run: Callable[[], None], record: _Record) -> Callable[[], None]:
        def run_owned() -> None:
            with self.owning(record):
                run()

        return run_owned


_WATCH = _Watch()


def _excerpt(text: str) -> str:
    line = text.strip().splitlines()[0] if text.strip() else text
    return repr(line[:60])


_LoggerState = tuple[int, bool, tuple[Any, ...], int]

_FRESH_LOGGER: _LoggerState = (30, False, (), 0)
"""State of the root logger of a program that has not imported logging: level WARNING, no handler."""


def _logger_state() -> _LoggerState:
    logging = sys.modules.get("logging")
    if logging is None:
        return _FRESH_LOGGER
    root = logging.getLogger()
    return (root.level, root.disabled, tuple(root.handlers), logging.root.manager.disable)


def _restore_logger(state: _LoggerState) -> None:
    logging = sys.modules["logging"]
    root = logging.getLogger()
    root.setLevel(state[0])
    root.disabled = state[1]
    root.handlers[:] = state[2]
    logging.disable(state[3])
