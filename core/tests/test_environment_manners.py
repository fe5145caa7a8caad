"""What writing a mask leaves alone."""

from __future__ import annotations

import os

from anyaccel.discovery import discover
from anyaccel.environment import environment_for
from anyaccel.registry import Registry

CARDS = (("0000:01:00.0", 0x1DE8, "120000"), ("0000:02:00.0", 0x1DE8, "120000"))


def test_variables_of_an_absent_family_stay_as_they_are(write_toy, pci_machine):
    """Hiding everything writes nothing for a family that has a plugin and no device here."""
    registry = Registry.of(write_toy(), write_toy(key="alpha", vendor="0x1de9", variable="ALPHA"))
    inventory = discover(pci_machine(*CARDS), registry)

    change = environment_for(inventory, registry, [], {"ALPHA": "0"})

    assert (change.set, change.unset) == ((("TOY_VISIBLE", ""),), ())


def test_the_environment_of_this_process_stays_as_it_is(write_toy, pci_machine, monkeypatch):
    """Masks for other processes are values; nothing is written into the environment they were worked out from."""
    monkeypatch.setenv("TOY_VISIBLE", "1")
    before = dict(os.environ)
    registry = Registry.of(write_toy())
    inventory = discover(pci_machine(*CARDS), registry)

    environment_for(inventory, registry, ["toy:0000:01:00.0"], os.environ, widen=True)

    assert dict(os.environ) == before
