"""Masks: what an environment leaves visible, why, and how to write one. The parts that every family composes.

A mask is advice, not a fence: it tells a runtime what to show, it does not stop a process from opening a device.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from anyaccel.device import Device, FamilyView
from anyaccel.errors import NotGrantedError, SelectionNotExpressibleError, VisibilityConflictError
from anyaccel.frozen import FrozenMap

__all__ = [
    "Effect",
    "EnvironmentChange",
    "Gang",
    "ListedUnit",
    "Order",
    "Resolution",
    "Selection",
    "TokenEffect",
    "TokenReport",
    "VariableReport",
    "VisibleUnit",
    "apply_change",
    "check_granted",
    "check_selection",
    "hide_everything",
    "merge_changes",
    "number_tokens",
    "resolution_of_all",
    "split_tokens",
]


class Order(str, Enum):
    """The order in which a process will count a selection: as it was listed, or the family's own."""

    AS_LISTED = "as-listed"
    CANONICAL = "canonical"


class Effect(str, Enum):
    """Whether a runtime was seen to obey: observed, assumed from documents, or known to have no effect."""

    HONOURED = "honoured"
    ASSUMED = "assumed"
    NONE = "none"


class TokenEffect(str, Enum):
    """What one entry of a mask does."""

    COUNTS = "counts"
    IGNORED = "ignored"
    ENDS_LIST = "ends-list"
    EMPTIES_LIST = "empties-list"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Selection:
    """Device ids in the order a process shall count them; empty hides the whole family."""

    device_ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Gang:
    """A process's place among peers that compute together.

    Args: rank: own number from 0. members: the selection of each rank in order. domain: fabric domain, None = unknown.
    """

    rank: int
    members: tuple[Selection, ...]
    domain: str | None = None


@dataclass(frozen=True)
class VisibleUnit:
    """One thing the environment leaves.

    Args: ordinal: the number the process will use, None = unknown, or granted without a number of its own.
        device_id: which device it is, None = unknown. leaves: the smallest units it stands for.
        variable, token: where it came from, None = no mask was set. reason: why one of the first two is None.
    """

    ordinal: int | None
    device_id: str | None
    leaves: tuple[str, ...] = ()
    variable: str | None = None
    token: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class TokenReport:
    """Why one entry of a mask counts or not.

    Args: position: from 0 within the variable. text: as written. device_ids: what it names; empty = nothing or unknown.
    """

    variable: str
    position: int
    text: str
    effect: TokenEffect
    device_ids: tuple[str, ...] = ()
    reason: str = ""
    hint: str | None = None


@dataclass(frozen=True)
class VariableReport:
    """What one mask variable does here.

    Args: has_effect: read by a runtime in this situation. reason: what it does, or why it does nothing.
        is_warning: worth showing unasked.
    """

    variable: str
    value: str
    has_effect: bool
    reason: str
    hint: str | None = None
    is_warning: bool = False


@dataclass(frozen=True)
class Resolution:
    """What an environment leaves of one family.

    Args: units: in the order of their ordinals. tokens: every entry of every variable read. variables: every variable set.
        hidden_by: for each device that is not visible, the variable that hid it. is_masked: whether anything was hidden on
        purpose. is_complete: False when a unit's device is unknown, so that a device not named may still be visible.
    """

    units: tuple[VisibleUnit, ...] = ()
    tokens: tuple[TokenReport, ...] = ()
    variables: tuple[VariableReport, ...] = ()
    hidden_by: FrozenMap[str] = field(default_factory=FrozenMap)
    is_masked: bool = False
    is_complete: bool = True

    @property
    def leaves(self) -> frozenset[str]:
        """The smallest units that are known to be visible."""
        return frozenset(leaf for unit in self.units for leaf in unit.leaves)

    @property
    def device_ids(self) -> tuple[str | None, ...]:
        """The device of each ordinal, None where unknown."""
        return tuple(unit.device_id for unit in self.units)

    def ordinal_of(self, device_id: str) -> int | None:
        """Give the number a process uses for a device, None when it is hidden or unknown."""
        return next((unit.ordinal for unit in self.units if unit.device_id == device_id), None)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences worth showing unasked."""
        return tuple(
            f"{report.variable}={report.value!r}: {report.reason}" for report in self.variables if report.is_warning
        )


@dataclass(frozen=True)
class EnvironmentChange:
    """What to change in an environment so that a new process sees exactly one selection.

    Args: set: (variable, value) pairs; `""` is a value. unset: variables to remove. order: how the process will count.
        device_ids: the devices in that order. effect: whether a runtime was ever seen to obey.
    """

    set: tuple[tuple[str, str], ...] = ()
    unset: tuple[str, ...] = ()
    order: Order = Order.AS_LISTED
    device_ids: tuple[str, ...] = ()
    effect: Effect = Effect.ASSUMED
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ListedUnit:
    """One unit that a runtime would count without the mask in question, in the runtime's own order.

    Args: number: what a mask calls it, None = the runtime's numbering is unknown here. reason: why it is unknown.
    """

    number: int | None
    device_id: str | None
    leaves: tuple[str, ...]
    reason: str | None = None


def split_tokens(value: str, separator: str = ",") -> tuple[str, ...]:
    """Split a mask into its entries as written; an empty value has none.

    Example: split_tokens("0, 1,") == ("0", " 1", "")
    """
    return tuple(value.split(separator)) if value else ()


def number_tokens(texts: Iterable[str]) -> tuple[tuple[str, int | None], ...]:
    """Read plain decimal entries, blanks around them allowed; None where an entry is no number.

    Example: number_tokens(("0", " 1", "x")) == (("0", 0), (" 1", 1), ("x", None))
    """
    return tuple((text, _plain_number(text.strip())) for text in texts)


def _plain_number(text: str) -> int | None:
    """Read at most eighteen digits: more fits no runtime's number, and thousands would fit no conversion."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


def resolution_of_all(devices: Sequence[Device], view: FamilyView) -> Resolution:
    """Give the resolution of an environment without any mask: every device given, in the order given."""
    units = tuple(VisibleUnit(ordinal, d.id, view.leaves(d.id)) for ordinal, d in enumerate(devices))
    return Resolution(units=units)


def apply_change(environ: Mapping[str, str], change: EnvironmentChange) -> dict[str, str]:
    """Give a copy of `environ` with a change applied.

    Example: apply_change({"A": "1"}, EnvironmentChange(set=(("B", ""),), unset=("A",))) == {"B": ""}
    """
    result = {name: value for name, value in environ.items() if name not in change.unset}
    result.update(change.set)
    return result


def check_selection(view: FamilyView, selection: Selection) -> tuple[Device, ...]:
    """Give the selected devices, or raise when the selection names one unit twice.

    Raises: DeviceNotFoundError for an unknown id; SelectionNotExpressibleError for a repeated device or for a node
        together with one above or below it.
    """
    devices = tuple(view.device(device_id) for device_id in selection.device_ids)
    seen: dict[str, str] = {}
    for device in devices:
        for leaf in view.leaves(device.id):
            if leaf in seen:
                raise SelectionNotExpressibleError(
                    f"selection names {leaf!r} twice, through {seen[leaf]!r} and {device.id!r}",
                    hint="select a device or its parts, not both",
                )
            seen[leaf] = device.id
    return devices


def check_granted(view: FamilyView, selection: Selection, granted: Resolution) -> None:
    """Refuse devices outside what the starting environment grants.

    Raises: NotGrantedError naming the devices; a mask never widens.
    """
    outside = [i for i in selection.device_ids if not view.leaves_of((i,)) <= granted.leaves]
    if outside:
        listed = ", ".join(outside)
        raise NotGrantedError(
            f"{view.family} devices {listed} are outside what the environment grants "
            f"({', '.join(i or 'unknown' for i in granted.device_ids) or 'none'})",
            hint="start from an environment that shows them, or pass widen=True to replace the mask on purpose",
        )


def hide_everything(variables: Mapping[str, str], unset: Sequence[str] = ()) -> EnvironmentChange:
    """Give the change that hides a whole family through the variables named."""
    return EnvironmentChange(set=tuple(sorted(variables.items())), unset=tuple(unset), order=Order.AS_LISTED)


def merge_changes(changes: Mapping[str, EnvironmentChange]) -> EnvironmentChange:
    """Join the changes of several families into one.

    Args: changes: by family key. Where one family unsets what another sets, the set wins: the reader of the value owns it.
    Raises: VisibilityConflictError naming both families when they set one variable to different values.
    Returns: one change whose device ids are those of all families in order of key; callers resolve each family again.
    """
    owners: dict[str, tuple[str, str]] = {}
    for family in sorted(changes):
        for variable, value in changes[family].set:
            owner = owners.setdefault(variable, (family, value))
            if owner[1] != value:
                raise VisibilityConflictError(
                    f"{owner[0]} sets {variable}={owner[1]!r} and {family} sets {variable}={value!r}",
                    hint="use devices of one of the two families in one process",
                )
    unset = {name for change in changes.values() for name in change.unset} - set(owners)
    return EnvironmentChange(
        set=tuple((variable, value) for variable, (_, value) in sorted(owners.items())),
        unset=tuple(sorted(unset)),
        order=_merged_order(changes.values()),
        device_ids=tuple(i for family in sorted(changes) for i in changes[family].device_ids),
        effect=_merged_effect(changes.values()),
        notes=tuple(note for family in sorted(changes) for note in changes[family].notes),
    )


def _merged_order(changes: Iterable[EnvironmentChange]) -> Order:
    canonical = any(change.order is Order.CANONICAL for change in changes)
    return Order.CANONICAL if canonical else Order.AS_LISTED


def _merged_effect(changes: Iterable[EnvironmentChange]) -> Effect:
    effects = {change.effect for change in changes}
    worst_first = (Effect.NONE, Effect.ASSUMED, Effect.HONOURED)
    return next((effect for effect in worst_first if effect in effects), Effect.ASSUMED)
