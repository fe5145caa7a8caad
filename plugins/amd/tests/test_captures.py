"""Trees copied from real machines. They are not part of this repository: without them these tests are skipped."""

from __future__ import annotations

import pytest

from anyaccel.device import Level


@pytest.fixture(scope="module")
def cpx(capture, inventory_of):
    """KFD tree of eight MI300X in CPX, nothing else."""
    return inventory_of(capture("mi300x-8x-cpx"))


def test_the_kfd_tree_of_cpx_alone_gives_gpus_and_partitions(cpx):
    """Eight GPUs, 63 partitions as captured, the GPU that lacks one told."""
    parts = [device for device in cpx.devices if device.level is Level.PARTITION]
    lacking = [device for device in cpx.devices if any(c.code == "partitions-missing" for c in device.conditions)]

    assert (len(cpx.devices) - len(parts), len(parts)) == (8, 63)
    assert [device.attributes["partition_count"] for device in lacking] == [7]


def test_partitions_count_in_the_order_of_kfd(cpx):
    """Numbers run from 0 to 62 in the order of the nodes."""
    numbers = [d.numbers["index"] for d in cpx.devices if d.level is Level.PARTITION]

    assert sorted(numbers) == list(range(63))


def test_every_pair_of_partitions_is_joined(cpx):
    """All 1953 pairs, 217 of them inside a package, all others one hop."""
    inside = [link for link in cpx.links if link.kind == "same-package"]

    assert (len(cpx.links), len(inside)) == (63 * 31, 217)
    assert {link.hops for link in cpx.links} == {1}


def test_unknown_bandwidth_of_the_capture_stays_unknown(cpx):
    """Ways between GPUs are told with bandwidth 0, which is not known."""
    speeds = {link.bytes_per_second_each_way for link in cpx.links if link.kind == "xgmi"}

    assert speeds == {None}


def test_two_nodes_in_one_slot_are_two_gpus(capture, inventory_of):
    """A workstation's tree claims one PCI slot for two unique ids; both are kept and the clash is told."""
    inventory = inventory_of(capture("vega10-workstation"))

    assert [device.numbers["index"] for device in inventory.devices] == [0, 1]
    assert any("claim PCI slot" in note for note in inventory.notes)


@pytest.mark.parametrize(
    ("name", "pci_id", "target"),
    [
        ("rx580", "1002:67df", None),
        ("vega56", "1002:687f", "gfx900"),
        ("rx6600xt", "1002:73ff", None),
        ("rx7900xtx", "1002:744c", "gfx1100"),
        ("rx9070", "1002:7550", "gfx1201"),
    ],
)
def test_a_tree_of_one_drm_card_is_enough(name, pci_id, target, capture, inventory_of):
    """Only /sys/class/drm/cardN/device was copied: the card is found, with its model, and without invented numbers."""
    (device,) = inventory_of(capture(name)).devices

    assert (device.attributes["pci_id"], device.attributes["target"]) == (pci_id, target)
    assert device.model is not None
    assert device.numbers["index"] is None
    assert device.is_counted


def test_a_laptop_part_is_integrated_and_not_counted(capture, inventory_of):
    """Strix Point: KFD and DRM, 16 GB drawn from the host, and not counted by default."""
    (device,) = inventory_of(capture("strixpoint")).devices

    assert (device.is_integrated, device.is_counted, device.memory_owner) == (True, False, None)
    assert device.numbers["index"] == 0
