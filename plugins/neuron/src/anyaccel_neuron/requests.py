"""Which devices and cores may compute together.

Rules of the Neuron scheduler extension (AWS Neuron SDK, "Neuron scheduler" and its figures): on a ring only neighbours, the wrap
included; on the 4x4 torus 1, 4, 8 or 16 devices, as rows and pairs of rows; cores only with numbers that follow one another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from anyaccel.device import Device, FamilyView, Level
from anyaccel.resources import (
    AnySet,
    LegalSet,
    Refusal,
    RequestAnswer,
    ResourceRequest,
    bounded_sets,
    find_resource,
    unknown_resource,
)
from anyaccel_neuron.chips import chip_of_name
from anyaccel_neuron.declaration import FAMILY, RESOURCES
from anyaccel_neuron.devices import index_of

__all__ = ["validate_request"]

_BLOCKS = (1, 4, 8, 16)
_RING = "devices of one job are neighbours on the ring"
_TORUS = "on the torus a job takes 1, 4, 8 or 16 devices: rows of four, or pairs of rows"
_RUN = "cores of one process have numbers that follow one another"


def validate_request(view: FamilyView, request: ResourceRequest) -> RequestAnswer:
    """Answer a request over the whole family, free or not."""
    resource = find_resource(RESOURCES, request.key)
    if resource is None:
        return unknown_resource(FAMILY, request.key, RESOURCES)
    if request.is_fraction:
        return Refusal("cores of this family cannot be shared, so there are no fractions")
    units = [d for d in view.devices if d.level is resource.level and d.is_counted]
    what = "devices" if resource.level is Level.DEVICE else "cores"
    if request.count > len(units):
        return Refusal(f"{request.count} {what} asked for, {len(units)} present")
    if request.count == 0:
        return AnySet()
    return _cores(units, request.count) if resource.level is Level.PARTITION else _devices(view, units, request.count)


def _cores(cores: Sequence[Device], count: int) -> RequestAnswer:
    """Give runs of core numbers, those that touch the fewest devices first."""
    numbers = {n: core for core in cores if isinstance(n := core.numbers.get("core"), int)}
    runs = [[numbers[n + step] for step in range(count)] for n in sorted(numbers) if _is_run(numbers, n, count)]
    if not runs:
        return Refusal(f"{_RUN}, and no {count} here do")
    runs.sort(key=lambda run: len({core.parent for core in run}))
    return bounded_sets((LegalSet(tuple(core.id for core in run)) for run in runs), _RUN)


def _is_run(numbers: dict[int, Device], first: int, count: int) -> bool:
    return all(first + step in numbers for step in range(count))


def _devices(view: FamilyView, devices: Sequence[Device], count: int) -> RequestAnswer:
    if count == 1:
        return AnySet()
    numbered = {index: d for d in devices if (index := index_of(d)) is not None}
    is_torus = any((chip := chip_of_name(d.model)) is not None and chip.links == "torus" for d in numbered.values())
    rule = _TORUS if is_torus else _RING
    if is_torus and count not in _BLOCKS:
        return Refusal(f"{_TORUS}, not {count}")
    found = _blocks(numbered, count) if is_torus else _arcs(view, numbered, count)
    sets = bounded_sets((LegalSet(ids) for ids in found), rule)
    return sets if sets.sets else Refusal(f"{rule}, and no {count} here are")


def _blocks(numbered: dict[int, Device], count: int) -> Iterator[tuple[str, ...]]:
    for first in range(0, 16, count):
        block = range(first, first + count)
        if all(index in numbered for index in block):
            yield tuple(numbered[index].id for index in block)


def _arcs(view: FamilyView, numbered: dict[int, Device], count: int) -> Iterator[tuple[str, ...]]:
    """Give neighbours on the ring, each set once; a chain has no wrap, and without links neighbours are told by number."""
    order = sorted(numbered)
    ids = [numbered[index].id for index in order]
    linked = {frozenset((link.a, link.b)) for link in view.links if link.kind == "neuronlink"}
    near = {frozenset((numbered[index].id, numbered[index + 1].id)) for index in order if index + 1 in numbered}
    for start in range(len(ids)):
        arc = [ids[(start + step) % len(ids)] for step in range(count)]
        if all(frozenset(pair) in (linked or near) for pair in pairwise(arc)):
            yield tuple(arc)
            if count == len(ids):
                return
