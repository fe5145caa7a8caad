"""The XML of `nvidia-smi -q -x`, schemas v11 to v13. `N/A` and its relatives are None."""

from __future__ import annotations

import re
from dataclasses import dataclass
from xml.etree import ElementTree

from anyaccel.pci import normal_address
from anyaccel_conformance.readers.foreign import ForeignFormatError, parse_xml

__all__ = ["NvidiaSmiGpu", "NvidiaSmiLog", "NvidiaSmiMig", "parse_nvidia_smi_xml"]

_NOTHING = re.compile(
    r"^(?:n/a|\[?not supported\]?|\[?unknown error\]?|requested functionality has been deprecated|)$", re.I
)
_SIZE = re.compile(r"^([0-9]+) (B|KiB|MiB|GiB)$")
_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


@dataclass(frozen=True)
class NvidiaSmiMig:
    """One MIG device. Args: index: its number below the card. memory_bytes: its frame buffer. None = N/A."""

    index: int | None
    gpu_instance_id: int | None
    compute_instance_id: int | None
    memory_bytes: int | None
    uuid: str | None
    multiprocessors: int | None


@dataclass(frozen=True)
class NvidiaSmiGpu:
    """One GPU. None = N/A or not in this schema.

    Args: address: of the element. bus_address: of `pci_bus_id`. module_id: number of the module on its board.
        memory_parts_bytes: reserved, used and free together. mig_mode: `Enabled`, `Disabled`. pcie_width, pcie_generation: now.
    """

    address: str
    product_name: str | None = None
    uuid: str | None = None
    minor_number: int | None = None
    module_id: int | None = None
    vendor_id: int | None = None
    device_id: int | None = None
    subsystem_vendor_id: int | None = None
    subsystem_id: int | None = None
    memory_bytes: int | None = None
    memory_parts_bytes: int | None = None
    bus_address: str | None = None
    compute_mode: str | None = None
    mig_mode: str | None = None
    mig_devices: tuple[NvidiaSmiMig, ...] = ()
    pcie_generation: int | None = None
    pcie_max_generation: int | None = None
    pcie_width: int | None = None
    pcie_max_width: int | None = None
    ecc_mode: str | None = None
    virtualization: str | None = None


@dataclass(frozen=True)
class NvidiaSmiLog:
    """A whole document. Args: attached_gpus: what the driver counts; a cut file lists fewer."""

    driver_version: str | None
    cuda_version: str | None
    attached_gpus: int | None
    gpus: tuple[NvidiaSmiGpu, ...]


def parse_nvidia_smi_xml(document: bytes | str) -> NvidiaSmiLog:
    """Read the XML of nvidia-smi. Raises: ForeignFormatError."""
    top = parse_xml(document)
    if top.tag != "nvidia_smi_log":
        raise ForeignFormatError(f"XML document holds <{top.tag}>, not <nvidia_smi_log>")
    return NvidiaSmiLog(
        _text(top, "driver_version"),
        _text(top, "cuda_version"),
        _number(top, "attached_gpus"),
        tuple(_gpu(element) for element in top if element.tag == "gpu"),
    )


def _gpu(gpu: ElementTree.Element) -> NvidiaSmiGpu:
    address = normal_address(gpu.get("id", ""))
    if address is None:
        raise ForeignFormatError(f"nvidia-smi document names the bus id {gpu.get('id')!r}")
    device, vendor = _id_pair(_text(gpu, "pci/pci_device_id"))
    subsystem, subsystem_vendor = _id_pair(_text(gpu, "pci/pci_sub_system_id"))
    link = "pci/pci_gpu_link_info"
    return NvidiaSmiGpu(
        address=address,
        product_name=_text(gpu, "product_name"),
        uuid=_text(gpu, "uuid"),
        minor_number=_number(gpu, "minor_number"),
        module_id=_number(gpu, "gpu_module_id"),
        vendor_id=vendor,
        device_id=device,
        subsystem_vendor_id=subsystem_vendor,
        subsystem_id=subsystem,
        memory_bytes=_bytes(gpu, "fb_memory_usage/total"),
        memory_parts_bytes=_parts(gpu),
        bus_address=normal_address(_text(gpu, "pci/pci_bus_id") or ""),
        compute_mode=_text(gpu, "compute_mode"),
        mig_mode=_text(gpu, "mig_mode/current_mig"),
        mig_devices=tuple(_mig(element) for element in gpu.findall("mig_devices/mig_device")),
        pcie_generation=_number(gpu, f"{link}/pcie_gen/current_link_gen"),
        pcie_max_generation=_number(gpu, f"{link}/pcie_gen/max_link_gen"),
        pcie_width=_number(gpu, f"{link}/link_widths/current_link_width"),
        pcie_max_width=_number(gpu, f"{link}/link_widths/max_link_width"),
        ecc_mode=_text(gpu, "ecc_mode/current_ecc"),
        virtualization=_text(gpu, "gpu_virtualization_mode/virtualization_mode"),
    )


def _mig(element: ElementTree.Element) -> NvidiaSmiMig:
    return NvidiaSmiMig(
        _number(element, "index"),
        _number(element, "gpu_instance_id"),
        _number(element, "compute_instance_id"),
        _bytes(element, "fb_memory_usage/total"),
        _text(element, "uuid"),
        _number(element, "device_attributes/shared/multiprocessor_count"),
    )


def _text(element: ElementTree.Element, path: str) -> str | None:
    text = (element.findtext(path) or "").strip()
    return None if _NOTHING.match(text) else text


def _number(element: ElementTree.Element, path: str) -> int | None:
    match = re.match(r"^([0-9]+)x?$", _text(element, path) or "")
    return int(match.group(1)) if match else None


def _bytes(element: ElementTree.Element, path: str) -> int | None:
    match = _SIZE.match(_text(element, path) or "")
    return int(match.group(1)) * _UNITS[match.group(2)] if match else None


def _parts(element: ElementTree.Element) -> int | None:
    parts = [_bytes(element, f"fb_memory_usage/{name}") for name in ("reserved", "used", "free")]
    return sum(part or 0 for part in parts) if None not in parts else None


def _id_pair(text: str | None) -> tuple[int | None, int | None]:
    """Take `20B010DE` apart: device or subsystem first, vendor last."""
    if text is None or re.fullmatch(r"(?:0x)?[0-9A-Fa-f]{8}", text) is None:
        return None, None
    digits = text.removeprefix("0x")
    return int(digits[:4], 16), int(digits[4:], 16)
