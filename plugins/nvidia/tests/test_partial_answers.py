"""A driver that tells less than everything, and cards that are not to be counted."""

from __future__ import annotations

import pytest

from anyaccel.device import DeviceState, Level
from anyaccel.discovery import discover
from anyaccel.environment import environment_for, resolve_all
from anyaccel.simulation import parse_description, simulate
from anyaccel.topology import Boundary
from anyaccel.visibility import apply_change
from anyaccel_nvidia.devices import discover_devices
from anyaccel_nvidia.inspection import inspect_devices
from anyaccel_nvidia.matching import InspectionScene

SCHEMA = 'schema = "anyaccel-machine/1"\n'


TEMPLATE = '[[card]]\nplugin = "nvidia"\nmodel = "{model}"\naddress = "{address}"\n{more}\n'


def cards(*addresses, model="h100-sxm5-80gb", more=""):
    return "".join(TEMPLATE.format(model=model, address=address, more=more) for address in addresses)


@pytest.fixture
def inventory_of(registry):
    """Give the inventory of a description."""
    return lambda text: discover(simulate(parse_description(SCHEMA + text), registry), registry, timeout_seconds=3)


def test_dead_card_the_library_leaves_out_is_still_a_row(inventory_of):
    """Three functions, one reads all ones, and the library counts two: two ready cards and the lost one by its address."""
    faults = "".join(
        f'[[fault]]\nkind = "{kind}"\ncard = "0000:1c:00.0"\n{more}'
        for kind, more in (("dead-link", ""), ("not-shown", 'plugin = "nvidia"\n'))
    )

    inventory = inventory_of(cards("0000:1b:00.0", "0000:1c:00.0", "0000:1d:00.0") + faults)

    assert [(device.state, device.numbers["index"]) for device in inventory.devices] == [
        (DeviceState.READY, 0),
        (DeviceState.LOST, None),
        (DeviceState.READY, 1),
    ]
    assert inventory.devices[1].id == "nvidia:0000:1c:00.0"


def test_slices_are_all_that_counts_where_the_card_refuses(inventory_of):
    """A container that was given two instances and no permission for their card can use two units."""
    fault = '[[fault]]\nkind = "memory-no-permission"\nplugin = "nvidia"\ncard = "0000:18:00.0"\n'
    text = '[host]\nboundary = "container"\n'
    text += cards("0000:18:00.0", model="a100-sxm4-40gb", more='mig = ["1g.5gb", "1g.5gb"]')

    inventory = inventory_of(text + fault)

    counted = [device for device in inventory.devices if device.is_counted]
    assert [(device.level, device.state) for device in counted] == [(Level.PARTITION, DeviceState.READY)] * 2


CARD = '[[card]]\nplugin = "nvidia"\nmodel = "h100-sxm5-80gb"\naddress = "0000:1b:00.0"\n'


HOST = InspectionScene(Boundary("host", False, False, "a test"))


def test_processes_a_card_cannot_list_are_not_none_of_them(machine_of):
    """A card whose driver cannot list processes has an unknown number of them, with the reason, and not 0."""
    machine = machine_of(CARD)
    document = machine.answers["nvidia"].documents["nvml"]
    told = {name: value for name, value in document["devices"][0].items() if name != "processes"}
    refused = {**told, "codes": {**told.get("codes", {}), "processes": 3}}

    (device,) = inspect_devices(discover_devices(machine).devices, {**document, "devices": [refused]}, HOST).devices

    assert (device.state.value, device.attributes["processes"]) == ("ready", None)
    assert device.why_unknown("attributes.processes") == "not supported by this device"


NEAR_CARD = '[[card]]\nplugin = "nvidia"\nmodel = "h100-sxm5-80gb"\naddress = "0000:1b:00.0"\nnuma_node = 1\n'


CONTAINER = InspectionScene(Boundary("container", True, False, "a test"))


def test_refused_affinity_leaves_the_node_of_the_kernel(machine_of):
    """A driver that cannot tell the nearest node, as in a restricted CPU set, takes nothing from what files tell."""
    machine = machine_of('[host]\nnuma_cpus = ["0-3", "4-7"]\nnuma_memory_gib = [64, 64]\n' + NEAR_CARD)
    document = machine.answers["nvidia"].documents["nvml"]
    told = {name: value for name, value in document["devices"][0].items() if name != "numa_nodes"}
    refused = {**told, "codes": {**told.get("codes", {}), "numa_nodes": 999}}

    (device,) = inspect_devices(
        discover_devices(machine).devices, {**document, "devices": [refused]}, CONTAINER
    ).devices

    assert (device.state.value, device.numa_node) == ("ready", 1)


def test_every_compute_card_beside_a_display_card_can_be_shown_alone(registry, shipped):
    """The display board shifts no number: each of four workers sees one card, all differ, and none sees the board."""
    inventory = discover(simulate(shipped("nvidia-dgx-station"), registry), registry)
    counted = [device.id for device in inventory.devices if device.is_counted]

    changes = [environment_for(inventory, registry, [device_id], {}) for device_id in counted]
    seen = [resolve_all(inventory, registry, apply_change({}, change))["nvidia"].device_ids for change in changes]

    assert len(counted) == 4
    assert seen == [(device_id,) for device_id in counted]


@pytest.mark.parametrize(
    ("environ", "is_told"),
    [
        ({"CUDA_VISIBLE_DEVICES": "0"}, True),
        ({"CUDA_VISIBLE_DEVICES": "0", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, False),
        ({"CUDA_VISIBLE_DEVICES": ""}, False),
    ],
)
def test_number_that_depends_on_the_order_says_so(environ, is_told, registry, shipped):
    """Where models differ a number means one card to CUDA and another to the driver's tools; pinning the order settles it."""
    inventory = discover(simulate(shipped("nvidia-mixed-workstation"), registry), registry)

    resolution = resolve_all(inventory, registry, environ)["nvidia"]

    assert any("CUDA counts the fastest first" in warning for warning in resolution.warnings) is is_told
