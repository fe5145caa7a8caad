"""Parts of this family by PCI id, and how the cards of one box are wired.

Sources: id tables of the habanalabs driver and of Intel's DRA driver; wiring from the Gaudi documentation, "Server design" and
"Network configuration": on OAM boxes every module has the same number of Ethernet ports to each other one, PCIe cards are joined
in groups of four by a top board. 1da3:1030 is a Gaudi2 to one vendor program and a Gaudi3 to another, so it has no name here.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["MODELS", "VENDOR_ID", "Model", "model_of_id", "model_of_name"]

VENDOR_ID = 0x1DA3


@dataclass(frozen=True)
class Model:
    """One part.

    Args: key: our word in machine descriptions. ports: Ethernet ports a card has. ports_a_pair: of them to each other card of the
        box, None = unknown. port_gbits: speed of a port. group: cards that are joined, None = nothing is known of a wiring.
    """

    name: str
    key: str
    device_ids: tuple[int, ...]
    ports: int = 0
    ports_a_pair: int | None = None
    port_gbits: int | None = None
    group: int | None = None

    @property
    def bytes_a_pair(self) -> int | None:
        """Bytes per second, one direction, between two cards of a box."""
        if self.ports_a_pair is None or self.port_gbits is None:
            return None
        return self.ports_a_pair * self.port_gbits * 1_000_000_000 // 8


MODELS = (
    Model("Goya HL-1000", "goya", (0x0001,)),
    Model("Greco", "greco", (0x0030,)),
    Model("Gaudi", "gaudi1", (0x1000, 0x1001, 0x1010, 0x1011), 10, 1, 100, 8),
    Model("Gaudi2", "gaudi2", (0x1020,), 24, 3, 100, 8),
    Model("Gaudi3", "gaudi3", (0x1060, 0x1061, 0x1062), 24, 3, 200, 8),
    Model("Gaudi3 PCIe", "gaudi3-pcie", (0x1063,), 24, None, 200, 4),
)


def model_of_id(device_id: int | None) -> Model | None:
    """Give the part of a PCI device id."""
    return next((model for model in MODELS if device_id in model.device_ids), None)


def model_of_name(name: str | None) -> Model | None:
    """Give the part of a product name."""
    return next((model for model in MODELS if model.name == name), None)
