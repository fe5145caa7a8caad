"""Results as JSON documents with a named, numbered schema. Pure functions; the schema files are in `schemas/`.

Keys stand in the order of the schema. Sizes are bytes, times seconds. `null` is unknown, and `unknown` beside it says why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from anyaccel.device import Device
from anyaccel.inventory import Inventory
from anyaccel.visibility import Resolution
from anyaccel_cli.facts import is_visible, main_number, main_space, reason_of
from anyaccel_cli.rows import summary_line

__all__ = ["as_json", "discover_document", "machine_document", "schema_of"]

Json = dict[str, Any]


def schema_of(name: str, version: str = "1.0") -> Json:
    """Give the head of a document; a minor number only adds keys."""
    return {"name": name, "version": version}


def as_json(value: Any) -> Any:
    """Give a frozen value of the contract as plain JSON data: fields in their order, tables in order of key."""
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value):
        return {field.name: as_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: as_json(value[key]) for key in sorted(value)}
    if isinstance(value, (tuple, list)):
        return [as_json(entry) for entry in value]
    return value


def discover_document(inventory: Inventory, devices: Sequence[Device]) -> Json:
    """Give what `discover --json` prints."""
    shown = {device.family for device in devices}
    return {
        "schema": schema_of("accel-discover"),
        "machine": machine_document(inventory),
        "summary": summary_line(inventory, devices),
        "devices": [_device(device, inventory) for device in devices],
        "visibility": [_resolution(family, r) for family, r in inventory.resolutions.items() if family in shown],
        "unclaimed": as_json(inventory.unclaimed),
        "plugins": as_json(inventory.outcomes),
        "conflicts": as_json(inventory.conflicts),
        "notes": as_json(inventory.notes),
    }


def machine_document(inventory: Inventory) -> Json:
    """Give where everything comes from."""
    return {
        "kind": inventory.kind.value,
        "name": inventory.name,
        "is_simulated": inventory.is_simulated,
        "boundary": as_json(inventory.host.boundary),
        "generation": inventory.generation,
    }


def _device(device: Device, inventory: Inventory) -> Json:
    return {
        "id": device.id,
        "vendor": device.family,
        "level": device.level.value,
        "label": device.label,
        "parent": device.parent,
        "leaves": list(inventory.view(device.family).leaves(device.id)),
        "model": device.model,
        "uuid": device.uuid,
        "pci_addresses": list(device.pci_addresses),
        "number": main_number(device),
        "numbers": as_json(device.numbers),
        "visible": is_visible(device, inventory).value,
        "visible_ordinal": inventory.visible_ordinal(device),
        "memory_bytes": device.memory_bytes,
        "memory_owner": device.memory_owner,
        "sharing": device.sharing.value,
        "max_per_process": device.max_per_process,
        "state": device.state.value,
        "reason": reason_of(device),
        "hint": device.hint,
        "conditions": as_json(device.conditions),
        "places": as_json(device.places),
        "numa_node": device.numa_node,
        "local_cpus": as_json(inventory.local_cpus(device)),
        "nodes": list(device.nodes),
        "driver": device.driver,
        "driver_version": device.driver_version,
        "is_integrated": device.is_integrated,
        "is_counted": device.is_counted,
        "count_reason": device.count_reason,
        "attributes": as_json(device.attributes),
        "unknown": _unknown(device, inventory),
        "is_simulated": device.is_simulated,
    }


_CAN_BE_UNKNOWN = ("model", "uuid", "memory_bytes", "numa_node", "driver", "driver_version", "is_integrated")


def _unknown(device: Device, inventory: Inventory) -> Json:
    """Give why each null of a device is one; what makes the device unusable also explains what could not be learned."""
    reasons: dict[str, str] = dict(device.unknown)
    default = reason_of(device) or "the plugin gives no reason"
    for name in _CAN_BE_UNKNOWN:
        if getattr(device, name) is None:
            reasons.setdefault(name, default)
    if main_number(device) is None:
        space = main_space(device)
        reasons["number"] = "it has no number" if space is None else reasons.get(f"numbers.{space}", default)
    if inventory.local_cpus(device) is None:
        reasons["local_cpus"] = reasons.get("numa_node", "the machine does not show the CPUs of its NUMA node")
    return dict(sorted(reasons.items()))


def _resolution(family: str, resolution: Resolution) -> Json:
    return {"vendor": family, **as_json(resolution)}
