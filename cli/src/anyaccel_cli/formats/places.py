"""Where everything hangs: memory nodes, roots, bridges, and the devices and network cards on them. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from anyaccel.device import Device
from anyaccel.inventory import Inventory
from anyaccel.pci import address_key
from anyaccel.topology import FabricNode, Nic, PciPath
from anyaccel_cli.facts import numa_node_of

__all__ = ["Bridge", "Function", "NumaPlace", "Root", "places_of"]


@dataclass(frozen=True)
class Function:
    """What sits at one PCI address, or a device without one.

    Args: address: None = not on PCI. devices: on it, parts included. also_of: the device that has a further function here.
    """

    address: str | None
    devices: tuple[Device, ...] = ()
    nic: Nic | None = None
    fabric: FabricNode | None = None
    also_of: Device | None = None


@dataclass(frozen=True)
class Bridge:
    """A PCIe bridge or switch port, and what hangs below it."""

    address: str
    bridges: tuple[Bridge, ...] = ()
    functions: tuple[Function, ...] = ()


@dataclass(frozen=True)
class Root:
    """A host bridge. Args: name: `pci0000:16`, None = the machine shows no bridge tree above these functions."""

    name: str | None
    bridges: tuple[Bridge, ...] = ()
    functions: tuple[Function, ...] = ()


@dataclass(frozen=True)
class NumaPlace:
    """Everything near one memory node. Args: number: None = unknown. unplaced: devices that are not on PCI."""

    number: int | None
    roots: tuple[Root, ...] = ()
    unplaced: tuple[Function, ...] = ()


@dataclass
class _Folder:
    """A bridge or root while the tree is made."""

    below: dict[str, _Folder] = field(default_factory=dict)
    functions: list[Function] = field(default_factory=list)

    def bridges(self) -> tuple[Bridge, ...]:
        names = sorted(self.below, key=address_key)
        return tuple(Bridge(n, self.below[n].bridges(), tuple(self.below[n].functions)) for n in names)


def places_of(inventory: Inventory, devices: Sequence[Device] | None = None) -> tuple[NumaPlace, ...]:
    """Give the machine as a tree, memory nodes in order of number, what has an unknown node last.

    Args: devices: to show, None = all. A memory node of the kernel is there even when nothing hangs on it.
    """
    shown = inventory.devices if devices is None else tuple(devices)
    numbers: list[int | None] = [node.number for node in inventory.host.numa_nodes]
    placed = list(_placed(inventory, shown))
    numbers += sorted({node for node, _, _ in placed if node is not None} - set(numbers))
    numbers += [None] if any(node is None for node, _, _ in placed) else []
    return tuple(_numa_place(number, [(p, f) for node, p, f in placed if node == number]) for number in numbers)


def _placed(inventory: Inventory, devices: Sequence[Device]) -> Iterator[tuple[int | None, PciPath | None, Function]]:
    for device in _tops(inventory, devices):
        path = inventory.path_of(device)
        parts = tuple(d for d in devices if d.id == device.id or device.id in inventory.view(d.family).ancestors(d.id))
        address = path.address if path else next(iter(device.pci_addresses), None)
        yield numa_node_of(device, inventory), path, Function(address, parts)
        for further in device.pci_addresses:
            if further != address:
                here = inventory.host.paths.get(further)
                yield numa_node_of(device, inventory), here, Function(further, also_of=device)
    for nic in inventory.host.nics:
        yield nic.path.numa_node, nic.path, Function(nic.path.address, nic=nic)
    for node in inventory.fabric:
        path = inventory.host.paths.get(node.pci_address) if node.pci_address else None
        yield None if path is None else path.numa_node, path, Function(node.pci_address, fabric=node)


def _tops(inventory: Inventory, devices: Sequence[Device]) -> Iterable[Device]:
    """Give the shown devices none of whose ancestors is shown."""
    ids = {device.id for device in devices}
    return (d for d in devices if not ids.intersection(inventory.view(d.family).ancestors(d.id)))


def _numa_place(number: int | None, placed: Sequence[tuple[PciPath | None, Function]]) -> NumaPlace:
    roots: dict[str | None, _Folder] = {}
    unplaced = []
    for path, function in placed:
        if function.address is None:
            unplaced.append(function)
            continue
        folder = roots.setdefault(None if path is None else path.root, _Folder())
        for bridge in () if path is None else path.bridges:
            folder = folder.below.setdefault(bridge, _Folder())
        _enter(folder.functions, function)
    for folder in roots.values():
        _sort(folder)
    names = sorted(roots, key=lambda name: (name is None, name or ""))
    made = tuple(Root(name, roots[name].bridges(), tuple(roots[name].functions)) for name in names)
    return NumaPlace(number, made, tuple(unplaced))


def _enter(functions: list[Function], function: Function) -> None:
    """Add a function; devices that share an address share one entry."""
    for place, known in enumerate(functions):
        if known.address == function.address and known.devices and function.devices:
            functions[place] = replace(known, devices=(*known.devices, *function.devices))
            return
    functions.append(function)


def _sort(folder: _Folder) -> None:
    folder.functions.sort(key=lambda function: address_key(function.address or ""))
    for below in folder.below.values():
        _sort(below)
