"""A machine description → the files of the Neuron driver and the answer of `neuron-ls`.

A card is one chip, `inf1`, `trn1`, `inf2`, `trn2` or `trn3`. Its option `index` is the driver's number; without it cards count
on. In `[neuron]`: `links` is `ring`, `chain`, `torus` (four a row, by number) or `none`; `tool = "old"` writes short PCI
addresses and no NUMA node, `tool = "wrapped"` puts the list into an object, as versions do.
Faults: `tool-missing`, `tool-hangs`, `tool-crashes`; of one card `not-listed`, `one-sided` (its peers do not tell of it) and
`in-use`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from anyaccel.errors import RecordingError
from anyaccel.files import NodeFact
from anyaccel.frozen import FrozenMap
from anyaccel.machine_description import (
    CardDescription,
    MachineDescription,
    SimulatedFamily,
    SimulatedFunction,
    check_family,
)
from anyaccel_neuron.chips import CHIPS, VENDOR_ID, Chip
from anyaccel_neuron.declaration import DRIVER, FAMILY

__all__ = ["simulate_family"]

VERSION = "2.19.64.0"
_MAJOR = 245
_CLASS_CODE = "088000"
_ROW = 4
_GIB = 1 << 30
_MEMORY_GIB = {"inf1": 8, "trn1": 32, "inf2": 32, "trn2": 96, "trn3": 144}
_GENERATIONS = {"inf1": "v1", "trn1": "v2", "inf2": "v2", "trn2": "v3", "trn3": "v4"}
_SHAPES = ("ring", "chain", "torus", "none")
_TOOLS = ("new", "old", "wrapped")
_ANSWERS: dict[str, Any] = {
    "tool-missing": {"unavailable": "program neuron-ls is not installed", "reason_code": "program-missing"},
    "tool-hangs": {"fault": "hang"},
    "tool-crashes": {"fault": "crash"},
}
_CARD_FAULTS = ("not-listed", "one-sided", "in-use")


@dataclass(frozen=True)
class _Device:
    card: CardDescription
    chip: Chip
    index: int
    peers: tuple[int, ...] = ()

    @property
    def serial(self) -> str:
        return f"{0x51A0_0000_0000_0000 + self.index:016x}"


def simulate_family(description: MachineDescription) -> SimulatedFamily:
    """Make this family's part of an imaginary machine.

    Raises: RecordingError for a model, option or fault it does not know.
    """
    check_family(
        description,
        FAMILY,
        models=[chip.key for chip in CHIPS],
        card_options=("index",),
        family_options=("links", "tool"),
        faults=dict.fromkeys((*_ANSWERS, *_CARD_FAULTS), ()),
    )
    devices = _devices(description)
    bound = [device for device in devices if description.keeps_driver(device.card)]
    files = {f"/sys/module/{DRIVER}/version": f"{VERSION}\n"} if bound else {}
    for device in bound:
        files.update(_files(device))
    return SimulatedFamily(
        functions=tuple(_function(device) for device in devices),
        files=FrozenMap(files),
        links=FrozenMap({f"/sys/class/neuron_device/neuron{d.index}": _folder(d) for d in bound}),
        nodes=FrozenMap({f"/dev/neuron{d.index}": NodeFact(0o666, "0", "root", _MAJOR, d.index) for d in bound}),
        answers=FrozenMap({"neuron-ls": _answer(description, bound)}),
    )


def _option(description: MachineDescription, name: str, known: tuple[str, ...]) -> str:
    word = description.family_options(FAMILY).get(name, known[-1] if name == "links" else known[0])
    if word not in known:
        raise RecordingError(f"option {name!r} in [neuron] is one of {', '.join(known)}, not {word!r}")
    return str(word)


def _devices(description: MachineDescription) -> list[_Device]:
    shape = _option(description, "links", _SHAPES)
    chips = {chip.key: chip for chip in CHIPS}
    cards = description.cards_of(FAMILY)
    numbers = [card.options.get("index", position) for position, card in enumerate(cards)]
    if any(isinstance(number, bool) or not isinstance(number, int) or number < 0 for number in numbers):
        raise RecordingError("option 'index' of a neuron card is a whole number from 0 on")
    if len(set(numbers)) != len(numbers):
        raise RecordingError(f"two neuron cards have the same index ({numbers})")
    pairs = zip(cards, numbers, strict=True)
    return [_Device(card, chips[card.model], n, _peers(shape, n, sorted(numbers))) for card, n in pairs]


def _peers(shape: str, number: int, numbers: list[int]) -> tuple[int, ...]:
    """Give the numbers that a device is connected to, in the order in which the program writes them."""
    count, place = len(numbers), numbers.index(number)
    if shape == "torus":
        row, column = divmod(place, _ROW)
        places = [(place + step * _ROW) % count for step in (-1, 1)]
        places += [row * _ROW + (column + step) % _ROW for step in (-1, 1)]
    elif shape == "ring":
        places = [(place - 1) % count, (place + 1) % count]
    elif shape == "chain":
        places = [near for near in (place - 1, place + 1) if 0 <= near < count]
    else:
        places = []
    return tuple(dict.fromkeys(numbers[near] for near in places if near < count and near != place))


def _folder(device: _Device) -> str:
    return f"/sys/devices/virtual/neuron_device/neuron{device.index}"


def _files(device: _Device) -> dict[str, str]:
    folder, generation = _folder(device), _GENERATIONS[device.chip.key]
    texts = {
        "dev": f"{_MAJOR}:{device.index}",
        "info/serial_number": device.serial,
        "info/architecture/arch_type": f"ND{generation}",
        "info/architecture/device_name": device.chip.name + ("1" if device.chip.key == "trn1" else ""),
        "stats/hardware/mem_ecc_uncorrected": "0",
        "stats/hardware/sram_ecc_uncorrected": "0",
    }
    for core in range(device.chip.cores):
        texts[f"neuron_core{core}/info/architecture/arch_type"] = f"NC{generation}"
        texts[f"neuron_core{core}/stats/memory_usage/device_mem/tensors/present"] = str(core << 20)
    return {f"{folder}/{name}": f"{text}\n" for name, text in texts.items()}


def _function(device: _Device) -> SimulatedFunction:
    return SimulatedFunction(
        address=device.card.address or "",
        vendor_id=VENDOR_ID,
        device_id=device.chip.device_ids[0],
        class_code=_CLASS_CODE,
        parent=device.card.parent,
        numa_node=device.card.numa_node,
        driver=DRIVER if device.card.driver == "default" else device.card.driver,
    )


def _answer(description: MachineDescription, devices: list[_Device]) -> Any:
    for fault, answer in _ANSWERS.items():
        if description.faults_of(fault):
            return answer
    if not devices:
        return {"unavailable": "neuron-ls ended with 1 and said: no neuron device", "reason_code": "program-failed"}
    tool = _option(description, "tool", _TOOLS)
    silent = {d.index for d in devices if description.faults_of("one-sided", d.card.address)}
    listed = [d for d in devices if not description.faults_of("not-listed", d.card.address)]
    rows = [_row(description, device, tool, silent) for device in sorted(listed, key=lambda d: d.index)]
    return {"instance_type": "simulated", "neuron_devices": rows} if tool == "wrapped" else rows


def _row(description: MachineDescription, device: _Device, tool: str, silent: set[int]) -> dict[str, Any]:
    chip, address = device.chip, device.card.address or ""
    cores = chip.cores // chip.pair
    peers = [peer for peer in device.peers if peer not in silent]
    users = [{"pid": 4242, "command": "python train.py", "neuron_runtime_version": "2.0.0"}]
    row = {
        "neuron_device": device.index,
        "bdf": address.removeprefix("0000:") if tool == "old" else address,
        "connected_to": peers or None,
        "nc_count": cores,
        "memory_size": _MEMORY_GIB[chip.key] * _GIB,
        "neuroncore_ids": [device.index * cores + core for core in range(cores)],
        "neuron_processes": users if description.faults_of("in-use", device.card.address) else [],
    }
    if tool != "old":
        row["numa_node"] = str(-1 if device.card.numa_node is None else device.card.numa_node)
    if chip.pair > 1:
        row["logical_neuroncore_config"] = chip.pair
    return row
