"""What inspection adds to discovered devices: error counters of the driver, and amdsmi's answer where it can be had."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from anyaccel.device import Condition, Device, DeviceState, Inspection, Scalar
from anyaccel.errors import UnavailableError
from anyaccel.frozen import FrozenMap
from anyaccel.machine import Machine
from anyaccel.replies import Reply, told
from anyaccel_amd.conditions import ErrorCounts, error_conditions, read_error_counts
from anyaccel_amd.smi_answer import SOURCE, processor_of

__all__ = ["inspect_devices", "may_ask", "with_smi_answer"]

Json = Any

_QUIET = frozenset({"binding-missing", "no-live-questions", "not-recorded"})
"""Reasons that are no news: amdsmi is an extra, and a copied tree answers nothing."""

_ASLEEP = "it is asleep, and asking would wake it"
_ERRORS = "attributes.uncorrected_errors"


def inspect_devices(machine: Machine, devices: tuple[Device, ...], ask: Json) -> Inspection:
    """Read the error counters and ask amdsmi.

    Args: ask: gives the answer's document or raises UnavailableError; never called when it could wake a sleeping GPU.
    """
    counts = {device.id: _read_counts(machine, device) for device in devices if device.parent is None}
    counted = tuple(_with_errors(device, counts[device.parent or device.id]) for device in devices)
    sleeping = [device.id for device in devices if device.parent is None and _is_asleep(device)]
    if sleeping:
        note = f"amdsmi was not asked: it opens every GPU and would wake {', '.join(sleeping)}"
        return Inspection(counted, notes=(note,))
    if not may_ask(devices):
        return Inspection(counted)
    try:
        answer = ask()
    except UnavailableError as error:
        return _unanswered(counted, error)
    return with_smi_answer(counted, answer)


def may_ask(devices: Sequence[Device]) -> bool:
    """Whether amdsmi may be asked: it opens every GPU, which would wake a sleeping one, and tells nothing of integrated ones."""
    return not any(_is_asleep(device) for device in devices) and not all(device.is_integrated for device in devices)


def _is_asleep(device: Device) -> bool:
    return any(condition.state is DeviceState.ASLEEP for condition in device.conditions)


def _unanswered(devices: tuple[Device, ...], error: UnavailableError) -> Inspection:
    facts: FrozenMap[Scalar] = FrozenMap({"amdsmi": f"{error.reason_code}: {error.message}"})
    if error.reason_code in _QUIET:
        return Inspection(devices, facts=facts)
    hint = f" ({error.hint})" if error.hint else ""
    return Inspection(devices, notes=(f"amdsmi could not be asked: {error.message}{hint}",), facts=facts)


def _read_counts(machine: Machine, device: Device) -> Mapping[str, ErrorCounts] | str:
    """Read the error counters of one GPU, or say why they cannot be asked for."""
    function = next((f for f in machine.pci_functions() if f.address in device.pci_addresses), None)
    if function is None:
        return "its PCI folder is not here"
    if function.is_dead:
        return "it does not respond"
    return _ASLEEP if _is_asleep(device) else read_error_counts(machine, function.path)


def _with_errors(device: Device, counts: Mapping[str, ErrorCounts] | str) -> Device:
    """Add the counters to a GPU, and what they mean to it and to its partitions."""
    if isinstance(counts, str):
        return replace(device, unknown=device.unknown.with_items({_ERRORS: counts}))
    conditions = (*device.conditions, *error_conditions(counts))
    if device.parent is not None:
        return replace(device, conditions=conditions)
    attributes, unknown = _error_attributes(counts)
    return replace(
        device,
        conditions=conditions,
        attributes=device.attributes.with_items(attributes),
        unknown=device.unknown.with_items(unknown),
    )


def _error_attributes(counts: Mapping[str, ErrorCounts]) -> tuple[dict[str, Scalar], dict[str, str]]:
    if not counts:
        return {}, {_ERRORS: "the driver keeps no error counters for it"}
    readable = [count for count in counts.values() if count.is_readable]
    if not readable:
        return {}, {_ERRORS: "the error counters cannot be read now; the GPU may be in reset"}
    totals: dict[str, Scalar] = {
        "uncorrected_errors": sum(count.uncorrected for count in readable),
        "corrected_errors": sum(count.corrected for count in readable),
    }
    return totals, {}


def with_smi_answer(devices: Sequence[Device], answer: Json) -> Inspection:
    """Put amdsmi's answer to the devices it belongs to.

    Args: answer: the document as it came, from a recording too; what cannot be read in it costs itself only.
    """
    if not isinstance(answer, Mapping):
        refusal = f"amdsmi's answer cannot be read: {told(answer, SOURCE)}"
        return Inspection(tuple(devices), notes=(refusal,), facts=FrozenMap({"amdsmi": "unreadable"}))
    reply = Reply(answer, SOURCE)
    rows = reply.rows("processors")
    unread = reply.why_not_rows("processors")
    notes = [] if unread is None else [f"a part of amdsmi's answer cannot be read: {unread}"]
    richer = tuple(_with_processor(device, rows, notes) for device in devices)
    facts: dict[str, Scalar] = {
        "amdsmi": "answered",
        "amdsmi_library_version": reply.text("library_version"),
        "amdsmi_binding_version": reply.text("binding_version"),
    }
    return Inspection(richer, notes=tuple(notes), facts=FrozenMap(facts))


def _with_processor(device: Device, rows: Sequence[Reply], notes: list[str]) -> Device:
    address = next(iter(device.pci_addresses), None)
    row = processor_of(rows, address=address, kfd_node=device.numbers.get("kfd"))
    if row is None:
        return device
    _note_clashes(device, row, notes)
    is_divided = "partition_count" in device.attributes
    filled = _filled(device, row)
    return replace(
        filled,
        conditions=(*device.conditions, *_conditions(device, row)),
        numbers=device.numbers if is_divided else device.numbers.with_items(_numbers(row)),
        attributes=device.attributes.with_items(_attributes(device, row)),
        unknown=filled.unknown.with_items(_reasons(device, row, is_divided=is_divided)),
    )


def _filled(device: Device, row: Reply) -> Device:
    """Give the device with what files left unknown and amdsmi tells; what it answers instead joins the reason."""
    memory = row.number("vram_bytes", bits=64) if device.parent is None else None
    model = device.model or row.text("market_name")
    version = device.driver_version or row.text("driver_version")
    size = device.memory_bytes if device.memory_bytes is not None else memory or None
    unknown = dict(device.unknown)
    asked = [("model", model, "market_name"), ("driver_version", version, "driver_version")]
    if device.parent is None:
        asked.append(("memory_bytes", None if size is None else str(size), "vram_bytes"))
    for name, value, field in asked:
        if value is not None:
            unknown.pop(name, None)
        elif row.has(field):
            unknown[name] = "; ".join(reason for reason in (unknown.get(name), row.why(field)) if reason)
    return replace(device, model=model, memory_bytes=size, driver_version=version, unknown=FrozenMap(unknown))


def _numbers(row: Reply) -> dict[str, int | str | None]:
    return {"hip": row.number("hip_id", bits=32), "hsa": row.number("hsa_id", bits=32)}


def _conditions(device: Device, row: Reply) -> tuple[Condition, ...]:
    """Give what amdsmi's totals mean where the driver's own counters could not be read."""
    if "uncorrected_errors" in device.attributes or device.parent is not None:
        return ()
    counts = _error_counts(row)
    total = ErrorCounts(counts["smi_uncorrected_errors"] or 0, counts["smi_corrected_errors"] or 0)
    return error_conditions({"all blocks": total})


def _error_counts(row: Reply) -> dict[str, int | None]:
    counts = row.inner("errors_counted")
    return {f"smi_{kind}_errors": counts.number(kind, bits=64) for kind in ("uncorrected", "corrected")}


def _attributes(device: Device, row: Reply) -> dict[str, Scalar]:
    """Give what only amdsmi tells; the error counters are the whole GPU's, so its partitions do not repeat them."""
    found: dict[str, Scalar] = {
        "market_name": row.text("market_name"),
        "process_count": row.number("process_count", bits=32),
        **(_error_counts(row) if device.parent is None else {}),
    }
    return {name: value for name, value in found.items() if value is not None}


def _reasons(device: Device, row: Reply, *, is_divided: bool) -> dict[str, str]:
    """Say why numbers, the number of processes and what was answered in odd form are unknown."""
    asked = {} if is_divided else {"hip_id": "numbers.hip", "hsa_id": "numbers.hsa"}
    reasons = {place: row.why(name) for name, place in asked.items() if row.number(name, bits=32) is None}
    if row.number("process_count", bits=32) is None and not (is_divided and not row.has("process_count")):
        reasons["attributes.process_count"] = row.why("process_count")
    if row.text("market_name") is None and row.has("market_name"):
        reasons["attributes.market_name"] = row.why("market_name")
    return reasons if device.parent is not None else {**reasons, **_error_reasons(row)}


def _error_reasons(row: Reply) -> dict[str, str]:
    if not row.has("errors_counted"):
        return {}
    counts = row.inner("errors_counted")
    return {
        f"attributes.{name}": counts.why(kind) if counts.has(kind) else row.why("errors_counted")
        for name, number in _error_counts(row).items()
        if number is None
        for kind in [name.removeprefix("smi_").removesuffix("_errors")]
    }


def _note_clashes(device: Device, row: Reply, notes: list[str]) -> None:
    index, hip = device.numbers.get("index"), row.number("hip_id", bits=32)
    if index is not None and hip is not None and index != hip:
        notes.append(
            f"{device.id} is number {index} in the KFD order and HIP number {hip} in amdsmi; masks count KFD's"
        )
    uuid = row.text("hip_uuid")
    if device.uuid is not None and uuid is not None and uuid.lower() != device.uuid.lower():
        notes.append(f"{device.id} has the unique id {device.uuid} in files and {uuid} in amdsmi; the files' is used")
