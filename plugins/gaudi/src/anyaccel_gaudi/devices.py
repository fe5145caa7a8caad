"""Files → Gaudi cards with their four numbers.

New drivers show a card as `/sys/class/accel/accel<N>`, old ones as `/sys/class/habanalabs/hl<N>`; some register it below
`/sys/devices/virtual`, where only its file `pci_addr` leads to the PCI function. Attributes: Documentation/ABI/testing/
sysfs-driver-habanalabs of the kernel. The class `accel` belongs to many vendors, so a card is one by its PCI vendor first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from anyaccel.device import Condition, Device, DeviceState, Discovery, Sharing
from anyaccel.frozen import FrozenMap
from anyaccel.host import read_boundary
from anyaccel.machine import Machine
from anyaccel.pci import PciFunction, device_from_function, match_functions, normal_address, read_int
from anyaccel_gaudi.declaration import DRIVER, FAMILY, MATCHES
from anyaccel_gaudi.models import VENDOR_ID, model_of_id

__all__ = ["discover_devices", "module_of"]

_UNASKED = "only the library libhlml tells, and it was not heard"
_NO_ENTRY = "the kernel driver shows no entry for the card"
_OPERATIONAL = "operational"
_MOST_MODULES = 64


@dataclass(frozen=True)
class _Entry:
    """A card as the driver shows it: its minor number, the folder of its attributes, and its device files."""

    minor: int
    folder: str
    nodes: tuple[str, ...]


_CLASSES = (
    ("/sys/class/accel", "accel", "/dev/accel/accel", "/dev/accel/accel_controlD"),
    ("/sys/class/habanalabs", "hl", "/dev/hl", "/dev/hl_controlD"),
)


def discover_devices(machine: Machine) -> Discovery:
    """List every card by its PCI address, with what the driver's files tell of it."""
    functions = [function for function, _ in match_functions(machine, MATCHES)]
    entries = _entries(machine) if functions else {}
    version = machine.read_text_or_none(f"/sys/module/{DRIVER}/version") if functions else None
    devices = tuple(_device(machine, function, entries.get(function.address), version) for function in functions)
    return Discovery(devices, reason=None if devices else f"no PCI function of vendor {VENDOR_ID:04x} (Habana Labs)")


def _entries(machine: Machine) -> dict[str, _Entry]:
    """Give the driver's entries by PCI address."""
    found: dict[str, _Entry] = {}
    for folder, prefix, node, control in _CLASSES:
        for name in machine.list_folder(folder, rf"{prefix}[0-9]+"):
            minor = int(name.removeprefix(prefix))
            place = f"{folder}/{name}/device"
            address = _address(machine, place)
            if address is not None:
                found.setdefault(address, _Entry(minor, place, (f"{node}{minor}", f"{control}{minor}")))
    return found


def _address(machine: Machine, folder: str) -> str | None:
    told = machine.read_text_or_none(f"{folder}/pci_addr")
    real = machine.resolve(folder) or ""
    return normal_address(told or "") or normal_address(real.rpartition("/")[2])


def _device(machine: Machine, function: PciFunction, entry: _Entry | None, version: str | None) -> Device:
    model = model_of_id(function.device_id)
    card = device_from_function(
        machine, function, family=FAMILY, drivers=(DRIVER,), label="card", model=model.name if model else None
    )
    module = None if entry is None else read_int(machine, f"{entry.folder}/module_id")
    module = module if module is not None and 0 <= module < _MOST_MODULES else None
    is_bound = card.driver == DRIVER
    reasons = {
        "uuid": _UNASKED,
        "memory_bytes": _UNASKED,
        "numbers.index": _UNASKED,
        **({} if module is not None else {"numbers.module": "the driver's files do not tell" if entry else _NO_ENTRY}),
        **({} if entry else {"numbers.minor": _NO_ENTRY}),
        **({} if version and is_bound else {"driver_version": "the module does not tell"}),
    }
    return replace(
        card,
        numbers=FrozenMap({"index": None, "module": module, "minor": entry.minor if entry else None}),
        sharing=Sharing.ONE_PROCESS,
        max_per_process=1,
        conditions=(*card.conditions, *_conditions(machine, entry)),
        nodes=entry.nodes if entry else (),
        driver_version=version if is_bound else None,
        unknown=card.unknown.with_items(reasons),
    )


def _conditions(machine: Machine, entry: _Entry | None) -> Iterator[Condition]:
    if entry is None:
        return
    status = machine.read_text_or_none(f"{entry.folder}/status")
    if status is not None and status.strip().lower() != _OPERATIONAL:
        yield Condition(
            "not-operational",
            f"the driver says {status.strip()[:40]!r}",
            DeviceState.UNUSABLE,
            hint="wait for a reset to end, or see the kernel log for habanalabs",
        )
    blocked = machine.node_condition(entry.nodes[0], is_container=read_boundary(machine).is_container)
    if blocked is not None:
        yield blocked


def module_of(device: Device) -> int | None:
    """Give the module id of a card: its place on the box, which no restart changes."""
    module = device.numbers.get("module")
    return module if isinstance(module, int) else None
