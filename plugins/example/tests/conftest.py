"""Fixtures: the example plugin alone, and its machines."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from anyaccel.device import FamilyView
from anyaccel.discovery import discover
from anyaccel.inventory import Inventory
from anyaccel.machine import Machine
from anyaccel.registry import Plugin, Registry
from anyaccel.simulation import find_machine, parse_description, simulate


@pytest.fixture(scope="session")
def registry() -> Registry:
    """A registry of the example plugin and nothing else."""
    return Registry.of("anyaccel_example.plugin")


@pytest.fixture(scope="session")
def plugin(registry: Registry) -> Plugin:
    return registry.plugin("example")


@pytest.fixture(scope="session")
def make_machine(registry: Registry) -> Callable[[str], Machine]:
    """Make a shipped machine by name, or one of a description's text."""

    def make(source: str) -> Machine:
        if "\n" in source:
            return simulate(parse_description(f'schema = "anyaccel-machine/1"\n{source}'), registry)
        return simulate(find_machine(source, registry), registry)

    return make


@pytest.fixture(scope="session")
def look(make_machine: Callable[[str], Machine], registry: Registry) -> Callable[[str], Inventory]:
    """Discover a machine."""
    return lambda source: discover(make_machine(source), registry)


@pytest.fixture(scope="session")
def grid(look: Callable[[str], Inventory]) -> FamilyView:
    """The eight chips of example-grid."""
    return look("example-grid").view("example")
