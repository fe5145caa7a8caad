"""Masks of the imaginary runtime; its manual, rule by rule (R1 to R8), stands in README.md.

What makes them awkward: EXAMPLE_CORES_PER_UNIT changes what a number in EXAMPLE_VISIBLE_UNITS counts, the runtime
sorts, and a list in which nothing counts shows everything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from anyaccel.capabilities import MaskVariable, VariableScope, VariableUse
from anyaccel.device import Device, DeviceState, FamilyView, Level
from anyaccel.errors import SelectionNotExpressibleError
from anyaccel.frozen import FrozenMap
from anyaccel.visibility import (
    EnvironmentChange,
    Gang,
    Order,
    Resolution,
    Selection,
    TokenEffect,
    TokenReport,
    VariableReport,
    VisibleUnit,
    check_granted,
    check_selection,
    split_tokens,
)

UNITS = "EXAMPLE_VISIBLE_UNITS"
CORES_PER_UNIT = "EXAMPLE_CORES_PER_UNIT"
GANG = "EXAMPLE_GANG"
CONTAINER_CHIPS = "EXAMPLE_CONTAINER_CHIPS"

_READ, _WRITTEN = (VariableUse.READS,), (VariableUse.READS, VariableUse.WRITES)
VARIABLES = (
    MaskVariable(UNITS, VariableScope.PROCESS, "unit", _WRITTEN),
    MaskVariable(CORES_PER_UNIT, VariableScope.PROCESS, None, _WRITTEN),
    MaskVariable(GANG, VariableScope.PROCESS, None, _WRITTEN),
    MaskVariable(CONTAINER_CHIPS, VariableScope.CONTAINER, "slot", _READ),
)


def resolve(view: FamilyView, environ: Mapping[str, str]) -> Resolution:
    """Say what is left, layer by layer: chips that open, the container's grant, what a unit is, the list of units."""
    opened = [chip for chip in view.roots if chip.state.rank > DeviceState.DENIED.rank]
    grant = _grant_reports(opened, environ) if _is_granting(view, environ) else None
    granted = opened if grant is None else [c for c in opened if any(c.id in r.device_ids for r in grant)]
    listed = _listed(view, granted, environ)
    mask = _mask_reports(listed, environ.get(UNITS, ""))
    units = _shown(view, listed, mask)
    hidden = _hidden_by(view, units, opened, granted, listed)
    return Resolution(
        units=units,
        tokens=(*(grant or ()), *mask),
        variables=tuple(_variable_reports(environ, mask, is_granting=grant is not None)),
        hidden_by=hidden,
        is_masked=bool(hidden),
        is_complete=all(unit.device_id is not None for unit in units),
    )


def _is_granting(view: FamilyView, environ: Mapping[str, str]) -> bool:
    return bool(view.boundary.is_container) and CONTAINER_CHIPS in environ


def _grant_reports(chips: Iterable[Device], environ: Mapping[str, str]) -> tuple[TokenReport, ...]:
    """Read what the container was given (R7): slots, ranges of slots, or `all`."""
    reports = []
    for position, text in enumerate(split_tokens(environ[CONTAINER_CHIPS])):
        match = re.fullmatch(r" *([0-9]{1,9})(?:-([0-9]{1,9}))? *", text)
        slots = range(int(match[1]), int(match[2] or match[1]) + 1) if match else range(0)
        ids = tuple(c.id for c in chips if text.strip() == "all" or c.numbers["slot"] in slots)
        effect, reason = (TokenEffect.COUNTS, "") if ids else (TokenEffect.IGNORED, "no chip sits there")
        reports.append(TokenReport(CONTAINER_CHIPS, position, text, effect, ids, reason))
    return tuple(reports)


def _listed(view: FamilyView, chips: Iterable[Device], environ: Mapping[str, str]) -> tuple[Device, ...]:
    """Give what the runtime would count without a list (R1, R2), in its order: by number, unknown ones last."""
    is_whole = environ.get(CORES_PER_UNIT) == "2"
    units = [unit for chip in chips for unit in ((chip,) if is_whole else view.children(chip.id))]
    return tuple(sorted(units, key=lambda unit: (_number(unit) is None, _number(unit) or 0)))


def _number(device: Device) -> int | None:
    number = device.numbers["unit"]
    return number if isinstance(number, int) else None


def _mask_reports(listed: Iterable[Device], value: str) -> tuple[TokenReport, ...]:
    """Say what every entry of the list does (R3, R4)."""
    ids = {_number(unit): unit.id for unit in listed}
    reports: list[TokenReport] = []
    for position, text in enumerate(split_tokens(value)):
        effect, reason, hint = TokenEffect.COUNTS, "", None
        number = int(text) if re.fullmatch(r" *[0-9]{1,9} *", text) else None
        if number is None:
            effect, reason = TokenEffect.IGNORED, "is no number"
        elif number in ids and any(ids[number] in report.device_ids for report in reports):
            effect, reason = TokenEffect.IGNORED, "the unit is listed already"
        elif number not in ids and None in ids:
            effect, reason, hint = TokenEffect.UNKNOWN, "may be a unit whose number is unknown", "load the driver"
        elif number not in ids:
            effect, reason = TokenEffect.IGNORED, "no unit has this number"
        named = (ids[number],) if effect is TokenEffect.COUNTS else ()
        reports.append(TokenReport(UNITS, position, text, effect, named, reason, hint))
    return tuple(reports)


def _shown(view: FamilyView, listed: tuple[Device, ...], mask: Iterable[TokenReport]) -> tuple[VisibleUnit, ...]:
    """Sort what counts (R5); when nothing does, everything is shown (R6)."""
    counting = [report for report in mask if report.effect in (TokenEffect.COUNTS, TokenEffect.UNKNOWN)]
    is_certain = all(_number(unit) is not None for unit in listed)
    why = None if is_certain else "the numbers of some units are unknown, so is the order"
    rows: list[tuple[TokenReport | None, str | None]] = [(None, unit.id) for unit in listed]
    if counting:
        counting.sort(key=lambda report: int(report.text))
        rows = [(report, report.device_ids[0] if report.device_ids else None) for report in counting]
    return tuple(
        VisibleUnit(
            ordinal if is_certain else None,
            device_id,
            () if device_id is None else view.leaves(device_id),
            None if report is None else UNITS,
            None if report is None else report.text,
            why,
        )
        for ordinal, (report, device_id) in enumerate(rows)
    )


def _hidden_by(
    view: FamilyView,
    units: tuple[VisibleUnit, ...],
    opened: Iterable[Device],
    granted: Iterable[Device],
    listed: Iterable[Device],
) -> FrozenMap[str]:
    visible = {leaf for unit in units for leaf in unit.leaves}
    of_opened, of_granted = (view.leaves_of(chip.id for chip in chips) for chips in (opened, granted))
    is_complete = all(unit.device_id is not None for unit in units)
    certain = view.leaves_of(unit.id for unit in listed if is_complete or _number(unit) is not None)
    hidden = {}
    for device in view.devices:
        leaves = set(view.leaves(device.id))
        if leaves <= of_opened and leaves.isdisjoint(of_granted):
            hidden[device.id] = CONTAINER_CHIPS
        elif leaves <= certain and leaves.isdisjoint(visible):
            hidden[device.id] = UNITS
    return FrozenMap(hidden)


def _variable_reports(
    environ: Mapping[str, str], mask: Iterable[TokenReport], *, is_granting: bool
) -> Iterable[VariableReport]:
    counts = any(report.effect is not TokenEffect.IGNORED for report in mask)
    per_unit = environ.get(CORES_PER_UNIT)
    told = {
        UNITS: (counts, "shows the units listed" if counts else "nothing in it counts, so every unit is shown"),
        CORES_PER_UNIT: (per_unit in ("1", "2"), "a unit is a whole chip" if per_unit == "2" else "a unit is a core"),
        GANG: (True, "tells the process its place among peers and hides nothing"),
        CONTAINER_CHIPS: (
            is_granting,
            "was granted to this container" if is_granting else "is read when a container starts, not by a process",
        ),
    }
    for variable, (has_effect, reason) in told.items():
        if variable in environ:
            is_warning = not has_effect and variable != CONTAINER_CHIPS
            yield VariableReport(variable, environ[variable], has_effect, reason, is_warning=is_warning)


def change_for(
    view: FamilyView, selection: Selection, environ: Mapping[str, str], gang: Gang | None
) -> EnvironmentChange:
    """Write all three variables, whatever was inherited: an inherited one would change what the numbers mean."""
    devices = check_selection(view, selection)
    check_granted(view, selection, resolve(view, environ))
    numbers = {number: device for device in devices if (number := _number(device)) is not None}
    problem = _why_not(devices, numbers)
    if problem:
        raise SelectionNotExpressibleError(problem, hint="select cores only or whole chips only")
    rank, size = (0, 1) if gang is None else (gang.rank, len(gang.members))
    return EnvironmentChange(
        set=(
            (CORES_PER_UNIT, "1" if devices[0].level is Level.CORE else "2"),
            (GANG, f"{rank}/{size}"),
            (UNITS, ",".join(str(number) for number in sorted(numbers))),
        ),
        order=Order.CANONICAL,
        device_ids=tuple(numbers[number].id for number in sorted(numbers)),
    )


def _why_not(devices: tuple[Device, ...], numbers: Mapping[int, Device]) -> str | None:
    if not devices:
        return f"no value of {UNITS} hides every unit: an empty list shows all"
    if len({device.level for device in devices}) > 1:
        return "one process counts either cores or whole chips, not both"
    unknown = [device.id for device in devices if device not in numbers.values()]
    return f"the numbers of {', '.join(unknown)} are unknown" if unknown else None
