"""What a plugin's `_driver` needs to ask a vendor's program or library; nothing else imports this.

Everything here runs inside a `collect` function, so inside the probe child.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyaccel.errors import UnavailableError

if TYPE_CHECKING:
    import ctypes

__all__ = ["die_with_parent", "find_program", "load_library", "run_program", "run_program_json", "silenced"]

_LONGEST_QUOTE = 200
_MOST_OUTPUT = 32 << 20


def die_with_parent() -> Callable[[], None] | None:
    """Give what a new process calls so that the kernel ends it with the thread that started it; None off Linux.

    Source: prctl(2), PR_SET_PDEATHSIG = 1. The function is looked up here, so that nothing is loaded between fork and exec.
    """
    if sys.platform != "linux":
        return None
    import ctypes
    import signal

    prctl = ctypes.CDLL(None, use_errno=True).prctl
    return lambda: prctl(1, int(signal.SIGKILL)) and None


def find_program(name: str, folders: Sequence[str] = ()) -> str | None:
    """Give the path of a vendor's program, None when it is not installed.

    A program of that name in the current folder is never taken: relative entries of PATH, and the current folder itself,
    are passed over.
    Args: folders: where the vendor installs it, looked at after PATH.
    """
    here = Path.cwd()
    path = os.environ.get("PATH", os.defpath).split(os.pathsep)
    places = [place for place in (*path, *folders) if Path(place).is_absolute() and Path(place).resolve() != here]
    return shutil.which(name, path=os.pathsep.join(places)) if places else None


def run_program(
    arguments: Sequence[str],
    *,
    hint: str | None = None,
    timeout_seconds: float = 8.0,
    environ: Mapping[str, str] | None = None,
    folders: Sequence[str] = (),
) -> str:
    """Run a vendor's program and give what it wrote to stdout.

    Args: arguments: the program's name and its arguments. hint: what to do when it is not installed.
        environ: variables to add. folders: see `find_program`.
    Raises: UnavailableError with the code `program-missing`, `program-failed` or `program-hangs`.
    """
    name = arguments[0]
    program = find_program(name, folders)
    if program is None:
        raise UnavailableError(f"program {name} is not installed", reason_code="program-missing", hint=hint)
    try:
        done = subprocess.run(
            [program, *arguments[1:]],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_seconds,
            env=None if environ is None else {**os.environ, **environ},
            check=False,
            preexec_fn=die_with_parent(),
        )
    except subprocess.TimeoutExpired as error:
        told = f"{name} did not answer within {timeout_seconds:g} s"
        raise UnavailableError(told, reason_code="program-hangs") from error
    except OSError as error:
        raise UnavailableError(f"{name} cannot be started: {error.strerror}", reason_code="program-failed") from error
    if done.returncode != 0:
        said = " ".join((done.stderr or done.stdout).decode("utf-8", "replace").split())[:_LONGEST_QUOTE] or "nothing"
        raise UnavailableError(f"{name} ended with {done.returncode} and said: {said}", reason_code="program-failed")
    return done.stdout[:_MOST_OUTPUT].decode("utf-8", "replace")


def run_program_json(arguments: Sequence[str], **options: Any) -> Any:
    """Run a vendor's program and read its stdout as JSON.

    Raises: UnavailableError as `run_program`, and with the code `malformed-answer` when it wrote no JSON.
    """
    text = run_program(arguments, **options)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnavailableError(f"{arguments[0]} wrote no JSON: {error}", reason_code="malformed-answer") from error


def load_library(names: Sequence[str], *, hint: str | None = None) -> ctypes.CDLL:
    """Load the first of these shared libraries that is there.

    Raises: UnavailableError with the code `library-missing`, and the loader's words when one is there and cannot be loaded.
    """
    import ctypes

    said = ""
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            said = str(error) if "No such file" not in str(error) else said
    reason = f"library {' or '.join(names)} is not installed" if not said else f"library cannot be loaded: {said}"
    raise UnavailableError(reason, reason_code="library-missing", hint=hint)


@contextlib.contextmanager
def silenced() -> Iterator[None]:
    """Send what Python and C print to nowhere while a vendor's library is used; stdout may carry somebody's JSON."""
    import io

    sys.stdout.flush()
    sys.stderr.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    kept = [(number, os.dup(number)) for number in (1, 2)]
    try:
        for number, _ in kept:
            os.dup2(nowhere, number)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        for number, copy in kept:
            os.dup2(copy, number)
            os.close(copy)
        os.close(nowhere)
