"""Which cards may compute together.

OAM boxes: 1, 2, 4 or 8 cards, as the groups of modules that the Gaudi documentation names ("Multiple workloads on a single
docker": combinations of module ids). PCIe cards: inside one group of four that a top board joins.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

from anyaccel.device import Device, FamilyView
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
from anyaccel_gaudi.declaration import FAMILY, RESOURCES
from anyaccel_gaudi.devices import module_of
from anyaccel_gaudi.links import are_joined
from anyaccel_gaudi.models import model_of_name

__all__ = ["validate_request"]

_BOX = 8
_BLOCKS = "cards of one job are a pair of modules (0-1, 2-3, 4-5, 6-7), a half (0-3, 4-7), or all eight"


def validate_request(view: FamilyView, request: ResourceRequest) -> RequestAnswer:
    """Answer a request over the whole family, free or not."""
    if find_resource(RESOURCES, request.key) is None:
        return unknown_resource(FAMILY, request.key, RESOURCES)
    if request.is_fraction:
        return Refusal("one process opens a card at a time, so there are no fractions")
    cards = [device for device in view.roots if device.is_counted]
    if request.count > len(cards):
        return Refusal(f"{request.count} cards asked for, {len(cards)} present")
    if request.count <= 1:
        return AnySet()
    placed = [card for card in cards if module_of(card) is not None]
    groups = {model.group for card in placed if (model := model_of_name(card.model)) is not None}
    if groups == {_BOX}:
        return _blocks(placed, request.count)
    return _joined(placed, request.count)


def _blocks(cards: Sequence[Device], count: int) -> RequestAnswer:
    if count not in (2, 4, _BOX):
        return Refusal(f"{_BLOCKS}; not {count}")
    modules = {module_of(card): card.id for card in cards}
    blocks = [range(first, first + count) for first in range(0, _BOX, count)]
    whole = [block for block in blocks if all(module in modules for module in block)]
    return _answer(tuple(tuple(modules[module] for module in block) for block in whole), _BLOCKS, count)


def _joined(cards: Sequence[Device], count: int) -> RequestAnswer:
    chosen = sorted(cards, key=lambda card: module_of(card) or 0)
    sets = (c for c in combinations(chosen, count) if all(are_joined(a, b) for a, b in combinations(c, 2)))
    rule = "cards of one job are joined by one board"
    return _answer((tuple(card.id for card in cards_) for cards_ in sets), rule, count)


def _answer(sets: Iterable[tuple[str, ...]], rule: str, count: int) -> RequestAnswer:
    answer = bounded_sets((LegalSet(ids) for ids in sets), rule)
    return answer if answer.sets else Refusal(f"{rule}: there are no {count} connected devices here")
