"""A machine description → the files the imaginary kernel driver would show and the answer its program would give.

A card is `ex1` or `ex2`. Options: `slots`, `minors`, `units` and `grid`, one value a chip; without them chips count on.
Faults: `driver-missing`, `driver-hangs`, `driver-crashes`, and of one card `memory-unknown` and `link-down`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

from anyaccel.errors import RecordingError
from anyaccel.files import NodeFact
from anyaccel.frozen import FrozenMap
from anyaccel.machine_description import CardDescription, MachineDescription, SimulatedFamily, SimulatedFunction
from anyaccel_example.devices import CHIPS, CORES, DRIVER, FAMILY, MODELS, VENDOR_ID

VERSION = "1.4.0"
COLUMNS = 4
LANES = 4
LANE_BYTES_PER_SECOND = 25_000_000_000
ANSWER_FAULTS: dict[str, dict[str, str]] = {
    "driver-missing": {"unavailable": "program example-query is not installed", "reason_code": "program-missing"},
    "driver-hangs": {"fault": "hang"},
    "driver-crashes": {"fault": "crash"},
}
CARD_FAULTS = ("memory-unknown", "link-down")
OPTIONS = ("slots", "minors", "units", "grid")
_DEVICE_IDS = {model.lower(): device_id for device_id, model in MODELS.items()}


@dataclass(frozen=True)
class _Chip:
    card: CardDescription
    position: int
    slot: int
    minor: int
    unit: int
    grid: tuple[int, int]

    @property
    def node(self) -> str:
        return f"/dev/{DRIVER}{self.minor}"

    @property
    def files(self) -> dict[str, str]:
        texts = {
            "position": self.position,
            "slot": self.slot,
            "unit": self.unit,
            "cores": " ".join(str(self.unit * CORES + core) for core in range(CORES)),
            "grid": f"{self.grid[0]},{self.grid[1]}",
        }
        return {f"{DRIVER}/{DRIVER}{self.minor}/{name}": str(text) for name, text in texts.items()}


def imaginary_family(description: MachineDescription) -> SimulatedFamily:
    """Lay out the example cards of a machine. Raises: RecordingError for a model, option or fault nobody knows."""
    cards = description.cards_of(FAMILY)
    _check(description, cards)
    chips = _chips(cards)
    bound = [chip for chip in chips if _is_bound(description, chip.card)]
    return SimulatedFamily(
        functions=tuple(_function(card, [chip for chip in bound if chip.card is card]) for card in cards),
        nodes=FrozenMap({chip.node: NodeFact(0o660, "0", "render", 240, chip.minor) for chip in bound}),
        answers=FrozenMap({"driver": _answer(description, bound)}),
    )


def _check(description: MachineDescription, cards: tuple[CardDescription, ...]) -> None:
    for card in cards:
        _known(card.model, "model", tuple(_DEVICE_IDS))
        for option in card.options:
            _known(option, "option", OPTIONS)
        if card.address is None:
            raise RecordingError("an example card needs the address of its PCI function")
    for fault in description.faults:
        if fault.plugin == FAMILY:
            _known(fault.kind, "fault", (*ANSWER_FAULTS, *CARD_FAULTS))


def _known(word: str, what: str, known: tuple[str, ...]) -> None:
    if word not in known:
        raise RecordingError(f"unknown {what} {word!r} of an example card (known: {', '.join(known)})")


def _is_bound(description: MachineDescription, card: CardDescription) -> bool:
    return card.driver is not None and not any(
        description.faults_of(kind, card.address) for kind in ("no-driver", "vfio")
    )


def _chips(cards: tuple[CardDescription, ...]) -> list[_Chip]:
    places = [(card, position) for card in cards for position in range(CHIPS[card.model.upper()])]
    return [_chip(card, position, count) for count, (card, position) in enumerate(places)]


def _chip(card: CardDescription, position: int, count: int) -> _Chip:
    slot, minor, unit = (_option(card, name, position, count) for name in ("slots", "minors", "units"))
    x, y = _option(card, "grid", position, (count % COLUMNS, count // COLUMNS))
    return _Chip(card, position, slot, minor, unit, (x, y))


def _option(card: CardDescription, name: str, position: int, default: Any) -> Any:
    return card.options[name][position] if name in card.options else default


def _function(card: CardDescription, chips: list[_Chip]) -> SimulatedFunction:
    return SimulatedFunction(
        address=card.address or "",
        vendor_id=VENDOR_ID,
        device_id=_DEVICE_IDS[card.model],
        class_code="120000",
        parent=card.parent,
        numa_node=card.numa_node,
        driver=DRIVER if card.driver == "default" else card.driver,
        speed_gts=16.0,
        width=16,
        max_speed_gts=16.0,
        max_width=16,
        files=FrozenMap({name: text for chip in chips for name, text in chip.files.items()}),
    )


def _answer(description: MachineDescription, chips: list[_Chip]) -> Any:
    for fault, answer in ANSWER_FAULTS.items():
        if description.faults_of(fault):
            return answer
    alive = [chip for chip in chips if not description.faults_of("dead-link", chip.card.address)]
    links = [_link_row(description, a, b) for a, b in combinations(alive, 2) if _are_neighbours(a, b)]
    return {"version": VERSION, "chips": [_chip_row(description, chip) for chip in alive], "links": links}


def _chip_row(description: MachineDescription, chip: _Chip) -> dict[str, Any]:
    address = chip.card.address or ""
    name = f"EX-{address.replace(':', '').replace('.', '')}{chip.position}"
    has_memory = not description.faults_of("memory-unknown", address)
    return {
        "slot": chip.slot,
        "node": chip.node,
        "unit": chip.unit,
        "uuid": name,
        "cores": [{"unit": chip.unit * CORES + core, "uuid": f"{name}-{core}"} for core in range(CORES)],
        "memory_bytes": 32 << 30 if has_memory else None,
        "sensors": {"power_watts": 61.5, "temperature_celsius": 41.0, "corrected_errors": 0},
    }


def _are_neighbours(a: _Chip, b: _Chip) -> bool:
    return abs(a.grid[0] - b.grid[0]) + abs(a.grid[1] - b.grid[1]) == 1


def _link_row(description: MachineDescription, a: _Chip, b: _Chip) -> dict[str, Any]:
    is_down = a.card is b.card and bool(description.faults_of("link-down", a.card.address))
    speed = LANES * LANE_BYTES_PER_SECOND
    return {"a": a.slot, "b": b.slot, "lanes": LANES, "bytes_per_second_each_way": speed, "is_up": not is_down}
