"""Readings of AMD GPUs, from files of the kernel driver alone.

Files and their units: "HWMON Interfaces" and "GPU sysfs Power State Interfaces" of the kernel's documentation of amdgpu:
temperatures in millidegrees by label (edge, junction, mem), power in microwatts, energy in microjoules, clocks in hertz by label
(sclk, mclk), `gpu_busy_percent`, `mem_info_vram_used`. Parts of a GPU have no sensors of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from anyaccel.device import Device, DeviceState
from anyaccel.frozen import FrozenMap
from anyaccel.machine import Machine
from anyaccel.metrics import STANDARD_READINGS, Reading
from anyaccel.pci import read_int

__all__ = ["read_metrics"]

_ASLEEP = "it is asleep, and reading would wake it"
_NO_FILE = "the driver shows no such file, or nothing in it"
_SENSORS = {"edge": "device", "junction": "hotspot", "mem": "memory"}
_CLOCKS = {"sclk": "compute", "mclk": "memory"}


@dataclass(frozen=True)
class _Value:
    """One value: its name, its labels, and the number read divided by the unit; None = not told."""

    name: str
    raw: int | None
    divisor: float = 1.0
    labels: FrozenMap[str] = field(default_factory=FrozenMap)


def read_metrics(machine: Machine, devices: Sequence[Device]) -> tuple[Reading, ...]:
    """Read the sensors of every whole GPU; what is not told, and everything of a sleeping one, is None with its reason."""
    return tuple(reading for device in devices if device.parent is None for reading in _readings(machine, device))


def _readings(machine: Machine, device: Device) -> Iterator[Reading]:
    is_asleep = any(condition.state is DeviceState.ASLEEP for condition in device.conditions)
    for value in _values(machine, None if is_asleep else _folder(machine, device)):
        number = None if value.raw is None or value.raw < 0 else value.raw / value.divisor
        reason = None if number is not None else _ASLEEP if is_asleep else _NO_FILE
        yield Reading(device.id, value.name, STANDARD_READINGS[value.name].kind, number, reason, value.labels)


def _folder(machine: Machine, device: Device) -> str | None:
    """Give the folder of the GPU's PCI function; a copied tree may have it below the DRM card only."""
    places = [f"/sys/bus/pci/devices/{address}" for address in device.pci_addresses]
    card = device.numbers.get("card")
    places += [] if card is None else [f"/sys/class/drm/card{card}/device"]
    return next((place for place in places if machine.exists(place)), None)


def _values(machine: Machine, folder: str | None) -> Iterator[_Value]:
    """Give every value; a folder that is None stands for files that are not read."""
    sensors = None if folder is None else _sensor_folder(machine, folder)
    yield _Value("utilization_ratio", _read(machine, folder, "gpu_busy_percent"), 100)
    yield _Value("memory_used_bytes", _read(machine, folder, "mem_info_vram_used"))
    power = _read(machine, sensors, "power1_average")
    yield _Value("power_watts", _read(machine, sensors, "power1_input") if power is None else power, 1e6)
    for word, number in _inputs(machine, sensors, "temp", _SENSORS).items():
        yield _Value("temperature_celsius", number, 1000, FrozenMap({"sensor": word}))
    for word, number in _inputs(machine, sensors, "freq", _CLOCKS).items():
        yield _Value("clock_hertz", number, 1, FrozenMap({"clock": word}))
    energy = _read(machine, sensors, "energy1_input")
    if energy is not None:
        yield _Value("energy_joules_total", energy, 1e6)


def _sensor_folder(machine: Machine, folder: str) -> str | None:
    names = machine.list_folder(f"{folder}/hwmon", r"hwmon[0-9]+")
    return f"{folder}/hwmon/{names[0]}" if names else None


def _read(machine: Machine, folder: str | None, name: str) -> int | None:
    return None if folder is None else read_int(machine, f"{folder}/{name}")


def _inputs(machine: Machine, folder: str | None, prefix: str, known: dict[str, str]) -> dict[str, int | None]:
    """Give the values of files `<prefix><n>_input` by what their `_label` says; the first kind is always there."""
    found: dict[str, int | None] = {next(iter(known.values())): None}
    names = () if folder is None else machine.list_folder(folder, rf"{prefix}[0-9]+_label")
    for file in names:
        word = known.get(machine.read_text_or_none(f"{folder}/{file}") or "")
        if word is not None:
            found[word] = _read(machine, folder, f"{file.removesuffix('_label')}_input")
    return found
