"""Readings from the driver's files: units, labels, and a reason for each that is missing."""

from __future__ import annotations

import pytest

FOLDER = "/sys/bus/pci/devices/0000:23:00.0"
SENSORS = f"{FOLDER}/hwmon/hwmon4"


@pytest.fixture
def readings(plugin, described, inventory_of, card):
    """Give the readings of one card by name and label."""

    def read(machine):
        devices = inventory_of(machine).devices
        found = plugin.call("accel_read_metrics", machine=machine.for_plugin("amd"), devices=devices)
        return {(r.name, *r.labels.values()): r for r in found}

    return read


def test_files_are_read_in_base_units(readings, described, card):
    """Microwatts, millidegrees and percent become watts, degrees and a share; sensors keep their names."""
    found = readings(described(card()))

    assert {key: reading.value for key, reading in found.items()} == {
        ("utilization_ratio",): 0.0,
        ("memory_used_bytes",): 11579392.0,
        ("power_watts",): 41.0,
        ("temperature_celsius", "device"): 31.0,
        ("temperature_celsius", "hotspot"): 34.0,
        ("temperature_celsius", "memory"): 29.0,
        ("clock_hertz", "compute"): 132e6,
    }


def test_power_now_stands_in_for_the_average(readings, described, card, changed):
    """Newer parts show `power1_input` only."""
    machine = changed(
        described(card()), {f"{SENSORS}/power1_input": b"52500000\n"}, gone=(f"{SENSORS}/power1_average",)
    )

    assert readings(machine)["power_watts",].value == 52.5


@pytest.mark.parametrize("content", [b"", b"N/A\n", b"-1\n", b"\xff\xfe\n"])
def test_what_is_no_number_is_unknown(content, readings, described, card, changed):
    """An empty, textual or negative file is no value, and says so."""
    reading = readings(changed(described(card()), {f"{SENSORS}/power1_average": content}))["power_watts",]

    assert (reading.value, reading.reason) == (None, "the driver shows no such file, or nothing in it")


def test_a_sleeping_gpu_is_left_asleep(readings, described, card, changed):
    """Nothing of it is read: files that would wake it are not opened, and every value says why it is missing."""
    machine = described(card("rx7900xtx", "0000:23:00.0", suspended="true"))
    read = []

    class Watching(type(machine.tree)):
        def read_bytes(self, path):
            read.append(path)
            return super().read_bytes(path)

    found = readings(changed(machine, tree=Watching))

    assert {reading.reason for reading in found.values()} == {"it is asleep, and reading would wake it"}
    assert not [path for path in read if "hwmon" in path or "busy" in path or "vram_used" in path]


def test_energy_is_told_where_the_driver_counts_it(readings, described, card, changed):
    """Microjoules become joules; without the file there is no such reading."""
    found = readings(changed(described(card()), {f"{SENSORS}/energy1_input": b"2500000\n"}))

    assert found["energy_joules_total",].value == 2.5


def test_parts_have_no_sensors_of_their_own(plugin, shipped, inventory_of):
    """64 partitions on eight GPUs: readings are the GPUs'."""
    machine = shipped("amd-mi300x8-cpx-63")
    devices = inventory_of(machine).devices
    found = plugin.call("accel_read_metrics", machine=machine.for_plugin("amd"), devices=devices)

    assert {reading.device_id for reading in found} == {d.id for d in devices if d.parent is None}


def test_real_files_give_real_values(plugin, capture, inventory_of):
    """A workstation's card: plausible temperature and power."""
    machine = capture("rx7900xtx")
    devices = inventory_of(machine).devices
    values = {
        (r.name, *r.labels.values()): r.value
        for r in plugin.call("accel_read_metrics", machine=machine.for_plugin("amd"), devices=devices)
    }

    assert 10 < values["temperature_celsius", "device"] < 110
    assert 0 < values["power_watts",] < 1000
