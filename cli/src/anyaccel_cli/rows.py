"""An inventory as rows for a table, a list of ids or CSV, and as the sentences around them. Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from anyaccel.device import Device, DeviceState, Level
from anyaccel.inventory import Inventory, OutcomeStatus, PluginOutcome, UnclaimedHardware
from anyaccel.machine import MachineKind
from anyaccel_cli.facts import (
    address_of,
    depth_of,
    driver_of,
    driver_version_of,
    has_mask,
    is_visible,
    main_number,
    numa_node_of,
    number_path,
    reason_of,
)
from anyaccel_cli.failures import WrongUsageError
from anyaccel_cli.table import Heading, Row
from anyaccel_cli.text import UNKNOWN, counted, memory_text, nearest_hint, one_line

__all__ = [
    "COLUMNS",
    "SPARED_FIRST",
    "Column",
    "columns_named",
    "csv_rows",
    "default_columns",
    "device_rows",
    "header_lines",
    "in_full",
    "is_empty",
    "nothing_lines",
    "summary_line",
    "telling_devices",
    "unclaimed_lines",
    "wide_columns",
]


@dataclass(frozen=True, kw_only=True)
class Column(Heading):
    """One column of `discover`.

    Args: value: what CSV shows, in base units, under `csv_title` or the name. text: how people read it, None = as it is.
    """

    value: Callable[[Device, Inventory], object]
    text: Callable[[Device, Inventory], str] | None = None
    csv_title: str | None = None

    def cell(self, device: Device, inventory: Inventory) -> str:
        """Give what a table shows."""
        return self.text(device, inventory) if self.text else _plain(self.value(device, inventory))

    def csv_cell(self, device: Device, inventory: Inventory) -> str:
        """Give what CSV shows: plain values in base units."""
        return _plain(self.value(device, inventory))


def _plain(value: object) -> str:
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return " ".join(map(str, value)) or "none"
    return str(value)


def _address_text(device: Device, inventory: Inventory) -> str:
    address = address_of(device, inventory)
    if address is None:
        return UNKNOWN if device.why_unknown("pci_addresses") else "none"
    return address


def _model_text(device: Device, inventory: Inventory) -> str:
    """Give the product name; of a part only what its name adds to the name of the whole, or the vendor's word for it."""
    model = device.model or ""
    if device.parent is None:
        return model or UNKNOWN
    whole = inventory.view(device.family).device(device.parent).model or ""
    return "  " * depth_of(device, inventory) + (model.removeprefix(whole).strip() or device.label)


def _memory_text(device: Device, _: Inventory) -> str:
    if device.memory_bytes is not None:
        return memory_text(device.memory_bytes)
    if device.memory_owner is not None and device.memory_owner != device.id:
        return "shared"
    return UNKNOWN


def _visible_text(device: Device, inventory: Inventory) -> str:
    ordinal = inventory.visible_ordinal(device)
    return is_visible(device, inventory).value if ordinal is None else str(ordinal)


def _number_text(device: Device, inventory: Inventory) -> str:
    return number_path(device, inventory) or UNKNOWN


def _driver_text(device: Device, inventory: Inventory) -> str:
    """Give the first word of the version, which is the version itself; without one the name of the driver."""
    return _driver_in_full(device, inventory).partition(" ")[0]


def _driver_in_full(device: Device, inventory: Inventory) -> str:
    return driver_version_of(device, inventory) or driver_of(device, inventory) or UNKNOWN


COLUMNS: tuple[Column, ...] = (
    Column("number", "#", value=lambda d, _: main_number(d), text=_number_text, is_right=True),
    Column("visible", "visible", value=_visible_text),
    Column("vendor", "vendor", value=lambda d, _: d.family),
    Column("model", "model", value=lambda d, _: d.model, text=_model_text),
    Column(
        "memory",
        "memory",
        value=lambda d, _: d.memory_bytes,
        text=_memory_text,
        csv_title="memory_bytes",
        is_right=True,
    ),
    Column("pci", "PCI", value=_address_text),
    Column("numa", "NUMA", value=numa_node_of),
    Column("driver", "driver", value=driver_version_of, text=_driver_text),
    Column("state", "state", value=lambda d, _: d.state.value),
    Column("id", "id", value=lambda d, _: d.id),
    Column("uuid", "uuid", value=lambda d, _: d.uuid),
    Column("label", "label", value=lambda d, _: d.label),
    Column("level", "level", value=lambda d, _: d.level.value),
    Column("parent", "parent", value=lambda d, _: d.parent or "none"),
    Column("nodes", "nodes", value=lambda d, _: d.nodes),
    Column("integrated", "integrated", value=lambda d, _: d.is_integrated),
    Column("counted", "counted", value=lambda d, _: d.is_counted),
    Column("simulated", "simulated", value=lambda d, _: d.is_simulated),
    Column("reason", "reason", value=lambda d, _: reason_of(d) or "none"),
)

_DEFAULT = ("number", "vendor", "model", "memory", "pci", "numa", "driver", "state")
_WIDE = ("number", "visible", "vendor", "model", "memory", "pci", "numa", "driver", "state")
SPARED_FIRST = ("driver", "numa")
"""Columns that a narrow terminal goes without, the least important first."""
_WIDE_MORE = ("id", "uuid", "parent", "label", "nodes", "simulated")


def columns_named(names: Sequence[str]) -> tuple[Column, ...]:
    """Give columns in the order asked for.

    Raises: WrongUsageError for an unknown name, with the known ones.
    """
    table = {column.name: column for column in COLUMNS}
    for name in names:
        if name not in table:
            near = nearest_hint(name, table)
            raise WrongUsageError(f"unknown column {name!r} (known: {', '.join(table)})", hint=near)
    return tuple(table[name] for name in names)


def default_columns(inventory: Inventory) -> tuple[Column, ...]:
    """Give the columns of the table; `visible` stands beside the number as soon as a mask is set."""
    names = _DEFAULT if not has_mask(inventory) else (_DEFAULT[0], "visible", *_DEFAULT[1:])
    return columns_named(names)


def wide_columns() -> tuple[Column, ...]:
    """Give the columns of `--format wide`."""
    return in_full(columns_named((*_WIDE, *_WIDE_MORE)))


def in_full(columns: Sequence[Column]) -> tuple[Column, ...]:
    """Give columns that show all of the driver's version, however long."""
    return tuple(replace(c, text=_driver_in_full) if c.name == "driver" else c for c in columns)


def device_rows(
    inventory: Inventory, devices: Sequence[Device], columns: Sequence[Column], *, is_verbose: bool = False
) -> tuple[Row, ...]:
    """Give one row a device, in order; a reason that the next row repeats is left to the last of them.

    Args: is_verbose: show every condition, not only the one that makes the state, and why values are unknown.
    """
    reasons = [_reasons(device, is_verbose=is_verbose) for device in devices]
    rows = []
    repeated = 0
    for place, device in enumerate(devices):
        is_last = place + 1 == len(devices) or reasons[place + 1] != reasons[place]
        repeated += 1
        below = _folded(reasons[place], repeated) if is_last else ()
        repeated = 0 if is_last else repeated
        cells = tuple(column.cell(device, inventory) for column in columns)
        rows.append(Row(cells, device.state.value, below))
    return tuple(rows)


def telling_devices(inventory: Inventory, devices: Sequence[Device]) -> tuple[Device, ...]:
    """Leave out parts whose row would only repeat that of their device: no memory, state or visible number of their own.

    Many chips have dozens of equal cores; they are counted in the last line.
    """
    return tuple(device for device in devices if not _only_repeats(device, inventory))


def _only_repeats(device: Device, inventory: Inventory) -> bool:
    if device.parent is None or device.memory_owner in (None, device.id):
        return False
    whole = inventory.view(device.family).device(device.parent)
    is_alike = (device.state, reason_of(device), device.model) == (whole.state, reason_of(whole), whole.model)
    has_number = has_mask(inventory) and inventory.visible_ordinal(device) is not None
    return is_alike and not has_number and is_visible(device, inventory) is is_visible(whole, inventory)


def csv_rows(inventory: Inventory, devices: Sequence[Device], columns: Sequence[Column]) -> tuple[tuple[str, ...], ...]:
    """Give one row of plain values a device, in base units."""
    return tuple(tuple(column.csv_cell(device, inventory) for column in columns) for device in devices)


def _reasons(device: Device, *, is_verbose: bool) -> tuple[str, ...]:
    reason = reason_of(device)
    if not is_verbose:
        return () if reason is None else (reason,)
    noted = (condition.reason for condition in device.conditions)
    unknown = (f"{name} is unknown: {why}" for name, why in device.unknown.items())
    return tuple(dict.fromkeys((*(() if reason is None else (reason,)), *noted, *unknown)))


def _folded(reasons: tuple[str, ...], count: int) -> tuple[str, ...]:
    return reasons if count == 1 else tuple(f"{reason} ({count} rows)" for reason in reasons)


_STATES_IN_SUMMARY = (DeviceState.READY, *(s for s in reversed(DeviceState) if s is not DeviceState.READY))


def summary_line(inventory: Inventory, devices: Sequence[Device]) -> str:
    """Give the last line: how many devices, and how many of them in which state.

    Example: "8 devices: 5 ready, 2 hidden by CUDA_VISIBLE_DEVICES, 1 lost"
    """
    parts = [_level_summary(inventory, devices, level) for level in Level]
    uncounted = sum(1 for device in devices if device.parent is None and not _is_in_summary(device))
    if uncounted:
        parts.append(f"{uncounted} not counted")
    return " · ".join(part for part in parts if part) or "0 devices"


def _is_in_summary(device: Device) -> bool:
    """Tell what a person would count: a card that is divided or hidden is there, an integrated part or virtual one is not."""
    return device.is_counted or device.state in (DeviceState.PARTITIONED, DeviceState.HIDDEN)


def _level_summary(inventory: Inventory, devices: Sequence[Device], level: Level) -> str | None:
    here = [device for device in devices if device.level is level and _is_in_summary(device)]
    if not here:
        return None
    words = Counter(_state_words(device, inventory) for device in here)
    order = {state.value: place for place, state in enumerate(_STATES_IN_SUMMARY)}
    listed = sorted(words.items(), key=lambda item: (order[item[0].split(" ")[0]], item[0]))
    return f"{counted(len(here), level.value)}: {', '.join(f'{count} {word}' for word, count in listed)}"


def _state_words(device: Device, inventory: Inventory) -> str:
    resolution = inventory.resolutions.get(device.family)
    variable = resolution.hidden_by.get(device.id) if resolution is not None else None
    if device.state is DeviceState.HIDDEN and variable is not None:
        return f"hidden by {variable}"
    return device.state.value


def header_lines(inventory: Inventory) -> tuple[str, ...]:
    """Give the line that says where everything below comes from; none for the machine we run on."""
    if inventory.kind is MachineKind.LIVE:
        return ()
    words = {
        MachineKind.ROOT: f"root {inventory.name}",
        MachineKind.REPLAY: f"replay of {inventory.name}",
        MachineKind.SIMULATED: f"simulated: {inventory.name}",
    }
    return (words[inventory.kind],)


def unclaimed_lines(inventory: Inventory) -> tuple[str, ...]:
    """Give one line for each piece of hardware without a plugin.

    Example: "amd MI300X 0000:0c:00.0 plugin not installed · pip install anyaccel-amd"
    """
    return tuple(_unclaimed_line(hardware) for hardware in inventory.unclaimed)


def _unclaimed_line(hardware: UnclaimedHardware) -> str:
    words = (hardware.plugin, hardware.name, hardware.location, hardware.reason)
    line = " ".join(word for word in words if word)
    return f"{line} · {hardware.hint}" if hardware.hint else line


def is_empty(inventory: Inventory) -> bool:
    """Whether there is nothing but integrated parts that no plain request would get."""
    return all(device.is_integrated and not device.is_counted for device in inventory.devices)


def nothing_lines(inventory: Inventory) -> tuple[str, ...]:
    """Give one line a plugin that says why there is nothing, integrated parts named."""
    if not inventory.outcomes:
        return ("no accelerator found: no plugin is installed",)
    width = max(len(outcome.plugin) for outcome in inventory.outcomes)
    lines = [f"  {o.plugin.ljust(width)}  {_why_nothing(o, inventory)}" for o in inventory.outcomes]
    return ("no accelerator found", *lines)


def _why_nothing(outcome: PluginOutcome, inventory: Inventory) -> str:
    if outcome.status is OutcomeStatus.FOUND:
        return "; ".join(_integrated_text(device, inventory) for device in inventory.view(outcome.plugin).roots)
    reason = one_line(outcome.reason or "no reason given")
    return reason if outcome.status is OutcomeStatus.NOTHING else f"{outcome.status.value}: {reason}"


def _integrated_text(device: Device, inventory: Inventory) -> str:
    name = f"{device.model or device.label} ({_address_text(device, inventory)})"
    return f"integrated part {name} is not counted: {device.count_reason or 'no reason given'}"
