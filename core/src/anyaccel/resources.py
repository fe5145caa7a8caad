"""What a program asks for, and what a family says about the ways to give it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from anyaccel.errors import InvalidResourceRequestError

__all__ = ["FRACTION_UNITS", "AnySet", "LegalSet", "LegalSets", "Refusal", "RequestAnswer", "ResourceRequest"]

FRACTION_UNITS = 10_000
"""A device is divided into this many shares; a fraction is rounded down to whole shares."""


@dataclass(frozen=True)
class ResourceRequest:
    """A number of units of one resource.

    Args: key: `gpu`, `nvidia.com/gpu`, `TPU` … amount: whole, or a fraction below 1 of one shareable device.
    Raises: InvalidResourceRequestError for a negative, not finite or too small amount, or a fraction above 1.
    Example: ResourceRequest("gpu", 2).count == 2
    """

    key: str
    amount: float

    def __post_init__(self) -> None:
        if not math.isfinite(self.amount) or self.amount < 0 or not self._is_whole_or_share():
            raise InvalidResourceRequestError(
                f"amount {self.amount!r} of {self.key!r} is neither 0, a fraction below 1 of at least "
                f"{1 / FRACTION_UNITS}, nor a whole number"
            )

    def _is_whole_or_share(self) -> bool:
        return self.amount == int(self.amount) or (self.amount < 1 and self.shares > 0)

    @property
    def count(self) -> int:
        """Whole units asked for; a fraction needs one."""
        return math.ceil(self.amount)

    @property
    def shares(self) -> int:
        """The amount in shares of 1/10,000 device, rounded down."""
        return math.floor(round(self.amount * FRACTION_UNITS, 6))

    @property
    def is_fraction(self) -> bool:
        """Whether less than one device is asked for."""
        return 0 < self.amount < 1


@dataclass(frozen=True)
class LegalSet:
    """Devices that may be used together, in the order the family wants them.

    Args: is_only_slower: the set works, another of this size works better; reason says why.
    """

    device_ids: tuple[str, ...]
    is_only_slower: bool = False
    reason: str | None = None


@dataclass(frozen=True)
class AnySet:
    """Every set of the family's devices is as legal as every other."""


@dataclass(frozen=True)
class LegalSets:
    """The sets of the asked size that the family allows, over the whole family, free or not.

    Args: sets: in the family's order of preference. is_bounded: True when more exist than are listed. reason: the rule.
    """

    sets: tuple[LegalSet, ...]
    is_bounded: bool = False
    reason: str | None = None

    def __iter__(self) -> Iterator[LegalSet]:
        return iter(self.sets)


@dataclass(frozen=True)
class Refusal:
    """The family can never give this; reason is a clause for people."""

    reason: str


RequestAnswer = AnySet | LegalSets | Refusal
