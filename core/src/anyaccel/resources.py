"""What a program asks for, and what a family says about the ways to give it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from typing import TYPE_CHECKING

from anyaccel.errors import InvalidResourceRequestError

if TYPE_CHECKING:
    from anyaccel.capabilities import ResourceName

__all__ = [
    "FRACTION_UNITS",
    "AnySet",
    "LegalSet",
    "LegalSets",
    "Refusal",
    "RequestAnswer",
    "ResourceRequest",
    "all_sets",
    "bounded_sets",
    "find_resource",
    "parse_requests",
    "unknown_resource",
]

MOST_SETS = 10_000
"""So many legal sets are listed for one request; more are told by `is_bounded`."""

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


def parse_requests(text: str) -> tuple[ResourceRequest, ...]:
    """Read `KEY=AMOUNT,…` as people type it; a key without an amount means one.

    Raises: InvalidResourceRequestError for an empty text, a key named twice, or an amount that is no number.
    Example: parse_requests("gpu=2,TPU=4") == (ResourceRequest("gpu", 2), ResourceRequest("TPU", 4))
    """
    requests = tuple(_parsed(part.strip(), text) for part in text.split(","))
    keys = [request.key for request in requests]
    repeated = next((key for key in keys if keys.count(key) > 1), None)
    if repeated is not None:
        raise InvalidResourceRequestError(f"request {text!r} names {repeated!r} twice")
    return requests


def _parsed(part: str, text: str) -> ResourceRequest:
    key, separator, amount = part.partition("=")
    if not key.strip():
        raise InvalidResourceRequestError(f"request {text!r} names no resource", hint="write it like gpu=2")
    try:
        return ResourceRequest(key.strip(), float(amount) if separator else 1.0)
    except ValueError as error:
        raise InvalidResourceRequestError(
            f"amount {amount!r} of {key.strip()!r} is no number", hint="write it like gpu=2"
        ) from error


def find_resource(resources: Iterable[ResourceName], key: str) -> ResourceName | None:
    """Give the declared resource that people mean by a key: our own, the Kubernetes or the Ray name, letter case included."""
    return next((r for r in resources if key in (r.kind, r.kubernetes, r.ray)), None)


def unknown_resource(family: str, key: str, resources: Iterable[ResourceName]) -> Refusal:
    """Refuse a key that the family does not declare, naming those it does."""
    known = sorted({name for r in resources for name in (r.kind, r.kubernetes, r.ray) if name is not None})
    return Refusal(f"{family} knows no resource {key!r} (known: {', '.join(known)})")


def bounded_sets(sets: Iterable[LegalSet], reason: str | None = None) -> LegalSets:
    """List legal sets up to the bound, reading no further than one beyond it."""
    found = tuple(islice(sets, MOST_SETS + 1))
    return LegalSets(found[:MOST_SETS], is_bounded=len(found) > MOST_SETS, reason=reason)


def all_sets(device_ids: Sequence[str], count: int, reason: str | None = None) -> LegalSets:
    """List every set of so many of these devices, for families in which some devices are left out for a reason."""
    return bounded_sets((LegalSet(chosen) for chosen in combinations(device_ids, count)), reason)
