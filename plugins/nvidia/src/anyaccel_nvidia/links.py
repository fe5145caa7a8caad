"""NVLink: which cards are joined, how wide, through which switches.

Per-link payload rates by version: 20 GB/s each way (1), 25 (2), 25 (3 on A100, 14.0625 on GA102), 25 (4), 50 (5): NVIDIA's
architecture white papers (P100, V100, A100, GA102, H100, Blackwell). A version alone does not tell A100 from GA102.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from anyaccel.device import Device
from anyaccel.topology import FabricNode, Link, LinkSource, LinkState, TopologyReport
from anyaccel_nvidia.declaration import FAMILY
from anyaccel_nvidia.fabric import REMOTE_SWITCH
from anyaccel_nvidia.partitions import is_divided
from anyaccel_nvidia.replies import Reply

__all__ = ["describe_links", "link_rate"]

_KIND = "nvlink"
_REMOTE_GPU, _REMOTE_CPU = 0, 1
_RATES: Mapping[int, int] = {
    1: 20_000_000_000,
    2: 25_000_000_000,
    3: 25_000_000_000,
    4: 25_000_000_000,
    6: 25_000_000_000,
    7: 50_000_000_000,
}
"""Bytes per second each way and link, by nvml.h's version numbers: 1.0, 2.0, 2.2, 3.0, (3.1), 4.0, 5.0."""
_AMBIGUOUS_VERSIONS = (4, 5)
_A100 = (8, 0)
_DOMAIN_UNKNOWN = "both hang on switches, and whether they share a fabric domain is unknown"
_NO_ADDRESS = "0000:00:00.0"
_HIDDEN_SWITCH = f"{FAMILY}:nvswitch"
_PEER_WORDS = {
    1: "the chipset does not support it",
    2: "the cards do not support it",
    3: "the PCIe topology does not allow it",
    4: "it was switched off by a driver setting",
    5: "not supported",
}


@dataclass(frozen=True)
class _Card:
    """A card and its links that are up: how many, to what, and how fast one is."""

    device: Device
    to_cards: Mapping[str, int]
    to_switches: Mapping[str, int]
    cpu_count: int
    rate: int | None
    source: LinkSource

    @property
    def switch_count(self) -> int:
        """Links to switches, all together."""
        return sum(self.to_switches.values())


def link_rate(
    version: int | None, capability: Sequence[int | None], speed_mbps: int | None
) -> tuple[int | None, LinkSource]:
    """Give the bytes per second each way of one link and who says so.

    Args: version: as nvml.h counts. capability: CUDA compute capability. speed_mbps: what the driver reports, if it does.
    Example: link_rate(6, (9, 0), 26562) == (25_000_000_000, LinkSource.TABLE)
    """
    rate = _RATES.get(version or 0)
    if version in _AMBIGUOUS_VERSIONS and tuple(capability) != _A100:
        rate = None
    if rate is not None:
        return rate, LinkSource.TABLE
    return (speed_mbps * 1_000_000, LinkSource.READ) if speed_mbps else (None, LinkSource.READ)


def describe_links(devices: Sequence[Device], document: Any) -> TopologyReport:
    """Give links between cards, to switches and to CPUs, and the switches themselves.

    Args: devices: as inspection left them. document: what `collect_nvml` gave.
    """
    reply = Reply(document)
    by_address = {address: device for device in devices if device.parent is None for address in device.pci_addresses}
    entries = [(by_address.get(entry.text("pci_address") or ""), entry) for entry in reply.each("devices")]
    cards = [_card(device, entry) for device, entry in entries if device is not None]
    links = (*_direct(cards), *_to_switches(cards), *_through_switches(cards), *_to_cpus(cards))
    peers = _PeerAccess(reply, [device for device, _ in entries])
    return TopologyReport(
        links=tuple(peers.noted(link) for link in links),
        nodes=tuple(_switch_nodes(cards)),
        notes=tuple(peers.notes(links)),
    )


def _card(device: Device, entry: Reply) -> _Card:
    links = [link for link in entry.each("nvlinks") if link.number("state") == 1]
    first = links[0] if links else Reply(None)
    rate, source = link_rate(first.number("version"), entry.numbers("compute_capability"), first.number("speed_mbps"))
    ends: dict[int | None, Counter[str]] = {kind: Counter() for kind in (_REMOTE_GPU, _REMOTE_CPU, REMOTE_SWITCH, None)}
    for link in links:
        ends.setdefault(link.number("remote_type"), Counter())[link.text("remote_address") or ""] += 1
    switches = {_switch_id(address): count for address, count in ends[REMOTE_SWITCH].items()}
    return _Card(device, ends[_REMOTE_GPU] + ends[None], switches, sum(ends[_REMOTE_CPU].values()), rate, source)


def _switch_id(address: str) -> str:
    """Name a switch by its PCI address; virtual machines hide it."""
    return _HIDDEN_SWITCH if address in ("", _NO_ADDRESS) else f"{FAMILY}:{address}"


def _direct(cards: Sequence[_Card]) -> Iterator[Link]:
    """Give the links between cards that a bridge or board joins directly, counted at both ends."""
    for a, b in combinations(cards, 2):
        ahead, back = _count_between(a, b), _count_between(b, a)
        if ahead or back:
            yield _link(a, b.device.id, min(ahead, back) or max(ahead, back), reason=_one_sided(ahead, back))


def _count_between(a: _Card, b: _Card) -> int:
    return sum(a.to_cards.get(address, 0) for address in b.device.pci_addresses)


def _one_sided(ahead: int, back: int) -> str | None:
    return None if ahead == back else f"the two ends count {ahead} and {back} links"


def _link(a: _Card, b: str, count: int, *, reason: str | None = None, via: str | None = None) -> Link:
    rate = a.rate
    why = "the speed of this kind of link is unknown" if rate is None else None
    return Link(
        a=a.device.id,
        b=b,
        kind=_KIND,
        label=f"NV{count}",
        bytes_per_second_each_way=None if rate is None else rate * count,
        count=count,
        hops=1,
        via=via,
        state=LinkState.UP,
        source=a.source,
        reason="; ".join(text for text in (reason, why) if text) or None,
    )


def _to_switches(cards: Sequence[_Card]) -> Iterator[Link]:
    for card in cards:
        for switch, count in sorted(card.to_switches.items()):
            yield _link(card, switch, count)


def _through_switches(cards: Sequence[_Card]) -> Iterator[Link]:
    """Give the pairs behind switches: within one fabric every card reaches every other at full width."""
    for a, b in combinations([card for card in cards if card.switch_count], 2):
        domains = {place.name for card in (a, b) for place in card.device.places}
        if len(domains) > 1:
            continue
        shared = sorted(set(a.to_switches) & set(b.to_switches))
        link = _link(a, b.device.id, min(a.switch_count, b.switch_count), via=shared[0] if shared else None)
        yield replace(link, state=LinkState.UNKNOWN, reason=_DOMAIN_UNKNOWN) if None in domains else link


def _to_cpus(cards: Sequence[_Card]) -> Iterator[Link]:
    for card in cards:
        if card.cpu_count and card.device.numa_node is not None:
            yield _link(card, f"numa:{card.device.numa_node}", card.cpu_count)


def _switch_nodes(cards: Sequence[_Card]) -> Iterable[FabricNode]:
    for switch in sorted({switch for card in cards for switch in card.to_switches}):
        address = None if switch == _HIDDEN_SWITCH else switch.removeprefix(f"{FAMILY}:")
        yield FabricNode(switch, "fabric-switch", "NVSwitch", address)


class _PeerAccess:
    """Whether pairs of cards may read each other's memory."""

    def __init__(self, reply: Reply, devices: Sequence[Device | None]) -> None:
        self._status: dict[frozenset[str], int] = {}
        self._divided = frozenset(device.id for device in devices if device is not None and is_divided(device))
        for pair in reply.each("pairs"):
            a, b = _at(devices, pair.number("a")), _at(devices, pair.number("b"))
            status = pair.number("peer_read")
            if status is not None and a is not None and b is not None:
                self._status[frozenset((a.id, b.id))] = status

    def noted(self, link: Link) -> Link:
        """Give a link with the reason why it cannot be used between these two cards, if there is one."""
        if link.a in self._divided or link.b in self._divided:
            return replace(link, state=LinkState.DOWN, reason="MIG mode allows no access between cards")
        status = self._status.get(frozenset((link.a, link.b)), 0)
        if status == 0:
            return link
        refusal = f"the driver allows no access between these cards: {_peer_words(status)}"
        return replace(link, reason="; ".join(text for text in (link.reason, refusal) if text))

    def notes(self, links: Sequence[Link]) -> Iterator[str]:
        """Say once for each cause how many pairs without NVLink cannot read each other's memory."""
        joined = {frozenset((link.a, link.b)) for link in links}
        causes = Counter(status for pair, status in self._status.items() if status and pair not in joined)
        for status, count in sorted(causes.items()):
            pairs = "1 pair of cards" if count == 1 else f"{count} pairs of cards"
            yield f"{pairs} without NVLink cannot read each other's memory: {_peer_words(status)}"


def _peer_words(status: int) -> str:
    return _PEER_WORDS.get(status, f"status {status}")


def _at(devices: Sequence[Device | None], number: int | None) -> Device | None:
    return devices[number] if number is not None and number < len(devices) else None
