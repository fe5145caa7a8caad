"""Readings of the driver's files."""

from __future__ import annotations

import pytest

from anyaccel.device import Device
from anyaccel.files import MemoryTree
from anyaccel.frozen import FrozenMap
from anyaccel.machine import Machine, MachineKind
from anyaccel_neuron.metrics import read_metrics

FOLDER = "/sys/class/neuron_device/neuron0"
CORES = f"{FOLDER}/neuron_core{{}}/stats/memory_usage/device_mem/{{}}/present"
DEVICE = Device("neuron:0", "neuron", numbers=FrozenMap({"index": 0}))


def values(files, device=DEVICE):
    machine = Machine(MemoryTree(files), kind=MachineKind.SIMULATED)
    return [(r.name, r.value, r.reason) for r in read_metrics(machine, (device,))]


def test_memory_is_added_up_over_cores_and_kinds():
    """Every core counts its own."""
    files = {
        CORES.format(0, "tensors"): b"100\n",
        CORES.format(0, "model"): b"20\n",
        CORES.format(1, "tensors"): b"3\n",
    }
    files[f"{FOLDER}/stats/hardware/mem_ecc_uncorrected"] = b"2\n"

    assert values(files) == [("memory_used_bytes", 123.0, None), ("errors_total", 2.0, None)]


@pytest.mark.parametrize("text", [b"many\n", b"-1\n"])
def test_a_part_that_is_unknown_makes_the_sum_unknown(text):
    """A sum without one of its parts would be too small."""
    files = {CORES.format(0, "tensors"): b"100\n", CORES.format(1, "tensors"): text}

    assert values(files)[0][1] is None


def test_missing_files_have_a_reason():
    """Old drivers show less."""
    assert [value for _, value, _ in values({})] == [None, None]
    assert values({})[0][2] == "the driver shows no such file, or nothing in it"


def test_device_that_the_driver_does_not_show():
    """No number, no folder."""
    hidden = Device("neuron:0000:10:00.0", "neuron", numbers=FrozenMap({"index": None}))

    assert values({}, hidden)[0][1:] == (None, "the kernel driver does not show the device")
