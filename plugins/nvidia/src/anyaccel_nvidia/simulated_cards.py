"""One imaginary GPU with everything decided on which its files and the driver's answers must agree."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from anyaccel.errors import RecordingError
from anyaccel.machine_description import CardDescription, FaultDescription, MachineDescription
from anyaccel_nvidia.simulated_models import SimulatedModel

__all__ = ["FAULTS", "SimulatedCard", "SimulatedInstance", "card_minors", "is_denied"]

FAULTS = {
    "lost-card": "the driver refuses the card's handle with 15",
    "reset-required": "the driver refuses the card's handle with 16",
    "vanished": "the driver counts one device more than it can find",
    "not-shown": "device rules keep the card back: the driver does not list it",
    "excluded": "the driver was told to leave the card alone",
    "memory-no-permission": "the card's memory is refused with 4, its instances answer",
    "library-missing": "the library is not there",
    "library-hangs": "the library never answers",
    "library-crashes": "the library ends the process",
    "driver-mismatch": "library and kernel module are of different releases",
    "driver-not-loaded": "the library finds no driver",
    "symbol-missing": "the library is too old for the values that the option `values` lists",
    "fabric-not-ready": "the fabric manager has not finished",
}
"""Faults of this family by name."""

_GI_NUMBERS = {"7g": (0,), "4g": (1,), "3g": (2, 1), "2g": (3, 4, 5), "1g": (7, 8, 9, 10, 11, 12, 13)}
"""The GPU instance numbers that the driver gives to each profile, in the order it hands them out."""

_SLICES = 7


@dataclass(frozen=True)
class SimulatedInstance:
    """One MIG device: a compute instance in a GPU instance."""

    index: int
    profile: str
    gi: int
    ci: int
    uuid: str
    gpu_slices: int
    memory_gib: int
    gi_node: int
    ci_node: int


@dataclass(frozen=True)
class SimulatedCard:
    """One imaginary GPU.

    Args: faults: those that concern it.
    """

    description: CardDescription
    model: SimulatedModel
    uuid: str
    minor: int
    faults: tuple[FaultDescription, ...]

    def has_fault(self, *kinds: str) -> bool:
        """Whether one of these faults concerns the card."""
        return any(fault.kind in kinds for fault in self.faults)

    @property
    def is_bound(self) -> bool:
        """Whether NVIDIA's kernel driver holds the card."""
        return self.description.driver == "default" and not self.has_fault("no-driver", "vfio")

    @property
    def is_excluded(self) -> bool:
        """Whether the driver was told to leave the card alone."""
        return self.has_fault("excluded")

    @property
    def is_listed(self) -> bool:
        """Whether the library counts the card."""
        return self.is_bound and not self.has_fault("no-node", "not-shown", "excluded")

    @property
    def proc_uuid(self) -> str:
        """What /proc shows: question marks until the card was used once."""
        is_fresh = bool(self.description.options.get("never_used", False))
        return "GPU-????????-????-????-????-????????????" if is_fresh else self.uuid

    @property
    def is_in_mig_mode(self) -> bool:
        """Whether MIG mode is on."""
        return "mig" in self.description.options

    @cached_property
    def instances(self) -> tuple[SimulatedInstance, ...]:
        """The MIG devices, as the option `mig` lists their profiles (`1g.5gb`)."""
        profiles = self.description.options.get("mig", ())
        step = 2 if self.description.options.get("mig_holes", False) else 1
        used: dict[str, int] = {}
        return tuple(
            self._instance(position * step + step - 1, str(text), used) for position, text in enumerate(profiles)
        )

    def _instance(self, index: int, profile: str, used: dict[str, int]) -> SimulatedInstance:
        match = re.fullmatch(r"([12347]g)\.(\d+)gb", profile)
        if match is None:
            raise RecordingError(f"unknown MIG profile {profile!r} (a profile is written like '1g.5gb')")
        size, memory = match.groups()
        position = used.get(size, 0)
        used[size] = position + 1
        if position >= len(_GI_NUMBERS[size]):
            raise RecordingError(f"too many MIG instances of {profile!r} on {self.description.address}")
        gi = _GI_NUMBERS[size][position]
        node = 3 + 135 * self.minor + 9 * gi
        return SimulatedInstance(
            index, profile, gi, 0, self._instance_uuid(gi), int(size[0]), int(memory), node, node + 1
        )

    def _instance_uuid(self, gi: int) -> str:
        digits = hashlib.sha256(f"{self.uuid} {gi}".encode()).hexdigest()
        return f"MIG-{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:32]}"

    def multiprocessors(self, instance: SimulatedInstance) -> int:
        """Give the share of multiprocessors that an instance has."""
        return self.model.multiprocessors // (_SLICES + 1) * instance.gpu_slices


def is_denied(fault: FaultDescription, description: MachineDescription) -> bool:
    """Whether the fault `no-permission` keeps the imaginary user out, who may be in the group that it names."""
    user = description.host.user
    return user.uid != 0 and fault.options.get("group", "root") not in user.groups


def card_minors(cards: Sequence[CardDescription]) -> list[int]:
    """Give the device file number of each card: the option `minor`, else its position."""
    return [int(card.options.get("minor", position)) for position, card in enumerate(cards)]
