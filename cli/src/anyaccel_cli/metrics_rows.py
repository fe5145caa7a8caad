"""Readings as rows for a table and as a document. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from anyaccel.device import Device
from anyaccel.inventory import Inventory
from anyaccel.readings import Sample
from anyaccel_cli.documents import as_json, machine_document, schema_of
from anyaccel_cli.facts import main_number, number_path
from anyaccel_cli.table import Heading, Row
from anyaccel_cli.text import UNKNOWN, memory_text

__all__ = ["HEADINGS", "metrics_document", "metrics_rows", "silent_lines"]

HEADINGS = (
    Heading("number", "#", is_right=True),
    Heading("vendor", "vendor"),
    Heading("model", "model"),
    Heading("temperature", "temp", is_right=True),
    Heading("load", "load", is_right=True),
    Heading("used", "memory used", is_right=True),
    Heading("size", "of", is_right=True),
    Heading("power", "power", is_right=True),
    Heading("age", "age", is_right=True),
)
_OLD_SECONDS = 1.0


def metrics_rows(inventory: Inventory, sample: Sample, devices: Sequence[Device], age_seconds: float) -> list[Row]:
    """Give one row for each device that has a reading, or that is whole: a whole device without one is unknown throughout.

    Args: age_seconds: how long ago the questions went out; shown when that is more than a second.
    """
    shown = (device for device in devices if device.parent is None or sample.of(device.id))
    return [Row(tuple(_cells(device, inventory, sample, age_seconds)), device.state.value) for device in shown]


def _cells(device: Device, inventory: Inventory, sample: Sample, age_seconds: float) -> Iterable[str]:
    yield number_path(device, inventory) or UNKNOWN
    yield device.family
    yield device.model or device.label
    yield _text(sample.value(device.id, "temperature_celsius"), "{:.0f} °C")
    load = sample.value(device.id, "utilization_ratio")
    yield _text(None if load is None else load * 100, "{:.0f} %")
    used = sample.value(device.id, "memory_used_bytes")
    yield UNKNOWN if used is None else memory_text(int(used))
    yield UNKNOWN if device.memory_bytes is None else memory_text(device.memory_bytes)
    yield _text(sample.value(device.id, "power_watts"), "{:.0f} W")
    yield f"{age_seconds:.0f} s" if age_seconds > _OLD_SECONDS else ""


def _text(value: float | None, form: str) -> str:
    return UNKNOWN if value is None else form.format(value)


def silent_lines(sample: Sample) -> tuple[str, ...]:
    """Say of each family that told nothing why."""
    return tuple(f"{family}: no readings: {reason}" for family, reason in sample.silent.items())


def metrics_document(inventory: Inventory, sample: Sample, devices: Sequence[Device]) -> dict[str, Any]:
    """Give what `metrics --json` prints."""
    return {
        "schema": schema_of("accel-metrics"),
        "machine": machine_document(inventory),
        "taken_at_seconds": round(sample.taken_at_seconds, 3),
        "took_seconds": round(sample.took_seconds, 3),
        "devices": [_device(device, sample) for device in devices if device.parent is None or sample.of(device.id)],
        "silent": as_json(sample.silent),
        "broken": list(sample.broken),
    }


def _device(device: Device, sample: Sample) -> dict[str, Any]:
    return {
        "id": device.id,
        "vendor": device.family,
        "model": device.model,
        "number": main_number(device),
        "state": device.state.value,
        "memory_bytes": device.memory_bytes,
        "readings": [
            {
                "name": reading.name,
                "kind": reading.kind.value,
                "labels": as_json(reading.labels),
                "value": reading.value,
                "reason": reading.reason,
            }
            for reading in sample.of(device.id)
        ],
    }
