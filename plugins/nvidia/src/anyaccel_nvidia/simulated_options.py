"""What a description of an imaginary machine may say about this family, and what is said of everything else."""

from __future__ import annotations

from collections.abc import Mapping

from anyaccel.errors import RecordingError
from anyaccel.machine_description import CardDescription, MachineDescription, check_words
from anyaccel.pci import normal_address
from anyaccel_nvidia.declaration import FAMILY
from anyaccel_nvidia.simulated_cards import FAULTS
from anyaccel_nvidia.simulated_models import MODELS, SWITCH_MODELS

__all__ = ["CARD_OPTIONS", "FAMILY_OPTIONS", "FAULT_OPTIONS", "check_description"]

FAMILY_OPTIONS: Mapping[str, str] = {
    "driver_version": "of the kernel module and the library",
    "library_version": "of a library that does not fit, for the fault `driver-mismatch`",
    "cuda_version": "newest CUDA the driver knows, as it counts: 12040 is 12.4",
    "flavour": "of the kernel module: `open` or `proprietary`",
    "wsl_first_copy": "code with which a first library refuses, before WSL's own answers",
    "board_chip": "chip of a board without PCI: `tegra234`",
    "board_name": "name of that board",
}
"""Options of the table `[nvidia]` by name."""

CARD_OPTIONS: Mapping[str, str] = {
    "minor": "number of the device file; default: the position in PCI order",
    "uuid": "stable id; default: made of the machine's name, address and position",
    "runtime_status": "power state word of the kernel: `active`, `suspended`",
    "never_used": "whether /proc shows question marks for the id",
    "driver_numa_node": "the node that the driver names; default: `numa_node`",
    "mig": 'profiles of the MIG instances: `["1g.5gb"]`; `[]` is MIG mode without instances',
    "mig_holes": "whether the driver leaves a slot empty before each MIG instance",
    "mig_pending": "MIG mode after the next reset: 0 or 1",
    "compute_mode": "as nvml.h counts: 0 shared, 1 and 3 one process, 2 prohibited",
    "display_active": "whether it drives a screen",
    "processes": "numbers of the compute processes on it",
    "ecc_uncorrected": "uncorrected memory errors",
    "remapped_rows": "four numbers: corrected, uncorrected, pending, failed",
    "retired_pages": "memory pages retired, on cards before Ampere",
    "retired_pages_pending": "memory pages to retire at the next reset, on cards before Ampere",
    "fabric_cluster": "id of its fabric: 32 hex digits",
    "fabric_clique": "number of its clique in the fabric",
    "fabric_health_mask": "health of its fabric as nvml.h packs it",
    "power_milliwatts": "power draw",
    "temperature_celsius": "temperature",
    "utilization_percent": "how busy it is",
}
"""Options of a card by name; a switch has none."""

FAULT_OPTIONS: Mapping[str, tuple[str, ...]] = {"symbol-missing": ("values",)}
"""Options of faults; the others have none."""

_CARD_KEYS = ("plugin", "model", "address", "parent", "numa_node", "driver")
"""What core reads of a card's table."""


def check_description(description: MachineDescription) -> None:
    """Refuse what nobody would act on. Raises: RecordingError naming the table, the word and the known ones."""
    check_words("option", description.family_options(FAMILY), FAMILY_OPTIONS, "in [nvidia]")
    cards = description.cards_of(FAMILY)
    for position, card in enumerate(cards, start=1):
        _check_card(card, position)
    addresses = {card.address for card in cards}
    for fault in description.faults:
        if fault.plugin == FAMILY:
            check_words("NVIDIA fault", (fault.kind,), FAULTS)
            check_words("option", fault.options, FAULT_OPTIONS.get(fault.kind, ()), f"of fault {fault.kind!r}")
            if fault.card is not None and normal_address(fault.card) not in addresses:
                raise RecordingError(f"fault {fault.kind!r} concerns card {fault.card!r}, which is no NVIDIA card here")


def _check_card(card: CardDescription, position: int) -> None:
    check_words("NVIDIA model", (card.model,), {**MODELS, **SWITCH_MODELS})
    where = card.address or f"number {position} ({card.model!r}, without address)"
    options = CARD_OPTIONS if card.model in MODELS else ()
    check_words("option", card.options, (*_CARD_KEYS, *options), f"of NVIDIA card {where}")
    if card.address is None and (card.model in SWITCH_MODELS or MODELS[card.model].is_on_pci):
        without = ", ".join(sorted(name for name, model in MODELS.items() if not model.is_on_pci))
        raise RecordingError(f"NVIDIA card {where} needs a PCI address (boards without PCI: {without})")
