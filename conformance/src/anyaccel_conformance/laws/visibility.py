"""Laws of masks: what is written is what is read.

A law that meets an error which another law is about returns False instead of blaming the plugin twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from anyaccel.capabilities import VariableScope, VariableUse
from anyaccel.device import FamilyView
from anyaccel.errors import AccelError, DeviceNotFoundError, NotGrantedError, SelectionNotExpressibleError
from anyaccel.registry import Plugin
from anyaccel.visibility import EnvironmentChange, Gang, Order, Resolution, Selection, apply_change
from anyaccel_conformance.laws.breach import RequirementBrokenError, need, shown

__all__ = [
    "check_change",
    "check_explained",
    "check_gang",
    "check_hidden_is_told",
    "check_hide_all",
    "check_never_widens",
    "check_order",
    "check_refuses_impossible",
    "check_round_trip",
    "check_same_from_everywhere",
    "check_singletons",
    "clean_environ",
    "granted_selection",
]

Environ = Mapping[str, str]


def _change(
    plugin: Plugin, view: FamilyView, selection: Selection, environ: Environ, gang: Gang | None = None
) -> EnvironmentChange:
    change: EnvironmentChange = plugin.call(
        "accel_visibility_environment", view=view, selection=selection, environ=environ, gang=gang
    )
    return change


def _resolve(plugin: Plugin, view: FamilyView, environ: Environ) -> Resolution:
    resolution: Resolution = plugin.call("accel_resolve_visibility", view=view, environ=environ)
    return resolution


def _accepted(
    plugin: Plugin, view: FamilyView, selection: Selection, environ: Environ, gang: Gang | None = None
) -> tuple[EnvironmentChange, Resolution] | None:
    """Give the change and what it leaves, None when the selection is not accepted or something else is wrong."""
    try:
        change = _change(plugin, view, selection, environ, gang)
        return change, _resolve(plugin, view, apply_change(environ, change))
    except AccelError:
        return None


def clean_environ(plugin: Plugin, environ: Environ) -> dict[str, str]:
    """Give an environment without the masks that a process reads; what its container was given stays."""
    masks = {v.name for v in plugin.declaration.variables if v.scope is not VariableScope.CONTAINER}
    return {name: value for name, value in environ.items() if name not in masks}


def granted_selection(plugin: Plugin, view: FamilyView, environ: Environ) -> tuple[str, ...]:
    """Give every device of which an environment shows all leaves, in the order of the tree; none when it does not resolve."""
    try:
        leaves = _resolve(plugin, view, environ).leaves
    except AccelError:
        return ()
    return tuple(device.id for device in view.devices if set(view.leaves(device.id)) <= leaves)


def check_round_trip(plugin: Plugin, view: FamilyView, selection: Selection, environ: Environ) -> bool:
    """VIS-001: an accepted selection is exactly what is visible."""
    accepted = _accepted(plugin, view, selection, environ)
    if accepted is None:
        return False
    change, seen = accepted
    wanted = view.leaves_of(selection.device_ids)
    need(
        seen.leaves == wanted,
        "VIS-001",
        f"{list(selection.device_ids)} from {shown(environ)} becomes {shown(dict(change.set))} without {list(change.unset)}, "
        f"which shows {sorted(seen.leaves)}",
    )
    return True


def check_order(plugin: Plugin, view: FamilyView, selection: Selection, environ: Environ) -> bool:
    """VIS-002: the promised order is the order in which units are counted."""
    accepted = _accepted(plugin, view, selection, environ)
    if accepted is None or accepted[1].leaves != view.leaves_of(selection.device_ids):
        return False
    change, seen = accepted
    told = [leaf for device_id in change.device_ids for leaf in view.leaves(device_id)]
    listed = {leaf: number for number, i in enumerate(selection.device_ids) for leaf in view.leaves(i)}
    order = f"tells the order of {change.device_ids} for the selection {selection.device_ids}"
    need(sorted(told) == sorted(listed), "VIS-002", order)
    places = [listed[leaf] for leaf in told]
    need(change.order is not Order.AS_LISTED or places == sorted(places), "VIS-002", f"promises as listed and {order}")
    place = {leaf: number for number, i in enumerate(change.device_ids) for leaf in view.leaves(i)}
    counted = [min(place[leaf] for leaf in unit.leaves) for unit in seen.units if unit.leaves]
    need(counted == sorted(counted), "VIS-002", f"promises {change.device_ids}, the process counts {seen.device_ids}")
    return True


def check_hide_all(plugin: Plugin, view: FamilyView, environ: Environ) -> bool:
    """VIS-003: the declared values and an empty selection leave nothing, whatever was inherited."""
    declared = dict(plugin.declaration.hide_all)
    need(declared, "VIS-003", "declares that it can hide all and no value that does")
    _need_nothing(plugin, view, {**environ, **declared}, f"with {declared} over {shown(environ)}")
    try:
        change = _change(plugin, view, Selection(), environ)
    except AccelError as error:
        raise RequirementBrokenError("VIS-003", f"no environment for no device: {error.message}") from error
    _need_nothing(plugin, view, apply_change(environ, change), f"with {shown(dict(change.set))} over {shown(environ)}")
    return bool(view.devices)


def _need_nothing(plugin: Plugin, view: FamilyView, environ: Environ, where: str) -> None:
    try:
        seen = _resolve(plugin, view, environ)
    except AccelError:
        return
    need(not seen.units, "VIS-003", f"{where} still shows {seen.device_ids}")


def check_never_widens(plugin: Plugin, view: FamilyView, selection: Selection, environ: Environ) -> bool:
    """VIS-004: a selection with a part outside the grant is refused, one such device alone with NotGrantedError."""
    try:
        granted = _resolve(plugin, view, environ).leaves
    except AccelError:
        return False
    outside = [i for i in selection.device_ids if not set(view.leaves(i)) <= granted]
    if not outside:
        return False
    refusal = _refusal(plugin, view, selection, environ)
    where = f"{outside} are outside what {shown(environ)} grants"
    is_refused = isinstance(refusal, NotGrantedError | SelectionNotExpressibleError)
    need(is_refused, "VIS-004", f"{where}, and the answer is {refusal!r}")
    alone = _refusal(plugin, view, Selection((outside[0],)), environ)
    is_told = isinstance(alone, NotGrantedError)
    need(is_told, "VIS-004", f"{where}, and the first alone gets {alone!r} instead of NotGrantedError")
    return True


def _refusal(
    plugin: Plugin, view: FamilyView, selection: Selection, environ: Environ
) -> AccelError | EnvironmentChange:
    try:
        return _change(plugin, view, selection, environ)
    except AccelError as error:
        return error


def check_refuses_impossible(plugin: Plugin, view: FamilyView, selection: Selection, environ: Environ) -> bool:
    """VIS-005: units selected twice are not expressible, unknown ids not found, and no other error comes out."""
    allowed = (EnvironmentChange, NotGrantedError, SelectionNotExpressibleError)
    answer = _refusal(plugin, view, selection, environ)
    need(isinstance(answer, allowed), "VIS-005", f"{selection.device_ids} from {shown(environ)} gives {answer!r}")
    for twice in _doubled(view, selection):
        answer = _refusal(plugin, view, Selection(twice), environ)
        need(isinstance(answer, SelectionNotExpressibleError), "VIS-005", f"{twice} name a unit twice: {answer!r}")
    stranger = f"{plugin.key}:no-such-device"
    answer = _refusal(plugin, view, Selection((stranger,)), environ)
    need(isinstance(answer, DeviceNotFoundError), "VIS-005", f"{stranger} is not there, and the answer is {answer!r}")
    return True


def _doubled(view: FamilyView, selection: Selection) -> Iterable[tuple[str, ...]]:
    for device_id in selection.device_ids[:1]:
        yield (*selection.device_ids, device_id)
        for above in view.ancestors(device_id)[:1]:
            yield (above, device_id)


def check_singletons(plugin: Plugin, view: FamilyView, environ: Environ) -> bool:
    """VIS-006: each unit that is shown under a known number, and each of its leaves, is expressible alone."""
    try:
        units = _resolve(plugin, view, environ).units
    except AccelError:
        return False
    ids = {i: None for u in units if u.ordinal is not None and u.device_id for i in (u.device_id, *u.leaves)}
    for device_id in ids:
        answer = _refusal(plugin, view, Selection((device_id,)), environ)
        need(isinstance(answer, EnvironmentChange), "VIS-006", f"{device_id} alone from {shown(environ)}: {answer!r}")
    return bool(ids)


def check_same_from_everywhere(
    plugin: Plugin, view: FamilyView, selection: Selection, clean: Environ, inherited: Environ
) -> bool:
    """VIS-007: what an environment with masks leads to is what a clean one leads to.

    Args: clean: without masks. inherited: the same with masks on top.
    """
    from_clean = _accepted(plugin, view, selection, clean)
    from_inherited = _accepted(plugin, view, selection, inherited)
    if from_clean is None or from_inherited is None:
        return False
    seen, expected = from_inherited[1].device_ids, from_clean[1].device_ids
    need(
        seen == expected,
        "VIS-007",
        f"{list(selection.device_ids)} from {shown(inherited)} becomes {shown(dict(from_inherited[0].set))}, which shows {seen}, "
        f"and from a clean environment {expected}",
    )
    return True


def check_explained(plugin: Plugin, view: FamilyView, environ: Environ) -> bool:
    """VIS-008: an environment resolves, twice the same, and everything about it is explained."""
    try:
        seen = _resolve(plugin, view, environ)
        need(seen == _resolve(plugin, view, environ), "VIS-008", f"{shown(environ)} resolves in two ways")
    except AccelError as error:
        raise RequirementBrokenError("VIS-008", f"{shown(environ)} does not resolve: {error.message}") from error
    _check_units(view, seen, environ)
    _check_reports(plugin, seen, environ)
    _check_hidden(view, seen, environ)
    return bool(seen.variables)


def _check_units(view: FamilyView, seen: Resolution, environ: Environ) -> None:
    leaves: list[str] = []
    for unit in seen.units:
        if unit.device_id is None:
            need(unit.reason, "VIS-008", f"{shown(environ)} leaves an unknown unit without a reason")
        else:
            known = unit.leaves == view.leaves(unit.device_id)
            need(known, "VIS-008", f"{shown(environ)} leaves {unit.device_id} with the leaves {unit.leaves}")
        need(unit.ordinal is not None or unit.reason, "VIS-008", f"{unit.device_id} has no number and no reason")
        leaves.extend(unit.leaves)
    need(len(leaves) == len(set(leaves)), "VIS-008", f"{shown(environ)} leaves a unit twice: {seen.device_ids}")
    ordinals = [unit.ordinal for unit in seen.units if unit.ordinal is not None]
    need(ordinals == sorted(set(ordinals)), "VIS-008", f"{shown(environ)} counts units as {ordinals}")
    is_known = all(unit.device_id is not None for unit in seen.units)
    need(
        is_known or not seen.is_complete, "VIS-008", f"{shown(environ)} leaves unknown units and claims to be complete"
    )


def _check_reports(plugin: Plugin, seen: Resolution, environ: Environ) -> None:
    told = [report.variable for report in seen.variables]
    need(len(told) == len(set(told)), "VIS-008", f"{told} tell of a variable twice")
    for variable in plugin.declaration.variables:
        if variable.name in environ and VariableUse.READS in variable.uses:
            need(
                variable.name in told, "VIS-008", f"nothing is told of {shown({variable.name: environ[variable.name]})}"
            )
    for report in seen.variables:
        need(environ.get(report.variable) == report.value, "VIS-008", f"{report} tells of a value that is not set")
        need(report.reason, "VIS-008", f"{shown({report.variable: report.value})} is told of without a reason")
    spaces = {variable.name: variable.number_space for variable in plugin.declaration.variables}
    for report in seen.variables:
        if report.has_effect and spaces.get(report.variable) is not None:
            tokens = [token for token in seen.tokens if token.variable == report.variable]
            texts = "".join(token.text for token in tokens)
            is_whole = _without_separators(texts) == _without_separators(report.value)
            need(is_whole, "VIS-008", f"of {shown({report.variable: report.value})} only {texts!r} is explained")
            positions = [token.position for token in tokens]
            need(positions == list(range(len(tokens))), "VIS-008", f"entries of {report.variable} stand at {positions}")


def _without_separators(text: str) -> str:
    return re.sub(r"[,;\s]", "", text)


def _check_hidden(view: FamilyView, seen: Resolution, environ: Environ) -> None:
    known = {device.id for device in view.devices}
    for device_id, variable in seen.hidden_by.items():
        need(device_id in known, "VIS-008", f"{device_id} is hidden and not there")
        need(variable in environ, "VIS-008", f"{device_id} is hidden by {variable}, which is not set")
        is_visible = not seen.leaves.isdisjoint(view.leaves(device_id))
        need(not is_visible, "VIS-008", f"{device_id} is hidden by {variable} and visible under {shown(environ)}")
    need(seen.is_masked or not seen.hidden_by, "VIS-008", f"{shown(environ)} hides devices and claims to hide none")


def check_hidden_is_told(plugin: Plugin, view: FamilyView, clean: Environ, inherited: Environ) -> bool:
    """VIS-008: what is visible without masks and not with them names the variable that hides it."""
    try:
        before, after = _resolve(plugin, view, clean), _resolve(plugin, view, inherited)
    except AccelError:
        return False
    if not after.is_complete:
        return False
    gone = sorted(before.leaves - after.leaves - set(after.hidden_by))
    need(not gone, "VIS-008", f"{shown(inherited)} hides {gone} without naming a variable")
    return True


def check_change(plugin: Plugin, view: FamilyView, selection: Selection, environ: Environ) -> bool:
    """VIS-009: a change names each variable once, and only those declared as written or cleared."""
    answer = _refusal(plugin, view, selection, environ)
    if not isinstance(answer, EnvironmentChange):
        return False
    set_names = [name for name, _ in answer.set]
    names = [*set_names, *answer.unset]
    need(len(names) == len(set(names)), "VIS-009", f"{names} name a variable twice")
    uses = {variable.name: variable.uses for variable in plugin.declaration.variables}
    for name in names:
        use = VariableUse.WRITES if name in set_names else VariableUse.CLEARS
        is_declared = use in uses.get(name, ()) or VariableUse.WRITES in uses.get(name, ())
        need(is_declared, "VIS-009", f"{name} is changed and not declared as {use.value[:-1]}")
    wrong = [name for name, value in answer.set if "\0" in value or "=" in name or not name]
    need(not wrong, "VIS-009", f"an environment cannot hold {wrong}")
    return True


def check_gang(
    plugin: Plugin, view: FamilyView, selection: Selection, others: tuple[Selection, ...], environ: Environ
) -> bool:
    """VIS-009: with peers or without, a process sees its own selection."""
    alone = _accepted(plugin, view, selection, environ)
    if alone is None:
        return False
    exercised = False
    for members in ((selection,), (selection, *others), (*others, selection)):
        together = _accepted(plugin, view, selection, environ, Gang(members.index(selection), members))
        if together is not None:
            exercised = True
            seen, expected = together[1].device_ids, alone[1].device_ids
            need(seen == expected, "VIS-009", f"among {len(members)} a process sees {seen}, alone {expected}")
    return exercised
