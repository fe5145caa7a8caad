"""A machine description → the files of the habanalabs driver and the answer of its library.

A card is one part (`gaudi1`, `gaudi2`, `gaudi3`, `gaudi3-pcie`, `goya`, `greco`). Options: `module`, `minor`, `index`; without
them cards count on. In `[gaudi]`: `entries` is `accel`, `hl` (old drivers) or `virtual` (joined by `pci_addr` alone).
Faults: `library-missing`, `library-hangs`, `library-crashes`; of one card `malfunction`, `in-reset`, `ports-down` (with `count`),
`not-listed`, `memory-unknown`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from anyaccel.errors import RecordingError
from anyaccel.files import NodeFact
from anyaccel.frozen import FrozenMap
from anyaccel.machine_description import (
    CardDescription,
    MachineDescription,
    SimulatedFamily,
    SimulatedFunction,
    check_family,
)
from anyaccel_gaudi.declaration import DRIVER, FAMILY
from anyaccel_gaudi.models import MODELS, VENDOR_ID, Model

__all__ = ["simulate_family"]

VERSION = "1.22.1-97ec1a4"
_MAJOR = 261
_MIB = 1 << 20
_MEMORY_MIB = {"goya": 16384, "greco": 16384, "gaudi1": 32768}
_WORDS = {"malfunction": "Malfunction", "in-reset": "In reset"}
_ANSWERS: dict[str, Any] = {
    "library-missing": {"unavailable": "library libhlml.so is not installed", "reason_code": "library-missing"},
    "library-hangs": {"fault": "hang"},
    "library-crashes": {"fault": "crash"},
}
_ENTRIES = ("accel", "hl", "virtual")


@dataclass(frozen=True)
class _Card:
    card: CardDescription
    model: Model
    module: int
    minor: int
    index: int

    @property
    def address(self) -> str:
        return self.card.address or ""


def simulate_family(description: MachineDescription) -> SimulatedFamily:
    """Make this family's part of an imaginary machine.

    Raises: RecordingError for a model, option or fault it does not know.
    """
    check_family(
        description,
        FAMILY,
        models=[model.key for model in MODELS],
        card_options=("module", "minor", "index"),
        family_options=("entries",),
        faults={
            **dict.fromkeys((*_ANSWERS, *_WORDS, "not-listed", "memory-unknown"), ()),
            "ports-down": ("count",),
        },
    )
    kind = description.family_options(FAMILY).get("entries", "accel")
    if kind not in _ENTRIES:
        raise RecordingError(f"option 'entries' in [gaudi] is one of {', '.join(_ENTRIES)}, not {kind!r}")
    models = {model.key: model for model in MODELS}
    cards = [
        _Card(card, models[card.model], *(_number(card, name, position) for name in ("module", "minor", "index")))
        for position, card in enumerate(description.cards_of(FAMILY))
    ]
    bound = [card for card in cards if description.keeps_driver(card.card)]
    version = {f"/sys/module/{DRIVER}/version": f"{VERSION}\n"} if bound else {}
    entries = [_entry(card, str(kind), description) for card in bound]
    return SimulatedFamily(
        functions=tuple(
            _function(card, _attributes(card, description) if card in bound and kind != "virtual" else {})
            for card in cards
        ),
        files=FrozenMap({**version, **{path: text for entry in entries for path, text in entry.files.items()}}),
        links=FrozenMap({path: target for entry in entries for path, target in entry.links.items()}),
        nodes=FrozenMap({path: fact for entry in entries for path, fact in entry.nodes.items()}),
        answers=FrozenMap({"hlml": _answer(description, bound)}),
    )


def _number(card: CardDescription, name: str, default: int) -> int:
    value = card.options.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise RecordingError(f"option {name!r} of a gaudi card is a whole number from 0 on, not {value!r}")
    return value


@dataclass(frozen=True)
class _Entry:
    files: dict[str, str]
    links: dict[str, str]
    nodes: dict[str, NodeFact]


def _entry(card: _Card, kind: str, description: MachineDescription) -> _Entry:
    """Lay out one card's class entry and device files, and its attributes where they hang below the entry."""
    name = f"hl{card.minor}" if kind == "hl" else f"accel{card.minor}"
    folder = "/sys/class/habanalabs" if kind == "hl" else "/sys/class/accel"
    node, control = (
        ("/dev/hl", "/dev/hl_controlD") if kind == "hl" else ("/dev/accel/accel", "/dev/accel/accel_controlD")
    )
    nodes = {
        f"{node}{card.minor}": NodeFact(0o666, "0", "render", _MAJOR, card.minor),
        f"{control}{card.minor}": NodeFact(0o666, "0", "render", _MAJOR, 64 + card.minor),
    }
    if kind != "virtual":
        links = {f"{folder}/{name}/device": f"/sys/bus/pci/devices/{card.address}"}
        return _Entry({f"{folder}/{name}/dev": f"{_MAJOR}:{card.minor}\n"}, links, nodes)
    home = f"/sys/devices/virtual/accel/{name}"
    texts = {f"{home}/device/{word}": f"{text}\n" for word, text in _attributes(card, description).items()}
    return _Entry(texts, {f"{folder}/{name}": home}, nodes)


def _attributes(card: _Card, description: MachineDescription) -> dict[str, str]:
    words = [word for fault, word in _WORDS.items() if description.faults_of(fault, card.address)]
    return {
        "pci_addr": card.address,
        "module_id": str(card.module),
        "status": words[0] if words else "Operational",
        "device_type": card.model.name.upper(),
        "max_power": "600000",
    }


def _function(card: _Card, attributes: dict[str, str]) -> SimulatedFunction:
    return SimulatedFunction(
        address=card.address,
        vendor_id=VENDOR_ID,
        device_id=card.model.device_ids[0],
        class_code="120000",
        parent=card.card.parent,
        numa_node=card.card.numa_node,
        driver=DRIVER if card.card.driver == "default" else card.card.driver,
        speed_gts=16.0,
        width=16,
        max_speed_gts=16.0,
        max_width=16,
        files=FrozenMap(attributes),
    )


def _answer(description: MachineDescription, cards: list[_Card]) -> Any:
    for fault, answer in _ANSWERS.items():
        if description.faults_of(fault):
            return answer
    if not cards:
        return {"unavailable": "libhlml: driver not loaded", "reason_code": "library-failed"}
    listed = [card for card in cards if not description.faults_of("not-listed", card.address)]
    return {"devices": [_row(description, card) for card in sorted(listed, key=lambda card: card.index)]}


def _row(description: MachineDescription, card: _Card) -> dict[str, Any]:
    down = sum(int(fault.options.get("count", 1)) for fault in description.faults_of("ports-down", card.address))
    total = _MEMORY_MIB.get(card.model.key, 98304 if card.model.key == "gaudi2" else 131072) * _MIB
    row: dict[str, Any] = {
        "index": card.index,
        "bus_id": card.address,
        "name": card.model.name,
        "uuid": f"01P0-HL2000A0-15-{card.index:06d}-{card.module:02d}-00-00",
        "module": card.module,
        "minor": card.minor,
        "memory": {"total": total, "used": 768 * _MIB},
        "utilization_percent": 0,
        "power_milliwatts": 88000,
        "temperature_celsius": 24,
        "board_temperature_celsius": 31,
        "corrected_errors": 0,
        "uncorrected_errors": 0,
        "ports_up": [port >= down for port in range(card.model.ports)],
        "problems": {},
    }
    if description.faults_of("memory-unknown", card.address):
        del row["memory"]
        row["problems"]["memory"] = "the card does not support it"
    return row
