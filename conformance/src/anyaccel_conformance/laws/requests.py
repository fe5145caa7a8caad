"""Laws of requests: which sets are legal, and that asking is always safe."""

from __future__ import annotations

from dataclasses import replace

from anyaccel.capabilities import Declaration, ResourceName
from anyaccel.device import Condition, Device, DeviceState, FamilyView
from anyaccel.errors import AccelError
from anyaccel.registry import Plugin
from anyaccel.resources import AnySet, LegalSet, LegalSets, Refusal, RequestAnswer, ResourceRequest
from anyaccel_conformance.laws.breach import RequirementBrokenError, need

__all__ = ["check_request", "check_requests_are_answered", "resource_names"]

MOST_SETS = 10_000
_BUSY = Condition("busy", "a process uses it", DeviceState.BUSY)


def resource_names(declaration: Declaration) -> tuple[tuple[str, ResourceName], ...]:
    """Give every name that stands for itself, with the resource it names; patterns such as `{profile}` are left out."""
    return tuple(
        (name, resource)
        for resource in declaration.resources
        for name in (resource.kind, resource.kubernetes, resource.ray)
        if name is not None and "{" not in name
    )


def _ask(plugin: Plugin, view: FamilyView, request: ResourceRequest) -> RequestAnswer:
    answer: RequestAnswer = plugin.call("accel_validate_request", view=view, request=request)
    return answer


def check_request(plugin: Plugin, view: FamilyView, name: str, resource: ResourceName, count: int) -> bool:
    """VAL-001: sets of exactly this size, of different known units of the level; reasons where one is due."""
    try:
        answer = _ask(plugin, view, ResourceRequest(name, count))
    except AccelError:
        return False
    asked = f"{count} of {name!r}"
    if isinstance(answer, Refusal):
        need(answer.reason.strip(), "VAL-001", f"{asked} are refused without a reason")
    elif isinstance(answer, LegalSets):
        need(len(answer.sets) <= MOST_SETS, "VAL-001", f"{asked} give {len(answer.sets)} sets, more than {MOST_SETS}")
        need(answer.sets, "VAL-001", f"{asked} give no set; that is a refusal with a reason")
        for legal in answer.sets:
            _check_set(view, legal, resource, count, asked)
    else:
        need(isinstance(answer, AnySet), "VAL-001", f"{asked} give {answer!r}")
        need(count <= len(view.devices), "VAL-001", f"{asked} may be any set of {len(view.devices)} devices")
    return True


def _check_set(view: FamilyView, legal: LegalSet, resource: ResourceName, count: int, asked: str) -> None:
    ids = legal.device_ids
    known = {device.id: device for device in view.devices}
    need(len(ids) == count, "VAL-001", f"{asked} give the set {ids}")
    need(set(ids) <= set(known), "VAL-001", f"{asked} give unknown devices in {ids}")
    wrong = [i for i in ids if known[i].level is not resource.level]
    need(not wrong, "VAL-001", f"{asked} count {resource.level.value}s and give {wrong}")
    leaves = [leaf for i in ids for leaf in view.leaves(i)]
    need(len(leaves) == len(set(leaves)), "VAL-001", f"{asked} give one unit twice in {ids}")
    need(legal.reason or not legal.is_only_slower, "VAL-001", f"{asked} give the slower set {ids} without a reason")


def check_requests_are_answered(
    plugin: Plugin, view: FamilyView, name: str, resource: ResourceName, amount: float
) -> bool:
    """VAL-002: no amount is an error, one present unit is never refused, and who is busy does not matter."""
    request = ResourceRequest(name, amount)
    try:
        answer = _ask(plugin, view, request)
        busy = tuple(replace(device, conditions=(*device.conditions, _BUSY)) for device in view.devices)
        answer_when_busy = _ask(plugin, replace(view, devices=busy), request)
    except AccelError as error:
        raise RequirementBrokenError("VAL-002", f"{amount} of {name!r}: {error.message}") from error
    need(answer == answer_when_busy, "VAL-002", f"{amount} of {name!r} depend on which devices are busy")
    is_present = amount == 1 and any(_can_be_had(device, resource) for device in view.devices)
    refused = isinstance(answer, Refusal)
    need(not (is_present and refused), "VAL-002", f"one of {name!r} is refused although there is one: {answer}")
    return True


def _can_be_had(device: Device, resource: ResourceName) -> bool:
    is_usable = device.state.rank > DeviceState.PARTITIONED.rank
    return device.level is resource.level and device.is_counted and is_usable
