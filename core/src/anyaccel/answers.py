"""How a plugin's questions to its driver are answered: live, from a recording or simulation, or not at all."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from anyaccel.errors import UnavailableError
from anyaccel.frozen import FrozenMap

__all__ = ["Answers", "LiveAnswers", "NoAnswers", "StoredAnswers", "check_shape"]

Json = Any


class Answers:
    """How questions to the driver are answered; one subclass a situation."""

    def answer(self, topic: str, collect: Callable[[], Json]) -> Json:
        """Give the JSON document for a topic, or raise UnavailableError."""
        raise NotImplementedError


@dataclass(frozen=True)
class NoAnswers(Answers):
    """No question can be asked here, for one reason."""

    reason: str

    def answer(self, topic: str, collect: Callable[[], Json]) -> Json:
        raise UnavailableError(self.reason, reason_code="no-live-questions")


@dataclass
class LiveAnswers(Answers):
    """Ask the driver now, once a topic, and keep what it said for a recording. Only used inside the probe child."""

    on_ask: Callable[[str], None] | None = None
    given: dict[str, Json] = field(default_factory=dict)

    def answer(self, topic: str, collect: Callable[[], Json]) -> Json:
        if topic not in self.given:
            if self.on_ask is not None:
                self.on_ask(topic)
            self.given[topic] = self._collect(collect)
        return _opened(self.given[topic])

    def _collect(self, collect: Callable[[], Json]) -> Json:
        try:
            return json.loads(json.dumps(collect(), allow_nan=False))
        except UnavailableError as error:
            return {"unavailable": error.message, "reason_code": error.reason_code, "hint": error.hint}


@dataclass(frozen=True)
class StoredAnswers(Answers):
    """Give the answers of a recording or simulation back.

    Args: documents: by topic. may_fault: execute the imaginary faults `hang` and `crash`; only the probe child does.
    """

    documents: FrozenMap[Json] = field(default_factory=FrozenMap)
    may_fault: bool = False
    on_ask: Callable[[str], None] | None = None

    def answer(self, topic: str, collect: Callable[[], Json]) -> Json:
        if topic not in self.documents:
            raise UnavailableError(f"the recording holds no answer to {topic!r}", reason_code="not-recorded")
        if self.on_ask is not None:
            self.on_ask(topic)
        document = self.documents[topic]
        fault = document.get("fault") if isinstance(document, dict) else None
        if fault is not None:
            _act_out(fault, topic, may_fault=self.may_fault)
        return _opened(document)

    @property
    def has_faults(self) -> bool:
        """Whether some answer acts out a hang or crash."""
        return any(isinstance(d, dict) and "fault" in d for d in self.documents.values())


def _opened(document: Json) -> Json:
    if isinstance(document, dict) and "unavailable" in document:
        raise UnavailableError(
            str(document["unavailable"]),
            reason_code=str(document.get("reason_code", "unavailable")),
            hint=document.get("hint"),
        )
    return document


def _act_out(fault: object, topic: str, *, may_fault: bool) -> None:
    if not may_fault:
        raise UnavailableError(f"the answer to {topic!r} is the fault {fault!r}", reason_code="fault")
    if fault == "hang":
        while True:
            time.sleep(3600)
    if fault == "crash":
        os.kill(os.getpid(), 11)
    raise UnavailableError(f"unknown fault {fault!r} in the answer to {topic!r}", reason_code="fault")


def check_shape(document: Json, shape: Any) -> Json:
    """Give a driver's answer when it has the shape that is read from it; it may come from a stranger's recording.

    Args: shape: a table of shapes by name (further names may stand beside them), a list of one shape, or a tuple of types;
        a number must not be negative, and true is a number nowhere.
    Raises: UnavailableError with the code `malformed-answer`.
    Example: check_shape({"chips": [{"slot": 0}]}, {"chips": [{"slot": (int,)}]})
    """
    if not _fits(document, shape):
        raise UnavailableError(
            "the driver's answer has another shape than its program promises", reason_code="malformed-answer"
        )
    return document


def _fits(value: Any, shape: Any) -> bool:
    if isinstance(shape, dict):
        return isinstance(value, dict) and all(name in value and _fits(value[name], shape[name]) for name in shape)
    if isinstance(shape, list):
        return isinstance(value, list) and all(_fits(entry, shape[0]) for entry in value)
    if isinstance(value, bool) or not isinstance(value, int):
        return isinstance(value, shape) and (not isinstance(value, bool) or bool in shape)
    return int in shape and value >= 0
