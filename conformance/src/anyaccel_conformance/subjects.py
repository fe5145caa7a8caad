"""What the checks run on: a plugin, and every machine it ships or somebody recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from anyaccel.device import FamilyView
from anyaccel.discovery import discover
from anyaccel.inventory import Inventory, OutcomeStatus, PluginOutcome
from anyaccel.machine import Machine
from anyaccel.machine_description import MachineDescription
from anyaccel.recording import open_recording
from anyaccel.registry import Plugin, Registry
from anyaccel.simulation import find_machine, list_machines, simulate
from anyaccel_conformance.laws import clean_environ

__all__ = ["KitPlugin", "Subject", "load_kit_plugin"]

DISCOVER_SECONDS = 4.0


@dataclass(frozen=True)
class KitPlugin:
    """One plugin under test.

    Args: name: as it was asked for, a key or a module. plugin: None when it could not be loaded; failure says why.
        machines: names of the machines it ships. recordings: folders and archives of recorded machines.
    """

    name: str
    registry: Registry
    plugin: Plugin | None
    failure: PluginOutcome | None = None
    machines: tuple[str, ...] = ()
    recordings: tuple[Path, ...] = ()

    @property
    def key(self) -> str:
        """The family's key, or the name asked for while there is none."""
        return self.name if self.plugin is None else self.plugin.key

    @cached_property
    def subjects(self) -> Mapping[str, Subject]:
        """Every machine by name, each looked at once."""
        if self.plugin is None:
            return {}
        recorded = [str(path) for path in self.recordings]
        return {
            name: Subject(name, self.name, self.plugin, self.registry, is_recorded=name in recorded)
            for name in (*self.machines, *recorded)
        }


@dataclass(frozen=True)
class Subject:
    """One plugin on one machine; everything is made when first asked for.

    Args: name: of the machine. kit_name: of the plugin as it was asked for.
    """

    name: str
    kit_name: str
    plugin: Plugin
    registry: Registry
    is_recorded: bool

    @cached_property
    def description(self) -> MachineDescription | None:
        """The description of an imaginary machine, None for a recorded one."""
        return None if self.is_recorded else find_machine(self.name, self.registry)

    @cached_property
    def machine(self) -> Machine:
        """The machine with this plugin's questions open."""
        return self.make_machine().for_plugin(self.plugin.key)

    def make_machine(self) -> Machine:
        """Make the machine anew."""
        if self.description is None:
            return open_recording(Path(self.name))
        named = {card.plugin for card in self.description.cards} | set(self.description.families)
        alone = named <= {self.plugin.key}
        return simulate(self.description, self.registry if alone else Registry.installed())

    @cached_property
    def inventory(self) -> Inventory:
        """What core finds on the machine with this plugin alone."""
        return discover(self.make_machine(), self.registry, timeout_seconds=DISCOVER_SECONDS)

    @property
    def outcome(self) -> PluginOutcome:
        """What came of the plugin on this machine."""
        return next(outcome for outcome in self.inventory.outcomes if outcome.plugin == self.plugin.key)

    @property
    def view(self) -> FamilyView:
        """The family on this machine."""
        return self.inventory.view(self.plugin.key)

    @property
    def environ(self) -> dict[str, str]:
        """The machine's environment without masks."""
        return clean_environ(self.plugin, self.machine.environ)


def load_kit_plugin(name: str, machines: Sequence[str] = (), recordings: Sequence[Path] = ()) -> KitPlugin:
    """Load a plugin by key, or by its module when the name has a dot.

    Args: machines: take only these of the machines it ships; none = all.
    """
    registry = Registry.of(name) if "." in name else Registry.installed({"ANYACCEL_PLUGINS": name})
    if not registry.plugins:
        broken = [outcome for outcome in registry.failures if outcome.status is OutcomeStatus.BROKEN]
        return KitPlugin(name, registry, None, broken[0] if broken else None)
    shipped = tuple(list_machines(registry))
    chosen = tuple(machine for machine in shipped if not machines or machine in machines)
    return KitPlugin(name, registry, registry.plugins[0], None, chosen, tuple(recordings))
