"""Descriptions of imaginary machines, and what a plugin makes of its part of one. Frozen values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from anyaccel.errors import RecordingError
from anyaccel.files import NodeFact
from anyaccel.frozen import FrozenMap
from anyaccel.machine import UserFacts

__all__ = [
    "CardDescription",
    "FaultDescription",
    "HostDescription",
    "LinkDescription",
    "MachineDescription",
    "NicDescription",
    "SimulatedFamily",
    "SimulatedFunction",
    "check_family",
    "check_words",
]

Json = Any


@dataclass(frozen=True)
class HostDescription:
    """The host part of an imaginary machine.

    Args: numa_cpus: a CPU list (`0-27,56-83`) a node. numa_memory_bytes: by node. boundary: host, container, vm or wsl.
        kernel: release text. user: who the imaginary user is.
    """

    numa_cpus: tuple[str, ...] = ("0-7",)
    numa_memory_bytes: tuple[int, ...] = (64 << 30,)
    boundary: str = "host"
    kernel: str = "6.8.0-simulated"
    user: UserFacts = field(default_factory=lambda: UserFacts(uid=1000, groups=("render", "video")))


@dataclass(frozen=True)
class CardDescription:
    """One card.

    Args: plugin: key of the family. model: a name the plugin knows. address: PCI address, None for boards without PCI.
        parent: address of the bridge above or a root (`pci0000:16`), None = a root of its own. numa_node: None = unknown.
        driver: bound kernel driver, `default` = the family's own, None = none.
        options: everything else in the card's table, for the plugin.
    """

    plugin: str
    model: str
    address: str | None = None
    parent: str | None = None
    numa_node: int | None = None
    driver: str | None = "default"
    options: FrozenMap[Json] = field(default_factory=FrozenMap)


@dataclass(frozen=True)
class LinkDescription:
    """A vendor link between two cards, named by PCI address or position; count 0 = unknown."""

    a: str
    b: str
    kind: str
    count: int = 1
    options: FrozenMap[Json] = field(default_factory=FrozenMap)


@dataclass(frozen=True)
class NicDescription:
    """A network card beside the accelerators."""

    name: str
    address: str
    kind: str = "infiniband"
    parent: str | None = None
    numa_node: int | None = None


@dataclass(frozen=True)
class FaultDescription:
    """Something that is wrong on purpose.

    Args: kind: see docs/simulation.md. card: PCI address of the card it concerns, None = the whole family or host.
        plugin: the family, None = generic. options: everything else in the table.
    """

    kind: str
    card: str | None = None
    plugin: str | None = None
    options: FrozenMap[Json] = field(default_factory=FrozenMap)


@dataclass(frozen=True)
class MachineDescription:
    """An imaginary machine, read from TOML.

    Args: bridges: (address, parent, numa node or None). families: the table named after each plugin.
    """

    name: str
    title: str = ""
    host: HostDescription = field(default_factory=HostDescription)
    bridges: tuple[tuple[str, str, int | None], ...] = ()
    cards: tuple[CardDescription, ...] = ()
    links: tuple[LinkDescription, ...] = ()
    nics: tuple[NicDescription, ...] = ()
    faults: tuple[FaultDescription, ...] = ()
    environ: FrozenMap[str] = field(default_factory=FrozenMap)
    families: FrozenMap[FrozenMap[Json]] = field(default_factory=FrozenMap)

    def cards_of(self, plugin: str) -> tuple[CardDescription, ...]:
        """Give the cards of one family, in order."""
        return tuple(card for card in self.cards if card.plugin == plugin)

    def faults_of(self, kind: str, card: str | None = None) -> tuple[FaultDescription, ...]:
        """Give the faults of one kind, for one card when named."""
        return tuple(f for f in self.faults if f.kind == kind and (card is None or f.card == card))

    def keeps_driver(self, card: CardDescription) -> bool:
        """Whether the family's own driver is bound to a card: it was not left out, and no fault takes it away."""
        lost = any(self.faults_of(kind, card.address) for kind in ("no-driver", "vfio"))
        return card.driver == "default" and not lost

    def family_options(self, plugin: str) -> Mapping[str, Json]:
        """Give the table named after a plugin, empty when there is none."""
        return self.families.get(plugin, FrozenMap())


@dataclass(frozen=True)
class SimulatedFunction:
    """One PCI function of an imaginary card; core lays it into the tree with its bridges.

    Args: class_code: six hex digits. files: further files of its folder by relative path. links: relative path → target.
        speed_gts, width, max_speed_gts, max_width: the PCIe link.
    """

    address: str
    vendor_id: int
    device_id: int
    class_code: str
    parent: str | None = None
    numa_node: int | None = None
    driver: str | None = None
    subsystem_vendor_id: int = 0
    subsystem_id: int = 0
    speed_gts: float | None = None
    width: int | None = None
    max_speed_gts: float | None = None
    max_width: int | None = None
    files: FrozenMap[str] = field(default_factory=FrozenMap)
    links: FrozenMap[str] = field(default_factory=FrozenMap)


@dataclass(frozen=True)
class SimulatedFamily:
    """What a plugin makes of its part of an imaginary machine.

    Args: functions: PCI functions. files: by absolute path. links: symbolic links by absolute path.
        nodes: device files by absolute path. answers: JSON document by topic; `{"fault": "hang"}` and `{"fault": "crash"}`
        are acted out by the probe child, `{"unavailable": reason, "reason_code": code}` is an answer that never came.
    """

    functions: tuple[SimulatedFunction, ...] = ()
    files: FrozenMap[str] = field(default_factory=FrozenMap)
    links: FrozenMap[str] = field(default_factory=FrozenMap)
    nodes: FrozenMap[NodeFact] = field(default_factory=FrozenMap)
    answers: FrozenMap[Json] = field(default_factory=FrozenMap)


def check_family(
    description: MachineDescription,
    plugin: str,
    *,
    models: Iterable[str],
    card_options: Iterable[str] = (),
    family_options: Iterable[str] = (),
    faults: Mapping[str, Iterable[str]] | None = None,
    needs_address: bool = True,
) -> None:
    """Refuse what a description says about a family and nobody would act on.

    Args: models, card_options, family_options: the words that are known. faults: the options of each fault, by its kind.
        needs_address: whether every card sits on PCI.
    Raises: RecordingError naming the word, its place and the known ones.
    """
    check_words("option", description.family_options(plugin), family_options, f"in [{plugin}]")
    cards = description.cards_of(plugin)
    for position, card in enumerate(cards, start=1):
        where = f"of {plugin} card {card.address or position}"
        check_words("model", (card.model,), models, where)
        check_words("option", card.options, card_options, where)
        if card.address is None and needs_address:
            raise RecordingError(f"{plugin} card {position} ({card.model!r}) needs a PCI address")
    places = {card.address for card in cards}
    for fault in description.faults:
        if fault.plugin == plugin:
            check_words("fault", (fault.kind,), faults or {}, f"of {plugin}")
            check_words("option", fault.options, (faults or {})[fault.kind], f"of fault {fault.kind!r}")
            if fault.card is not None and fault.card not in places:
                raise RecordingError(
                    f"fault {fault.kind!r} concerns card {fault.card!r}, which is no {plugin} card here"
                )


def check_words(what: str, words: Iterable[str], known: Iterable[str], where: str = "") -> None:
    """Refuse a word that is not known, with the known ones and the nearest.

    Raises: RecordingError.
    """
    names = sorted(known)
    unknown = sorted(set(words) - set(names))
    if unknown:
        from difflib import get_close_matches

        near = get_close_matches(unknown[0], names, n=1)
        raise RecordingError(
            f"unknown {what} {unknown[0]!r}{f' {where}' if where else ''} (known: {', '.join(names) or 'none'})",
            hint=f"did you mean {near[0]!r}?" if near else None,
        )
