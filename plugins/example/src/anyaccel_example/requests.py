"""Which chips may compute together: one, or a rectangle of two or four in the grid."""

from __future__ import annotations

from collections.abc import Iterator

from anyaccel.capabilities import ResourceName
from anyaccel.device import Device, FamilyView, Level
from anyaccel.resources import AnySet, LegalSet, LegalSets, Refusal, RequestAnswer, ResourceRequest

RESOURCES = (
    ResourceName("example", Level.DEVICE, "example.org/chip", "EXAMPLE"),
    ResourceName("example-core", Level.CORE, "example.org/core"),
)
SHAPES = {1: ((1, 1),), 2: ((2, 1), (1, 2)), 4: ((2, 2), (4, 1), (1, 4))}
"""Columns and rows of each legal size, best first."""

_LINE = "a line of four has one way between its halves, a square has two"


def legal_sets(view: FamilyView, request: ResourceRequest) -> RequestAnswer:
    """Answer for the whole family, free or not: cores combine freely, chips only as `SHAPES` says."""
    level = next((r.level for r in RESOURCES if request.key in (r.kind, r.kubernetes, r.ray)), None)
    units = [device for device in view.devices if device.level is level]
    if level is None:
        return Refusal(f"no resource {request.key!r} (known: {', '.join(r.kind for r in RESOURCES)})")
    if request.is_fraction:
        return Refusal("a core belongs to one process at a time, so there are no fractions")
    if level is Level.DEVICE and request.count not in (0, *SHAPES):
        return Refusal(f"sets of 1, 2 or 4 chips, not {request.count}")
    if request.count > len(units):
        return Refusal(f"{request.count} {level.value}s asked for, {len(units)} present")
    if level is Level.CORE or request.count == 0:
        return AnySet()
    return _rectangles(units, request.count)


def _rectangles(chips: list[Device], count: int) -> RequestAnswer:
    grid = {place.coordinates: chip.id for chip in chips for place in chip.places}
    if count == 1:
        return LegalSets(tuple(LegalSet((chip.id,)) for chip in chips))
    sets = tuple(
        LegalSet(ids, is_only_slower=4 in shape, reason=_LINE if 4 in shape else None)
        for shape in SHAPES[count]
        for ids in _placed(grid, shape)
    )
    rule = "chips of one job form a rectangle in the grid"
    return LegalSets(sets, reason=rule) if sets else Refusal(f"{rule}, and no {count} chips here do")


def _placed(grid: dict[tuple[int, ...] | None, str], shape: tuple[int, int]) -> Iterator[tuple[str, ...]]:
    columns, rows = shape
    for corner in sorted(place for place in grid if place is not None):
        cells = [(corner[0] + x, corner[1] + y) for y in range(rows) for x in range(columns)]
        if all(cell in grid for cell in cells):
            yield tuple(grid[cell] for cell in cells)
