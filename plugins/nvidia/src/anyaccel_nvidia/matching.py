"""Joining two lists: the cards that files show and the cards that the driver answers for. PCI addresses are the key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from anyaccel.device import Condition, Device, DeviceState
from anyaccel.frozen import FrozenMap
from anyaccel.host import read_boundary
from anyaccel.machine import Machine
from anyaccel.topology import Boundary
from anyaccel_nvidia.declaration import BATCH_VARIABLES
from anyaccel_nvidia.devices import NOT_ASKED
from anyaccel_nvidia.health import lost_condition
from anyaccel_nvidia.kernel_files import kernel_driver_version, xid_lines
from anyaccel_nvidia.replies import NO_PERMISSION, NOT_FOUND, Reply

__all__ = ["InspectionScene", "Match", "look_around", "match_answers", "with_instead"]


@dataclass(frozen=True)
class InspectionScene:
    """What inspection needs beside the driver's document.

    Args: boundary: where the program runs. xids: (PCI address, number) of errors in the kernel log.
        kernel_version: of the kernel module. environ: to see whether a batch system restricts the process.
    """

    boundary: Boundary
    xids: tuple[tuple[str, int], ...] = ()
    kernel_version: str | None = None
    environ: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_restricted(self) -> bool:
        """Whether device rules of a container or batch system may hide cards from this process."""
        return bool(self.boundary.is_container) or any(name in self.environ for name in BATCH_VARIABLES)


def look_around(machine: Machine) -> InspectionScene:
    """Look at what inspection needs beside the driver's document."""
    return InspectionScene(
        boundary=read_boundary(machine),
        xids=xid_lines(machine),
        kernel_version=kernel_driver_version(machine),
        environ=dict(machine.environ),
    )


@dataclass(frozen=True)
class Match:
    """Both lists.

    Args: roots: what files show. entries: what the driver answered, one an index. by_address: those that name their
        PCI address. refused: entries of indices whose handle the driver refuses; they name nothing but the index.
        driver_version: as the driver says.
    """

    roots: tuple[Device, ...]
    entries: tuple[Reply, ...]
    by_address: Mapping[str, Reply]
    refused: tuple[Reply, ...]
    scene: InspectionScene
    driver_version: str | None = None

    def entry_for(self, root: Device) -> Reply | None:
        """Give what the driver says of a card; a lone root without a PCI address takes a lone answer."""
        if root.pci_addresses:
            return next((self.by_address[a] for a in root.pci_addresses if a in self.by_address), None)
        is_lone = len(self.roots) == 1 and len(self.entries) == 1 and not self.refused
        return self.entries[0] if is_lone else None

    def stands_for_several(self, root: Device) -> bool:
        """Whether one root without a PCI address (WSL) stands for more GPUs than one."""
        return not root.pci_addresses and len(self.roots) == 1 and len(self.entries) > 1

    def without_answer(self, root: Device) -> Device:
        """Give a card the driver said nothing about: lost where handles are refused, else not shown to this process."""
        if not _is_unasked(root):
            return self._with_lost_number(root) if root.state is DeviceState.LOST else root
        if _is_denied(root):
            return self._with_lost_number(_without_unasked(root))
        refused, waiting_count = self._unexplained
        if refused and waiting_count <= len(refused):
            lost = lost_condition(refused[0].number("code") or 0)
            return self._with_lost_number(with_instead(root, lost))
        return with_instead(root, _not_shown(len(refused), self.scene))

    @property
    def _unexplained(self) -> tuple[tuple[Reply, ...], int]:
        """Give the refused handles, and how many cards wait, without those whose device file keeps this user out."""
        denied = sum(_is_denied(root) for root in self._waiting)
        for_rights = [entry for entry in self.refused if entry.number("code") == NO_PERMISSION][:denied]
        return tuple(entry for entry in self.refused if entry not in for_rights), len(self._waiting) - len(for_rights)

    @property
    def _waiting(self) -> tuple[Device, ...]:
        """Cards without an answer that the driver ought to count."""
        unanswered = (root for root in self.roots if root.pci_addresses and self.entry_for(root) is None)
        return tuple(root for root in unanswered if root.state is DeviceState.LOST or _is_unasked(root))

    def _with_lost_number(self, root: Device) -> Device:
        """Number a lost card when it is the only one that waits and the driver refuses exactly one."""
        if len(self.refused) == len(self._waiting) == 1 and self.refused[0].number("index") is not None:
            known = {name: why for name, why in root.unknown.items() if name != "numbers.index"}
            return _numbered(root, self.refused[0].number("index"), known)
        reason = f"the driver refuses {len(self.refused)} cards and does not say which"
        why = reason if self.refused else "the driver does not list it"
        return _numbered(root, None, {**root.unknown, "numbers.index": why})

    def notes(self) -> Iterable[str]:
        """Give facts that concern no card that is still there."""
        vanished = sum(entry.number("code") == NOT_FOUND for entry in self.refused)
        if vanished and len(self.refused) > len(self._waiting):
            yield f"{vanished} device{'s' if vanished > 1 else ''} vanished during the scan"


def _numbered(root: Device, index: int | None, unknown: Mapping[str, str]) -> Device:
    return replace(
        root,
        numbers=root.numbers.with_items({"index": index}),
        attributes=root.attributes.with_items({"index_source": "driver"}),
        unknown=FrozenMap(unknown),
    )


def match_answers(devices: Sequence[Device], document: Reply, scene: InspectionScene) -> Match:
    """Join the cards that files show with the driver's document."""
    entries = tuple(document.each("devices"))
    return Match(
        roots=tuple(device for device in devices if device.parent is None),
        entries=entries,
        by_address={address: entry for entry in entries if (address := entry.text("pci_address")) is not None},
        refused=tuple(entry for entry in entries if entry.has("code")),
        scene=scene,
        driver_version=document.text("driver_version"),
    )


def with_instead(device: Device, condition: Condition) -> Device:
    """Put a condition in the place of "not asked"; a device that has no such condition stays as it is."""
    if not _is_unasked(device):
        return device
    kept = _without_unasked(device)
    return replace(kept, conditions=(*kept.conditions, condition))


def _without_unasked(device: Device) -> Device:
    return replace(device, conditions=tuple(known for known in device.conditions if known.code != NOT_ASKED))


def _is_unasked(device: Device) -> bool:
    return any(condition.code == NOT_ASKED for condition in device.conditions)


def _is_denied(device: Device) -> bool:
    """Whether a device file keeps this user out, which explains the driver's silence."""
    return any(condition.state is DeviceState.DENIED for condition in device.conditions)


def _not_shown(refused_count: int, scene: InspectionScene) -> Condition:
    if refused_count:
        return Condition(
            "perhaps-lost",
            f"the driver refuses {refused_count} cards and does not say which",
            DeviceState.UNUSABLE,
            hint="look for NVRM messages in dmesg",
        )
    if scene.is_restricted:
        where = "container" if scene.boundary.is_container else "batch job"
        return Condition(
            "not-shown",
            f"on the host, not accessible here: device rules of the {where} keep it back",
            DeviceState.BLOCKED,
        )
    return Condition(
        "not-listed",
        "the kernel module has taken it up, the library does not list it",
        DeviceState.UNUSABLE,
        hint="its start failed: look for NVRM messages in dmesg",
    )
