"""Readings: value or reason, in the unit of the name."""

from __future__ import annotations

import pytest

from anyaccel.errors import UnavailableError
from anyaccel_nvidia.devices import discover_devices


@pytest.fixture
def readings(plugin, machine_of, shipped):
    def read(name):
        machine = machine_of(shipped(name))
        devices = discover_devices(machine).devices
        return {(r.device_id, r.name): r for r in plugin.call("accel_read_metrics", machine=machine, devices=devices)}

    return read


def test_readings_have_the_unit_of_their_name(readings):
    """Milliwatts become watts; every card has the four readings."""
    found = readings("nvidia-h100x8")

    assert len(found) == 32
    assert found[("nvidia:0000:1b:00.0", "power_watts")].value == 68.0


def test_refused_readings_have_a_reason(readings):
    """A lost card gives nothing, a divided one no utilisation, each with its reason."""
    lost = readings("nvidia-h100x8-one-lost")[("nvidia:0000:61:00.0", "power_watts")]
    divided = readings("nvidia-a100x4-mig")[("nvidia:0000:47:00.0", "utilization_ratio")]

    assert (lost.value, lost.reason) == (None, "the driver does not answer for this card")
    assert (divided.value, divided.reason) == (None, "not supported by this device")


def test_board_without_pci_is_read(readings):
    """A lone answer without a PCI address belongs to the lone device."""
    assert readings("nvidia-jetson-orin")[("nvidia:tegra234", "temperature_celsius")].value == 34


def test_nobody_to_ask_is_an_error(readings):
    """Without the library readings are unavailable, with its reason code."""
    with pytest.raises(UnavailableError) as error:
        readings("nvidia-driver-mismatch")

    assert error.value.reason_code == "driver-mismatch"
