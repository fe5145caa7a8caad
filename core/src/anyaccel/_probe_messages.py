"""What passes between a program and its probe children: requests one way, bounded messages of plain values the other.

A plugin's code runs in the child and could write to its pipe, so the parent rebuilds nothing but values of the contract.
"""

from __future__ import annotations

import io
import pickle
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from anyaccel.device import Device
from anyaccel.errors import AccelError, rebuild
from anyaccel.machine import Journal, Machine

__all__ = ["ANSWER_LIMIT", "MessageBuffer", "OddMessageError", "ProbeRequest", "ProbeResult", "Send", "framed"]

ANSWER_LIMIT = 64 << 20
"""Bytes a child may answer to one request; a machine of a thousand devices needs two million."""


@dataclass(frozen=True)
class ProbeRequest:
    """What one child shall do: load a plugin and call these hooks in order on this machine."""

    key: str
    module_name: str
    machine: Machine
    devices: tuple[Device, ...]
    hooks: tuple[str, ...]
    timeout_seconds: float
    is_live: bool
    wants_journal: bool = False


@dataclass
class ProbeResult:
    """What came of it: answers and errors by hook, what was printed, what went wrong with the child itself."""

    answers: dict[str, Any] = field(default_factory=dict)
    errors: dict[str, AccelError] = field(default_factory=dict)
    misdeeds: list[str] = field(default_factory=list)
    failure: str | None = None
    hint: str | None = None
    hook: str | None = None
    topic: str | None = None
    documents: dict[str, Any] = field(default_factory=dict)
    journal: Journal | None = None

    @property
    def where(self) -> str:
        """What the child was doing, for a sentence."""
        return f"asking {self.topic!r} in {self.hook}" if self.topic else f"running {self.hook or 'its start'}"


Send = Callable[[str, Any], None]


def framed(kind: str, value: Any) -> bytes:
    """Give a message as it stands on the pipe: its length in four bytes, then its pickle."""
    message = pickle.dumps((kind, value))
    return struct.pack("!I", len(message)) + message


class MessageBuffer:
    """Cuts what was read from a pipe into messages.

    Raises: OddMessageError from `messages` for what is none, and for more than `ANSWER_LIMIT` bytes in all.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self.taken = 0

    def add(self, data: bytes) -> None:
        """Take what was read."""
        self.taken += len(data)
        self._buffer += data

    def messages(self) -> Iterator[tuple[str, Any]]:
        """Give every message that is complete."""
        if self.taken > ANSWER_LIMIT:
            raise OddMessageError(f"more than {ANSWER_LIMIT >> 20} MiB")
        start = 0
        while len(self._buffer) - start >= 4:
            (length,) = struct.unpack_from("!I", self._buffer, start)
            if length > ANSWER_LIMIT:
                raise OddMessageError("something that is no message")
            if len(self._buffer) - start < 4 + length:
                break
            message = bytes(self._buffer[start + 4 : start + 4 + length])
            start += 4 + length
            yield _read_message(message)
        del self._buffer[:start]


class OddMessageError(Exception):
    """A child wrote something that is no answer; the text says what."""


class _ValuesOnly(pickle.Unpickler):
    """Rebuilds values of the contract and our own errors, and refuses everything else: no code of a plugin runs here."""

    def find_class(self, module: str, name: str) -> Any:
        found = super().find_class(module, name) if module.startswith("anyaccel.") else None
        is_value = isinstance(found, type) and found.__module__ == module
        if is_value or found is rebuild:
            return found
        raise OddMessageError(f"a {module}.{name}, which is no value of the contract")


def _read_message(message: bytes) -> tuple[str, Any]:
    try:
        kind, value = _ValuesOnly(io.BytesIO(message)).load()
    except OddMessageError:
        raise
    except Exception as error:
        raise OddMessageError(f"a damaged message ({type(error).__name__})") from error
    return kind, value
