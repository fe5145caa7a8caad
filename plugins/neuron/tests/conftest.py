"""Fixtures: the Neuron plugin alone, and its machines."""

from __future__ import annotations

import pytest

from anyaccel_conformance.plugin_testing import *  # noqa: F403


@pytest.fixture(scope="session")
def plugin_module() -> str:
    """The module with the hooks."""
    return "anyaccel_neuron.plugin"


def cards(count: int, model: str = "trn1", **options: str) -> str:
    """Give the description of so many cards on buses 10, 11, …"""
    more = "".join(f"{name} = {value}\n" for name, value in options.items())
    card = '[[card]]\nplugin = "neuron"\nmodel = "{model}"\naddress = "0000:{bus:02x}:00.0"\nnuma_node = 0\n{more}'
    return "".join(card.format(model=model, bus=0x10 + number, more=more) for number in range(count))


@pytest.fixture(scope="session")
def server(view_of):
    """Sixteen Trainium2."""
    return view_of("neuron-trn2x16")


@pytest.fixture(scope="session")
def described(view_of):
    """Give the view of so many equal cards: `described(12, "inf2", 'links = "ring"')`."""
    return lambda count, model="trn1", family="": view_of(f"[neuron]\n{family}\n{cards(count, model)}")
