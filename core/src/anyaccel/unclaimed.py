"""Hardware without a plugin that works: named, with the command that helps, instead of passed over in silence."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field

from anyaccel.capabilities import MatchRule
from anyaccel.frozen import FrozenMap
from anyaccel.inventory import OutcomeStatus, PluginOutcome, UnclaimedHardware
from anyaccel.machine import Machine
from anyaccel.pci import PciFunction, match_functions

__all__ = ["KnownFamily", "unclaimed_hardware"]

_ACCELERATOR_CLASSES = ("0302", "12")


@dataclass(frozen=True)
class KnownFamily:
    """A family that may not be installed: enough to name its hardware and the command that helps."""

    key: str
    title: str
    distribution: str
    matches: tuple[MatchRule, ...]
    models: FrozenMap[str] = field(default_factory=FrozenMap)


def unclaimed_hardware(
    machine: Machine,
    claimed: frozenset[str],
    working: frozenset[str],
    failures: Sequence[PluginOutcome],
    known: Sequence[KnownFamily],
) -> Iterable[UnclaimedHardware]:
    """Name the hardware that looks like an accelerator and belongs to no plugin that works.

    Args: claimed: PCI addresses and device files that plugins claim. working: keys of the plugins that work. failures: outcomes
        of the others. known: families whose hardware is named together with the command that helps.
    """
    named: set[str] = set()
    for family in known:
        if family.key in working:
            continue
        for function, rule in match_functions(machine, family.matches):
            if rule.is_accelerator and function.address not in claimed | named:
                named.add(function.address)
                yield _missing_plugin(function, family, failures)
    for function in machine.pci_functions():
        if function.address in claimed | named:
            continue
        stranger = _stranger(function, machine)
        if stranger is not None:
            named.add(function.address)
            yield stranger
    yield from _unclaimed_nodes(machine, claimed | named)


def _missing_plugin(function: PciFunction, family: KnownFamily, failures: Sequence[PluginOutcome]) -> UnclaimedHardware:
    pci_id = f"{function.vendor_id or 0:04x}:{function.device_id or 0:04x}"
    failed = next((outcome for outcome in failures if outcome.plugin == family.key), None)
    name = family.models.get(pci_id)
    if failed is not None:
        what = "disabled" if failed.status is OutcomeStatus.DISABLED else "broken"
        return UnclaimedHardware(function.address, name, family.key, f"plugin {what}: {failed.reason}", failed.hint)
    return UnclaimedHardware(
        function.address, name, family.key, "plugin not installed", f"pip install {family.distribution}"
    )


def _stranger(function: PciFunction, machine: Machine) -> UnclaimedHardware | None:
    if function.is_dead:
        return UnclaimedHardware(function.address, None, None, "not responding on PCI: reads return all ones")
    if not (function.class_code or "").startswith(_ACCELERATOR_CLASSES):
        return None
    if machine.pci_detail(function).physical_function is not None:
        return None
    pci_id = f"{function.vendor_id or 0:04x}:{function.device_id or 0:04x}"
    return UnclaimedHardware(
        function.address, None, None, f"accelerator {pci_id} (class {function.class_code}) that no plugin knows"
    )


def _unclaimed_nodes(machine: Machine, claimed: Container[str]) -> Iterable[UnclaimedHardware]:
    for name in machine.list_folder("/sys/class/accel"):
        real = machine.resolve(f"/sys/class/accel/{name}/device")
        address = (real or "").rpartition("/")[2]
        node = f"/dev/accel/{name}"
        if re.fullmatch(r"accel\d+", name) and address not in claimed and node not in claimed:
            yield UnclaimedHardware(node, None, None, "unclaimed accelerator node")
