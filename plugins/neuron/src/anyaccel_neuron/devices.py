"""Files → Neuron devices with their cores.

The kernel driver makes `/sys/class/neuron_device/neuron<N>` below `/sys/devices/virtual`: nothing there leads to the PCI
function, and devices are not numbered in the order of the bus. So a device is known by its number where the driver shows it, and
by its PCI function where the driver does not; `neuron-ls` joins the two.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from anyaccel.device import Device, Discovery, Level, Sharing
from anyaccel.frozen import FrozenMap
from anyaccel.host import read_boundary
from anyaccel.machine import Machine
from anyaccel.pci import PciFunction, device_from_function, match_functions, read_int
from anyaccel_neuron.chips import VENDOR_ID, Chip, chip_of_id, chip_of_name
from anyaccel_neuron.declaration import DRIVER, FAMILY, MATCHES

__all__ = ["CLASS_FOLDER", "at_function", "core_id", "cores_of", "discover_devices", "index_of", "with_cores"]

CLASS_FOLDER = "/sys/class/neuron_device"

_NO_PCI = "the kernel driver does not tell which PCI function a device is; neuron-ls does"
_UNASKED = "only neuron-ls tells, and it was not heard"
_SHARED = "the memory is the device's, its cores share it"
_MOST_CORES = 64


def discover_devices(machine: Machine) -> Discovery:
    """List the devices that the driver shows by their numbers, and functions without the driver by their PCI addresses."""
    functions = [function for function, _ in match_functions(machine, MATCHES)]
    numbers = _numbers(machine)
    bound = [function for function in functions if machine.pci_driver(function) == DRIVER]
    shown = [f for f in functions if f not in bound] if numbers else functions
    devices = (*_by_number(machine, numbers, bound), *(_by_function(machine, function) for function in shown))
    return Discovery(
        tuple(devices),
        reason=None if devices else f"no PCI function of Inferentia or Trainium ({VENDOR_ID:04x}) and no neuron device",
        notes=tuple(_mismatch(numbers, bound)),
        claimed=tuple(function.address for function in bound) if numbers else (),
    )


def _numbers(machine: Machine) -> list[int]:
    names = machine.list_folder(CLASS_FOLDER, r"neuron[0-9]{1,6}")
    return sorted({int(name.removeprefix("neuron")) for name in names})


def _mismatch(numbers: Sequence[int], bound: Sequence[PciFunction]) -> Iterator[str]:
    if numbers and bound and len(numbers) != len(bound):
        yield f"the driver is bound to {len(bound)} PCI functions and shows {len(numbers)} devices"


def _by_function(machine: Machine, function: PciFunction) -> Device:
    chip = chip_of_id(function.device_id)
    device = device_from_function(
        machine, function, family=FAMILY, drivers=(DRIVER,), label="device", model=chip.name if chip else None
    )
    reasons = dict.fromkeys(("uuid", "memory_bytes", "numbers.index"), "the kernel driver does not show the device")
    return replace(
        device,
        sharing=Sharing.ONE_PROCESS,
        numbers=FrozenMap({"index": None}),
        unknown=device.unknown.with_items(reasons),
    )


def _by_number(machine: Machine, numbers: Sequence[int], bound: Sequence[PciFunction]) -> Iterator[Device]:
    chips = {function.device_id: chip_of_id(function.device_id) for function in bound if not function.is_dead}
    only_chip = next(iter(chips.values())) if len(chips) == 1 else None
    is_single = len(numbers) == len(bound) == 1
    version = machine.read_text_or_none(f"/sys/module/{DRIVER}/version")
    for number in numbers:
        folder = f"{CLASS_FOLDER}/neuron{number}"
        named = machine.read_text_or_none(f"{folder}/info/architecture/device_name")
        chip = chip_of_name(named) or only_chip
        device = _device(machine, number, chip, _serial(machine, folder), version)
        if is_single:
            device = at_function(machine, device, bound[0])
        yield from with_cores(device, chip, _core_count(machine, folder, chip))


def _serial(machine: Machine, folder: str) -> str | None:
    """Give the serial number of a device, None when it is no such number or all zeros."""
    text = machine.read_text_or_none(f"{folder}/info/serial_number") or ""
    return text if re.fullmatch(r"[0-9a-f]{16}", text) and int(text, 16) else None


def _device(machine: Machine, number: int, chip: Chip | None, serial: str | None, version: str | None) -> Device:
    node = f"/dev/neuron{number}"
    blocked = machine.node_condition(node, is_container=read_boundary(machine).is_container)
    reasons = {
        "memory_bytes": _UNASKED,
        "numa_node": _NO_PCI,
        "attributes.pci_id": _NO_PCI,
        **({} if chip else {"model": "the driver's files name no chip that is known"}),
        **({} if serial else {"uuid": "the driver shows no serial number"}),
        **({} if version else {"driver_version": "the module does not tell"}),
    }
    return Device(
        id=f"{FAMILY}:{number}",
        family=FAMILY,
        level=Level.DEVICE,
        label="device",
        model=chip.name if chip else None,
        uuid=serial,
        numbers=FrozenMap({"index": number}),
        sharing=Sharing.ONE_PROCESS,
        conditions=(blocked,) if blocked else (),
        nodes=(node,),
        driver=DRIVER,
        driver_version=version or None,
        attributes=FrozenMap({"pci_id": None}),
        unknown=FrozenMap(reasons),
        is_simulated=machine.is_simulated,
    )


def at_function(machine: Machine, device: Device, function: PciFunction) -> Device:
    """Give the device with what its PCI function tells: address, ids, NUMA node, and whether it answers at all."""
    there = device_from_function(machine, function, family=FAMILY, drivers=(DRIVER,), model=device.model)
    unknown = {k: v for k, v in device.unknown.items() if k not in ("numa_node", "attributes.pci_id")}
    if there.numa_node is None:
        unknown["numa_node"] = there.why_unknown("numa_node") or _NO_PCI
    return replace(
        device,
        pci_addresses=(function.address,),
        conditions=(*there.conditions, *device.conditions),
        numa_node=there.numa_node,
        attributes=there.attributes,
        unknown=FrozenMap(unknown),
    )


def _core_count(machine: Machine, folder: str, chip: Chip | None) -> int:
    """Give the number of physical cores: known of the chip, else as the driver shows them, else (root only) as it says."""
    if chip is not None:
        return chip.cores
    shown = machine.list_folder(folder, r"neuron_core[0-9]+")
    return min(len(shown) or read_int(machine, f"{folder}/core_count") or 0, _MOST_CORES)


def index_of(device: Device) -> int | None:
    """Give the number of a device, None when the driver does not show it."""
    index = device.numbers.get("index")
    return index if isinstance(index, int) else None


def core_id(number: int, *path: int) -> str:
    """Give the id of a core: `neuron:3/1` is what the runtime counts, `neuron:3/1/0` a physical core inside.

    Example: core_id(3, 1, 0) == "neuron:3/1/0"
    """
    return "/".join((f"{FAMILY}:{number}", *(str(part) for part in path)))


def with_cores(device: Device, chip: Chip | None, count: int) -> Iterator[Device]:
    """Give a device followed by its cores, and by the physical cores inside where two make one."""
    yield device
    yield from cores_of(device, count, chip.pair if chip else 1)


def cores_of(device: Device, count: int, pair: int, first: int | None = None) -> Iterable[Device]:
    """Give the cores of a device.

    Args: count: physical cores. pair: how many of them make one core of the runtime. first: the runtime's number of the first
        one, None = devices are numbered through, each with as many.
    """
    index = index_of(device)
    if index is None:
        return
    cores = count // pair
    start = index * cores if first is None else first
    for position in range(cores):
        label = "core" if pair == 1 else "logical core"
        numbers = FrozenMap[int | str | None]({"core": start + position})
        name = core_id(index, position)
        core = _core(device, name, parent=device.id, level=Level.PARTITION, label=label, numbers=numbers)
        yield core
        for half in range(pair if pair > 1 else 0):
            physical = FrozenMap[int | str | None]({"physical_core": (start + position) * pair + half})
            inner = core_id(index, position, half)
            yield _core(device, inner, parent=core.id, level=Level.CORE, label="physical core", numbers=physical)


def _core(
    device: Device, name: str, *, parent: str, level: Level, label: str, numbers: FrozenMap[int | str | None]
) -> Device:
    reasons = {"memory_bytes": _SHARED, "uuid": "a core has no name of its own"}
    for field in ("model", "driver_version", "numa_node"):
        if device.why_unknown(field):
            reasons[field] = device.unknown[field]
    return replace(
        device,
        id=name,
        level=level,
        label=label,
        parent=parent,
        uuid=None,
        pci_addresses=(),
        numbers=numbers,
        memory_bytes=None,
        memory_owner=device.id,
        attributes=FrozenMap(),
        unknown=FrozenMap(reasons),
    )
