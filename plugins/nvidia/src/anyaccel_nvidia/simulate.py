"""Imaginary NVIDIA machines: PCI functions, /proc/driver/nvidia, device files, and the driver's answers to go with them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from anyaccel.files import NodeFact
from anyaccel.frozen import FrozenMap
from anyaccel.machine_description import (
    CardDescription,
    FaultDescription,
    MachineDescription,
    SimulatedFamily,
    SimulatedFunction,
)
from anyaccel.pci import address_key, normal_address
from anyaccel_nvidia.declaration import DRIVER, FAMILY, VENDOR_ID
from anyaccel_nvidia.simulated_cards import SimulatedCard, card_minors, is_denied
from anyaccel_nvidia.simulated_models import MODELS, SWITCH_MODELS, SimulatedModel
from anyaccel_nvidia.simulated_nvml import metrics_answer, nvml_answer
from anyaccel_nvidia.simulated_options import check_description

__all__ = ["simulate_family"]

_CONTROL_NODES = {"/dev/nvidiactl": (195, 255), "/dev/nvidia-uvm": (510, 0), "/dev/nvidia-uvm-tools": (510, 1)}


def simulate_family(description: MachineDescription) -> SimulatedFamily:
    """Make this family's part of an imaginary machine.

    Raises: RecordingError for a model, option or fault it does not know.
    """
    options = description.family_options(FAMILY)
    check_description(description)
    cards = tuple(_cards(description))
    boundary = description.host.boundary
    files: dict[str, str] = {}
    nodes: dict[str, NodeFact] = {}
    if boundary != "wsl" and any(card.description.address for card in cards):
        files.update(_driver_files(cards, options))
        nodes.update(_nodes(cards))
    if boundary == "wsl":
        files["/usr/lib/wsl/lib/libnvidia-ml.so.1"] = ""
    if "board_chip" in options:
        files.update(_board_files(options))
        nodes.update({path: NodeFact(0o666, "0", "video", 505, 0) for path in ("/dev/nvhost-gpu", "/dev/nvmap")})
    return SimulatedFamily(
        functions=() if boundary == "wsl" else (*_card_functions(cards), *_switch_functions(description)),
        files=FrozenMap(files),
        nodes=FrozenMap(nodes),
        answers=FrozenMap(
            {"nvml": nvml_answer(description, cards), "nvml-metrics": metrics_answer(description, cards)}
        ),
    )


def _cards(description: MachineDescription) -> Iterator[SimulatedCard]:
    """Give the GPUs in PCI order with everything decided that files and answers must agree on."""
    described = [card for card in description.cards_of(FAMILY) if card.model in MODELS]
    described.sort(key=lambda card: address_key(card.address or "") if card.address else (1 << 41, 0, 0, 0))
    minors = card_minors(described)
    for position, card in enumerate(described):
        node = f"/dev/nvidia{minors[position]}"
        faults = tuple(
            fault
            for fault in description.faults
            if _concerns(fault, card, node) and (fault.kind != "no-permission" or is_denied(fault, description))
        )
        uuid = str(card.options.get("uuid") or _uuid(description.name, card, position))
        yield SimulatedCard(card, MODELS[card.model], uuid, minors[position], faults)


def _concerns(fault: FaultDescription, card: CardDescription, node: str) -> bool:
    if "path" in fault.options:
        return bool(fault.options["path"] == node)
    return fault.plugin == FAMILY if fault.card is None else normal_address(fault.card) == card.address


def _uuid(machine: str, card: CardDescription, position: int) -> str:
    digits = hashlib.sha256(f"{machine} {card.address} {position}".encode()).hexdigest()
    return f"GPU-{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:32]}"


def _card_functions(cards: tuple[SimulatedCard, ...]) -> Iterator[SimulatedFunction]:
    for card in cards:
        if card.description.address is not None:
            yield _function(card.description, card.model)


def _function(card: CardDescription, model: SimulatedModel) -> SimulatedFunction:
    return SimulatedFunction(
        address=card.address or "",
        vendor_id=VENDOR_ID,
        device_id=model.device_id,
        class_code=model.class_code,
        parent=card.parent,
        numa_node=card.numa_node,
        driver=DRIVER if card.driver == "default" else card.driver,
        subsystem_vendor_id=VENDOR_ID,
        subsystem_id=model.subsystem_id,
        speed_gts=model.speed_gts,
        width=model.max_width,
        max_speed_gts=model.speed_gts,
        max_width=model.max_width,
        files=FrozenMap({"power/runtime_status": str(card.options.get("runtime_status", "active"))}),
    )


def _switch_functions(description: MachineDescription) -> Iterator[SimulatedFunction]:
    for card in description.cards_of(FAMILY):
        if card.model in SWITCH_MODELS:
            switch = SWITCH_MODELS[card.model]
            yield SimulatedFunction(
                address=card.address or "",
                vendor_id=VENDOR_ID,
                device_id=switch.device_id,
                class_code="068000",
                parent=card.parent,
                numa_node=card.numa_node,
                driver="nvidia-nvswitch",
                subsystem_vendor_id=VENDOR_ID,
                subsystem_id=switch.subsystem_id,
            )


def _driver_files(cards: tuple[SimulatedCard, ...], options: Mapping[str, Any]) -> dict[str, str]:
    version = str(options.get("driver_version", "550.163.01"))
    is_open = options.get("flavour", "open") == "open"
    kind = "Open Kernel Module for x86_64" if is_open else "x86_64 Kernel Module"
    files = {
        "/proc/driver/nvidia/version": f"NVRM version: NVIDIA UNIX {kind}  {version}  Release Build\nGCC version:  13.3.0\n",
        "/sys/module/nvidia/version": f"{version}\n",
    }
    for card in cards:
        if card.is_bound:
            files.update(_proc_files(card))
    return files


def _proc_files(card: SimulatedCard) -> dict[str, str]:
    address = card.description.address
    folder = f"/proc/driver/nvidia/gpus/{address}"
    files = {
        f"{folder}/information": (
            f"Model: \t\t {card.model.name}\nIRQ:   \t\t {128 + card.minor}\nGPU UUID: \t {card.proc_uuid}\n"
            f"Video BIOS: \t 96.00.74.00.1c\nBus Type: \t PCIe\nDMA Size: \t 52 bits\nDMA Mask: \t 0xfffffffffffff\n"
            f"Bus Location: \t {address}\nDevice Minor: \t {card.minor}\n"
            f"GPU Excluded:\t {'Yes' if card.is_excluded else 'No'}\n"
        ),
        f"{folder}/numa_status": "Node:      -1\nStatus:    disabled\n",
    }
    capabilities = f"/proc/driver/nvidia/capabilities/gpu{card.minor}/mig"
    for instance in card.instances:
        base = f"{capabilities}/gi{instance.gi}"
        for path, minor in ((f"{base}/access", instance.gi_node), (f"{base}/ci{instance.ci}/access", instance.ci_node)):
            files[path] = f"DeviceFileMinor: {minor}\nDeviceFileMode: 292\nDeviceFileModify: 1\n"
    return files


def _nodes(cards: tuple[SimulatedCard, ...]) -> dict[str, NodeFact]:
    nodes = {path: NodeFact(0o666, "0", "root", *numbers) for path, numbers in _CONTROL_NODES.items()}
    for card in cards:
        if card.is_bound:
            nodes[f"/dev/nvidia{card.minor}"] = NodeFact(0o666, "0", "root", 195, card.minor)
            for instance in card.instances:
                for minor in (instance.gi_node, instance.ci_node):
                    nodes[f"/dev/nvidia-caps/nvidia-cap{minor}"] = NodeFact(0o444, "0", "root", 509, minor)
    return nodes


def _board_files(options: Mapping[str, Any]) -> dict[str, str]:
    board = str(options.get("board_name", "NVIDIA Jetson AGX Orin Developer Kit"))
    return {
        "/proc/device-tree/compatible": f"nvidia,p3737-0000+p3701-0000\0nvidia,{options['board_chip']}\0",
        "/proc/device-tree/model": f"{board}\0",
    }
