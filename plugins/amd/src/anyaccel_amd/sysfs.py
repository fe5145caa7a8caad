"""What amdgpu tells of one GPU in its PCI folder, and the DRM cards that lead there.

Files: "Misc AMDGPU driver information", "AMDGPU XGMI Support" and "AMDGPU RAS Support" of the kernel's documentation.
Everything here is an attribute of the driver's memory: reading it wakes no card.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from anyaccel.machine import Machine
from anyaccel.pci import PciFunction, address_key, normal_address, read_hex

__all__ = ["CardFacts", "DrmCard", "driver_version", "read_card", "read_drm_cards", "whole_number"]

_DRM = "/sys/class/drm"
_HOPS_MASK = 0x7
"""The low bits of an entry of `xgmi_num_hops` are the hops (`amdgpu_xgmi_get_hops_count`); 0x41 is one hop."""


@dataclass(frozen=True)
class CardFacts:
    """What the driver says of one GPU; None = it does not say.

    Args: card, render: numbers of its DRM nodes. hops: xGMI hops to each GPU of the hive, itself included.
    """

    card: int | None = None
    render: int | None = None
    unique_id: int | None = None
    product_name: str | None = None
    vram_bytes: int | None = None
    gtt_bytes: int | None = None
    compute_partition: str | None = None
    memory_partition: str | None = None
    hive_id: int | None = None
    hops: tuple[int, ...] = ()


@dataclass(frozen=True)
class DrmCard:
    """One DRM card of this vendor: its number, and its PCI function as far as its own folder tells."""

    number: int
    function: PciFunction
    driver: str | None


def read_card(machine: Machine, folder: str) -> CardFacts:
    """Read the facts of one GPU from the folder of its PCI function."""
    return CardFacts(
        card=_drm_number(machine, folder, "card"),
        render=_drm_number(machine, folder, "renderD"),
        unique_id=read_hex(machine, f"{folder}/unique_id") or None,
        product_name=machine.read_text_or_none(f"{folder}/product_name") or None,
        vram_bytes=_count(machine, f"{folder}/mem_info_vram_total"),
        gtt_bytes=_count(machine, f"{folder}/mem_info_gtt_total"),
        compute_partition=_mode(machine, f"{folder}/current_compute_partition"),
        memory_partition=_mode(machine, f"{folder}/current_memory_partition"),
        hive_id=_count(machine, f"{folder}/xgmi_hive_info/xgmi_hive_id"),
        hops=tuple(_hops(machine.read_text_or_none(f"{folder}/xgmi_num_hops") or "")),
    )


def whole_number(text: str) -> int | None:
    """Read a number of up to twenty decimal digits, the most that the kernel writes.

    Example: whole_number("18446744073709551615") == (1 << 64) - 1
    """
    return int(text) if re.fullmatch(r"[0-9]{1,20}", text) else None


def _drm_number(machine: Machine, folder: str, prefix: str) -> int | None:
    names = (re.fullmatch(rf"{prefix}([0-9]{{1,9}})", name) for name in machine.list_folder(f"{folder}/drm"))
    return next((int(match.group(1)) for match in names if match is not None), None)


def _count(machine: Machine, path: str) -> int | None:
    return whole_number(machine.read_text_or_none(path) or "") or None


def _mode(machine: Machine, path: str) -> str | None:
    text = machine.read_text_or_none(path) or ""
    return text if re.fullmatch(r"[A-Z]{2,3}[0-9]?", text) else None


def _hops(text: str) -> Iterable[int]:
    for word in text.split():
        if re.fullmatch(r"[0-9a-f]{2}", word) is None:
            return
        yield int(word, 16) & _HOPS_MASK


def read_drm_cards(machine: Machine, known: Iterable[str]) -> tuple[DrmCard, ...]:
    """Give the DRM cards of this vendor whose PCI address is not among the known ones.

    A copied tree may hold nothing else: then `uevent` tells the address, the ids and the driver.
    """
    taken = frozenset(known)
    cards = []
    for name in machine.list_folder(_DRM):
        match = re.fullmatch(r"card([0-9]{1,9})", name)
        if match is None:
            continue
        card = _drm_card(machine, int(match.group(1)))
        if card is not None and card.function.address not in taken:
            cards.append(card)
    return tuple(sorted(cards, key=lambda card: (address_key(card.function.address), card.number)))


def _drm_card(machine: Machine, number: int) -> DrmCard | None:
    folder = machine.resolve(f"{_DRM}/card{number}/device")
    if folder is None:
        return None
    event = _uevent(machine, folder)
    vendor, device = (int(part, 16) for part in event.get("PCI_ID", "0:0").split(":"))
    vendor = read_hex(machine, f"{folder}/vendor") or vendor
    if vendor != 0x1002:
        return None
    address = normal_address(event.get("PCI_SLOT_NAME", "")) or normal_address(posixpath.basename(folder)) or ""
    class_code = read_hex(machine, f"{folder}/class") or int(event.get("PCI_CLASS", "0"), 16) or None
    function = PciFunction(
        address=address,
        vendor_id=vendor,
        device_id=read_hex(machine, f"{folder}/device") or device or None,
        class_code=None if class_code is None else f"{class_code:06x}",
        path=folder,
    )
    return DrmCard(number, function, event.get("DRIVER"))


def _uevent(machine: Machine, folder: str) -> Mapping[str, str]:
    lines = (machine.read_text_or_none(f"{folder}/uevent") or "").splitlines()
    event = dict(line.split("=", 1) for line in lines if "=" in line)
    hexadecimal = {"PCI_ID": r"[0-9A-Fa-f]{1,4}:[0-9A-Fa-f]{1,4}", "PCI_CLASS": r"[0-9A-Fa-f]{1,6}"}
    return {
        key: value for key, value in event.items() if key not in hexadecimal or re.fullmatch(hexadecimal[key], value)
    }


def driver_version(machine: Machine) -> tuple[str | None, str | None]:
    """Give the version of the loaded kernel driver, or why it is unknown.

    Only the DKMS build has a version of its own; in the kernel's own build the release is the version.
    """
    version = machine.read_text_or_none("/sys/module/amdgpu/version")
    if version:
        return version, None
    release = machine.read_text_or_none("/proc/sys/kernel/osrelease")
    source = machine.read_text_or_none("/sys/module/amdgpu/srcversion")
    if not release or not (source or machine.exists("/sys/module/amdgpu")):
        return None, "neither /sys/module/amdgpu nor the kernel release tells it"
    return (f"{release} (srcversion {source})" if source else release), None
