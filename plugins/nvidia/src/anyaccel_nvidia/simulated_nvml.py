"""What the library would answer on an imaginary machine, in the form that `_driver` gives it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from anyaccel.machine_description import FaultDescription, LinkDescription, MachineDescription
from anyaccel_nvidia.declaration import FAMILY, VENDOR_ID
from anyaccel_nvidia.replies import LOST, NO_PERMISSION, NOT_FOUND, NOT_SUPPORTED, RESET_REQUIRED
from anyaccel_nvidia.simulated_cards import SimulatedCard, SimulatedInstance, is_denied
from anyaccel_nvidia.simulated_models import MIB, SWITCH_MODELS

__all__ = ["metrics_answer", "nvml_answer"]

Json = dict[str, Any]

_DRIVER_VERSION = "550.163.01"
_OTHER_VERSION = "570.86.15"
_CUDA_VERSION = 12040
_LIBRARY = "libnvidia-ml.so.1"
_CONTROL_NODE = "/dev/nvidiactl"
_WSL_LIBRARY = "/usr/lib/wsl/lib/libnvidia-ml.so.1"
_RESERVED_BYTES = 551 * MIB
_SYMBOL_MISSING = 13
_REMOTE_GPU, _REMOTE_SWITCH = 0, 2
_FABRIC_COMPLETED, _FABRIC_IN_PROGRESS = 3, 2
_PEER_OK, _PEER_GPU_NOT_SUPPORTED = 0, 2
_REFUSALS = {
    "library-missing": (
        "library libnvidia-ml.so.1 was not found",
        "install the driver's user libraries; in a container NVIDIA_DRIVER_CAPABILITIES must hold utility",
    ),
    "driver-not-loaded": ("the library finds no loaded driver", "sudo modprobe nvidia"),
    "driver-mismatch": (
        "driver version mismatch: the library is {library}",
        "reload the nvidia kernel modules or reboot, so that both are of one release",
    ),
}
_ACTED_OUT = {"library-hangs": "hang", "library-crashes": "crash"}


def nvml_answer(description: MachineDescription, cards: Sequence[SimulatedCard]) -> Json:
    """Give the answer to the topic `nvml`."""
    refusal = _refusal(description)
    if refusal is not None:
        return refusal
    options = description.family_options(FAMILY)
    version = str(options.get("driver_version", _DRIVER_VERSION))
    listed = [card for card in cards if card.is_listed]
    devices = [_device(description, index, card, listed) for index, card in enumerate(listed)]
    if description.faults_of("vanished"):
        devices.append({"index": len(devices), "code": NOT_FOUND})
    return {
        "format": 1,
        "library": _library(options, version),
        "driver_version": version,
        "cuda_version": options.get("cuda_version", _CUDA_VERSION),
        "devices": devices,
        "pairs": list(_pairs(listed)),
    }


def metrics_answer(description: MachineDescription, cards: Sequence[SimulatedCard]) -> Json:
    """Give the answer to the topic `nvml-metrics`."""
    return _refusal(description) or {
        "format": 1,
        "devices": [_sensors(card) for card in cards if card.is_listed],
    }


def _refusal(description: MachineDescription) -> Json | None:
    """Give the answer that stands for none, or an acted-out fault; None when the library answers."""
    kind = next((fault.kind for fault in description.faults if fault.kind in {*_REFUSALS, *_ACTED_OUT}), None)
    if kind is None and any(_denies_all(fault, description) for fault in description.faults):
        return {"unavailable": "this user may not ask the driver", "reason_code": "no-permission"}
    if kind is None:
        return None
    if kind in _ACTED_OUT:
        return {"fault": _ACTED_OUT[kind]}
    message, hint = _REFUSALS[kind]
    library = description.family_options(FAMILY).get("library_version", _OTHER_VERSION)
    return {"unavailable": message.format(library=library), "reason_code": kind, "hint": hint}


def _denies_all(fault: FaultDescription, description: MachineDescription) -> bool:
    is_control = fault.kind == "no-permission" and fault.options.get("path") == _CONTROL_NODE
    return is_control and is_denied(fault, description)


def _library(options: Mapping[str, Any], version: str) -> Json:
    skipped = [{"name": _LIBRARY, "code": int(options["wsl_first_copy"])}] if "wsl_first_copy" in options else []
    return {"name": _WSL_LIBRARY if skipped else _LIBRARY, "skipped": skipped, "version": f"12.{version}"}


class _Refused(int):
    """A return code in the place of a value."""


_NOT_SUPPORTED = _Refused(NOT_SUPPORTED)


def _answered(values: Mapping[str, Any]) -> Json:
    """Put refused values under `codes`, as the collecting code does."""
    codes = {name: int(value) for name, value in values.items() if isinstance(value, _Refused)}
    kept = {name: value for name, value in values.items() if not isinstance(value, _Refused)}
    return {**kept, **({"codes": codes} if codes else {})}


def _refusing_code(card: SimulatedCard) -> int | None:
    if card.has_fault("lost-card", "dead-link"):
        return LOST
    if card.has_fault("no-permission"):
        return NO_PERMISSION
    return RESET_REQUIRED if card.has_fault("reset-required") else None


def _device(description: MachineDescription, index: int, card: SimulatedCard, listed: Sequence[SimulatedCard]) -> Json:
    code = _refusing_code(card)
    if code is not None:
        return {"index": index, "code": code}
    values = {**_identity(card), **_abilities(card), **_health(card)}
    missing = {
        str(name) for fault in description.faults_of("symbol-missing") for name in fault.options.get("values", ())
    }
    values.update({name: _Refused(_SYMBOL_MISSING) for name in missing & set(values)})
    return {
        "index": index,
        **_answered(values),
        "partitions": [_partition(card, instance) for instance in card.instances],
        "nvlinks": list(_nvlinks(description, card, listed)),
        "fabric": _fabric(card),
    }


def _identity(card: SimulatedCard) -> Json:
    address, options = card.description.address, card.description.options
    has_memory = card.model.memory_bytes is not None
    memory = card.model.memory_bytes if has_memory else _NOT_SUPPORTED
    node = options.get("driver_numa_node", card.description.numa_node)
    return {
        "name": card.model.name,
        "uuid": card.uuid,
        "minor": card.minor if address is not None else _NOT_SUPPORTED,
        "pci_address": address if address is not None else _NOT_SUPPORTED,
        "pci_id": f"{VENDOR_ID:04x}:{card.model.device_id:04x}" if address is not None else _NOT_SUPPORTED,
        "memory_bytes": _Refused(NO_PERMISSION) if card.has_fault("memory-no-permission") else memory,
        "memory_reserved_bytes": _reserved(card),
        "numa_nodes": [] if node is None else [node],
        "memory_numa_node": _NOT_SUPPORTED,
    }


def _reserved(card: SimulatedCard) -> int:
    if card.has_fault("memory-no-permission"):
        return _Refused(NO_PERMISSION)
    return _RESERVED_BYTES if card.model.memory_bytes is not None else _NOT_SUPPORTED


def _abilities(card: SimulatedCard) -> Json:
    options, is_on = card.description.options, int(card.is_in_mig_mode)
    return {
        "compute_capability": list(card.model.compute_capability),
        "cores": card.model.cores,
        "sm_clock_mhz": card.model.sm_clock_mhz,
        "compute_mode": int(options.get("compute_mode", 0)),
        "display_active": int(options.get("display_active", False)),
        "mig_mode": [is_on, int(options.get("mig_pending", is_on))] if card.model.has_mig else _NOT_SUPPORTED,
    }


def _health(card: SimulatedCard) -> Json:
    options, has_ecc = card.description.options, card.model.has_ecc
    has_remapping = has_ecc and card.model.compute_capability >= (8, 0)
    has_retirement = has_ecc and not has_remapping
    return {
        "ecc_mode": [1, 1] if has_ecc else _NOT_SUPPORTED,
        "ecc_uncorrected": int(options.get("ecc_uncorrected", 0)) if has_ecc else _NOT_SUPPORTED,
        "ecc_uncorrected_lifetime": int(options.get("ecc_uncorrected", 0)) if has_ecc else _NOT_SUPPORTED,
        "remapped_rows": list(options.get("remapped_rows", (0, 0, 0, 0))) if has_remapping else _NOT_SUPPORTED,
        "retired_pages": int(options.get("retired_pages", 0)) if has_retirement else _NOT_SUPPORTED,
        "retired_pages_pending": int(options.get("retired_pages_pending", 0)) if has_retirement else _NOT_SUPPORTED,
        "processes": sorted(int(pid) for pid in options.get("processes", ())),
    }


def _partition(card: SimulatedCard, instance: SimulatedInstance) -> Json:
    return {
        "index": instance.index,
        "name": f"{card.model.name} MIG {instance.profile}",
        "uuid": instance.uuid,
        "gpu_instance": instance.gi,
        "compute_instance": instance.ci,
        "memory_bytes": instance.memory_gib * 1024 * MIB - 128 * MIB,
        "multiprocessors": card.multiprocessors(instance),
        "gpu_slices": instance.gpu_slices,
        "compute_slices": instance.gpu_slices,
    }


def _nvlinks(description: MachineDescription, card: SimulatedCard, listed: Sequence[SimulatedCard]) -> Iterator[Json]:
    ends = _link_ends(description, card, listed)
    for link in range(card.model.nvlink_count if card.model.nvlink_version is not None else 0):
        end = ends[link] if link < len(ends) else None
        values = {
            "state": int(end is not None),
            "version": card.model.nvlink_version,
            "remote_type": _NOT_SUPPORTED if end is None else end[0],
            "remote_address": _NOT_SUPPORTED if end is None else end[1],
            "speed_mbps": None if end is None else card.model.nvlink_mbps,
        }
        yield {"link": link, **_answered(values)}


def _link_ends(
    description: MachineDescription, card: SimulatedCard, listed: Sequence[SimulatedCard]
) -> list[tuple[int, str]]:
    """Give type and PCI address of what is at the far end of each link that is up."""
    switches = [c.address for c in description.cards_of(FAMILY) if c.model in SWITCH_MODELS and c.address is not None]
    if switches:
        return [(_REMOTE_SWITCH, switches[link % len(switches)]) for link in range(card.model.nvlink_count)]
    ends: list[tuple[int, str]] = []
    for link in description.links:
        far = _far_end(link, card)
        if far is not None and any(other.description.address == far for other in listed):
            ends += [(_REMOTE_GPU, far)] * link.count
    return ends


def _far_end(link: LinkDescription, card: SimulatedCard) -> str | None:
    if link.kind != "nvlink" or card.description.address not in (link.a, link.b):
        return None
    return link.b if link.a == card.description.address else link.a


def _fabric(card: SimulatedCard) -> Json:
    if not card.model.has_fabric:
        return {"codes": {"read": NOT_SUPPORTED}}
    options = card.description.options
    return {
        "cluster": str(options.get("fabric_cluster", "0" * 32)),
        "status": 0,
        "clique": int(options.get("fabric_clique", 0)),
        "state": _FABRIC_IN_PROGRESS if card.has_fault("fabric-not-ready") else _FABRIC_COMPLETED,
        "health_mask": int(options.get("fabric_health_mask", 2)),
    }


def _pairs(listed: Sequence[SimulatedCard]) -> Iterator[Json]:
    for a, first in enumerate(listed):
        for b in range(a + 1, len(listed)):
            second = listed[b]
            if _refusing_code(first) is None and _refusing_code(second) is None:
                yield {"a": a, "b": b, "peer_read": _peer_read(first, second)}


def _peer_read(first: SimulatedCard, second: SimulatedCard) -> int:
    """Consumer cards without ECC let no other card read their memory over PCIe."""
    return _PEER_OK if first.model.has_ecc and second.model.has_ecc else _PEER_GPU_NOT_SUPPORTED


def _sensors(card: SimulatedCard) -> Json:
    code = _refusing_code(card)
    if code is not None:
        return {"code": code}
    address, options = card.description.address, card.description.options
    has_memory = card.model.memory_bytes is not None and not card.has_fault("memory-no-permission")
    refused = _Refused(NO_PERMISSION) if card.has_fault("memory-no-permission") else _NOT_SUPPORTED
    return _answered(
        {
            "pci_address": address if address is not None else _NOT_SUPPORTED,
            "uuid": card.uuid,
            "power_milliwatts": int(options.get("power_milliwatts", 68_000)),
            "temperature_celsius": int(options.get("temperature_celsius", 34)),
            "utilization_percent": _NOT_SUPPORTED
            if card.is_in_mig_mode
            else int(options.get("utilization_percent", 0)),
            "memory_used_bytes": _RESERVED_BYTES if has_memory else refused,
        }
    )
