"""What `topology --json` prints: devices, memory nodes, network cards, links, and how near every two devices are. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from anyaccel.device import Device
from anyaccel.inventory import Inventory
from anyaccel.topology import Nic, PcieLink
from anyaccel_cli.documents import as_json, machine_document, schema_of
from anyaccel_cli.facts import main_number, numa_node_of
from anyaccel_cli.formats.connections import Connections, MatrixCell
from anyaccel_cli.formats.words import link_word

__all__ = ["topology_document"]

Json = dict[str, Any]


def topology_document(inventory: Inventory, devices: Sequence[Device]) -> Json:
    """Give how devices are connected, to each other and to the host.

    Args: devices: which of the inventory's devices are asked about; links of others are left out.
    """
    ids = {device.id for device in devices}
    parts = {i for d in inventory.devices for i in (d.id,) if ids & {i, *inventory.view(d.family).ancestors(i)}}
    others = {device.id for device in inventory.devices} - parts
    return {
        "schema": schema_of("accel-topology"),
        "machine": machine_document(inventory),
        "devices": [_device(device, inventory) for device in devices],
        "numa_nodes": as_json(inventory.host.numa_nodes),
        "allowed_cpus": as_json(inventory.host.allowed_cpus),
        "nics": [_nic(nic) for nic in inventory.host.nics],
        "fabric": as_json(inventory.fabric),
        "links": [as_json(link) for link in inventory.links if not others & {link.a, link.b}],
        "pairs": _pairs(inventory, devices),
        "plugins": as_json(inventory.outcomes),
        "conflicts": as_json(inventory.conflicts),
        "notes": as_json(inventory.notes),
    }


def _device(device: Device, inventory: Inventory) -> Json:
    path = inventory.path_of(device)
    link = None if path is None else inventory.host.pcie_links.get(path.address)
    return {
        "id": device.id,
        "vendor": device.family,
        "number": main_number(device),
        "level": device.level.value,
        "model": device.model,
        "state": device.state.value,
        "numa_node": numa_node_of(device, inventory),
        "local_cpus": as_json(inventory.local_cpus(device)),
        "pci_path": as_json(path),
        "pcie_link": None if link is None else _pcie_link(link),
        "places": as_json(device.places),
        "unknown": as_json(device.unknown),
    }


def _pcie_link(link: PcieLink) -> Json:
    return {
        **as_json(link),
        "bytes_per_second_each_way": link.bytes_per_second_each_way,
        "max_bytes_per_second_each_way": link.max_bytes_per_second_each_way,
    }


def _nic(nic: Nic) -> Json:
    return {"id": nic.id, "kind": nic.kind, "pci_path": as_json(nic.path)}


def _pairs(inventory: Inventory, devices: Sequence[Device]) -> list[Json]:
    """Give the cells of the matrix above its diagonal."""
    ends: tuple[Device | Nic, ...] = (*devices, *inventory.host.nics)
    connections = Connections(inventory, ends)
    return [_pair(ends[a], ends[b], connections.cell(a, b)) for a, b in combinations(range(len(ends)), 2)]


def _why_no_link(a: Device | Nic, b: Device | Nic) -> str | None:
    if isinstance(a, Device) and isinstance(b, Device) and a.family != b.family:
        return f"nobody tells of links between {a.family} and {b.family}: peer access is unknown"
    return None


def _pair(a: Device | Nic, b: Device | Nic, cell: MatrixCell) -> Json:
    link = cell.link
    return {
        "a": a.id,
        "b": b.id,
        "pcie_level": cell.level.value,
        "link": None if link is None else link_word(link),
        "bytes_per_second_each_way": None if link is None else link.bytes_per_second_each_way,
        "hops": None if link is None else link.hops,
        "reason": _why_no_link(a, b) if link is None else link.reason,
    }
