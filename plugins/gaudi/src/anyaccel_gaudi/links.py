"""The scale-up Ethernet between the cards of a box.

The library tells whether a port has a link, not where it leads; the wiring inside a box is fixed and known by model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any

from anyaccel.device import Device
from anyaccel.errors import UnavailableError
from anyaccel.replies import Reply
from anyaccel.topology import Link, LinkSource, LinkState, TopologyReport
from anyaccel_gaudi.devices import module_of
from anyaccel_gaudi.inspection import told_by_address
from anyaccel_gaudi.models import Model, model_of_name

__all__ = ["are_joined", "describe_links"]

_UNHEARD = "the library was not heard, so nobody tells whether the ports have a link"


def are_joined(one: Device, other: Device) -> bool:
    """Whether the wiring of the box joins two cards: the same model, in the same group of modules."""
    model, a, b = model_of_name(one.model), module_of(one), module_of(other)
    if model is None or model.group is None or one.model != other.model or a is None or b is None or a == b:
        return False
    return a // model.group == b // model.group


def describe_links(devices: Sequence[Device], ask: Callable[[], Any]) -> TopologyReport:
    """Give one link for each pair of cards that the box joins, with the state that the library tells of their ports."""
    wired = [
        (a, b, model) for a, b in combinations(devices, 2) if (model := model_of_name(a.model)) and are_joined(a, b)
    ]
    if not wired:
        return TopologyReport(reason="no two cards of one box whose model and module ids are known")
    try:
        told = told_by_address(ask())
    except UnavailableError as error:
        told = {}
        notes: tuple[str, ...] = (f"{_UNHEARD}: {error.message}",)
    else:
        notes = tuple(_notes(devices, told))
    return TopologyReport(tuple(_link(a, b, model, told) for a, b, model in wired), notes=notes)


def _link(one: Device, other: Device, model: Model, told: dict[str, Reply]) -> Link:
    ports = [_ports(device, told) for device in (one, other)]
    is_up = all(up is not None and all(up) for up in ports)
    reasons = []
    if not is_up:
        reasons.append(_UNHEARD if None in ports else "some ports have no link, and nobody tells where a port leads")
    if model.bytes_a_pair is None:
        reasons.append("nothing public tells how many ports join two of these cards")
    return Link(
        one.id,
        other.id,
        "gaudi-roce",
        "RoCE" if model.ports_a_pair is None else f"RoCE{model.ports_a_pair}",
        bytes_per_second_each_way=model.bytes_a_pair,
        count=model.ports_a_pair,
        hops=1,
        state=LinkState.UP if is_up else LinkState.UNKNOWN,
        source=LinkSource.TABLE,
        reason="; ".join(reasons) or None,
    )


def _ports(device: Device, told: dict[str, Reply]) -> tuple[bool, ...] | None:
    """Give whether each port of a card has a link, None when nothing was told."""
    reply = told.get(device.pci_addresses[0])
    ports = reply.flags("ports_up") if reply is not None else ()
    return ports or None


def _notes(devices: Sequence[Device], told: dict[str, Reply]) -> Iterator[str]:
    for device in devices:
        ports = _ports(device, told)
        if ports is not None and not all(ports):
            yield f"{device.id}: {ports.count(False)} of {len(ports)} Ethernet ports have no link"
