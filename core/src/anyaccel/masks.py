"""Masks read entry by entry, layer upon layer: the frame that every family fills with its runtime's own rules.

A *slot* is one thing a runtime can count. A layer takes the slots that the layer before left, reads one variable, and leaves
some of them in the order of the next numbers. What an entry does (counts, is passed over, ends or empties the list) is each
family's own rule; walking the list, keeping the reports and telling who hid what is the same for all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from anyaccel.device import FamilyView
from anyaccel.frozen import FrozenMap
from anyaccel.visibility import Resolution, TokenEffect, TokenReport, VariableReport, VisibleUnit

__all__ = [
    "MaskLayer",
    "ReadEntry",
    "Slot",
    "Verdict",
    "read_entries",
    "read_range",
    "resolution_of_layers",
    "slots_of",
]

_AFTER_END = "after the end of the list"
_MOST_DIGITS = 9


@dataclass(frozen=True)
class Slot:
    """One thing a runtime can count.

    Args: device_id: None = it is there, but which device it is cannot be told; reason says why. leaves: the smallest units
        it stands for. number: what a mask calls it, None = unknown. uuid: the stable name the runtime knows it by.
        variable, token: the entry that chose it, None = no mask.
    """

    device_id: str | None
    leaves: tuple[str, ...] = ()
    number: int | None = None
    uuid: str | None = None
    variable: str | None = None
    token: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Verdict:
    """What one entry of a mask does: the slots it chooses, or an effect with a reason.

    Args: reason: shown with the entry. slots: empty unless it counts or names something unknown.
    """

    effect: TokenEffect
    slots: tuple[Slot, ...] = ()
    reason: str = ""
    hint: str | None = None


@dataclass(frozen=True)
class MaskLayer:
    """What one variable leaves, in the order of the next numbers, and why each entry counts or not."""

    variable: str
    slots: tuple[Slot, ...]
    tokens: tuple[TokenReport, ...] = ()


ReadEntry = Callable[[str, tuple[Slot, ...]], Verdict]
"""Reads one entry as written; the second argument is what earlier entries chose."""


def slots_of(view: FamilyView, device_ids: Iterable[str], number_space: str) -> tuple[Slot, ...]:
    """Give a slot for each device, numbered by one of its number spaces; None where the number is unknown."""
    slots = []
    for device_id in device_ids:
        device = view.device(device_id)
        number = device.numbers.get(number_space)
        slots.append(Slot(device_id, view.leaves(device_id), number if isinstance(number, int) else None, device.uuid))
    return tuple(slots)


def read_entries(variable: str, entries: Sequence[str], read: ReadEntry) -> MaskLayer:
    """Walk a mask's entries in order until one ends it.

    Args: entries: as written. read: the runtime's rule for one entry.
    """
    chosen: tuple[Slot, ...] = ()
    reports: list[TokenReport] = []
    is_over = False
    for position, text in enumerate(entries):
        if is_over:
            reports.append(TokenReport(variable, position, text, TokenEffect.IGNORED, reason=_AFTER_END))
            continue
        verdict = read(text, chosen)
        if verdict.effect is TokenEffect.EMPTIES_LIST:
            chosen = ()
        is_over = verdict.effect in (TokenEffect.ENDS_LIST, TokenEffect.EMPTIES_LIST)
        chosen += tuple(_marked(slot, variable, text, verdict.reason) for slot in verdict.slots)
        ids = tuple(slot.device_id for slot in verdict.slots if slot.device_id is not None)
        reports.append(TokenReport(variable, position, text, verdict.effect, ids, verdict.reason, verdict.hint))
    return MaskLayer(variable, chosen, tuple(reports))


def _marked(slot: Slot, variable: str, token: str, reason: str) -> Slot:
    return replace(slot, variable=variable, token=token, reason=slot.reason or reason or None)


def read_range(text: str) -> range | None:
    """Read `4` or `2-5` (both ends belong to it), blanks around numbers allowed; None for anything else.

    A range that runs backwards is empty.
    Example: tuple(read_range("2-4")) == (2, 3, 4)
    """
    match = re.fullmatch(rf"\s*([0-9]{{1,{_MOST_DIGITS}}})\s*(?:-\s*([0-9]{{1,{_MOST_DIGITS}}})\s*)?", text, re.ASCII)
    if match is None:
        return None
    first = int(match.group(1))
    return range(first, int(match.group(2) or first) + 1)


def resolution_of_layers(
    view: FamilyView,
    listed: Sequence[Slot],
    layers: Sequence[MaskLayer],
    *,
    variables: Iterable[VariableReport] = (),
    unordered_reason: str | None = None,
) -> Resolution:
    """Make the resolution of what the layers left.

    Args: listed: what the runtime finds without a mask, in its order. layers: outermost first. variables: one report for
        each variable that is set. unordered_reason: why the ordinals are unknown, None = they are known.
    """
    slots = layers[-1].slots if layers else tuple(listed)
    is_complete = all(slot.device_id is not None for slot in slots)
    return Resolution(
        units=tuple(_unit(None if unordered_reason else n, slot, unordered_reason) for n, slot in enumerate(slots)),
        tokens=tuple(report for layer in layers for report in layer.tokens),
        variables=tuple(variables),
        hidden_by=_hidden_by(view, listed, layers),
        is_masked=bool(layers),
        is_complete=is_complete,
    )


def _unit(ordinal: int | None, slot: Slot, unordered_reason: str | None) -> VisibleUnit:
    reason = slot.reason if slot.device_id is None else None
    return VisibleUnit(
        ordinal,
        slot.device_id,
        slot.leaves,
        slot.variable,
        slot.token,
        reason or (unordered_reason if ordinal is None else None),
    )


def _hidden_by(view: FamilyView, listed: Sequence[Slot], layers: Sequence[MaskLayer]) -> FrozenMap[str]:
    """Name the variable that hid each device; a device is hidden when all of its leaves are.

    A layer that names something unknown may show any of the rest, so nothing is called hidden by it.
    """
    hidden: dict[str, str] = {}
    left = {leaf for slot in listed for leaf in slot.leaves}
    for layer in layers:
        kept = {leaf for slot in layer.slots for leaf in slot.leaves}
        if all(slot.device_id is not None for slot in layer.slots):
            hidden.update(dict.fromkeys(left - kept, layer.variable))
            left &= kept
    found = {}
    for device in view.devices:
        names = [hidden.get(leaf) for leaf in view.leaves(device.id)]
        if None not in names:
            found[device.id] = names[0] or ""
    return FrozenMap(found)
