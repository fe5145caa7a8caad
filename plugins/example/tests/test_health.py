"""Readings and findings of the driver's answer."""

from __future__ import annotations

from anyaccel.metrics import ReadingKind
from anyaccel_example.health import findings, readings

LINK = {"a": 0, "b": 1, "lanes": 4, "bytes_per_second_each_way": 10**11, "is_up": True}


def test_every_chip_has_every_sensor(grid, plugin, make_machine):
    """Readings come in a fixed set, so that a missing one shows."""
    machine = make_machine("example-grid").for_plugin("example")

    got = plugin.call("accel_read_metrics", machine=machine, devices=grid.devices)

    assert len(got) == 8 * 3
    assert {r.name: r.kind for r in got}["errors_total"] is ReadingKind.COUNTER
    assert got[0].value == 61.5


def test_silent_sensor_is_unknown(grid):
    """What the driver leaves out has a reason and no value."""
    got = readings(grid.devices, {"chips": [{"slot": 2, "sensors": {"power_watts": 3.0}}]})

    assert [(r.value, r.reason) for r in got[:2]] == [(3.0, None), (None, "the driver does not tell")]
    assert got[3].value is None


def test_broken_link_is_a_warning_with_a_hint():
    """The finding names both ends and what to do."""
    answer = {"version": "1.4.0", "links": [LINK, {**LINK, "b": 2, "is_up": False}]}

    found = findings(answer)[1]

    assert (found.status.value, found.seen) == ("WARN", "down between slots 0 and 2")
    assert found.hint == "reseat the bridge between the boards"


def test_healthy_links_pass():
    """All links up is a pass that counts them."""
    assert findings({"version": "1.4.0", "links": [LINK]})[1].seen == "1 links up"
