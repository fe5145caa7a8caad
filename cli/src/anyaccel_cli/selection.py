"""What `--select` means: expressions that name or filter devices, over an inventory. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from anyaccel.device import Device
from anyaccel.inventory import Inventory
from anyaccel.pci import normal_address
from anyaccel_cli.facts import (
    address_of,
    depth_of,
    driver_version_of,
    is_visible,
    main_number,
    main_space,
    numa_node_of,
    number_path,
)
from anyaccel_cli.failures import NothingMatchedError, WrongUsageError
from anyaccel_cli.text import UNKNOWN, nearest_hint

__all__ = ["Matches", "select"]

_FILTER = re.compile(r"^([A-Za-z_][\w.]*)\s*([=~])\s*(.*)$", re.DOTALL)
_NUMBER = re.compile(r"^[a-z][a-z0-9_-]*:(0|[1-9][0-9]*)$")
_PART_NUMBER = re.compile(r"^[a-z][a-z0-9_-]*:[0-9]+(/[0-9]+)+$")
_LISTED = 10


@dataclass(frozen=True)
class Matches:
    """What a list of expressions gives, in the inventory's order.

    Args: chosen: exactly the devices named or matched. shown: the same, with the parts below those that were named.
        notes: what was decided where a name could mean more than one device.
    """

    chosen: tuple[Device, ...]
    shown: tuple[Device, ...]
    notes: tuple[str, ...] = field(default=(), compare=False)


def select(inventory: Inventory, expressions: Sequence[str]) -> Matches:
    """Find the devices that any of the expressions names or matches; no expression means all.

    Raises: WrongUsageError for an empty or ambiguous expression, listing the candidates; NothingMatchedError for a name
        that no device has, or when nothing matches at all.
    Example: select(inventory, ("nvidia:0", "state=lost")).chosen
    """
    if not expressions:
        return Matches(inventory.devices, inventory.devices)
    chosen: set[str] = set()
    named: set[str] = set()
    for expression in expressions:
        matched = _filtered(inventory, expression)
        if matched is None:
            named.add(_named(inventory, expression).id)
        else:
            chosen |= {device.id for device in matched}
    chosen |= named
    if not chosen:
        raise NothingMatchedError(f"no device matches {' or '.join(map(repr, expressions))}", hint=_known(inventory))
    shown = chosen | {part for name in named for part in _parts(inventory, name)}
    notes = tuple(note for expression in expressions for note in _notes(inventory, expression))
    return Matches(_in_order(inventory, chosen), _in_order(inventory, shown), notes)


def _in_order(inventory: Inventory, ids: set[str]) -> tuple[Device, ...]:
    return tuple(device for device in inventory.devices if device.id in ids)


def _notes(inventory: Inventory, name: str) -> Iterable[str]:
    """Say that a number means the whole device when a part of some device has the same one."""
    if _NUMBER.match(name) is None or _exact(inventory, name):
        return
    devices = _with_number(inventory, name)
    parts = [device for device in devices if device.parent is not None]
    if parts and len(parts) < len(devices):
        count = f"{len(parts)} part of a device has" if len(parts) == 1 else f"{len(parts)} parts of devices have"
        yield f"{name!r} means the whole device; {count} the same number (first: {parts[0].id})"


def _with_number(inventory: Inventory, name: str) -> list[Device]:
    family, _, number = name.partition(":")
    return [d for d in inventory.view(family).devices if str(main_number(d)) == number]


def _parts(inventory: Inventory, device_id: str) -> Iterable[str]:
    for view in inventory.views:
        yield from (d.id for d in view.devices if device_id in view.ancestors(d.id))


def _filtered(inventory: Inventory, expression: str) -> tuple[Device, ...] | None:
    """Give what a filter matches, None when the expression is a name."""
    if not expression.strip():
        raise WrongUsageError("--select is empty", hint="--select '*' means every device")
    if expression == "*":
        return inventory.devices
    family, _, rest = expression.partition(":")
    if rest == "*":
        return inventory.view(family).devices
    parts = _FILTER.match(expression)
    if parts is None:
        return None
    key, operator, wanted = parts.groups()
    _check_key(inventory, key)
    matches = _equals if operator == "=" else _contains
    return tuple(d for d in inventory.devices if any(matches(v, wanted) for v in _values(d, inventory, key)))


def _check_key(inventory: Inventory, key: str) -> None:
    known = {*_VALUES, *(name for device in inventory.devices for name in _own_keys(device))}
    if key not in known:
        raise NothingMatchedError(
            f"no device has the key {key!r}", hint=nearest_hint(key, known) or f"keys: {', '.join(sorted(known))}"
        )


def _own_keys(device: Device) -> Iterable[str]:
    yield from device.attributes
    for space in device.numbers:
        yield from (space, f"numbers.{space}")


_VALUES: Mapping[str, Callable[[Device, Inventory], object]] = {
    "id": lambda d, _: d.id,
    "uuid": lambda d, _: d.uuid,
    "vendor": lambda d, _: d.family,
    "level": lambda d, _: d.level.value,
    "label": lambda d, _: d.label,
    "parent": lambda d, _: d.parent,
    "model": lambda d, _: d.model,
    "state": lambda d, _: d.state.value,
    "number": lambda d, _: main_number(d),
    "pci": address_of,
    "numa": numa_node_of,
    "driver": driver_version_of,
    "visible": lambda d, inventory: is_visible(d, inventory).value,
    "memory_bytes": lambda d, _: d.memory_bytes,
    "integrated": lambda d, _: d.is_integrated,
    "counted": lambda d, _: d.is_counted,
}


def _values(device: Device, inventory: Inventory, key: str) -> tuple[str, ...]:
    """Give what a device has under a key as text; nothing when it has no such key."""
    if key in _VALUES:
        return (_as_text(_VALUES[key](device, inventory)),)
    space = key.removeprefix("numbers.")
    tables: tuple[Mapping[str, object], ...] = (device.numbers, device.attributes)
    return tuple(_as_text(table[name]) for table, name in zip(tables, (space, key), strict=True) if name in table)


def _as_text(value: object) -> str:
    if value is None:
        return UNKNOWN
    return str(value).lower()


def _equals(value: str, wanted: str) -> bool:
    """Compare with the whole value or one of its words: `model=h100` finds an "NVIDIA H100 80GB"."""
    wanted = wanted.lower()
    return value == wanted or wanted in re.split(r"[\s,]+", value)


def _contains(value: str, wanted: str) -> bool:
    return wanted.lower() in value


def _named(inventory: Inventory, name: str) -> Device:
    """Find the one device with this id, uuid, PCI address, number, or unique beginning of id or uuid."""
    candidates = _exact(inventory, name) or _at_address(inventory, name)
    if not candidates and _NUMBER.match(name):
        return _only(name, _numbered(inventory, name))
    if not candidates and _PART_NUMBER.match(name):
        candidates = _at_number_path(inventory, name)
    candidates = candidates or _with_prefix(inventory, name)
    if not candidates:
        raise NothingMatchedError(f"no device is named {name!r}", hint=_known(inventory, name))
    is_vendor = bool(inventory.view(name).devices)
    return _only(name, candidates, hint=f"--select '{name}:*' means all of them" if is_vendor else None)


def _exact(inventory: Inventory, name: str) -> list[Device]:
    return [d for d in inventory.devices if name == d.id or name.lower() == (d.uuid or "").lower()]


def _at_address(inventory: Inventory, name: str) -> list[Device]:
    address = normal_address(name)
    return [d for d in inventory.devices if d.parent is None and address in d.pci_addresses]


def _at_number_path(inventory: Inventory, name: str) -> list[Device]:
    """Give the parts with these numbers from the whole device down, as discover shows them."""
    family, _, numbers = name.partition(":")
    return [d for d in inventory.view(family).devices if number_path(d, inventory) == numbers]


def _numbered(inventory: Inventory, name: str) -> list[Device]:
    """Give the uppermost devices with this number; it is never read as the beginning of an id."""
    family = name.partition(":")[0]
    devices = _with_number(inventory, name)
    if not devices:
        raise NothingMatchedError(f"no device is named {name!r}{_why(inventory, family)}", hint=_known(inventory, name))
    top = min(depth_of(device, inventory) for device in devices)
    return [d for d in devices if depth_of(d, inventory) == top]


def _why(inventory: Inventory, family: str) -> str:
    """Give the end of the sentence when the family's numbers are unknown."""
    unnumbered = (d for d in inventory.view(family).roots if main_number(d) is None)
    reasons = (d.why_unknown(f"numbers.{main_space(d)}") for d in unnumbered)
    return next((f": the numbers of {family} devices are unknown: {reason}" for reason in reasons if reason), "")


def _with_prefix(inventory: Inventory, name: str) -> list[Device]:
    """Give the devices whose id or uuid begins so; parts of such a device are left out, they begin alike."""
    found = [d for d in inventory.devices if _begins(d, name)]
    ids = {device.id for device in found}
    return [d for d in found if not ids.intersection(inventory.view(d.family).ancestors(d.id))]


def _begins(device: Device, name: str) -> bool:
    """Compare with the beginning of the id, of the uuid, and of the uuid without the vendor's word before it."""
    uuid = (device.uuid or "").lower()
    name = name.lower()
    return any(text.startswith(name) for text in (device.id.lower(), uuid, uuid.partition("-")[2]) if text)


def _only(name: str, candidates: Sequence[Device], *, hint: str | None = None) -> Device:
    if len(candidates) == 1:
        return candidates[0]
    listed = ", ".join(device.id for device in candidates[:_LISTED])
    more = f" and {len(candidates) - _LISTED} more" if len(candidates) > _LISTED else ""
    raise WrongUsageError(f"name {name!r} is ambiguous: {listed}{more}", hint=hint or "give one of these ids")


def _known(inventory: Inventory, name: str | None = None) -> str | None:
    """Give the hint that names what there is."""
    ids = [device.id for device in inventory.devices]
    near = nearest_hint(name, ids) if name else None
    if near or not ids:
        return near or "this machine has no device; accel-cli discover says why"
    more = ", …" if len(ids) > _LISTED else ""
    return f"known: {', '.join(ids[:_LISTED])}{more}"
