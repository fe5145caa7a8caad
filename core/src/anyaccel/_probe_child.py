"""The inside of a probe child: load one plugin, call its hooks on one machine, write down what came of each."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Sequence
from typing import Any

from anyaccel._probe_messages import ProbeRequest, ProbeResult, Send, framed
from anyaccel.driver_calls import die_with_parent
from anyaccel.errors import AccelError
from anyaccel.machine import Deadline, Journal, LiveAnswers, StoredAnswers

__all__ = ["main", "run_here", "run_hooks"]


def run_hooks(plugin: Any, request: ProbeRequest, send: Send) -> None:
    """Call the hooks of one plugin in order; what inspection learns is what the later hooks are given.

    Args: plugin: a loaded `anyaccel.registry.Plugin`. send: takes (kind, value) pairs, see `_Child._take`.
    """
    devices = request.devices
    for hook in request.hooks:
        send("hook", hook)
        guarded = plugin.call_guarded(hook, timeout_seconds=None, machine=request.machine, devices=devices)
        for misdeed in guarded.misdeeds:
            send("misdeed", f"{misdeed} in {hook}")
        try:
            answer = plugin.opened(hook, guarded)
        except AccelError as error:
            send("error", (hook, error))
            continue
        send("answer", (hook, answer))
        if hook == "accel_inspect_devices":
            devices = answer.devices


def run_here(plugin: Any, request: ProbeRequest) -> ProbeResult:
    """Call the hooks in this process, for machines whose answers are stored and can neither hang nor crash."""
    result = ProbeResult()

    def take(kind: str, value: Any) -> None:
        if kind == "answer":
            result.answers[value[0]] = value[1]
        elif kind == "error":
            result.errors[value[0]] = value[1]
        elif kind == "misdeed":
            result.misdeeds.append(value)

    run_hooks(plugin, request, take)
    answers = request.machine.answers.get(request.key)
    result.documents = dict(answers.documents) if isinstance(answers, StoredAnswers) else {}
    return result


def main(arguments: Sequence[str]) -> None:
    """Run inside the child: read one request after the other, call the hooks, write messages."""
    end_with_parent = die_with_parent()
    if end_with_parent is not None:
        end_with_parent()
    requests = os.fdopen(int(arguments[0]), "rb")
    result = os.fdopen(int(arguments[1]), "wb")
    for end in (requests, result):
        os.set_inheritable(end.fileno(), False)

    def send(kind: str, value: Any) -> None:
        result.write(framed(kind, value))
        result.flush()

    while True:
        try:
            request: ProbeRequest = pickle.load(requests)
        except EOFError:
            os._exit(0)
        _work(request, send)


def _work(request: ProbeRequest, send: Send) -> None:
    from anyaccel.registry import load_plugin

    answers = _answers(request, lambda topic: send("topic", topic))
    machine = request.machine.with_answers({request.key: answers}).for_plugin(request.key)
    machine.deadline = Deadline(request.timeout_seconds)
    machine.journal = Journal() if request.wants_journal else None
    try:
        plugin = load_plugin(request.key, request.module_name)
    except AccelError as error:
        send("failure", error.message)
        return
    asked = ProbeRequest(**{**request.__dict__, "machine": machine})
    run_hooks(plugin, asked, send)
    send("done", (answers.given if isinstance(answers, LiveAnswers) else dict(answers.documents), machine.journal))


def _answers(request: ProbeRequest, on_ask: Callable[[str], None]) -> LiveAnswers | StoredAnswers:
    stored = request.machine.answers.get(request.key)
    if not request.is_live and isinstance(stored, StoredAnswers):
        return StoredAnswers(stored.documents, may_fault=True, on_ask=on_ask)
    return LiveAnswers(on_ask=on_ask)
