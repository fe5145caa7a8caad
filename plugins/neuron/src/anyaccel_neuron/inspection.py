"""What `neuron-ls` adds: the PCI function of each device, memory, the numbers of its cores, and who uses it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from anyaccel.device import Blocks, Condition, Device, DeviceState, Inspection, with_known
from anyaccel.frozen import FrozenMap
from anyaccel.machine import Machine
from anyaccel.pci import normal_address
from anyaccel.replies import Reply
from anyaccel_neuron.chips import chip_of_name
from anyaccel_neuron.devices import at_function, cores_of, index_of
from anyaccel_neuron.reply import devices_told

__all__ = ["inspect_devices"]

_MOST_QUOTED = 3
_LONGEST_COMMAND = 40


def inspect_devices(machine: Machine, devices: tuple[Device, ...], ask: Callable[[], Any]) -> Inspection:
    """Add what the program tells of each device; a device that it leaves out stays as it was.

    Raises: UnavailableError when it cannot be asked.
    """
    if not any(device.parent is None and index_of(device) is not None for device in devices):
        return Inspection(devices)
    told = devices_told(ask())
    roots = {d.id: _with_facts(machine, d, told) for d in devices if d.parent is None}
    richer = tuple(_richer(device, roots, told) for device in devices)
    known = {index_of(device) for device in roots.values()}
    strange = sorted(number for number in told if number not in known)
    notes = (f"neuron-ls lists devices that the kernel driver does not show: {strange}",) if strange else ()
    return Inspection(tuple(richer), notes=notes, facts=FrozenMap(_facts(told)))


def _facts(told: Mapping[int, Reply]) -> dict[str, int]:
    sizes = {size for reply in told.values() if (size := reply.number("logical_neuroncore_config")) is not None}
    return {"logical_core_size": sizes.pop()} if len(sizes) == 1 else {}


def _with_facts(machine: Machine, device: Device, told: Mapping[int, Reply]) -> Device:
    reply = told.get(-1 if (index := index_of(device)) is None else index)
    if reply is None:
        return device
    memory = reply.number("memory_size")
    known = with_known(device, memory_bytes=memory, memory_owner=None if memory is None else device.id)
    if memory is None:
        known = replace(known, unknown=known.unknown.with_items({"memory_bytes": reply.why("memory_size")}))
    return replace(_placed(machine, known, reply), conditions=tuple(_conditions(machine, known, reply)))


def _placed(machine: Machine, device: Device, reply: Reply) -> Device:
    address = normal_address(reply.text("bdf") or "")
    if device.pci_addresses or address is None:
        return device
    function = next((f for f in machine.pci_functions() if f.address == address), None)
    if function is None:
        return device
    return at_function(machine, device, function)


def _conditions(machine: Machine, device: Device, reply: Reply) -> Iterator[Condition]:
    yield from _placed(machine, device, reply).conditions
    users = [row for row in reply.rows("neuron_processes") if row.text("neuron_runtime_version") is not None]
    if users:
        names = [_process(row) for row in users[:_MOST_QUOTED]]
        more = f" and {len(users) - _MOST_QUOTED} more" if len(users) > _MOST_QUOTED else ""
        yield Condition("in-use", f"used by {', '.join(names)}{more}", DeviceState.BUSY, Blocks.NOTHING)


def _process(row: Reply) -> str:
    pid, command = row.number("pid"), row.text("command")
    name = "process" if pid is None else f"process {pid}"
    return f"{name} ({command[:_LONGEST_COMMAND]})" if command else name


def _richer(device: Device, roots: Mapping[str, Device], told: Mapping[int, Reply]) -> Device:
    """Give a device as told, or a core with what its device has."""
    if device.parent is None:
        return roots[device.id]
    root = roots[device.id.split("/")[0]]
    index = index_of(root)
    if index is None or index not in told:
        return device
    return _cores(root, told[index]).get(device.id, device)


def _cores(root: Device, reply: Reply) -> dict[str, Device]:
    """Give the cores of a device anew, with the numbers that the program tells where they follow one another."""
    chip = chip_of_name(root.model)
    pair = chip.pair if chip else 1
    numbers = reply.numbers("neuroncore_ids")
    size = reply.number("logical_neuroncore_config") or pair
    first = numbers[0] if numbers and size == pair else None
    count = chip.cores if chip else reply.number("nc_count") or 0
    return {core.id: core for core in cores_of(root, count, pair, first)}
