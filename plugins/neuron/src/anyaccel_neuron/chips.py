"""The chips of this family: PCI ids, the driver's words for them, and their NeuronCores.

Sources: device id tables of the kernel driver (aws-neuron/aws-neuron-driver), `/sys/class/neuron_device/*/info/architecture`,
and the Neuron architecture pages of AWS for the number of NeuronCores of each chip.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CHIPS", "VENDOR_ID", "Chip", "chip_of_id", "chip_of_name"]

VENDOR_ID = 0x1D0F
"""Amazon; its network and storage functions have the same vendor id."""


@dataclass(frozen=True)
class Chip:
    """One kind of chip.

    Args: name: product name. key: our word in machine descriptions. device_ids: PCI. words: what the driver's files call it.
        cores: physical NeuronCores. pair: how many of them make a NeuronCore as the runtime counts by default (LNC).
        links: shape of its NeuronLink on a full server, `ring`, `torus` or None.
    """

    name: str
    key: str
    device_ids: tuple[int, ...]
    words: tuple[str, ...]
    cores: int
    pair: int = 1
    links: str = "ring"


CHIPS = (
    Chip("Inferentia", "inf1", (0x7064, 0x7065, 0x7066, 0x7067), ("inferentia", "inferentia1"), 4),
    Chip("Trainium", "trn1", (0x7164,), ("trainium", "trainium1"), 2, links="torus"),
    Chip("Inferentia2", "inf2", (0x7264,), ("inferentia2",), 2),
    Chip("Trainium2", "trn2", (0x7364,), ("trainium2",), 8, pair=2, links="torus"),
    Chip("Trainium3", "trn3", (0x7564, 0x7565), ("trainium3",), 8, pair=2, links="torus"),
)


def chip_of_id(device_id: int | None) -> Chip | None:
    """Give the chip of a PCI device id."""
    return next((chip for chip in CHIPS if device_id in chip.device_ids), None)


def chip_of_name(name: str | None) -> Chip | None:
    """Give the chip of a product name or the driver's word for one, letter case aside."""
    word = (name or "").strip().lower()
    return next((chip for chip in CHIPS if word == chip.name.lower() or word in chip.words), None)
