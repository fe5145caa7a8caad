"""Laws of links and places."""

from __future__ import annotations

import re
from collections.abc import Iterable

from anyaccel.device import Device, FamilyView, Level
from anyaccel.errors import AccelError, PluginError
from anyaccel.machine import Machine
from anyaccel.registry import Plugin
from anyaccel.topology import Link, TopologyReport
from anyaccel_conformance.laws.breach import need
from anyaccel_conformance.laws.devices import without_driver

__all__ = ["check_link_ends", "check_link_values", "check_places", "check_unasked_links"]


def _report(plugin: Plugin, machine: Machine, devices: tuple[Device, ...]) -> TopologyReport | None:
    try:
        report: TopologyReport = plugin.call("accel_describe_topology", machine=machine, devices=devices)
    except PluginError:
        raise
    except AccelError:
        return None
    return report


def check_link_ends(plugin: Plugin, machine: Machine, view: FamilyView) -> bool:
    """TOPO-001: both ends exist and differ."""
    report = _report(plugin, machine, view.devices)
    if report is None:
        return False
    known = {device.id for device in view.devices} | {node.id for node in report.nodes}
    for link in report.links:
        for end in (link.a, link.b):
            is_there = end in known or re.fullmatch(r"numa:\d+", end)
            need(is_there, "TOPO-001", f"a {link.kind} link ends at {end!r}, which is not there")
        need(link.a != link.b, "TOPO-001", f"a {link.kind} link joins {link.a} with itself")
    return bool(report.links)


def check_link_values(plugin: Plugin, machine: Machine, view: FamilyView) -> bool:
    """TOPO-002: numbers are positive or None with a reason, and no link comes twice."""
    report = _report(plugin, machine, view.devices)
    seen: set[tuple[frozenset[str], str, str | None]] = set()
    for link in () if report is None else report.links:
        _check_numbers(link)
        place = (frozenset((link.a, link.b)), link.kind, link.via)
        need(place not in seen, "TOPO-002", f"the {link.kind} link between {link.a} and {link.b} is there twice")
        seen.add(place)
    return bool(seen)


def _check_numbers(link: Link) -> None:
    for name in ("bytes_per_second_each_way", "count", "hops"):
        value = getattr(link, name)
        where = f"the {link.kind} link between {link.a} and {link.b} has {name}={value}"
        need(value is None or value > 0, "TOPO-002", where)
        need(value is not None or link.reason, "TOPO-002", f"{where} without a reason")


def check_places(view: FamilyView) -> bool:
    """TOPO-002: places of one fabric speak of one grid, and a place holds one device of a level."""
    lengths: dict[tuple[str, str | None], int] = {}
    taken: dict[tuple[str, str | None, Level, tuple[int, ...]], str] = {}
    for device, kind, name, coordinates in _coordinates(view.devices):
        length = lengths.setdefault((kind, name), len(coordinates))
        need(
            length == len(coordinates),
            "TOPO-002",
            f"{device.id} is at {coordinates} in a {kind} of {length} dimensions",
        )
        other = taken.setdefault((kind, name, device.level, coordinates), device.id)
        need(other == device.id, "TOPO-002", f"{device.id} and {other} are both at {coordinates} of {kind} {name}")
    return bool(taken)


def _coordinates(devices: Iterable[Device]) -> Iterable[tuple[Device, str, str | None, tuple[int, ...]]]:
    for device in devices:
        for place in device.places:
            if place.coordinates is not None:
                yield device, place.kind, place.name, place.coordinates


def check_unasked_links(plugin: Plugin, machine: Machine, view: FamilyView) -> bool:
    """TOPO-003: when nobody answers, an empty report gives the reason."""
    if not view.devices:
        return False
    report = _report(plugin, without_driver(machine), view.devices)
    if report is not None and not report.links:
        asked_nothing = _report(plugin, machine, view.devices) == report
        need(report.reason or asked_nothing, "TOPO-003", "nothing could be asked, and no links came without a reason")
    return True
