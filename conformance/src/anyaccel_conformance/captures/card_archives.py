"""Archives of one display card's folder below `/sys/class/drm`, with or without a KFD topology beside it.

Their origins dropped symbolic links, so the PCI folder and the links to it are put back as `uevent` names them. The other side
is read from the archive alone: `uevent` (which the PCI core writes), `modalias`, and the driver's own files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from anyaccel.device import Device
from anyaccel.inventory import Inventory
from anyaccel.machine import Machine, MachineKind
from anyaccel_conformance.captures.archives import Archive, CaptureError
from anyaccel_conformance.captures.claims import Claim
from anyaccel_conformance.captures.fake_sysfs import FakeSysfs
from anyaccel_conformance.captures.looking import Looker, count_claim, health_claim, id_of

__all__ = ["card_vendors", "compare_cards", "is_card_archive"]

_UEVENT = re.compile(r"^/sys/class/drm/(card([0-9]+))/device/uevent$")
_MODALIAS = re.compile(
    r"^pci:v([0-9A-F]{8})d([0-9A-F]{8})sv[0-9A-F]{8}sd[0-9A-F]{8}bc([0-9A-F]{2})sc([0-9A-F]{2})i([0-9A-F]{2})$"
)
_SPEED = re.compile(r"^([0-9.]+) GT/s")


@dataclass(frozen=True)
class _Card:
    """One card as its archive tells it."""

    name: str
    number: int
    uevent: Mapping[str, str]
    archive: Archive

    @property
    def address(self) -> str:
        return self.uevent["PCI_SLOT_NAME"]

    @property
    def folder(self) -> str:
        return f"/sys/class/drm/{self.name}/device"

    def file(self, name: str) -> str | None:
        return self.archive.text(f"{self.folder}/{name}")


def is_card_archive(archive: Archive) -> bool:
    """Whether an archive is one of display cards without the PCI tree they hang on."""
    has_pci = any(path.startswith("/sys/bus/pci/") for path in (*archive.files, *archive.links))
    return not has_pci and any(_UEVENT.match(path) for path in archive.files)


def card_vendors(archive: Archive) -> frozenset[int]:
    """Give the PCI vendors of the display cards of an archive."""
    matches = (match for path in archive.files if (match := _UEVENT.match(path)))
    return frozenset(int(_card(archive, match).uevent["PCI_ID"].split(":")[0], 16) for match in matches)


def compare_cards(archive: Archive, name: str, looker: Looker, family: str | None) -> tuple[Claim, ...]:
    """Compare every card of an archive.

    Args: family: plugin that must find the cards, None = only plain Linux is compared.
    """
    cards = [_card(archive, match) for path in archive.files if (match := _UEVENT.match(path))]
    restored = _restored(archive, cards).machine(name)
    claims = [claim for card in cards for claim in _plain_claims(card, restored)]
    if family is None:
        return tuple(claims)
    inventory = looker.look(restored)
    claims += [health_claim(inventory), count_claim(inventory, family, len(cards))]
    claims += [claim for card in cards for claim in _device_claims(card, inventory, family)]
    if family == "amd":
        # The driver's own folders are enough for this family, so the archive as it was published must do as well.
        bare = looker.look(Machine(archive.tree(), kind=MachineKind.ROOT, name=name))
        claims += [health_claim(bare), count_claim(bare, family, len(cards))]
    return tuple(claims)


def _card(archive: Archive, match: re.Match[str]) -> _Card:
    text = archive.text(match.group(0)) or ""
    uevent = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    if not {"PCI_SLOT_NAME", "PCI_ID", "PCI_CLASS"} <= uevent.keys():
        raise CaptureError(f"{match.group(0)} names no PCI slot, id and class")
    return _Card(match.group(1), int(match.group(2)), uevent, archive)


def _restored(archive: Archive, cards: Iterable[_Card]) -> FakeSysfs:
    sysfs = FakeSysfs()
    moved = []
    for card in cards:
        vendor, device = (int(part, 16) for part in card.uevent["PCI_ID"].split(":"))
        folder = sysfs.add_function(
            card.address,
            vendor=vendor,
            device=device,
            class_code=card.uevent["PCI_CLASS"].zfill(6).lower(),
            driver=card.uevent.get("DRIVER"),
        )
        for path in archive.below(card.folder):
            sysfs.files[folder + path.removeprefix(card.folder)] = archive.files[path]
        sysfs.links[f"{folder}/drm/{card.name}/device"] = folder
        sysfs.links[f"/sys/class/drm/{card.name}"] = f"{folder}/drm/{card.name}"
        moved.append(f"/sys/class/drm/{card.name}/")
    for path, content in archive.files.items():
        if not path.startswith(tuple(moved)):
            sysfs.files[path] = content
    return sysfs


def _plain_claims(card: _Card, machine: Machine) -> Iterable[Claim]:
    """Compare what core reads of the PCI function with what the archive says in two further places."""
    function = next(f for f in machine.pci_functions() if f.address == card.address)
    detail = machine.pci_detail(function)
    ours = (id_of(function.vendor_id, function.device_id), function.class_code)
    yield Claim(
        "pci id", card.address, (card.uevent["PCI_ID"].lower(), card.uevent["PCI_CLASS"].zfill(6).lower()), ours
    )
    modalias = _MODALIAS.match(card.file("modalias") or card.uevent.get("MODALIAS", ""))
    if modalias is not None:
        vendor, device, *parts = (part.lower() for part in modalias.groups())
        yield Claim("modalias", card.address, (f"{vendor[4:]}:{device[4:]}", "".join(parts)), ours)
    yield Claim("driver", card.address, card.uevent.get("DRIVER"), detail.driver)
    yield Claim("numa", card.address, _node(card.file("numa_node")), detail.position.numa_node)
    for word in ("current", "max"):
        speed, width = _SPEED.match(card.file(f"{word}_link_speed") or ""), card.file(f"{word}_link_width")
        if speed is not None and width is not None and detail.link is not None:
            link = detail.link
            answered = (link.speed_gts, link.width) if word == "current" else (link.max_speed_gts, link.max_width)
            yield Claim(f"{word} link", card.address, (float(speed.group(1)), int(width)), answered)


def _node(text: str | None) -> int | None:
    return None if text is None or int(text) < 0 else int(text)


def _device_claims(card: _Card, inventory: Inventory, family: str) -> Iterable[Claim]:
    device = next((d for d in inventory.view(family).roots if card.address in d.pci_addresses), None)
    yield Claim("device", card.address, card.address, None if device is None else device.pci_addresses[0])
    if device is None:
        return
    yield Claim("device id", card.address, card.uevent["PCI_ID"].lower(), device.attributes.get("pci_id"))
    yield Claim("device driver", card.address, card.uevent.get("DRIVER"), device.driver)
    yield from _memory_claims(card, device)
    if "card" in device.numbers:
        yield Claim("card number", card.address, card.number, device.numbers["card"])


def _memory_claims(card: _Card, device: Device) -> Iterable[Claim]:
    """Compare dedicated memory; that of an integrated part is the host's, and the file only tells what is carved out."""
    total = card.file("mem_info_vram_total")
    if total is None:
        yield Claim("memory", card.address, None, device.memory_bytes if not device.is_integrated else None)
    elif device.is_integrated:
        yield Claim("carved out memory", card.address, int(total), device.attributes.get("carved_out_bytes"))
    else:
        yield Claim("memory", card.address, int(total), device.memory_bytes)
