"""Calling a plugin without trusting it: time limit, captured prints, restored environment and logger, named leftovers."""

from __future__ import annotations

import io
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TextIO

__all__ = ["Guarded", "OverrunError", "call_guarded"]


class OverrunError(Exception):
    """The call did not come back in time; its thread is left behind."""


@dataclass
class Guarded:
    """What came of a guarded call: a value or an error, and what it did beside its job."""

    value: Any = None
    error: BaseException | None = None
    misdeeds: list[str] = field(default_factory=list)


class _DropFrom(io.TextIOBase):
    """A text stream that drops what abandoned threads write and passes everything else on."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.dropped_threads: set[int] = set()

    def write(self, text: str) -> int:
        if threading.get_ident() in self.dropped_threads:
            return len(text)
        return self.stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def call_guarded(function: Callable[[], Any], *, timeout_seconds: float | None, name: str) -> Guarded:
    """Run a plugin's code and watch it.

    Args: timeout_seconds: None runs in this thread without a limit. name: of the thread, for debuggers.
    Returns: the value or the error; `OverrunError` when it did not come back. Ctrl-C passes through.
    """
    result = Guarded()
    with _watch(result):
        if timeout_seconds is None:
            _run(function, result)
        else:
            _run_in_thread(function, result, timeout_seconds, name)
    return result


def _run(function: Callable[[], Any], result: Guarded) -> None:
    try:
        result.value = function()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - the guard: whatever a plugin raises is kept as its result
        result.error = error


def _run_in_thread(function: Callable[[], Any], result: Guarded, timeout_seconds: float, name: str) -> None:
    inner = Guarded()
    thread = threading.Thread(target=_run, args=(function, inner), name=f"accel-guard-{name}", daemon=True)
    thread.start()
    thread.join(timeout_seconds)
    if thread.is_alive():
        result.error = OverrunError(f"did not come back within {timeout_seconds:.2g} s")
        _drop_prints_of(thread)
    else:
        result.value, result.error = inner.value, inner.error


def _drop_prints_of(thread: threading.Thread) -> None:
    for stream in (_real("stdout"), _real("stderr")):
        if isinstance(stream, _DropFrom) and thread.ident is not None:
            stream.dropped_threads.add(thread.ident)


_streams: dict[str, TextIO] = {}


def _real(name: str) -> TextIO:
    return _streams[name]


@contextmanager
def _watch(result: Guarded) -> Iterator[None]:
    environ = dict(os.environ)
    logger = _logger_state()
    threads = set(threading.enumerate())
    with _captured() as printed:
        yield
    if printed.tell():
        result.misdeeds.append(f"printed {_excerpt(printed.getvalue())}")
    if dict(os.environ) != environ:
        changed = sorted(set(environ.items()) ^ set(os.environ.items()))
        os.environ.clear()
        os.environ.update(environ)
        result.misdeeds.append(f"changed the environment variable {changed[0][0]}")
    if _logger_state() != logger:
        _restore_logger(logger)
        result.misdeeds.append("changed the root logger")
    left = [t for t in threading.enumerate() if t not in threads and not t.name.startswith("accel-guard-")]
    if left:
        result.misdeeds.append(f"left the thread {left[0].name!r} running")


@contextmanager
def _captured() -> Iterator[io.StringIO]:
    printed = io.StringIO()
    before = (sys.stdout, sys.stderr)
    for name, stream in zip(("stdout", "stderr"), before, strict=True):
        _streams[name] = stream if isinstance(stream, _DropFrom) else _DropFrom(stream)  # type: ignore[assignment]
    sys.stdout = sys.stderr = printed
    try:
        yield printed
    finally:
        has_dropped = any(isinstance(s, _DropFrom) and s.dropped_threads for s in _streams.values())
        sys.stdout, sys.stderr = (_streams["stdout"], _streams["stderr"]) if has_dropped else before


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
