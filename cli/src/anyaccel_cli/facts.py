"""What one device shows to people and programs: its number, place, driver and visibility. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from anyaccel.device import Device, DeviceState
from anyaccel.inventory import Inventory

__all__ = [
    "Visible",
    "address_of",
    "depth_of",
    "driver_of",
    "driver_version_of",
    "has_mask",
    "is_visible",
    "main_number",
    "main_space",
    "numa_node_of",
    "number_path",
    "reason_of",
]

MAIN_SPACE = "index"
"""The number space a bare number means, when a family has it; otherwise the first one the family gives."""


class Visible(str, Enum):
    """Whether a process started here would see a device."""

    YES = "yes"
    PARTLY = "partly"
    NO = "no"
    UNKNOWN = "unknown"


def main_space(device: Device) -> str | None:
    """Give the name of the number space that a bare number of this device is in, None when it is not numbered."""
    return MAIN_SPACE if MAIN_SPACE in device.numbers else next(iter(device.numbers), None)


def main_number(device: Device) -> int | str | None:
    """Give the number the vendor's own tools print, None = unknown or not numbered."""
    space = main_space(device)
    return None if space is None else device.numbers[space]


def _with_ancestors(device: Device, inventory: Inventory) -> Iterable[Device]:
    view = inventory.view(device.family)
    yield device
    for ancestor in view.ancestors(device.id):
        yield view.device(ancestor)


def depth_of(device: Device, inventory: Inventory) -> int:
    """Give the number of nodes above a device."""
    return len(inventory.view(device.family).ancestors(device.id))


def address_of(device: Device, inventory: Inventory) -> str | None:
    """Give the PCI addresses of a device or of the node it is part of, None for a board without PCI."""
    nodes = _with_ancestors(device, inventory)
    return next((",".join(node.pci_addresses) for node in nodes if node.pci_addresses), None)


def numa_node_of(device: Device, inventory: Inventory) -> int | None:
    """Give the NUMA node of a device or of the node it is part of, None = unknown."""
    nodes = _with_ancestors(device, inventory)
    return next((node.numa_node for node in nodes if node.numa_node is not None), None)


def driver_version_of(device: Device, inventory: Inventory) -> str | None:
    """Give the driver's version text of a device or of the node it is part of, None = unknown."""
    nodes = _with_ancestors(device, inventory)
    return next((node.driver_version for node in nodes if node.driver_version is not None), None)


def driver_of(device: Device, inventory: Inventory) -> str | None:
    """Give the name of the driver of a device or of the node it is part of, None = unknown or none."""
    nodes = _with_ancestors(device, inventory)
    return next((node.driver for node in nodes if node.driver), None)


def number_path(device: Device, inventory: Inventory) -> str | None:
    """Give the numbers from the whole device down to this part, None when its own is unknown.

    A part's number alone would look like another device's. Example: number_path(partition, inventory) == "1/2"
    """
    if main_number(device) is None:
        return None
    numbers = [main_number(node) for node in _with_ancestors(device, inventory)]
    return "/".join("?" if number is None else str(number) for number in reversed(numbers))


def has_mask(inventory: Inventory) -> bool:
    """Whether some variable of the machine's environment restricts or renumbers what a process sees."""
    return any(r.is_masked or r.variables or not r.is_complete for r in inventory.resolutions.values())


def is_visible(device: Device, inventory: Inventory) -> Visible:
    """Tell whether a process started here would see a device, all of it or a part."""
    resolution = inventory.resolutions.get(device.family)
    if resolution is None:
        return Visible.UNKNOWN
    leaves = inventory.view(device.family).leaves_of((device.id,))
    seen = leaves & resolution.leaves
    if seen == leaves:
        return Visible.YES
    if not resolution.is_complete and device.id not in resolution.hidden_by:
        return Visible.UNKNOWN
    return Visible.PARTLY if seen else Visible.NO


def reason_of(device: Device) -> str | None:
    """Give the clause that a row needs: why it is not ready, or why it is not counted; None when it is plainly ready."""
    if device.state is not DeviceState.READY:
        return device.reason
    if not device.is_counted:
        return f"not counted: {device.count_reason or 'no reason given'}"
    return None
