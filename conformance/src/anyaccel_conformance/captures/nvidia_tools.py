"""Machines told by NVIDIA's own tools: `nvidia-smi -q -x`, and `nvidia-smi nvlink --status` beside `lspci -nn`.

The driver's answer that inspection would have had is made of what the tool printed, so that the plugin's own way from answer to
devices is compared with the tool.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from anyaccel.inventory import Inventory
from anyaccel.topology import Link
from anyaccel_conformance.captures.claims import Claim, claim_each
from anyaccel_conformance.captures.fake_sysfs import FakeSysfs
from anyaccel_conformance.captures.looking import Looker, address_claims, by_address, count_claim, health_claim, id_of
from anyaccel_conformance.captures.texts import lspci_sysfs
from anyaccel_conformance.readers.foreign import read_document, read_text_document
from anyaccel_conformance.readers.lspci import parse_lspci
from anyaccel_conformance.readers.nvidia_nvlink import NvlinkGpu, parse_nvlink_status
from anyaccel_conformance.readers.nvidia_smi_xml import NvidiaSmiGpu, NvidiaSmiLog, NvidiaSmiMig, parse_nvidia_smi_xml

__all__ = ["compare_nvidia_smi", "compare_nvlink_status"]

Json = Any

_VENDOR = 0x10DE
_NOT_SUPPORTED = 3
_SWITCH = 2
"""Return code and remote type in NVIDIA's nvml.h."""

_ROUNDING_BYTES = 3 << 20
_MODES = {"Disabled": 0, "Enabled": 1}
_COMPUTE_MODES = {"Default": 0, "Exclusive_Thread": 1, "Prohibited": 2, "Exclusive_Process": 3}
_SPEEDS = {1: 2.5, 2: 5.0, 3: 8.0, 4: 16.0, 5: 32.0, 6: 64.0}


def compare_nvidia_smi(path: Path, name: str, looker: Looker) -> tuple[Claim, ...]:
    """Compare with the XML of nvidia-smi."""
    log = parse_nvidia_smi_xml(read_document(path))
    machine = _smi_sysfs(log).machine(name, {"nvidia": {"nvml": _smi_answer(log)}})
    inventory = looker.look(machine)
    devices = by_address(inventory, ("nvidia",))
    claims = [health_claim(inventory), count_claim(inventory, "nvidia", len(log.gpus))]
    claims += address_claims((gpu.address for gpu in log.gpus), devices)
    for gpu in log.gpus:
        device = devices.get(gpu.address)
        if device is None:
            continue
        claims.append(Claim("bus id", gpu.address, gpu.bus_address or gpu.address, device.pci_addresses[0]))
        claims += _memory_part_claims(gpu, device.memory_bytes)
        claims.append(Claim("uuid", gpu.address, gpu.uuid, device.uuid))
        claims.append(Claim("model", gpu.address, gpu.product_name, device.model))
        claims.append(Claim("memory", gpu.address, gpu.memory_bytes, device.memory_bytes))
        claims.append(Claim("minor", gpu.address, gpu.minor_number, device.numbers.get("minor")))
        claims.append(Claim("driver version", gpu.address, log.driver_version, device.driver_version))
        if gpu.vendor_id == _VENDOR:
            claims.append(Claim("id", gpu.address, id_of(_VENDOR, gpu.device_id), device.attributes.get("pci_id")))
        claims += _link_claims(gpu, inventory)
        claims += _mig_claims(gpu, inventory, device.id)
    return tuple(claims)


def _memory_part_claims(gpu: NvidiaSmiGpu, answered: int | None) -> Iterable[Claim]:
    """Compare with reserved, used and free memory, each rounded to MiB by the tool."""
    if gpu.memory_parts_bytes is not None:
        is_near = answered is not None and abs(answered - gpu.memory_parts_bytes) <= _ROUNDING_BYTES
        yield Claim("memory parts", gpu.address, True, is_near)


def _smi_sysfs(log: NvidiaSmiLog) -> FakeSysfs:
    sysfs = FakeSysfs()
    for gpu in log.gpus:
        has_ids = gpu.vendor_id == _VENDOR
        subsystem = (gpu.subsystem_vendor_id, gpu.subsystem_id)
        sysfs.add_function(
            gpu.address,
            vendor=_VENDOR,
            device=gpu.device_id if has_ids else None,
            class_code="0302",
            subsystem=None if None in subsystem or not has_ids else (subsystem[0] or 0, subsystem[1] or 0),
            driver="nvidia",
        )
        now, most = _SPEEDS.get(gpu.pcie_generation or 0), _SPEEDS.get(gpu.pcie_max_generation or 0)
        sysfs.add_link_speed(gpu.address, (now, gpu.pcie_width), (most, gpu.pcie_max_width))
    if log.driver_version is not None:
        sysfs.write("/sys/module/nvidia/version", log.driver_version)
    return sysfs


def _smi_answer(log: NvidiaSmiLog) -> Json:
    return {
        "format": 1,
        "driver_version": log.driver_version,
        "devices": [_smi_device(index, gpu) for index, gpu in enumerate(log.gpus)],
        "pairs": [],
    }


def _smi_device(index: int, gpu: NvidiaSmiGpu) -> Json:
    values: dict[str, Json] = {
        "name": gpu.product_name,
        "uuid": gpu.uuid,
        "minor": gpu.minor_number,
        "pci_address": gpu.address,
        "memory_bytes": gpu.memory_bytes,
        "compute_mode": _COMPUTE_MODES.get(gpu.compute_mode or ""),
        "mig_mode": None if gpu.mig_mode is None else [_MODES[gpu.mig_mode], _MODES[gpu.mig_mode]],
        "ecc_mode": None if gpu.ecc_mode is None else [_MODES[gpu.ecc_mode], _MODES[gpu.ecc_mode]],
    }
    known = {key: value for key, value in values.items() if value is not None}
    codes = {key: _NOT_SUPPORTED for key in values if key not in known}
    partitions = [_smi_partition(mig) for mig in gpu.mig_devices]
    return {"index": index, **known, "codes": codes, "partitions": partitions, "nvlinks": [], "fabric": {}}


def _smi_partition(mig: NvidiaSmiMig) -> Json:
    values = {
        "index": mig.index,
        "uuid": mig.uuid,
        "gpu_instance": mig.gpu_instance_id,
        "compute_instance": mig.compute_instance_id,
        "memory_bytes": mig.memory_bytes,
        "multiprocessors": mig.multiprocessors,
    }
    return {key: value for key, value in values.items() if value is not None}


def _link_claims(gpu: NvidiaSmiGpu, inventory: Inventory) -> Iterable[Claim]:
    link = inventory.host.pcie_links.get(gpu.address)
    said = (_SPEEDS.get(gpu.pcie_generation or 0), gpu.pcie_width)
    if None not in said:
        yield Claim("link", gpu.address, said, link and (link.speed_gts, link.width))


def _mig_claims(gpu: NvidiaSmiGpu, inventory: Inventory, device_id: str) -> Iterable[Claim]:
    """Compare MIG devices: how many smallest units there are, their numbers, and their memory."""
    view = inventory.view("nvidia")
    below = [d for d in view.devices if device_id in view.ancestors(d.id)]
    leaves = [d for d in below if not view.children(d.id)]
    yield Claim("mig devices", gpu.address, len(gpu.mig_devices), len(leaves))
    said = {f"{gpu.address} mig {mig.index}": mig.memory_bytes for mig in gpu.mig_devices}
    answered = {}
    for leaf in leaves:
        owner = next((d for d in below if d.id == (leaf.memory_owner or leaf.id)), leaf)
        answered[f"{gpu.address} mig {leaf.numbers.get('mig_index')}"] = owner.memory_bytes
    yield from claim_each("mig memory", said, answered)


def compare_nvlink_status(status: Path, lspci: Path, name: str, looker: Looker) -> tuple[Claim, ...]:
    """Compare links with the tool's list of links, on the machine lspci shows; a virtual machine hides the far ends."""
    gpus = parse_nvlink_status(read_text_document(status))
    functions = parse_lspci(read_text_document(lspci))
    addresses = [f.address for f in functions if f.vendor_id == _VENDOR and (f.class_code or "").startswith("03")]
    sysfs = lspci_sysfs(functions)
    sysfs.write("/sys/class/dmi/id/sys_vendor", "Microsoft Corporation")
    sysfs.write("/sys/class/dmi/id/product_name", "Virtual Machine")
    answer = _nvlink_answer(gpus, addresses)
    inventory = looker.look(sysfs.machine(name, {"nvidia": {"nvml": answer}}))
    claims = [health_claim(inventory), count_claim(inventory, "nvidia", len(gpus))]
    claims.append(Claim("gpus in both texts", "the machine", len(addresses), len(gpus)))
    devices = {device.uuid: device for device in inventory.view("nvidia").roots}
    for a, first in enumerate(gpus):
        for second in gpus[a + 1 :]:
            ends = (devices.get(first.uuid), devices.get(second.uuid))
            link = None if None in ends else inventory.link_between(ends[0], ends[1])  # type: ignore[arg-type]
            claims.append(
                Claim("nvlink", f"GPUs {first.number} and {second.number}", _said(first, second), _told(link))
            )
    return tuple(claims)


def _said(a: NvlinkGpu, b: NvlinkGpu) -> tuple[int, int]:
    """Give count and speed between two GPUs behind switches: what the one with fewer links can carry."""
    fewest = min((a, b), key=lambda gpu: sum(speed or 0 for _, speed in gpu.links))
    active = [speed for _, speed in fewest.links if speed is not None]
    return len(active), sum(active)


def _told(link: Link | None) -> tuple[int | None, int | None] | None:
    return None if link is None else (link.count, link.bytes_per_second_each_way)


def _nvlink_answer(gpus: Sequence[NvlinkGpu], addresses: Sequence[str]) -> Json:
    devices = [
        {
            "index": gpu.number,
            "name": gpu.name,
            "uuid": gpu.uuid,
            "pci_address": address,
            "compute_capability": [8, 0],
            "codes": {},
            "partitions": [],
            "nvlinks": [_nvlink(number, speed) for number, speed in gpu.links],
            "fabric": {},
        }
        for gpu, address in zip(gpus, addresses, strict=False)
    ]
    return {"format": 1, "devices": devices, "pairs": []}


def _nvlink(number: int, speed: int | None) -> Json:
    known = {} if speed is None else {"speed_mbps": speed // 1_000_000}
    return {
        "link": number,
        "state": 0 if speed is None else 1,
        "version": 5,
        "remote_type": _SWITCH,
        "remote_address": "0000:00:00.0",
        **known,
    }
