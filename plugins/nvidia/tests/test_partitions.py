"""MIG: instances as children, with their own memory, also where the card itself says little."""

from __future__ import annotations

import pytest

from anyaccel.device import DeviceState, Level
from anyaccel.discovery import discover
from anyaccel.simulation import parse_description, simulate
from anyaccel.topology import Boundary
from anyaccel_nvidia.devices import discover_devices
from anyaccel_nvidia.inspection import inspect_devices
from anyaccel_nvidia.matching import InspectionScene

SCHEMA = 'schema = "anyaccel-machine/1"\n'
GIB = 2**30


@pytest.fixture
def view_of_text(registry):
    """Give the family of a description."""
    return lambda text: discover(simulate(parse_description(SCHEMA + text), registry), registry).view("nvidia")


def card(profiles, more=""):
    return (
        '[[card]]\nplugin = "nvidia"\nmodel = "a100-sxm4-40gb"\naddress = "0000:47:00.0"\n'
        f"mig = {profiles}\nnuma_node = 0\n{more}"
    )


def test_instances_are_children_with_own_memory(view_of_text):
    """Each instance has its memory, profile and numbers, inherits the NUMA node, and serves one at a time a process."""
    view = view_of_text(card('["3g.20gb", "1g.5gb"]'))

    large, small = view.children("nvidia:0000:47:00.0")
    assert (large.attributes["profile"], small.attributes["profile"]) == ("3g.20gb", "1g.5gb")
    assert 19 * GIB < large.memory_bytes < 20 * GIB
    assert (large.numbers["gpu_instance"], large.numbers["compute_instance"], large.numbers["mig_index"]) == (2, 0, 0)
    assert {child.numa_node for child in (large, small)} == {0}
    assert {child.max_per_process for child in (large, small)} == {1}
    assert {child.state for child in (large, small)} == {DeviceState.READY}


def test_divided_card_is_not_counted_itself(view_of_text):
    """The card is partitioned, and its instances are counted instead."""
    card_itself = view_of_text(card('["1g.5gb"]')).roots[0]

    assert card_itself.state is DeviceState.PARTITIONED
    assert not card_itself.is_counted
    assert card_itself.memory_bytes == 40 * GIB


def test_mode_without_instances_is_empty(view_of_text):
    """MIG mode on without instances: partitioned, with the command that makes one; other cards are not touched."""
    view = view_of_text(card("[]"))

    assert view.roots[0].state is DeviceState.PARTITIONED
    assert "no instance exists" in view.roots[0].reason
    assert "nvidia-smi mig" in view.roots[0].hint


def test_mixed_machine_counts_wholes_and_instances(registry, shipped):
    """One divided, one empty, two whole cards: five units can be had."""
    inventory = discover(simulate(shipped("nvidia-a100x4-mig"), registry), registry)

    counted = [device for device in inventory.devices if device.is_counted]

    assert [device.level.value for device in counted] == ["device", "partition", "partition", "partition", "device"]


def test_card_without_permission_leaves_its_instances(view_of_text):
    """The card's memory is refused with 4, two instances answer: both are there and one parent."""
    fault = '[[fault]]\nkind = "memory-no-permission"\nplugin = "nvidia"\n'

    view = view_of_text('[host]\nboundary = "container"\n' + card('["1g.5gb", "2g.10gb"]') + fault)

    assert view.roots[0].memory_bytes is None
    assert "NVIDIA_MIG_MONITOR_DEVICES" in view.roots[0].why_unknown("memory_bytes")
    assert [child.parent for child in view.children(view.roots[0].id)] == [view.roots[0].id] * 2
    assert all(child.memory_bytes for child in view.children(view.roots[0].id))


@pytest.fixture
def answered(machine_of):
    """Give discovered devices and the driver's document of a divided card."""

    def make(profiles, boundary="host"):
        machine = machine_of(f'[host]\nboundary = "{boundary}"\n' + card(profiles))
        return discover_devices(machine).devices, machine.answers["nvidia"].documents["nvml"]

    return make


def scene(is_container=False):
    return InspectionScene(Boundary("container" if is_container else "host", is_container, False, "a test"))


def with_partitions(document, partitions):
    return {**document, "devices": [{**document["devices"][0], "partitions": partitions}]}


def test_instance_the_driver_does_not_show_is_blocked(answered):
    """Of two instances in files the driver shows one: the other stays listed, as not accessible here."""
    devices, document = answered('["1g.5gb", "2g.10gb"]', "container")
    shown = with_partitions(document, document["devices"][0]["partitions"][:1])

    seen = inspect_devices(devices, shown, scene(is_container=True)).devices

    assert [device.state.value for device in seen] == ["partitioned", "blocked", "ready"]


def test_instance_only_the_driver_knows_is_added(answered):
    """An instance that files do not show comes behind the known ones, under the same kind of id."""
    devices, document = answered('["1g.5gb", "2g.10gb"]')

    seen = inspect_devices(devices[:2], document, scene()).devices

    assert [device.id for device in seen[:2]] == [device.id for device in devices[:2]]
    assert seen[2].id == "nvidia:0000:47:00.0/gi7/ci0"


def test_compute_instances_of_one_gpu_instance_share_its_memory(answered):
    """Two compute instances in one GPU instance: the GPU instance owns the memory, the two are units below it."""
    devices, document = answered('["3g.20gb"]')
    first = document["devices"][0]["partitions"][0]
    second = {**first, "index": 1, "compute_instance": 1, "uuid": "MIG-other", "name": "NVIDIA A100 MIG 1c.3g.20gb"}

    seen = inspect_devices(devices[:1], with_partitions(document, [first, second]), scene()).devices

    _, shared, one, two = seen
    assert (shared.id, shared.level) == ("nvidia:0000:47:00.0/gi2", Level.PARTITION)
    assert shared.memory_bytes == first["memory_bytes"]
    assert [(d.id, d.level, d.memory_bytes, d.memory_owner) for d in (one, two)] == [
        (f"{shared.id}/ci0", Level.CORE, None, shared.id),
        (f"{shared.id}/ci1", Level.CORE, None, shared.id),
    ]
    assert two.attributes["profile"] == "1c.3g.20gb"
    assert [d.is_counted for d in seen] == [False, False, True, True]


def test_profile_without_a_name_comes_from_slices(answered):
    """A driver that gives no product name still tells slices and memory."""
    devices, document = answered('["2g.10gb"]')
    nameless = {k: v for k, v in document["devices"][0]["partitions"][0].items() if k != "name"}

    seen = inspect_devices(devices, with_partitions(document, [nameless]), scene()).devices

    assert seen[1].attributes["profile"] == "2g.10gb"


def test_instance_in_a_container_needs_its_own_files(machine_of):
    """Without its capability files an instance is not accessible in a container."""
    text = '[host]\nboundary = "container"\n' + card('["1g.5gb"]')
    machine = machine_of(text)
    node = next(path for path in machine.tree.nodes if path.startswith("/dev/nvidia-caps/"))

    machine = machine_of(text + f'[[fault]]\nkind = "no-node"\npath = "{node}"\n')
    found = discover_devices(machine).devices

    assert found[1].state is DeviceState.BLOCKED
    assert node in found[1].reason
