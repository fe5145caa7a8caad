"""Cards that only drive a screen: listed, not counted unless they are the best there is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from anyaccel.device import Device

__all__ = ["DISPLAY_BOARDS", "without_display_cards"]

DISPLAY_BOARDS = frozenset({"NVIDIA DGX Display", "DGX Display"})
"""Boards that NVIDIA builds into compute workstations to drive a screen."""

_MUCH_LARGER = 2


def without_display_cards(roots: Sequence[Device]) -> tuple[Device, ...]:
    """Give the cards, those that only drive a screen marked as not counted, each with the rule that decided."""
    return tuple(_judged(root, roots) for root in roots)


def _judged(root: Device, roots: Sequence[Device]) -> Device:
    if not root.is_counted:
        return root
    if root.model in DISPLAY_BOARDS:
        return replace(root, is_counted=False, count_reason=f"{root.model} is a board for the screen, not for compute")
    cores = root.attributes.get("cuda_cores")
    if root.attributes.get("is_display_active") is not True or not isinstance(cores, int):
        return root
    if any(_is_much_larger(other, cores) for other in roots if other.id != root.id):
        return replace(root, is_counted=False, count_reason="it drives the screen, and a much larger card does not")
    return root


def _is_much_larger(other: Device, cores: int) -> bool:
    theirs = other.attributes.get("cuda_cores")
    if other.attributes.get("is_display_active") is not False:
        return False
    return isinstance(theirs, int) and theirs >= _MUCH_LARGER * cores
