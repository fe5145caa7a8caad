"""Fixtures: the Gaudi plugin alone, and its machines."""

from __future__ import annotations

import pytest

from anyaccel_conformance.plugin_testing import *  # noqa: F403


@pytest.fixture(scope="session")
def plugin_module() -> str:
    """The module with the hooks."""
    return "anyaccel_gaudi.plugin"


@pytest.fixture(scope="session")
def box(view_of):
    """Eight Gaudi2 on one box."""
    return view_of("gaudi2-box")


@pytest.fixture(scope="session")
def described(view_of):
    """Give the view of cards with these module ids: `described((0, 1), "gaudi3-pcie", 'entries = "hl"')`."""
    card = '[[card]]\nplugin = "gaudi"\nmodel = "{}"\naddress = "0000:{:02x}:00.0"\nmodule = {}\n'

    def make(modules, model="gaudi2", family="", more=""):
        cards = "".join(card.format(model, 0x10 + place, module) for place, module in enumerate(modules))
        return view_of(f"[gaudi]\n{family}\n{cards}{more}")

    return make
