"""The probe child: one process a plugin, where drivers are asked, may print, hang or crash, and cost only their own rows.

Parent and child share one inherited pipe a direction. A plugin's code runs in the child and could write to its pipe, so the
parent rebuilds nothing from it but values of the contract, checks each answer again, and bounds how much it takes.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import IO, Any

from anyaccel._contract import check_answer
from anyaccel._probe_messages import MessageBuffer, OddMessageError, ProbeRequest, ProbeResult
from anyaccel.errors import PluginContractError

__all__ = ["ProbeRequest", "ProbeResult", "ProbeSession", "run_probes"]

PROGRESS_AFTER_SECONDS = 2.0
ABANDON_AFTER_SECONDS = 0.5
OUTPUT_LIMIT = 4096
_START = (
    "import sys; sys.path[:1] == [''] and sys.path.pop(0); from anyaccel._probe_child import main; main(sys.argv[1:])"
)
"""Starts a child without the current folder on its module path: a file there must not be imported by accident."""


def run_probes(
    requests: Sequence[ProbeRequest], on_progress: Callable[[str], None] | None = None
) -> dict[str, ProbeResult]:
    """Run one child a request, all at once, and give their results by plugin key.

    Children that overrun are killed, then abandoned after half a second. Nothing is left behind when this is interrupted.
    """
    with ProbeSession() as session:
        return session.ask(requests, on_progress)


class ProbeSession:
    """Probe children that are kept between questions, so that a driver is started once and asked often.

    A child that fails, hangs or dies is ended, and the next question starts another. The kernel ends a child with the thread
    that started it (prctl(2), PR_SET_PDEATHSIG), so a session is used from one thread that outlives it.
    """

    def __init__(self) -> None:
        self._children: dict[str, _Child] = {}

    def __enter__(self) -> ProbeSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(
        self, requests: Sequence[ProbeRequest], on_progress: Callable[[str], None] | None = None
    ) -> dict[str, ProbeResult]:
        """Put one question to each plugin's child, all at once, and give the results by plugin key."""
        results: dict[str, ProbeResult] = {}
        children: list[_Child] = []
        try:
            for request in requests:
                try:
                    children.append(self._child(request))
                except (OSError, ValueError) as error:
                    results[request.key] = ProbeResult(failure=f"the probe cannot be started: {error}")
            _serve(children, on_progress)
        except BaseException:
            self.close()
            raise
        for child in children:
            if not child.can_be_kept:
                self._children.pop(child.request.key).end()
        return {**results, **{child.request.key: child.result for child in children}}

    def _child(self, request: ProbeRequest) -> _Child:
        kept = self._children.pop(request.key, None)
        if kept is not None and kept.ask(request):
            self._children[request.key] = kept
            return kept
        if kept is not None:
            kept.end()
        self._children[request.key] = _Child(request)
        return self._children[request.key]

    def close(self) -> None:
        """End every child."""
        while self._children:
            self._children.popitem()[1].end()


def _serve(children: Iterable[_Child], on_progress: Callable[[str], None] | None) -> None:
    selector = selectors.DefaultSelector()
    running = set(children)
    for child in running:
        for source in child.sources:
            os.set_blocking(source, False)
            selector.register(source, selectors.EVENT_READ, child)
    started = time.monotonic()
    noted = on_progress is None
    while running:
        for key, _ in selector.select(timeout=0.1):
            if not key.data.read(key.fd):
                selector.unregister(key.fd)
                key.data.sources.discard(key.fd)
        now = time.monotonic()
        for child in [c for c in running if c.has_ended or now > c.deadline]:
            child.finish(is_overrun=not child.has_ended)
            for source in tuple(child.sources):
                selector.unregister(source)
            running.discard(child)
        if not noted and on_progress is not None and running and now - started > PROGRESS_AFTER_SECONDS:
            noted = True
            for child in sorted(running, key=lambda c: c.request.key):
                on_progress(f"still waiting for plugin {child.request.key!r}, {child.result.where}")
    selector.close()


class _Child:
    """One running probe and what it has said so far."""

    def __init__(self, request: ProbeRequest) -> None:
        self.request = request
        self.result = ProbeResult()
        self._buffer = MessageBuffer()
        self._printed = b""
        self._is_complete = False
        message = pickle.dumps(request)
        with contextlib.ExitStack() as stack:
            ends = [_above_standard(end, stack) for end in (*os.pipe(), *os.pipe())]
            request_read, self._request_write, self._result_read, result_write = ends
            self._process = self._start(request_read, result_write)
            stack.pop_all()
        os.close(request_read)
        os.close(result_write)
        output = self._process.stdout
        assert output is not None
        self._output: IO[bytes] = output
        self.sources = {self._result_read, output.fileno()}
        self.deadline = time.monotonic() + request.timeout_seconds
        self._send(message)

    def _start(self, request_read: int, result_write: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-c", _START, str(request_read), str(result_write)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(request_read, result_write),
            env=_child_environ(),
            start_new_session=True,
        )

    def _send(self, message: bytes) -> None:
        """Hand a request over; a child that does not take it in time has no answer in time either."""
        left = memoryview(message)
        os.set_blocking(self._request_write, False)
        with contextlib.suppress(BrokenPipeError), selectors.DefaultSelector() as selector:
            selector.register(self._request_write, selectors.EVENT_WRITE)
            while left and (seconds := self.deadline - time.monotonic()) > 0:
                if selector.select(seconds):
                    left = left[os.write(self._request_write, left) :]

    def ask(self, request: ProbeRequest) -> bool:
        """Put a further question to a living child; False when it has to be started anew."""
        if self._process.poll() is not None:
            return False
        message = pickle.dumps(request)
        self.request, self.result = request, ProbeResult()
        self._printed, self._buffer, self._is_complete = b"", MessageBuffer(), False
        self.deadline = time.monotonic() + request.timeout_seconds
        self._send(message)
        return True

    @property
    def can_be_kept(self) -> bool:
        """Whether it said all and can be asked again."""
        return self._is_complete and len(self.sources) == 2 and self._process.poll() is None

    @property
    def has_ended(self) -> bool:
        """Whether it said all or is gone; something it started may still hold its pipes open."""
        return self._is_complete or not self.sources or self._process.poll() is not None

    def read(self, source: int) -> bool:
        """Take what a pipe holds; False when it is closed, or when nothing more is taken from it."""
        try:
            data = os.read(source, 65536)
        except BlockingIOError:
            return True
        if source != self._result_read:
            self._printed = (self._printed + data)[:OUTPUT_LIMIT]
            return bool(data)
        self._buffer.add(data)
        try:
            for kind, value in self._buffer.messages():
                self._take(kind, value)
        except OddMessageError as error:
            self.result.failure = f"the probe answered with {error} while {self.result.where}"
            return False
        return bool(data)

    def _take(self, kind: str, value: Any) -> None:
        result = self.result
        if kind == "hook":
            result.hook, result.topic = value, None
        elif kind == "topic":
            result.topic = value
        elif kind == "misdeed":
            result.misdeeds.append(value)
        elif kind == "error":
            result.errors[value[0]] = value[1]
        elif kind == "answer":
            hook, answer = value
            try:
                check_answer(self.request.key, hook, answer)
            except PluginContractError as error:
                result.errors[hook] = error
            else:
                result.answers[hook] = answer
        elif kind == "failure":
            result.failure = value
        elif kind == "done":
            result.documents, result.journal = value
            self._is_complete = True

    def finish(self, *, is_overrun: bool) -> None:
        """Write down how the child ended."""
        if is_overrun:
            self._kill()
        self._drain()
        if self._is_complete or self.result.failure is not None:
            self._note_prints()
            return
        if is_overrun and self.request.timeout_seconds <= 0:
            self.result.failure = "no time was left to ask its driver"
            self.result.hint = "raise the limit with --timeout"
        elif is_overrun:
            seconds = f"{self.request.timeout_seconds:.2g} s"
            self.result.failure = f"the probe hung: no answer within {seconds} while {self.result.where}"
            self.result.hint = (
                "a wedged driver usually needs a reboot; raise the limit with --timeout if it is only slow"
            )
        else:
            self.result.failure = f"the probe {self._ending()} while {self.result.where}"
        self._note_prints()

    def _drain(self) -> None:
        """Take what the pipes still hold, without waiting for more."""
        for source in self.sources:
            before = -1
            while before != (before := self._buffer.taken + len(self._printed)) and self.read(source):
                pass

    def _note_prints(self) -> None:
        text = self._printed.decode("utf-8", "replace").strip()
        if text and self.result.failure is not None:
            self.result.failure += f" (it printed {text.splitlines()[-1][:120]!r})"
        elif text:
            self.result.misdeeds.append(f"printed {text.splitlines()[0][:60]!r}")

    def _ending(self) -> str:
        try:
            code = self._process.wait(timeout=ABANDON_AFTER_SECONDS)
        except subprocess.TimeoutExpired:
            return "closed its pipe"
        if code >= 0:
            return f"ended with exit code {code}"
        try:
            name = signal.Signals(-code).name
        except ValueError:
            return f"was killed by signal {-code}"
        return f"was killed by signal {-code} ({name})"

    def end(self) -> None:
        """Kill the child and its process group, and stop waiting for it after half a second."""
        self._kill()
        try:
            self._process.wait(timeout=ABANDON_AFTER_SECONDS)
        except subprocess.TimeoutExpired:
            self.result.misdeeds.append(f"left process {self._process.pid} behind, which cannot be killed")
            self._process.returncode = -signal.SIGKILL
        self._output.close()
        os.close(self._result_read)
        os.close(self._request_write)

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()


def _above_standard(end: int, stack: contextlib.ExitStack) -> int:
    """Give a pipe's end a number above those of stdin, stdout and stderr, which may be closed; else the child loses it.

    Args: stack: closes it when the child cannot be started.
    """
    if end <= 2:
        import fcntl

        low, end = end, fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 3)
        os.close(low)
    stack.callback(os.close, end)
    return end


def _child_environ() -> dict[str, str]:
    places = [os.fspath(path) for path in sys.path if isinstance(path, (str, os.PathLike))]
    with contextlib.suppress(FileNotFoundError):
        places = [place or os.getcwd() for place in places]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(place for place in places if place)}
