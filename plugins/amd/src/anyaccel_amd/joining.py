"""Joining what PCI, KFD and DRM tell of one machine into physical GPUs. The PCI address is the key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from anyaccel.machine import Machine
from anyaccel.pci import PciFunction, address_key, match_functions
from anyaccel_amd.declaration import MATCHES
from anyaccel_amd.kfd import KfdNode, KfdTopology
from anyaccel_amd.pci_names import DIES
from anyaccel_amd.sysfs import read_drm_cards

__all__ = ["Gpu", "hive_sizes", "is_part", "join_sources"]


@dataclass(frozen=True)
class Gpu:
    """One physical GPU and the sources that know it.

    Args: key: what its id ends with. function: its PCI function, None where only KFD knows it. nodes: its KFD nodes, in the
        runtime's order. driver: bound driver as its DRM card tells it. card: DRM card number from the class folder.
        is_domain_assumed: the kernel told no PCI domain and nothing else did.
    """

    key: str
    address: str | None
    function: PciFunction | None = None
    nodes: tuple[KfdNode, ...] = ()
    driver: str | None = None
    card: int | None = None
    is_domain_assumed: bool = False

    @property
    def device_id(self) -> int | None:
        """PCI device id, from whichever source has one."""
        if self.function is not None and self.function.device_id is not None and not self.function.is_dead:
            return self.function.device_id
        return next((node.properties.get("device_id") for node in self.nodes), None)


def join_sources(machine: Machine, topology: KfdTopology) -> tuple[Gpu, ...]:
    """Give every physical GPU that some source knows, sorted by PCI address."""
    found = [Gpu(f.address, f.address, f) for f, _ in match_functions(machine, MATCHES)]
    cards = read_drm_cards(machine, [gpu.key for gpu in found])
    for card in cards:
        address = card.function.address or None
        found.append(Gpu(address or f"card{card.number}", address, card.function, (), card.driver, card.number))
    gpus, orphans = _with_nodes(found, topology.gpus)
    return tuple(sorted((*gpus, *_from_kfd_alone(orphans)), key=lambda gpu: (address_key(gpu.address or ""), gpu.key)))


def _with_nodes(gpus: Sequence[Gpu], nodes: Iterable[KfdNode]) -> tuple[list[Gpu], list[KfdNode]]:
    owned: dict[str, list[KfdNode]] = {}
    orphans = []
    for node in nodes:
        owner = _owner(gpus, node)
        if owner is None:
            orphans.append(node)
        else:
            owned.setdefault(owner.key, []).append(node)
    return [replace(gpu, nodes=tuple(owned.get(gpu.key, ()))) for gpu in gpus], orphans


def _owner(gpus: Iterable[Gpu], node: KfdNode) -> Gpu | None:
    """Give the GPU in a node's slot: the function with its function bits, or the first, as these may be a partition number."""
    here = [gpu for gpu in gpus if gpu.address is not None and _is_in_slot(gpu.address, node)]
    exact = (gpu for gpu in here if address_key(gpu.address or "")[3] == node.low_bits)
    return next(exact, next(iter(here), None))


def _is_in_slot(address: str, node: KfdNode) -> bool:
    domain, bus, device, _ = address_key(address)
    return (bus, device) == node.slot and node.domain in (None, domain)


def _from_kfd_alone(nodes: Sequence[KfdNode]) -> Iterable[Gpu]:
    """Make GPUs of nodes that no PCI function or DRM card explains: partitions of one GPU share slot and unique id."""
    groups: dict[tuple[int, tuple[int, int], int | str], list[KfdNode]] = {}
    for node in nodes:
        own = node.unique_id or f"function {node.low_bits}"
        groups.setdefault((node.domain or 0, node.slot, own), []).append(node)
    addresses = {key: _address(key, group) for key, group in groups.items()}
    for key, group in groups.items():
        address = addresses[key]
        is_shared = list(addresses.values()).count(address) > 1
        name = f"{address}+kfd{group[0].number}" if is_shared else address
        yield Gpu(name, address, None, tuple(group), is_domain_assumed=group[0].domain is None)


def _address(key: tuple[int, tuple[int, int], int | str], group: Sequence[KfdNode]) -> str:
    domain, (bus, device), _ = key
    function = 0 if len(group) > 1 or is_part(group[0]) else group[0].low_bits
    return f"{domain:04x}:{bus:02x}:{device:02x}.{function}"


def is_part(node: KfdNode) -> bool:
    """Whether a node is known to hold fewer compute dies than its GPU has."""
    dies = DIES.get(node.properties.get("device_id", 0))
    mine = node.properties.get("num_xcc")
    return dies is not None and mine is not None and 0 < mine < dies


def hive_sizes(gpus: Iterable[Gpu], hives: Mapping[str, int | None]) -> Mapping[int, int]:
    """Count the GPUs of each hive. Args: hives: hive number by key of the GPU."""
    counts: dict[int, int] = {}
    for gpu in gpus:
        hive = hives.get(gpu.key)
        if hive is not None:
            counts[hive] = counts.get(hive, 0) + 1
    return counts
