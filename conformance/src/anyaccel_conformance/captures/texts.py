"""Machines of which only a tool's text exists: `lspci` and `udevadm info --export-db`.

A `/sys` is made of what the text states, and discovery of it is compared with the text: which functions are GPUs, under which
bridges, at which memory node, with which driver and link; which are switches or network cards and must not be counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from anyaccel.inventory import Inventory
from anyaccel.machine import Machine
from anyaccel.pci import address_key
from anyaccel_conformance.captures.archives import CaptureError
from anyaccel_conformance.captures.claims import Claim, claim_each
from anyaccel_conformance.captures.fake_sysfs import FakeSysfs
from anyaccel_conformance.captures.looking import Looker, address_claims, by_address, count_claim, health_claim, id_of
from anyaccel_conformance.readers.foreign import read_text_document
from anyaccel_conformance.readers.lspci import LspciFunction, lspci_bridges, parse_lspci
from anyaccel_conformance.readers.udev_db import UdevRecord, parse_udev_db

__all__ = ["compare_lspci", "compare_udev", "lspci_sysfs", "udev_machine"]

_VENDORS = {
    "NVIDIA Corporation": 0x10DE,
    "Advanced Micro Devices, Inc. [AMD/ATI]": 0x1002,
    "Mellanox Technologies": 0x15B3,
    "Intel Corporation": 0x8086,
    "Broadcom / LSI": 0x1000,
}
"""Names of the PCI id list for texts that were printed without numbers."""

_CLASSES = {
    "3D controller": "0302",
    "VGA compatible controller": "0300",
    "Display controller": "0380",
    "Processing accelerators": "1200",
    "Bridge": "0680",
    "PCI bridge": "0604",
    "Ethernet controller": "0200",
    "Infiniband controller": "0207",
}
_FAMILIES = {0x10DE: "nvidia", 0x1002: "amd"}
_GPU_CLASSES = ("03", "12")


def compare_lspci(path: Path, name: str, looker: Looker) -> tuple[Claim, ...]:
    """Compare with the output of lspci."""
    functions = parse_lspci(read_text_document(path))
    inventory = looker.look(lspci_sysfs(functions).machine(name))
    gpus = {f.address: f for f in functions if _family(f) and _code(f).startswith(_GPU_CLASSES)}
    claims = [health_claim(inventory), *_counts(inventory, [_family(f) or "" for f in gpus.values()])]
    devices = by_address(inventory)
    claims += address_claims(gpus, devices)
    paths, links = inventory.host.paths, inventory.host.pcie_links
    for address, gpu in gpus.items():
        device, position = devices.get(address), paths.get(address)
        if device is None or position is None:
            continue
        claims.append(Claim("id", address, id_of(_vendor(gpu), gpu.device_id), device.attributes.get("pci_id")))
        claims.append(Claim("driver", address, gpu.driver, device.driver))
        claims.append(Claim("numa", address, gpu.numa_node, device.numa_node))
        claims.append(Claim("bridges", address, lspci_bridges(functions, gpu), position.bridges))
        claims += _port_claims(functions, gpu, position.numa_node)
        link = links.get(address)
        if gpu.speed_gts is not None:
            claims.append(Claim("link", address, (gpu.speed_gts, gpu.width), link and (link.speed_gts, link.width)))
    claims += _level_claims(inventory, {a: lspci_bridges(functions, g) for a, g in gpus.items()})
    return tuple(claims)


def _port_claims(functions: Sequence[LspciFunction], gpu: LspciFunction, numa: int | None) -> Iterable[Claim]:
    """Compare with the ports above, printed on lines of their own: the same memory node, and the last one's link."""
    ports = [f for f in functions if f.address in lspci_bridges(functions, gpu)]
    yield from (
        Claim("numa of its port", f"{gpu.address} below {port.address}", port.numa_node, numa) for port in ports
    )
    if ports and ports[-1].speed_gts is not None:
        yield Claim("link of its port", gpu.address, (ports[-1].speed_gts, ports[-1].width), (gpu.speed_gts, gpu.width))


def lspci_sysfs(functions: Sequence[LspciFunction]) -> FakeSysfs:
    """Make a `/sys` of what lspci printed, parents before children."""
    sysfs = FakeSysfs()
    for function in sorted(functions, key=lambda f: address_key(f.address)):
        bridges = lspci_bridges(functions, function)
        sysfs.add_function(
            function.address,
            bridges=bridges,
            vendor=_vendor(function),
            device=function.device_id,
            class_code=_code(function) or None,
            numa=function.numa_node,
            driver=function.driver,
        )
        now, most = (function.speed_gts, function.width), (function.max_speed_gts, function.max_width)
        sysfs.add_link_speed(function.address, now, most)
    return sysfs


def _vendor(function: LspciFunction) -> int | None:
    if function.vendor_id is not None:
        return function.vendor_id
    return next((number for name, number in _VENDORS.items() if function.name.startswith(name)), None)


def _code(function: LspciFunction) -> str:
    return function.class_code or _CLASSES.get(function.kind, "")


def _family(function: LspciFunction) -> str | None:
    return _FAMILIES.get(_vendor(function) or 0)


def _counts(inventory: Inventory, families: Iterable[str]) -> Iterable[Claim]:
    counts = Counter(families)
    return (count_claim(inventory, family, counts[family]) for family in _FAMILIES.values())


def _level_claims(inventory: Inventory, bridges: Mapping[str, tuple[str, ...]]) -> Iterable[Claim]:
    """Compare nearness: who shares the lowest bridge but its own port hangs on one switch, who shares nothing does not."""
    devices = by_address(inventory)
    addresses = sorted(set(bridges) & set(devices), key=address_key)
    for place, a in enumerate(addresses):
        for b in addresses[place + 1 :]:
            level = inventory.pair_level(devices[a], devices[b]).value
            shared = bool(set(bridges[a]) & set(bridges[b]))
            yield Claim("shares a switch", f"{a} and {b}", shared, level in ("same switch", "several switches"))


def compare_udev(path: Path, name: str, looker: Looker) -> tuple[Claim, ...]:
    """Compare with an exported udev database."""
    records = parse_udev_db(read_text_document(path))
    functions = _udev_functions(records)
    machine = _udev_sysfs(records, functions).machine(name)
    inventory = looker.look(machine)
    gpus = {
        address: r for address, r in functions.items() if _udev_family(r) and _udev_class(r).startswith(_GPU_CLASSES)
    }
    claims = [health_claim(inventory), *_counts(inventory, [_udev_family(r) or "" for r in gpus.values()])]
    claims += _udev_plain_claims(functions, machine)
    claims += address_claims(gpus, by_address(inventory))
    claims += _level_claims(inventory, {address: _udev_bridges(r.path) for address, r in gpus.items()})
    claims += _udev_network_claims(records, inventory)
    return tuple(claims)


def udev_machine(path: Path, name: str) -> Machine:
    """Make a machine of an exported udev database."""
    records = parse_udev_db(read_text_document(path))
    return _udev_sysfs(records, _udev_functions(records)).machine(name)


def _udev_functions(records: Iterable[UdevRecord]) -> Mapping[str, UdevRecord]:
    functions = {r.properties["PCI_SLOT_NAME"]: r for r in records if r.subsystem == "pci" and "PCI_ID" in r.properties}
    if not functions:
        raise CaptureError("the udev database holds no PCI function")
    return functions


def _udev_family(record: UdevRecord) -> str | None:
    return _FAMILIES.get(int(record.properties["PCI_ID"].split(":")[0], 16))


def _udev_class(record: UdevRecord) -> str:
    return record.properties["PCI_CLASS"].zfill(6).lower()


def _udev_bridges(path: str) -> tuple[str, ...]:
    return tuple(
        part for part in path.split("/")[3:-1] if re.fullmatch(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", part)
    )


def _udev_sysfs(records: Iterable[UdevRecord], functions: Mapping[str, UdevRecord]) -> FakeSysfs:
    sysfs = FakeSysfs()
    for address in sorted(functions, key=address_key):
        record = functions[address]
        vendor, device = (int(part, 16) for part in record.properties["PCI_ID"].split(":"))
        sysfs.add_function(
            address,
            bridges=_udev_bridges(record.path),
            root=record.path.split("/")[2],
            vendor=vendor,
            device=device,
            class_code=_udev_class(record),
            driver=record.properties.get("DRIVER"),
        )
    for record in records:
        if record.subsystem in ("infiniband", "net", "accel"):
            _add_class_entry(sysfs, record)
    return sysfs


def _add_class_entry(sysfs: FakeSysfs, record: UdevRecord) -> None:
    parent, _, name = record.path.rpartition("/")
    folder = parent.rpartition("/")[0]
    sysfs.links[f"/sys{record.path}/device"] = f"/sys{folder}"
    sysfs.links[f"/sys/class/{record.subsystem}/{name}"] = f"/sys{record.path}"


def _udev_plain_claims(functions: Mapping[str, UdevRecord], machine: Machine) -> Iterable[Claim]:
    """Compare ids, class, driver and bridges of every function, whoever made it."""
    for function in machine.pci_functions():
        record = functions.get(function.address)
        if record is None:
            continue
        said = _ids_of_modalias(record) or (record.properties["PCI_ID"].lower(), _udev_class(record))
        detail = machine.pci_detail(function)
        yield Claim("id", function.address, said, (id_of(function.vendor_id, function.device_id), function.class_code))
        yield Claim("driver", function.address, record.properties.get("DRIVER"), detail.driver)
        yield Claim("bridges", function.address, _udev_bridges(record.properties["DEVPATH"]), detail.position.bridges)


def _ids_of_modalias(record: UdevRecord) -> tuple[str, str] | None:
    """Give ids and class as the kernel wrote them a second time, for finding the module."""
    pattern = r"pci:v0000(\w{4})d0000(\w{4})sv\w{8}sd\w{8}bc(\w{2})sc(\w{2})i(\w{2})"
    match = re.fullmatch(pattern, record.properties.get("MODALIAS", ""))
    if match is None:
        return None
    vendor, device, *parts = (part.lower() for part in match.groups())
    return f"{vendor}:{device}", "".join(parts)


def _udev_network_claims(records: Iterable[UdevRecord], inventory: Inventory) -> Iterable[Claim]:
    """Compare InfiniBand cards with their places; a machine without accelerators is not asked for its network cards."""
    said = {r.path.split("/")[-3]: r.path.split("/")[-1] for r in records if r.subsystem == "infiniband"}
    answered = {nic.path.address: nic.id for nic in inventory.host.nics if nic.kind == "infiniband"}
    if inventory.views:
        yield from claim_each("network card", said, answered)
