"""Request + inventory + what is free → which units, or the reason why not. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from anyaccel.candidates import Candidates, find_candidates
from anyaccel.device import Device, DeviceState
from anyaccel.errors import ResourceUnavailableError
from anyaccel.frozen import FrozenMap
from anyaccel.inventory import Inventory
from anyaccel.registry import Registry
from anyaccel.resources import AnySet, LegalSets, Refusal, RequestAnswer, ResourceRequest

__all__ = ["Placement", "place", "place_all"]


@dataclass(frozen=True)
class Placement:
    """Units chosen for one request.

    Args: family: the plugin's key. device_ids: in the order in which a process shall count them. reasons: why these, in
        clauses. refused: for each other device of the level, why not. warnings: what is worth knowing about those chosen.
    """

    family: str
    device_ids: tuple[str, ...]
    reasons: tuple[str, ...] = ()
    refused: FrozenMap[str] = field(default_factory=FrozenMap)
    warnings: tuple[str, ...] = ()


def place(
    inventory: Inventory,
    registry: Registry,
    request: ResourceRequest,
    *,
    free: Collection[str] | None = None,
) -> Placement:
    """Choose units of one family for a request: legal, usable, visible and free; busy ones only when nothing else is left.

    Args: free: leaves nobody holds; None = all.
    Raises: InvalidResourceRequestError for an unknown key; ResourceUnavailableError when no family has enough, with the numbers.
    """
    refusals: list[str] = []
    for candidates in find_candidates(inventory, registry, request, free):
        view = inventory.view(candidates.family)
        plugin = registry.plugin(candidates.family)
        answer: RequestAnswer = plugin.call("accel_validate_request", view=view, request=request)
        if isinstance(answer, Refusal):
            refusals.append(f"{candidates.family}: {answer.reason}")
            continue
        chosen = _first(answer, candidates, request.count)
        if chosen is not None:
            return _placement(candidates, chosen, answer)
        refusals.append(f"{candidates.family}: {_too_few(candidates, request, answer)}")
    raise ResourceUnavailableError(
        f"request {request.key}={request.amount:g} cannot be met here: {'; '.join(refusals)}",
        hint="accel-cli discover says what is wrong with each device",
    )


def place_all(
    inventory: Inventory,
    registry: Registry,
    requests: Sequence[ResourceRequest],
    *,
    free: Collection[str] | None = None,
) -> tuple[Placement, ...]:
    """Choose units for several requests of one program; none draws on what another got.

    Raises: as `place`.
    """
    left = {leaf for view in inventory.views for leaf in view.leaves_of(d.id for d in view.devices)}
    left = left if free is None else left & set(free)
    placements = []
    for request in requests:
        placement = place(inventory, registry, request, free=left)
        left -= inventory.view(placement.family).leaves_of(placement.device_ids)
        placements.append(placement)
    return tuple(placements)


def _first(answer: AnySet | LegalSets, candidates: Candidates, count: int) -> tuple[str, ...] | None:
    """Give the first legal set of the best kind: without busy devices before with."""
    quiet = [d for d in candidates.devices if d.state is not DeviceState.BUSY]
    for pool in (quiet, candidates.devices):
        found = next(_legal(answer, pool, count), None)
        if found is not None:
            return found
    return None


def _legal(answer: AnySet | LegalSets, pool: Iterable[Device], count: int) -> Iterator[tuple[str, ...]]:
    ids = [device.id for device in pool]
    if isinstance(answer, AnySet):
        yield from combinations(ids, count)
        return
    known = set(ids)
    yield from (legal.device_ids for legal in answer if known.issuperset(legal.device_ids))


def _too_few(candidates: Candidates, request: ResourceRequest, answer: AnySet | LegalSets) -> str:
    count = len(candidates.devices)
    others = sorted(set(candidates.refused.values()))
    why = f" ({'; '.join(others)})" if others else ""
    if count < request.count:
        return f"{count} of {count + len(candidates.refused)} devices can be used{why}"
    rule = answer.reason if isinstance(answer, LegalSets) and answer.reason else "no legal set is left"
    return f"{rule}, and the {count} devices that can be used hold no such set{why}"


def _placement(candidates: Candidates, chosen: tuple[str, ...], answer: AnySet | LegalSets) -> Placement:
    others = {d.id: "not needed" for d in candidates.devices if d.id not in chosen}
    busy = [d for d in candidates.devices if d.id in chosen and d.state is DeviceState.BUSY]
    rule = answer.reason if isinstance(answer, LegalSets) else None
    slower = _slower_reason(answer, chosen)
    return Placement(
        candidates.family,
        chosen,
        reasons=tuple(reason for reason in (rule,) if reason),
        refused=FrozenMap({**candidates.refused, **others}),
        warnings=(*(f"{d.id} is busy: {d.reason}" for d in busy), *((slower,) if slower else ())),
    )


def _slower_reason(answer: AnySet | LegalSets, chosen: tuple[str, ...]) -> str | None:
    if isinstance(answer, AnySet):
        return None
    return next((s.reason or "slower" for s in answer if s.device_ids == chosen and s.is_only_slower), None)
