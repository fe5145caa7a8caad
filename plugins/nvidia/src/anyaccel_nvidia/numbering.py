"""Which cards the CUDA runtime lists, and which number each has before a mask applies.

Sources: CUDA programming guide, CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER; MIG user guide, CUDA device enumeration; MPS
documentation, CUDA_VISIBLE_DEVICES. What those leave open is unknown here, never guessed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from anyaccel.device import Device, DeviceState, FamilyView, Level
from anyaccel.visibility import ListedUnit
from anyaccel_nvidia.declaration import ORDER, ORDER_BY_BUS, ORDER_BY_SPEED, SHARED_DAEMON
from anyaccel_nvidia.devices import UNCOUNTED_BY_DRIVER
from anyaccel_nvidia.grants import NO_GRANT, BatchGrant, read_grant
from anyaccel_nvidia.partitions import is_divided

__all__ = ["Listing", "is_uncounted", "list_units"]

_LISTED_THOUGH_UNUSABLE = frozenset({"compute-prohibited"})
_GONE = (DeviceState.LOST, DeviceState.UNUSABLE, DeviceState.BLOCKED, DeviceState.DENIED)


@dataclass(frozen=True)
class Listing:
    """What the runtime lists without a mask.

    Args: units: in PCI order; a unit without a number has a reason. least, most: how many numbers are valid, most None =
        unknown. reason: why a number without a unit is unknown. grant: what a batch system left of it.
    """

    units: tuple[ListedUnit, ...]
    least: int
    most: int | None
    reason: str | None = None
    by_number: Mapping[int, ListedUnit] = field(default_factory=dict)
    grant: BatchGrant = NO_GRANT


@dataclass(frozen=True)
class _Numbers:
    """The numbers that are certain by device id, why the others are not, and how many there are."""

    certain: Mapping[str, int]
    reason: str | None
    least: int
    most: int | None


def list_units(view: FamilyView, environ: Mapping[str, str]) -> Listing:
    """Give what the runtime would list under the order that `environ` asks for, before CUDA_VISIBLE_DEVICES."""
    listed, doubtful = _listed(view)
    grant = read_grant(listed, environ)
    numbers = _with_grant(_numbers(listed, doubtful, view, environ), grant)
    units = tuple(_unit(view, device, numbers) for device in listed)
    by_number = {unit.number: unit for unit in units if unit.number is not None}
    return Listing(units, numbers.least, numbers.most, numbers.reason, by_number, grant)


def _unit(view: FamilyView, device: Device, numbers: _Numbers) -> ListedUnit:
    number = numbers.certain.get(device.id)
    return ListedUnit(number, device.id, view.leaves(device.id), None if number is not None else numbers.reason)


def _listed(view: FamilyView) -> tuple[tuple[Device, ...], tuple[Device, ...]]:
    """Give what the runtime lists, in PCI order (MIG instances in the place of their card), and the cards in doubt."""
    listed: list[Device] = []
    doubtful: list[Device] = []
    for device in view.devices:
        if is_divided(device) or view.children(device.id):
            continue
        if not _is_gone(device):
            listed.append(device)
        elif device.level is Level.DEVICE and not is_uncounted(device):
            doubtful.append(device)
    return tuple(listed), tuple(doubtful)


def _is_gone(device: Device) -> bool:
    is_out = any(c.state in _GONE and c.code not in _LISTED_THOUGH_UNUSABLE for c in device.conditions)
    return is_out or is_uncounted(device)


def is_uncounted(device: Device) -> bool:
    """Whether the driver surely does not count a device: it is not bound, not given to this container, excluded."""
    return any(condition.code in UNCOUNTED_BY_DRIVER for condition in device.conditions)


def _numbers(
    listed: Sequence[Device], doubtful: Sequence[Device], view: FamilyView, environ: Mapping[str, str]
) -> _Numbers:
    why_none = _why_no_number(listed, view, environ)
    if why_none is not None:
        return _Numbers({}, why_none, 0, None)
    least, most = len(listed), len(listed) + len(doubtful)
    order = environ.get(ORDER) or ORDER_BY_SPEED
    if not _is_same_model(listed) and order not in (ORDER_BY_BUS, ORDER_BY_SPEED):
        return _Numbers({}, f"{ORDER}={order!r} is none of {ORDER_BY_SPEED} and {ORDER_BY_BUS}", least, most)
    if not _is_same_model(listed) and order == ORDER_BY_SPEED:
        certain, reason = _by_speed(listed, is_doubtful=bool(doubtful))
    else:
        certain, reason = _by_bus(listed, doubtful, view)
    return _Numbers(certain, reason, least, most)


def _with_grant(numbers: _Numbers, grant: BatchGrant) -> _Numbers:
    if not grant.is_double or grant.ids is None:
        return numbers
    least = min(numbers.least, len(grant.ids))
    return replace(numbers, certain=grant.certain(numbers.certain), reason=numbers.reason or grant.doubt, least=least)


def _why_no_number(listed: Sequence[Device], view: FamilyView, environ: Mapping[str, str]) -> str | None:
    if environ.get(SHARED_DAEMON):
        return f"{SHARED_DAEMON} is set: the MPS server gives its clients numbers of its own"
    if any(is_divided(device) for device in view.devices):
        return "a GPU is in MIG mode, and which numbers CUDA then gives is not documented"
    for device in listed:
        if device.numbers.get("index") is None:
            return device.why_unknown("numbers.index") or "the driver's numbers are unknown"
    return None


def _by_bus(
    listed: Sequence[Device], doubtful: Sequence[Device], view: FamilyView
) -> tuple[Mapping[str, int], str | None]:
    """Number the cards in PCI order, up to the first of which nobody knows whether the runtime counts it."""
    if not doubtful:
        return {device.id: number for number, device in enumerate(listed)}, None
    order = {device.id: position for position, device in enumerate(view.devices)}
    first = min(doubtful, key=lambda device: order[device.id])
    before = [device for device in listed if order[device.id] < order[first.id]]
    where = (first.pci_addresses or (first.id,))[0]
    reason = (
        f"{where} is {first.state.value}, and whether CUDA still counts it is unknown, "
        f"so which cards the numbers from {len(before)} on name is unknown"
    )
    return {device.id: number for number, device in enumerate(before)}, reason


def _is_same_model(listed: Sequence[Device]) -> bool:
    return len({(device.attributes.get("pci_id"), device.model) for device in listed}) <= 1


def _by_speed(listed: Sequence[Device], *, is_doubtful: bool) -> tuple[Mapping[str, int], str | None]:
    """Number different models in the runtime's default order, fastest first.

    Only the first place follows from what is documented ("a simple heuristic"): a card that is better in every figure is
    first. Of two cards the other is then second.
    """
    reason = (
        "the models differ and CUDA's default order is fastest first, so only the fastest card's number is certain"
        " (CUDA_DEVICE_ORDER=PCI_BUS_ID would fix the order)"
    )
    first = next((a for a in listed if all(_is_faster(a, b) for b in listed if b is not a)), None)
    if first is None or is_doubtful:
        return {}, reason
    if len(listed) == 2:
        return {first.id: 0, next(device for device in listed if device is not first).id: 1}, None
    return {first.id: 0}, reason


def _is_faster(a: Device, b: Device) -> bool:
    """Whether a card has more cores × clock and no older compute capability; unknown figures prove nothing."""
    speed_a, speed_b, age_a, age_b = _speed(a), _speed(b), _capability(a), _capability(b)
    if speed_a is None or speed_b is None or age_a is None or age_b is None:
        return False
    return speed_a > speed_b and age_a >= age_b


def _speed(device: Device) -> int | None:
    cores, clock = device.attributes.get("cuda_cores"), device.attributes.get("sm_clock_max_mhz")
    return cores * clock if isinstance(cores, int) and isinstance(clock, int) else None


def _capability(device: Device) -> tuple[int, ...] | None:
    text = device.attributes.get("compute_capability")
    if not isinstance(text, str) or not all(part.isdecimal() for part in text.split(".")):
        return None
    return tuple(int(part) for part in text.split("."))
