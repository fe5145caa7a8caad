"""What the library adds: the index of its own tools, names, memory, and a module id where the files do not tell one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from anyaccel.answers import check_shape
from anyaccel.device import Device, Inspection, with_known
from anyaccel.pci import normal_address
from anyaccel.replies import Reply
from anyaccel_gaudi.declaration import DRIVER

__all__ = ["inspect_devices", "told_by_address"]

_SOURCE = "libhlml"


def told_by_address(answer: Any) -> dict[str, Reply]:
    """Give what the library told of each card, by PCI address.

    Raises: UnavailableError when the answer has another shape.
    """
    rows = check_shape(answer, {"devices": [{}]})["devices"]
    replies = (Reply(row, _SOURCE) for row in rows)
    return {address: reply for reply in replies if (address := normal_address(reply.text("bus_id") or ""))}


def inspect_devices(devices: tuple[Device, ...], ask: Callable[[], Any]) -> Inspection:
    """Add what the library tells of each card; one that it leaves out stays as it was, with a note.

    Raises: UnavailableError when it cannot be asked.
    """
    if not any(device.driver == DRIVER for device in devices):
        return Inspection(devices)
    answer = ask()
    told = told_by_address(answer)
    richer = tuple(_with_facts(d, told[d.pci_addresses[0]]) if _is_told(d, told) else d for d in devices)
    return Inspection(richer, notes=tuple(_notes(devices, told, answer)))


def _is_told(device: Device, told: dict[str, Reply]) -> bool:
    return device.pci_addresses[0] in told


def _with_facts(device: Device, reply: Reply) -> Device:
    memory = reply.inner("memory").number("total")
    numbers = {"index": reply.number("index")}
    if device.numbers.get("module") is None:
        numbers["module"] = reply.number("module")
    if device.numbers.get("minor") is None:
        numbers["minor"] = reply.number("minor")
    known = with_known(device, uuid=reply.text("uuid"), memory_bytes=memory or None, numbers=numbers)
    if memory:
        return replace(known, memory_owner=device.id)
    return replace(known, unknown=known.unknown.with_items({"memory_bytes": reply.why("memory")}))


def _notes(devices: Iterable[Device], told: dict[str, Reply], answer: Any) -> Iterable[str]:
    silent = [d.id for d in devices if d.driver == DRIVER and not _is_told(d, told)]
    if silent:
        yield f"libhlml does not list {', '.join(silent)}"
    refused = [Reply(row).inner("problems").text("handle") for row in answer["devices"]]
    for words in sorted({word for word in refused if word is not None}):
        yield f"libhlml gives no handle of {refused.count(words)} cards: {words}"
