"""Links between GPUs from KFD: xGMI, PCIe peers, and the way between partitions of one package.

The type decides the kind, the weight only ranks: 15 for each xGMI hop between whole GPUs, 13 inside one package, 41 between
partitions of two GPUs (`kfd_fill_gpu_xgmi_link_to_gpu`, `KFD_CRAT_INTRA_SOCKET_WEIGHT`). A bandwidth of 0 is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from anyaccel.device import Device
from anyaccel.replies import Reply
from anyaccel.topology import Link, LinkSource, LinkState, TopologyReport
from anyaccel_amd.kfd import LINK_PCIE, LINK_XGMI, KfdLink
from anyaccel_amd.smi_answer import SOURCE, link_kind

__all__ = ["report_from_kfd", "with_smi_links"]

Json = Any

_WEIGHT_PER_HOP = 15
_MBS = 1_000_000
_UNKNOWN_BANDWIDTH = "KFD reports bandwidth 0, which means unknown"
_FROM_SMI = "KFD tells no bandwidth, so the number of links is unknown; the bandwidth is what amdsmi tells"
_PCIE_WAY = "KFD tells neither links nor hops of a PCIe way"
_PACKAGE_WAY = "nothing tells how many ways lead through a package"
_UNEVEN = "its bandwidths are no multiple of one another, so the number of links is unknown"


@dataclass(frozen=True)
class _Pair:
    """The two directions of one link, merged."""

    ends: tuple[Device, Device]
    type: int
    weight: int
    min_mbs: int
    max_mbs: int
    is_enabled: bool

    @property
    def is_same_package(self) -> bool:
        a, b = self.ends
        return a.parent is not None and a.parent == b.parent


def report_from_kfd(devices: Sequence[Device], links: Iterable[KfdLink]) -> TopologyReport:
    """Give every link between two GPUs or partitions once.

    Args: devices: as inspection left them; their KFD number joins. links: as each node tells them.
    """
    by_node = {device.numbers.get("kfd"): device for device in devices if device.numbers.get("kfd") is not None}
    pairs: dict[tuple[str, str, int], _Pair] = {}
    for link in links:
        a, b = by_node.get(link.node_from), by_node.get(link.node_to)
        if a is None or b is None or a is b or link.type not in (LINK_PCIE, LINK_XGMI):
            continue
        ends = (a, b) if link.node_from < link.node_to else (b, a)
        key = (ends[0].id, ends[1].id, link.type)
        pair = _Pair(ends, link.type, link.weight, link.min_mbs, link.max_mbs, link.is_enabled)
        pairs[key] = _merged(pairs.get(key), pair)
    nearest = _nearest_weight(pairs.values())
    return TopologyReport(links=tuple(_link(pair, nearest) for pair in pairs.values()))


def _merged(known: _Pair | None, new: _Pair) -> _Pair:
    if known is None:
        return new
    return replace(
        known,
        weight=min(known.weight or new.weight, new.weight or known.weight),
        min_mbs=max(known.min_mbs, new.min_mbs),
        max_mbs=max(known.max_mbs, new.max_mbs),
        is_enabled=known.is_enabled and new.is_enabled,
    )


def _nearest_weight(pairs: Iterable[_Pair]) -> int | None:
    """Give the weight of one hop on this machine: the smallest between two packages."""
    weights = [p.weight for p in pairs if p.type == LINK_XGMI and p.weight and not p.is_same_package]
    return min(weights, default=None)


def _link(pair: _Pair, nearest: int | None) -> Link:
    if pair.type == LINK_PCIE:
        speed = (pair.min_mbs or pair.max_mbs) * _MBS or None
        return _made(pair, "pcie", "PCIE", speed, why=_PCIE_WAY)
    speed = pair.max_mbs * _MBS or None
    if pair.is_same_package:
        return _made(pair, "same-package", "PKG", speed, hops=1, why=_PACKAGE_WAY)
    count, hops = _count(pair), _hops(pair.weight, nearest)
    reasons = [None if count or not speed else _UNEVEN, None if hops else _why_no_hops(pair.weight, nearest)]
    return _made(pair, "xgmi", "XGMI", speed, count=count, hops=hops, why="; ".join(r for r in reasons if r))


def _made(
    pair: _Pair,
    kind: str,
    label: str,
    speed: int | None,
    *,
    count: int | None = None,
    hops: int | None = None,
    why: str,
) -> Link:
    disabled = None if pair.is_enabled else "KFD does not call it enabled"
    reasons = [text for text in (None if speed else _UNKNOWN_BANDWIDTH, why, disabled) if text]
    return Link(
        a=pair.ends[0].id,
        b=pair.ends[1].id,
        kind=kind,
        label=label,
        bytes_per_second_each_way=speed,
        count=count,
        hops=hops,
        state=LinkState.UP if pair.is_enabled else LinkState.UNKNOWN,
        source=LinkSource.READ,
        reason="; ".join(reasons) or None,
    )


def _hops(weight: int, nearest: int | None) -> int | None:
    if nearest is None or weight <= 0:
        return None
    steps, rest = divmod(weight - nearest, _WEIGHT_PER_HOP)
    return 1 + steps if rest == 0 else None


def _why_no_hops(weight: int, nearest: int | None) -> str:
    return f"weight {weight} is no whole number of hops above {nearest}" if weight else "KFD reports no weight"


def _count(pair: _Pair) -> int | None:
    """Give the number of parallel links: the kernel writes one link's bandwidth as minimum and the sum as maximum."""
    if pair.min_mbs <= 0 or pair.max_mbs % pair.min_mbs:
        return None
    return pair.max_mbs // pair.min_mbs or None


def with_smi_links(report: TopologyReport, devices: Sequence[Device], answer: Json) -> TopologyReport:
    """Add what amdsmi knows and KFD does not: bandwidth of xGMI links, or all links where KFD told none.

    Args: answer: the document as it came; a row that cannot be read is left out.
    Returns: a report whose notes name the pairs on which the two disagree; KFD's word stands.
    """
    reply = Reply(answer, SOURCE)
    told = _smi_kinds(devices, reply)
    if not report.links:
        return replace(report, links=tuple(_smi_link(pair, kind) for pair, kind in sorted(told.items())))
    speeds = _smi_speeds(devices, reply)
    links = tuple(_with_speed(link, speeds.get(_key(link.a, link.b))) for link in report.links)
    clashes = [
        f"amdsmi calls {link.a} – {link.b} {told[key]}, KFD calls it {link.kind}; KFD's word is used"
        for link in links
        if (key := _key(link.a, link.b)) in told and link.kind in ("xgmi", "pcie") and told[key] != link.kind
    ]
    return replace(report, links=links, notes=(*report.notes, *clashes))


def _key(a: str, b: str) -> tuple[str, str]:
    return (a, b) if a <= b else (b, a)


def _smi_kinds(devices: Sequence[Device], answer: Reply) -> dict[tuple[str, str], str]:
    ids, version = _ids_by_address(devices), answer.text("library_version")
    kinds = {}
    for row in answer.rows("links"):
        a, b = ids.get(row.text("a")), ids.get(row.text("b"))
        kind = link_kind(row.number("type", bits=32), version, call="topology")
        if a is not None and b is not None and a != b and kind is not None:
            kinds[_key(a, b)] = kind
    return kinds


def _ids_by_address(devices: Sequence[Device]) -> dict[str | None, str]:
    return {address: device.id for device in devices for address in device.pci_addresses}


def _smi_link(pair: tuple[str, str], kind: str) -> Link:
    reason = "amdsmi tells the kind only, and KFD told no link"
    return Link(pair[0], pair[1], kind, kind.upper(), source=LinkSource.READ, reason=reason)


def _smi_speeds(devices: Sequence[Device], answer: Reply) -> dict[tuple[str, str], int]:
    """Add up the bandwidth of the links of each pair of GPUs, in bytes a second each way; the binding tells Gbit/s."""
    ids, version = _ids_by_address(devices), answer.text("library_version")
    told = [
        (ids.get(row.text("address")), link) for row in answer.rows("processors") for link in row.rows("xgmi_links")
    ]
    parts: dict[tuple[str, str], list[int | None]] = {}
    for here, link in told:
        there = ids.get(link.text("address"))
        kind = link_kind(link.number("type", bits=32), version, call="metrics")
        if here is not None and there is not None and here < there and kind == "xgmi":
            parts.setdefault((here, there), []).append(link.number("max_gbits", bits=32))
    return {pair: sum(known) * 125_000_000 for pair, gbits in parts.items() if (known := _all_known(gbits))}


def _all_known(numbers: Sequence[int | None]) -> list[int] | None:
    """Give the numbers, None when one of them is unknown: a sum without it would be too small."""
    known = [number for number in numbers if number]
    return known if len(known) == len(numbers) else None


def _with_speed(link: Link, speed: int | None) -> Link:
    if speed is None or link.kind != "xgmi" or link.bytes_per_second_each_way is not None or link.hops != 1:
        return link
    return replace(link, bytes_per_second_each_way=speed, reason=_FROM_SMI)
