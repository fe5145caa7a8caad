"""What anyaccel answers about a machine, and the claims every machine shares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from anyaccel.device import Device
from anyaccel.discovery import discover
from anyaccel.inventory import Inventory, OutcomeStatus
from anyaccel.machine import Machine
from anyaccel.registry import Registry
from anyaccel_conformance.captures.claims import Claim, claim_each

__all__ = ["Looker", "address_claims", "by_address", "count_claim", "health_claim", "id_of"]


@dataclass(frozen=True)
class Looker:
    """Runs discovery with one set of plugins, in this process: the machines looked at are files."""

    registry: Registry
    timeout_seconds: float = 60.0

    def look(self, machine: Machine) -> Inventory:
        """Give the inventory of a machine."""
        return discover(machine, self.registry, timeout_seconds=self.timeout_seconds, isolate=False)

    def knows(self, family: str) -> bool:
        """Whether the plugin of a family is there."""
        return any(plugin.key == family for plugin in self.registry.plugins)


def health_claim(inventory: Inventory) -> Claim:
    """Claim that no plugin broke and no two contradict each other on this machine."""
    broken = [f"{o.plugin}: {o.reason}" for o in inventory.outcomes if o.status is OutcomeStatus.BROKEN]
    return Claim("sound plugins", "the machine", [], [*broken, *inventory.conflicts])


def count_claim(inventory: Inventory, family: str, said: int) -> Claim:
    """Claim how many whole devices of a family there are."""
    return Claim("count", family, said, len(inventory.view(family).roots))


def address_claims(said: Iterable[str], found: Iterable[str]) -> Iterable[Claim]:
    """Claim that exactly these PCI addresses hold devices."""
    return claim_each("address", dict.fromkeys(said, True), dict.fromkeys(found, True))


def by_address(inventory: Inventory, families: Iterable[str] | None = None) -> Mapping[str, Device]:
    """Give every whole device by its first PCI address."""
    wanted = None if families is None else frozenset(families)
    roots = (device for view in inventory.views if wanted is None or view.family in wanted for device in view.roots)
    return {device.pci_addresses[0]: device for device in roots if device.pci_addresses}


def id_of(vendor: int | None, device: int | None) -> str | None:
    """Write PCI ids as devices carry them, None when one is unknown."""
    return None if vendor is None or device is None else f"{vendor:04x}:{device:04x}"
