"""Files and the driver's answer → devices and links.

The imaginary kernel driver shows one folder a chip below its PCI function, `example/example<minor>`, with the files
`position` (on the function), `slot`, `unit`, `cores` (the unit numbers of its cores) and `grid`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from anyaccel.capabilities import MatchRule
from anyaccel.device import Device, Discovery, Inspection, Level, Place, Sharing, with_known
from anyaccel.frozen import FrozenMap
from anyaccel.host import read_boundary
from anyaccel.machine import Machine
from anyaccel.pci import PciFunction, device_from_function, match_functions
from anyaccel.topology import Link, LinkState, TopologyReport

FAMILY = "example"
DRIVER = "example"
VENDOR_ID = 0x1DE7
"""Assigned to nobody in pci.ids, so that no real card is ever taken for an example."""

MODELS = {0x0001: "EX1", 0x0002: "EX2"}
CHIPS = {"EX1": 1, "EX2": 2}
CORES = 2
MATCHES = (MatchRule(vendor_id=VENDOR_ID), MatchRule(drivers=(DRIVER,)))

_UNASKED = "only the driver tells, and it was not heard"
_SHARED = "the memory is the chip's, its cores share it"


def find_devices(machine: Machine) -> Discovery:
    """List chips and cores by PCI; the driver's folders add numbers but no ids, so that ids hold without a driver."""
    boards = [_board(machine, function) for function, _ in match_functions(machine, MATCHES)]
    devices = tuple(device for board in boards for device in board)
    return Discovery(devices, reason=None if devices else f"no PCI function of vendor {VENDOR_ID:04x}")


def _board(machine: Machine, function: PciFunction) -> Iterable[Device]:
    model = MODELS.get(function.device_id or 0)
    board = device_from_function(machine, function, family=FAMILY, drivers=(DRIVER,), label="chip", model=model)
    folders = {files.get("position"): files for files in _driver_folders(machine, function)}
    for position in range(max(len(folders), CHIPS.get(model or "", 1))):
        files = folders.get(str(position), {})
        chip = _chip(machine, board, position, files)
        yield chip
        yield from (_core(chip, number, files) for number in range(CORES))


def _driver_folders(machine: Machine, function: PciFunction) -> Iterable[dict[str, str]]:
    for name in machine.list_folder(f"{function.path}/{DRIVER}"):
        folder = f"{function.path}/{DRIVER}/{name}"
        texts = {file: machine.read_text_or_none(f"{folder}/{file}") for file in machine.list_folder(folder)}
        yield {"minor": name.removeprefix(DRIVER), **{file: text for file, text in texts.items() if text}}


def _chip(machine: Machine, board: Device, position: int, files: Mapping[str, str]) -> Device:
    numbers, reasons = _numbers({space: files.get(space) for space in ("minor", "slot", "unit")})
    nodes = (f"/dev/{DRIVER}{files['minor']}",) if "minor" in files else ()
    is_container = read_boundary(machine).is_container
    blocked = [machine.node_condition(node, is_container=is_container) for node in nodes]
    grid = files.get("grid")
    return replace(
        board,
        id=f"{board.id}/{position}",
        numbers=numbers,
        sharing=Sharing.ONE_PROCESS,
        conditions=(*board.conditions, *(condition for condition in blocked if condition)),
        places=(Place("grid", "host", tuple(int(part) for part in grid.split(","))),) if grid else (),
        nodes=nodes,
        unknown=FrozenMap({**board.unknown, **reasons, "uuid": _UNASKED, "memory_bytes": _UNASKED}),
    )


def _core(chip: Device, number: int, files: Mapping[str, str]) -> Device:
    units = files.get("cores", "").split()
    numbers, reasons = _numbers({"unit": units[number] if number < len(units) else None})
    return replace(
        chip,
        id=f"{chip.id}/{number}",
        level=Level.CORE,
        label="core",
        parent=chip.id,
        pci_addresses=(),
        numbers=numbers,
        memory_owner=chip.id,
        places=(),
        attributes=FrozenMap(),
        unknown=FrozenMap({**_without_numbers(chip.unknown), **reasons, "memory_bytes": _SHARED}),
    )


def _without_numbers(reasons: Mapping[str, str]) -> dict[str, str]:
    return {name: reason for name, reason in reasons.items() if not name.startswith("numbers.")}


def _numbers(texts: Mapping[str, str | None]) -> tuple[FrozenMap[int | str | None], dict[str, str]]:
    numbers = {space: int(text) if text and text.isdigit() else None for space, text in texts.items()}
    reasons = {f"numbers.{space}": "the driver's folder does not tell" for space, n in numbers.items() if n is None}
    return FrozenMap(numbers), reasons


def does_open(machine: Machine, node: str) -> bool:
    """Whether a process of this user can open a device file, as far as anyone knows."""
    fact = machine.node(node)
    return fact is not None and fact.can_open is not False


def inspected(devices: tuple[Device, ...], answer: Any) -> Inspection:
    """Add what the driver told: stable names and memory. A chip that it does not list stays as it was."""
    told = {row["slot"]: row for row in answer["chips"]}
    chips = {d.id: told[d.numbers["slot"]] for d in devices if d.parent is None and d.numbers["slot"] in told}
    richer = (_with_facts(d, chips[d.parent or d.id], answer) if (d.parent or d.id) in chips else d for d in devices)
    return Inspection(tuple(richer), facts=FrozenMap({"driver_version": answer["version"]}))


def _with_facts(device: Device, row: Mapping[str, Any], answer: Any) -> Device:
    if device.level is Level.CORE:
        uuids = {core["unit"]: core["uuid"] for core in row["cores"]}
        return with_known(device, uuid=uuids.get(device.numbers["unit"]), driver_version=answer["version"])
    memory = row["memory_bytes"]
    chip = with_known(device, uuid=row["uuid"], memory_bytes=memory, driver_version=answer["version"])
    if memory is None:
        return replace(chip, unknown=chip.unknown.with_items({"memory_bytes": "the driver answers `not supported`"}))
    return replace(chip, memory_owner=chip.id)


def mesh_links(devices: tuple[Device, ...], answer: Any) -> TopologyReport:
    """Give the links of the grid as the driver lists them, by slot."""
    chips = {d.numbers["slot"]: d.id for d in devices if d.parent is None}
    rows = [row for row in answer["links"] if {row["a"], row["b"]} <= set(chips)]
    return TopologyReport(tuple(_link(chips[row["a"]], chips[row["b"]], row) for row in rows))


def _link(a: str, b: str, row: Mapping[str, Any]) -> Link:
    state = LinkState.UP if row["is_up"] else LinkState.DOWN
    lanes = row["lanes"]
    return Link(a, b, "mesh", f"M{lanes}", row["bytes_per_second_each_way"], lanes, hops=1, state=state)
