"""Readings of the library."""

from __future__ import annotations

from anyaccel_gaudi.metrics import read_metrics


def test_readings_are_in_base_units(box, plugin, machine_of):
    """Watts, ratio, bytes."""
    got = plugin.call("accel_read_metrics", machine=machine_of("gaudi2-box"), devices=box.devices)
    first = {(r.name, *r.labels.values()): r.value for r in got if r.device_id == box.roots[0].id}

    assert first == {
        ("memory_used_bytes",): 768.0 * (1 << 20),
        ("utilization_ratio",): 0.0,
        ("power_watts",): 88.0,
        ("temperature_celsius", "device"): 24.0,
        ("temperature_celsius", "board"): 31.0,
        ("errors_total", "memory-corrected"): 0.0,
        ("errors_total", "memory-uncorrected"): 0.0,
    }


def test_refused_and_silent_values_have_reasons(box):
    """The library's words, or that it does not tell."""
    row = {"bus_id": "0000:19:00.0", "power_milliwatts": 1500, "problems": {"memory": "the card does not support it"}}

    got = read_metrics(box.devices[:2], {"devices": [row]})

    assert (got[0].value, got[0].reason) == (None, "the card does not support it")
    assert got[2].value == 1.5
    assert (got[7].value, got[7].reason) == (None, "libhlml does not tell it")
