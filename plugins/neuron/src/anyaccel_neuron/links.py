"""NeuronLink: which devices are connected, as the driver's files or `neuron-ls` tell."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import combinations
from typing import Any

from anyaccel.device import Device
from anyaccel.errors import UnavailableError
from anyaccel.machine import Machine
from anyaccel.topology import Link, LinkState, TopologyReport
from anyaccel_neuron.devices import CLASS_FOLDER, index_of
from anyaccel_neuron.reply import devices_told, peers

__all__ = ["describe_links"]

_NO_SPEED = "nothing public tells how fast a NeuronLink of this chip is"


def describe_links(machine: Machine, devices: Iterable[Device], ask: Callable[[], Any]) -> TopologyReport:
    """Give every connection once. The driver's file, which only root can read, goes before the program's answer.

    Raises: UnavailableError when neither tells.
    """
    roots = {index: d for d in devices if d.parent is None and (index := index_of(d)) is not None}
    if len(roots) < 2:
        return TopologyReport(reason="fewer than two devices")
    told = {number: _in_file(machine, number) for number in roots}
    if any(others is None for others in told.values()):
        told = {number: peers(reply) for number, reply in devices_told(ask()).items() if number in roots}
    heard: dict[int, Counter[int]] = {number: Counter(others) for number, others in told.items() if others is not None}
    if not heard:
        raise UnavailableError("neuron-ls tells no connection of any device", reason_code="not-told")
    pairs = [(a, b) for a, b in combinations(sorted(roots), 2) if _tells(heard, a, b) or _tells(heard, b, a)]
    links = tuple(_link(roots[a], roots[b], heard) for a, b in pairs)
    return TopologyReport(links, notes=tuple(_notes(heard, roots, links)))


def _in_file(machine: Machine, number: int) -> tuple[int, ...] | None:
    text = machine.read_text_or_none(f"{CLASS_FOLDER}/neuron{number}/connected_devices")
    if text is None or not re.fullmatch(r"\s*(\d{1,6}(\s*,\s*\d{1,6})*)?\s*", text, re.ASCII):
        return None
    return tuple(int(part) for part in text.split(",") if part.strip())


def _tells(heard: Mapping[int, Counter[int]], one: int, other: int) -> bool:
    return one in heard and heard[one][other] > 0


def _link(one: Device, other: Device, heard: Mapping[int, Counter[int]]) -> Link:
    a, b = index_of(one) or 0, index_of(other) or 0
    counts = {heard[end][peer] for end, peer in ((a, b), (b, a)) if end in heard}
    is_agreed = len(counts) == 1
    return Link(
        one.id,
        other.id,
        "neuronlink",
        "NL",
        count=max(counts) if is_agreed else None,
        hops=1,
        state=LinkState.UP if is_agreed else LinkState.UNKNOWN,
        reason=_NO_SPEED if is_agreed else f"devices {a} and {b} do not agree on it; {_NO_SPEED}",
    )


def _notes(heard: Mapping[int, Counter[int]], roots: Mapping[int, Device], links: Iterable[Link]) -> Iterable[str]:
    odd = [f"{link.a} and {link.b}" for link in links if link.state is LinkState.UNKNOWN]
    if odd:
        yield f"only one end tells of the link between {'; '.join(odd)}"
    outside = sorted({peer for others in heard.values() for peer in others if peer not in roots})
    if outside:
        yield f"connected to devices that are not here: {', '.join(str(number) for number in outside)}"
