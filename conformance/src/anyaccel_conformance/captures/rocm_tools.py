"""Machines told by `rocm-smi --showallinfo --json`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from anyaccel.pci import address_key
from anyaccel_conformance.captures.claims import Claim
from anyaccel_conformance.captures.fake_sysfs import FakeSysfs
from anyaccel_conformance.captures.looking import Looker, address_claims, by_address, count_claim, health_claim, id_of
from anyaccel_conformance.readers.foreign import read_document
from anyaccel_conformance.readers.rocm_json import RocmCard, RocmLog, parse_rocm_json

__all__ = ["compare_rocm_json"]

_VENDOR = 0x1002


def compare_rocm_json(path: Path, name: str, looker: Looker) -> tuple[Claim, ...]:
    """Compare with the JSON of rocm-smi, on the files from which the tool itself has these values."""
    log = parse_rocm_json(read_document(path))
    inventory = looker.look(_sysfs(log).machine(name))
    devices = by_address(inventory, ("amd",))
    cards = {card.address: card for card in log.cards if card.address is not None}
    claims = [health_claim(inventory), count_claim(inventory, "amd", len(cards))]
    claims += address_claims(cards, devices)
    for address, card in cards.items():
        device = devices.get(address)
        if device is None:
            continue
        said = None if card.unique_id is None else f"GPU-{card.unique_id:016x}"
        claims.append(Claim("unique id", address, said, device.uuid))
        claims.append(Claim("id", address, id_of(_VENDOR, card.device_id), device.attributes.get("pci_id")))
        claims.append(Claim("numa", address, card.numa_affinity, device.numa_node))
        claims.append(Claim("memory", address, card.memory_bytes, device.memory_bytes))
        link = inventory.host.pcie_links.get(address)
        if card.pcie_speed_gts is not None:
            claims.append(
                Claim("link", address, (card.pcie_speed_gts, card.pcie_width), link and (link.speed_gts, link.width))
            )
        claims += _target_claims(card, str(device.attributes.get("target")))
    return tuple(claims)


def _target_claims(card: RocmCard, target: str) -> Iterable[Claim]:
    """Compare the graphics target and the KFD node, which newer releases print."""
    if card.gfx_version is not None:
        yield Claim("target", card.address or card.name, card.gfx_version, target)


def _sysfs(log: RocmLog) -> FakeSysfs:
    sysfs = FakeSysfs()
    for card in log.cards:
        if card.address is None:
            continue
        folder = sysfs.add_function(
            card.address,
            vendor=_VENDOR,
            device=card.device_id,
            class_code="030000",
            numa=card.numa_affinity,
            driver="amdgpu",
        )
        sysfs.add_link_speed(card.address, (card.pcie_speed_gts, card.pcie_width))
        if card.unique_id is not None:
            sysfs.write(f"{folder}/unique_id", f"{card.unique_id:016x}")
        if card.memory_bytes is not None:
            sysfs.write(f"{folder}/mem_info_vram_total", card.memory_bytes)
        _add_kfd_node(sysfs, card)
    if log.driver_version is not None:
        sysfs.write("/sys/module/amdgpu/version", log.driver_version)
    return sysfs


def _add_kfd_node(sysfs: FakeSysfs, card: RocmCard) -> None:
    """Put the KFD node from which the tool has its node number and graphics target."""
    target = re.fullmatch(r"gfx([0-9]+)([0-9a-f])([0-9a-f])", card.gfx_version or "")
    if target is None or card.node_id is None or card.address is None:
        return
    major, minor, stepping = int(target.group(1)), int(target.group(2), 16), int(target.group(3), 16)
    domain, bus, device, function = address_key(card.address)
    folder = f"/sys/class/kfd/kfd/topology/nodes/{card.node_id}"
    values = {
        "simd_count": 1,
        "gfx_target_version": major * 10_000 + minor * 100 + stepping,
        "vendor_id": _VENDOR,
        "device_id": card.device_id or 0,
        "location_id": bus << 8 | device << 3 | function,
        "domain": domain,
    }
    sysfs.write(f"{folder}/gpu_id", card.guid or 1)
    sysfs.write(f"{folder}/properties", "\n".join(f"{key} {value}" for key, value in values.items()))
