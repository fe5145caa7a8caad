"""Joining PCI, KFD and DRM: what is an AMD GPU, what is not, and what happens when a source is not there."""

from __future__ import annotations

import pytest

from anyaccel.device import DeviceState
from anyaccel.files import MemoryTree
from anyaccel.machine import Machine, MachineKind
from anyaccel_amd.joining import join_sources
from anyaccel_amd.kfd import KfdNode, KfdTopology

PCI = "/sys/bus/pci/devices"


def tree(functions, **more):
    """Give PCI functions as `address: (vendor, device, class)`."""
    files = {}
    for address, (vendor, device, class_code) in functions.items():
        files |= {
            f"{PCI}/{address}/vendor": f"0x{vendor:04x}\n".encode(),
            f"{PCI}/{address}/device": f"0x{device:04x}\n".encode(),
            f"{PCI}/{address}/class": f"0x{class_code}\n".encode(),
        }
    return MemoryTree(files=files | more.pop("files", {}), **more)


def machine(memory, kind=MachineKind.SIMULATED):
    return Machine(memory, kind=kind)


def node(number, location, domain=0, **properties):
    return KfdNode(number, 1, {"simd_count": 64, "location_id": location, "domain": domain, **properties})


def keys(gpus):
    return [gpu.key for gpu in gpus]


@pytest.mark.parametrize("class_code", ["030000", "038000", "120000", "030200"])
def test_display_and_accelerator_functions_are_gpus(class_code):
    """Class 03xx and 1200 of vendor 1002 is a GPU, whatever its device id."""
    found = join_sources(machine(tree({"0000:03:00.0": (0x1002, 0xFFFE, class_code)})), KfdTopology())

    assert keys(found) == ["0000:03:00.0"]


@pytest.mark.parametrize(
    ("device", "class_code"),
    [(0xAB30, "040300"), (0x7446, "0c0330"), (0x7444, "0c8000"), (0x1478, "060400"), (0x1649, "108000")],
)
def test_other_functions_of_the_vendor_are_none(device, class_code):
    """Sound, USB, USB-C, bridge and security functions are no GPUs."""
    found = join_sources(machine(tree({"0000:03:00.1": (0x1002, device, class_code)})), KfdTopology())

    assert found == ()


@pytest.mark.parametrize("device", [0x1502, 0x17F0])
def test_an_npu_of_the_other_vendor_id_is_no_gpu(device, inventory_of):
    """An XDNA NPU (vendor 1022, class 1180, driver amdxdna) is none of this plugin's, even with /dev/accel."""
    address = "0000:c6:00.1"
    memory = tree(
        {address: (0x1022, device, "118000")},
        links={f"{PCI}/{address}/driver": "/sys/bus/pci/drivers/amdxdna"},
        files={"/sys/bus/pci/drivers/amdxdna/bind": b"", "/dev/accel/accel0": b""},
    )

    inventory = inventory_of(machine(memory))

    assert [device for device in inventory.devices if device.family == "amd"] == []


def test_nodes_join_functions_by_address():
    """A KFD node belongs to the function in its slot, in any domain."""
    functions = {"0000:23:00.0": (0x1002, 0x740F, "038000"), "0001:23:00.0": (0x1002, 0x740F, "038000")}
    topology = KfdTopology(True, nodes=(node(1, 0x2300, domain=1), node(2, 0x2300)))

    found = join_sources(machine(tree(functions)), topology)

    assert {gpu.key: [n.number for n in gpu.nodes] for gpu in found} == {"0000:23:00.0": [2], "0001:23:00.0": [1]}


def test_partition_bits_do_not_make_a_function():
    """Function bits 0 to 7 of one slot all join the one function that is there."""
    topology = KfdTopology(True, nodes=tuple(node(n, 0x2300 + n) for n in range(8)))

    (gpu,) = join_sources(machine(tree({"0000:23:00.0": (0x1002, 0x74A1, "120000")})), topology)

    assert len(gpu.nodes) == 8


def test_function_bits_choose_between_two_functions():
    """Where a slot holds two GPU functions, the one whose function number matches gets the node."""
    functions = {"0000:23:00.0": (0x1002, 0x74B5, "120000"), "0000:23:00.1": (0x1002, 0x74B5, "120000")}
    topology = KfdTopology(True, nodes=(node(1, 0x2300), node(2, 0x2301)))

    found = join_sources(machine(tree(functions)), topology)

    assert [[n.number for n in gpu.nodes] for gpu in found] == [[1], [2]]


def test_kfd_alone_is_enough():
    """Without PCI and DRM the address comes from location and domain."""
    topology = KfdTopology(True, nodes=(node(1, 0x2300, domain=2), node(2, 0x2600, domain=2)))

    found = join_sources(machine(MemoryTree()), topology)

    assert keys(found) == ["0002:23:00.0", "0002:26:00.0"]


def test_kfd_without_domain_assumes_zero_and_says_so():
    """An old kernel tells no domain; the address is marked."""
    lone = KfdNode(1, 1, {"simd_count": 64, "location_id": 0x2300})

    (gpu,) = join_sources(machine(MemoryTree()), KfdTopology(True, nodes=(lone,)))

    assert (gpu.address, gpu.is_domain_assumed) == ("0000:23:00.0", True)


def test_kfd_nodes_with_one_unique_id_are_one_gpu():
    """Partitions share slot and unique id."""
    nodes = tuple(node(n, 0x2300 + n, unique_id=77) for n in range(8))

    (gpu,) = join_sources(machine(MemoryTree()), KfdTopology(True, nodes=nodes))

    assert (gpu.key, len(gpu.nodes)) == ("0000:23:00.0", 8)


def test_kfd_nodes_that_claim_one_slot_stay_apart():
    """Two unique ids on one slot are two GPUs with different ids."""
    nodes = (node(1, 0x1900, unique_id=5), node(2, 0x1900, unique_id=6))

    found = join_sources(machine(MemoryTree()), KfdTopology(True, nodes=nodes))

    assert keys(found) == ["0000:19:00.0+kfd1", "0000:19:00.0+kfd2"]


def _drm(number, event, files=None, folder=None):
    folder = folder or f"/sys/class/drm/card{number}/device"
    texts = {f"{folder}/uevent": event, **{f"{folder}/{name}": text for name, text in (files or {}).items()}}
    return {path: text.encode() for path, text in texts.items()}


EVENT = "DRIVER=amdgpu\nPCI_CLASS=30000\nPCI_ID=1002:67DF\nPCI_SLOT_NAME=0000:0b:00.0\n"


def test_drm_alone_is_enough():
    """A copied tree may hold only the folder of the card; its uevent tells address, ids and driver."""
    (gpu,) = join_sources(machine(MemoryTree(files=_drm(1, EVENT)), MachineKind.ROOT), KfdTopology())

    assert (gpu.key, gpu.device_id, gpu.driver, gpu.card) == ("0000:0b:00.0", 0x67DF, "amdgpu", 1)


def test_a_card_without_slot_keeps_its_number():
    """Where nothing tells a PCI address the card's number names the GPU."""
    event = "DRIVER=amdgpu\nPCI_ID=1002:67DF\n"

    (gpu,) = join_sources(machine(MemoryTree(files=_drm(3, event)), MachineKind.ROOT), KfdTopology())

    assert (gpu.key, gpu.address) == ("card3", None)


@pytest.mark.parametrize("event", ["", "PCI_ID=10DE:2684\n", "PCI_ID=rubbish\n", "PCI_ID=1002\n"])
def test_cards_of_others_are_left_alone(event):
    """A card whose folder does not name this vendor is not taken."""
    assert join_sources(machine(MemoryTree(files=_drm(0, event)), MachineKind.ROOT), KfdTopology()) == ()


def test_one_gpu_in_all_three_sources_is_one(described, view_of, card):
    """PCI, KFD and DRM tell one GPU once, with the numbers of each."""
    view = view_of(described(card()))

    (device,) = view.devices

    assert dict(device.numbers) == {"index": 0, "kfd": 1, "render": 128, "card": 0, "hip": 0, "hsa": 1}


def test_a_function_without_driver_is_listed_with_the_reason(described, view_of, card):
    """A GPU that nothing drives is there and unusable."""
    (device,) = view_of(described(card(driver='""'))).devices

    assert device.state is DeviceState.UNUSABLE
    assert "no-driver" in [condition.code for condition in device.conditions]
    assert device.numbers["index"] is None


def test_a_function_given_to_vfio_is_listed_as_given_away(described, view_of, card):
    """A GPU bound to vfio-pci is told to be passed through, and gets no number of the runtime."""
    (device,) = view_of(described(card(driver='"vfio-pci"'))).devices

    assert "passed-through" in [condition.code for condition in device.conditions]
    assert device.numbers["index"] is None


def test_a_dead_function_is_lost_and_nothing_is_made_of_its_ones(described, view_of, card):
    """A function whose config space reads all ones is lost; KFD tells its model."""
    fault = '[[fault]]\nkind = "dead-link"\ncard = "0000:23:00.0"\n'

    device = view_of(described(card() + card(address="0000:26:00.0") + fault)).device("amd:0000:23:00.0")

    assert device.state is DeviceState.LOST
    assert device.model == "Instinct MI210"
    assert device.why_unknown("attributes.uncorrected_errors") == "it does not respond"
