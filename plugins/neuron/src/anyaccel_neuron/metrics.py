"""Readings from the kernel driver's files: memory in use and memory errors.

Files: `stats/hardware/mem_ecc_uncorrected` of a device and `neuron_core<M>/stats/memory_usage/device_mem/<kind>/present` of its
cores, in bytes (kernel driver, `neuron_sysfs_metrics.c`). Utilization, power and temperature come from `neuron-monitor` alone,
which never ends by itself and is not started.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from anyaccel.device import Device
from anyaccel.frozen import FrozenMap
from anyaccel.machine import Machine
from anyaccel.metrics import STANDARD_READINGS, Reading
from anyaccel.pci import read_int
from anyaccel_neuron.devices import CLASS_FOLDER, index_of

__all__ = ["read_metrics"]

_NO_FILE = "the driver shows no such file, or nothing in it"
_NOT_SHOWN = "the kernel driver does not show the device"


def read_metrics(machine: Machine, devices: Sequence[Device]) -> tuple[Reading, ...]:
    """Read what the driver counts of every device; what it does not tell is None with a reason."""
    return tuple(reading for device in devices if device.parent is None for reading in _readings(machine, device))


def _readings(machine: Machine, device: Device) -> Iterator[Reading]:
    index = index_of(device)
    folder = None if index is None else f"{CLASS_FOLDER}/neuron{index}"
    errors = None if folder is None else read_int(machine, f"{folder}/stats/hardware/mem_ecc_uncorrected")
    used = None if folder is None else _memory_used(machine, folder)
    labels = FrozenMap({"kind": "memory-uncorrected"})
    missing = _NOT_SHOWN if folder is None else _NO_FILE
    yield _reading(device, "memory_used_bytes", used, missing)
    yield _reading(device, "errors_total", errors, missing, labels)


def _reading(
    device: Device, name: str, value: int | None, missing: str, labels: FrozenMap[str] | None = None
) -> Reading:
    kind = STANDARD_READINGS[name].kind
    number = None if value is None or value < 0 else float(value)
    return Reading(device.id, name, kind, number, missing if number is None else None, labels or FrozenMap())


def _memory_used(machine: Machine, folder: str) -> int | None:
    """Give the sum over cores and kinds of memory; None when one of them cannot be read."""
    cores = machine.list_folder(folder, r"neuron_core[0-9]+")
    places = [f"{folder}/{core}/stats/memory_usage/device_mem" for core in cores]
    files = [f"{place}/{kind}/present" for place in places for kind in machine.list_folder(place)]
    values = [read_int(machine, file) for file in files if machine.exists(file)]
    known = [value for value in values if value is not None and value >= 0]
    return sum(known) if values and len(known) == len(values) else None
