"""NVIDIA_VISIBLE_DEVICES: read by the container runtime before a container starts, by no process.

Source: NVIDIA Container Toolkit, environment variables: all, none, void or empty, indices, ids, and gpu:mig for instances.
Its numbers count on the host, so inside a container they say nothing about numbers there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from anyaccel.device import Device, FamilyView
from anyaccel.visibility import TokenEffect, TokenReport, VariableReport, split_tokens
from anyaccel_nvidia.declaration import CONTAINER_MASK

__all__ = ["read_container_mask"]

_WORDS = {
    "all": "every GPU of the host was asked for",
    "none": "the libraries were asked for, and no GPU",
    "void": "the container runtime was told to leave this container alone",
}


def read_container_mask(
    value: str | None, view: FamilyView
) -> tuple[tuple[TokenReport, ...], tuple[VariableReport, ...]]:
    """Explain the variable: spent inside a container, without effect outside."""
    if value is None:
        return (), ()
    if not view.boundary.is_container:
        reason = "read by the container runtime only: it has no effect on processes"
        tokens = tuple(
            TokenReport(CONTAINER_MASK, position, text, TokenEffect.IGNORED, (), reason)
            for position, text in enumerate(split_tokens(value))
        )
        return tokens, (VariableReport(CONTAINER_MASK, value, False, reason),)
    tokens = tuple(_token(position, text, view) for position, text in enumerate(split_tokens(value)))
    return tokens, (_report(value, tokens, view),)


def _token(position: int, text: str, view: FamilyView) -> TokenReport:
    word = text.strip()
    if word in _WORDS:
        effect = TokenEffect.COUNTS if word == "all" else TokenEffect.EMPTIES_LIST
        return TokenReport(CONTAINER_MASK, position, text, effect, (), _WORDS[word])
    if re.fullmatch(r"[0-9]+", word):
        return TokenReport(CONTAINER_MASK, position, text, TokenEffect.UNKNOWN, (), "a number of the host")
    if re.fullmatch(r"[0-9]+:[0-9]+", word):
        reason = "a MIG instance of the host, as GPU number and instance number"
        return TokenReport(CONTAINER_MASK, position, text, TokenEffect.UNKNOWN, (), reason)
    named = tuple(device.id for device in _named(word, view))
    if len(named) == 1:
        return TokenReport(CONTAINER_MASK, position, text, TokenEffect.COUNTS, named, "given to this container")
    reason = "no device here has this id" if not named else "several devices begin with it"
    return TokenReport(CONTAINER_MASK, position, text, TokenEffect.UNKNOWN, (), reason)


def _named(word: str, view: FamilyView) -> Iterator[Device]:
    return (device for device in view.devices if word and device.uuid is not None and device.uuid.startswith(word))


def _report(value: str, tokens: tuple[TokenReport, ...], view: FamilyView) -> VariableReport:
    blocked = [i for token in tokens for i in token.device_ids if _is_blocked(view.device(i))]
    if blocked:
        reason = f"names {', '.join(blocked)}, which cannot be opened here"
        return VariableReport(CONTAINER_MASK, value, False, reason, is_warning=True)
    reason = "read by the container runtime when this container started; the device files show what it gave"
    return VariableReport(CONTAINER_MASK, value, True, reason)


def _is_blocked(device: Device) -> bool:
    return any(condition.code in ("node-not-granted", "not-shown") for condition in device.conditions)
