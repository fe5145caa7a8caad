"""The scale-up wiring of boxes and boards."""

from __future__ import annotations

import pytest

from anyaccel.errors import UnavailableError
from anyaccel.topology import LinkSource, LinkState
from anyaccel_gaudi.links import describe_links


def test_box_joins_all_to_all(box):
    """Twenty-eight pairs of eight cards, three ports of 100 Gbit/s each."""
    assert len(box.links) == 28
    assert {(link.kind, link.count, link.bytes_per_second_each_way) for link in box.links} == {
        ("gaudi-roce", 3, 37_500_000_000)
    }
    assert {(link.state, link.source) for link in box.links} == {(LinkState.UP, LinkSource.TABLE)}


def test_boards_are_islands(view_of):
    """Four PCIe cards are joined, and nothing joins the groups."""
    view = view_of("gaudi3-pcie-islands")
    module = {d.id: d.numbers["module"] for d in view.roots}

    pairs = {(module[link.a], module[link.b]) for link in view.links}

    assert pairs == {(a, b) for a in range(8) for b in range(a + 1, 8) if a // 4 == b // 4}
    assert "nothing public tells how many ports" in view.links[0].reason


@pytest.mark.parametrize(("model", "speed"), [("gaudi1", 12_500_000_000), ("gaudi3", 75_000_000_000)])
def test_speed_by_model(model, speed, described):
    """One port a pair of 100 Gbit/s, or three of 200."""
    assert described((0, 1), model).links[0].bytes_per_second_each_way == speed


def test_port_without_a_link_makes_the_state_unknown(described):
    """Nobody tells where a port leads, so no pair is called down."""
    fault = '[[fault]]\nkind = "ports-down"\nplugin = "gaudi"\ncard = "0000:10:00.0"\ncount = 3\n'

    links = described((0, 1, 2), more=fault).links

    assert [link.state.value for link in links] == ["unknown", "unknown", "up"]
    assert links[0].reason == "some ports have no link, and nobody tells where a port leads"


def test_silent_library_leaves_the_wiring(box):
    """The wiring is known by model; whether it carries data is not."""

    def ask():
        raise UnavailableError("no library", reason_code="library-missing")

    report = describe_links(box.roots, ask)

    assert len(report.links) == 28
    assert {link.state for link in report.links} == {LinkState.UNKNOWN}
    assert report.notes[0].endswith("no library")


@pytest.mark.parametrize(("modules", "model"), [((0,), "gaudi2"), ((0, 1), "goya"), ((0, 4), "gaudi3-pcie")])
def test_nothing_that_is_joined(modules, model, described):
    """One card, cards without wiring, and cards of two boards."""
    assert described(modules, model).links == ()
