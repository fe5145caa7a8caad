"""What a machine holds: every family's devices, how they are connected, what is visible, and why the rest is not there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING

from anyaccel.device import Device, FamilyView
from anyaccel.frozen import FrozenMap
from anyaccel.machine import MachineKind
from anyaccel.topology import FabricNode, HostParts, Link, PairLevel, PciPath, pci_level

if TYPE_CHECKING:
    from anyaccel.visibility import Resolution

__all__ = ["Inventory", "OutcomeStatus", "PluginOutcome", "UnclaimedHardware", "generation_of"]


class OutcomeStatus(str, Enum):
    """What came of one plugin."""

    FOUND = "found"
    NOTHING = "nothing"
    BROKEN = "broken"
    DISABLED = "disabled"


@dataclass(frozen=True)
class PluginOutcome:
    """What came of one plugin.

    Args: plugin: key. distribution, version: where it came from, None = handed in. status: found, nothing, broken or
        disabled; a plugin may have found devices and be broken in a later step. reason: why nothing, or what broke.
        hint: what to do. hook: where it broke. code: error code. requirement: the rule it broke. device_count: rows.
    """

    plugin: str
    status: OutcomeStatus
    distribution: str | None = None
    version: str | None = None
    reason: str | None = None
    hint: str | None = None
    hook: str | None = None
    code: str | None = None
    requirement: str | None = None
    device_count: int = 0


@dataclass(frozen=True)
class UnclaimedHardware:
    """Hardware that looks like an accelerator and belongs to no loaded plugin.

    Args: name: model when known. plugin: key of the plugin that would know it, None = none we know of.
        reason: why it is here. hint: the command that helps.
    """

    location: str
    name: str | None
    plugin: str | None
    reason: str
    hint: str | None = None


@dataclass(frozen=True)
class Inventory:
    """Everything found on one machine, frozen and ordered.

    Args: views: one a family, in order of key. resolutions: what the machine's environment leaves of each.
        outcomes: one a plugin. host: NUMA nodes, CPU lists, network cards. fabric: switches and remote ends.
        unclaimed: hardware without a plugin. conflicts, notes: sentences. kind, name: where it comes from.
    """

    views: tuple[FamilyView, ...] = ()
    resolutions: FrozenMap[Resolution] = field(default_factory=FrozenMap)
    outcomes: tuple[PluginOutcome, ...] = ()
    host: HostParts = field(default_factory=HostParts)
    fabric: tuple[FabricNode, ...] = ()
    unclaimed: tuple[UnclaimedHardware, ...] = ()
    conflicts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    kind: MachineKind = MachineKind.LIVE
    name: str = ""

    @property
    def devices(self) -> tuple[Device, ...]:
        """Every device of every family, parents before children."""
        return tuple(device for view in self.views for device in view.devices)

    @property
    def links(self) -> tuple[Link, ...]:
        """Every vendor link."""
        return tuple(link for view in self.views for link in view.links)

    @property
    def is_simulated(self) -> bool:
        """Whether the machine is imaginary."""
        return self.kind is MachineKind.SIMULATED

    @property
    def is_complete(self) -> bool:
        """Whether no plugin is broken and no two plugins contradict each other."""
        return not self.conflicts and not any(o.status is OutcomeStatus.BROKEN for o in self.outcomes)

    def view(self, family: str) -> FamilyView:
        """Give one family, empty when it is not here."""
        return self._views.get(family, FamilyView(family=family, boundary=self.host.boundary))

    @cached_property
    def _views(self) -> Mapping[str, FamilyView]:
        return {view.family: view for view in self.views}

    def visible_ordinal(self, device: Device) -> int | None:
        """Give the number a process would use for a device, None when it is hidden or the number is unknown."""
        resolution = self.resolutions.get(device.family)
        return None if resolution is None else resolution.ordinal_of(device.id)

    @cached_property
    def hides_tree(self) -> bool:
        """Whether a virtual machine shows functions without the bridges between them, so that nearness is unknown."""
        if not self.host.boundary.is_vm:
            return False
        seen: set[str] = set()
        for path in self.host.paths.values():
            if seen & set(path.bridges):
                return False
            seen |= set(path.bridges)
        return True

    def path_of(self, device: Device) -> PciPath | None:
        """Give where a device, or the device it is part of, hangs on PCI; None for boards without PCI."""
        node: Device | None = device
        while node is not None:
            for address in node.pci_addresses:
                if address in self.host.paths:
                    return self.host.paths[address]
            node = None if node.parent is None else self.view(node.family).device(node.parent)
        return None

    def pair_level(self, a: Device, b: Device) -> PairLevel:
        """Tell how near two devices are to each other inside the host."""
        if a.id == b.id:
            return PairLevel.SELF
        if self._root_id(a) == self._root_id(b):
            return PairLevel.SAME_PACKAGE
        path_a, path_b = self.path_of(a), self.path_of(b)
        if path_a is not None and path_b is not None:
            if path_a.address == path_b.address:
                return PairLevel.SAME_PACKAGE
            return pci_level(path_a, path_b, hides_tree=self.hides_tree)
        if a.numa_node is None or b.numa_node is None or self.hides_tree:
            return PairLevel.UNKNOWN
        return PairLevel.SAME_NUMA if a.numa_node == b.numa_node else PairLevel.ACROSS_NUMA

    def _root_id(self, device: Device) -> str:
        ancestors = self.view(device.family).ancestors(device.id)
        return ancestors[-1] if ancestors else device.id

    def link_between(self, a: Device, b: Device) -> Link | None:
        """Give the fastest vendor link between two devices or the devices they are part of, None when none is known."""
        ends_a, ends_b = self._with_ancestors(a), self._with_ancestors(b)
        links = [
            link
            for link in self.view(a.family).links
            if (link.a in ends_a and link.b in ends_b) or (link.a in ends_b and link.b in ends_a)
        ]
        return max(links, key=_link_worth, default=None)

    def _with_ancestors(self, device: Device) -> frozenset[str]:
        return frozenset((device.id, *self.view(device.family).ancestors(device.id)))

    def local_cpus(self, device: Device) -> tuple[int, ...] | None:
        """Give the allowed CPUs near a device, sorted; None = unknown; empty = none of the allowed CPUs is near."""
        node = next((n for n in self.host.numa_nodes if n.number == device.numa_node), None)
        if node is None:
            return None
        allowed = self.host.allowed_cpus
        return node.cpus if allowed is None else tuple(cpu for cpu in node.cpus if cpu in allowed)

    @cached_property
    def generation(self) -> str:
        """A digest of what a grant depends on: units, their parents and places. Equal machines have equal digests."""
        return generation_of(self.devices)


def _link_worth(link: Link) -> tuple[int, int]:
    return (link.bytes_per_second_each_way or 0, link.count or 0)


def generation_of(devices: tuple[Device, ...]) -> str:
    """Give the digest of a set of devices: 16 hex digits over ids, parents and uuids."""
    import hashlib
    import json

    facts = [(d.id, d.parent, d.uuid, list(d.pci_addresses)) for d in devices]
    return hashlib.sha256(json.dumps(facts, separators=(",", ":")).encode()).hexdigest()[:16]
