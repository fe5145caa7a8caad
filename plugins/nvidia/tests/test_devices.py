"""Discovery from files: what is listed, in which state, and what a card's number is worth."""

from __future__ import annotations

import pytest

from anyaccel.device import DeviceState
from anyaccel.files import MemoryTree, NodeFact
from anyaccel.machine import Machine
from anyaccel_nvidia.devices import discover_devices

CARD = """
[[card]]
plugin = "nvidia"
model = "{model}"
address = "{address}"
{more}
"""


@pytest.fixture
def discovered(machine_of):
    """Give the discovery of a description."""
    return lambda description: discover_devices(machine_of(description))


def cards(*addresses, model="h100-sxm5-80gb", more=""):
    return "".join(CARD.format(model=model, address=address, more=more) for address in addresses)


def states(discovery):
    return {device.id.removeprefix("nvidia:"): device.state for device in discovery.devices}


def test_cards_are_listed_from_pci_and_proc(discovered):
    """Name, id, minor and device files come from files; the state is not known before the driver was asked."""
    (device,) = discovered(cards("0000:1b:00.0", more="minor = 4")).devices

    assert device.id == "nvidia:0000:1b:00.0"
    assert device.model == "NVIDIA H100 80GB HBM3"
    assert device.uuid.startswith("GPU-")
    assert device.numbers["minor"] == 4
    assert device.nodes == ("/dev/nvidia4", "/dev/nvidiactl", "/dev/nvidia-uvm")
    assert device.state is DeviceState.UNKNOWN
    assert device.reason == "the driver was not asked"
    assert device.driver_version == "550.163.01"


def test_minor_is_never_computed_from_the_position(discovered):
    """Device file numbers are read: here they run against the PCI order."""
    found = discovered(cards("0000:01:00.0", more="minor = 1") + cards("0000:02:00.0", more="minor = 0"))

    assert [(d.numbers["index"], d.numbers["minor"]) for d in found.devices] == [(0, 1), (1, 0)]


def test_cards_are_in_numeric_order_of_address(discovered):
    """Domain 10000 comes after ffff."""
    found = discovered(cards("10000:01:00.0", "ffff:01:00.0", "0000:ff:00.0"))

    assert list(states(found)) == ["0000:ff:00.0", "ffff:01:00.0", "10000:01:00.0"]


def test_switches_belong_to_the_family_and_are_no_devices(discovered, shipped):
    """Four NVSwitch functions are claimed, eight GPUs are devices."""
    found = discovered(shipped("nvidia-h100x8"))

    assert len(found.devices) == 8
    assert found.claimed == ("0000:05:00.0", "0000:06:00.0", "0000:07:00.0", "0000:08:00.0")


def test_dead_link_is_lost_and_the_others_stay(discovered, shipped):
    """One of eight reads as all ones: seven to ask, one not responding on PCI."""
    found = discovered(shipped("nvidia-h100x8-one-lost"))

    lost = [d for d in found.devices if d.state is DeviceState.LOST]
    assert [d.id for d in lost] == ["nvidia:0000:61:00.0"]
    assert "not responding on PCI" in lost[0].reason
    assert [d.state for d in found.devices].count(DeviceState.UNKNOWN) == 7


def test_lost_card_makes_every_number_uncertain(discovered, shipped):
    """Whether the driver counts a lost card cannot be read from files, so no index is given, with that reason."""
    found = discovered(shipped("nvidia-h100x8-one-lost"))

    assert all(device.numbers["index"] is None for device in found.devices)
    assert "0000:61:00.0 is lost" in found.devices[0].why_unknown("numbers.index")


def test_dead_link_without_driver_is_known_from_proc(machine_of):
    """A function that reads as all ones and lost its driver link belongs to us while the driver lists it."""
    machine = machine_of(cards("0000:1b:00.0") + '[[fault]]\nkind = "dead-link"\ncard = "0000:1b:00.0"\n')
    links = {path: target for path, target in machine.tree.links.items() if not path.endswith("/driver")}
    tree = MemoryTree(machine.tree.files, links, machine.tree.nodes)

    (device,) = discover_devices(Machine(tree)).devices

    assert device.state is DeviceState.LOST


def test_card_that_only_proc_lists_has_left_pci(machine_of):
    """The driver still lists a card that PCI does not show any more."""
    machine = machine_of(cards("0000:1b:00.0", "0000:43:00.0"))
    links = {path: t for path, t in machine.tree.links.items() if path != "/sys/bus/pci/devices/0000:43:00.0"}
    tree = MemoryTree(machine.tree.files, links, machine.tree.nodes)

    found = discover_devices(Machine(tree))

    assert states(found)["0000:43:00.0"] is DeviceState.LOST
    assert found.devices[1].model == "NVIDIA H100 80GB HBM3"


def test_missing_sysfs_makes_no_card_lost(machine_of):
    """Where /sys is not there at all, cards in /proc are listed and not called lost."""
    machine = machine_of(cards("0000:1b:00.0"))
    files = {path: data for path, data in machine.tree.files.items() if not path.startswith("/sys")}

    (device,) = discover_devices(Machine(MemoryTree(files, {}, machine.tree.nodes))).devices

    assert device.state is DeviceState.UNKNOWN


def test_container_with_one_of_eight_nodes(discovered, shipped):
    """Cards without a device file here are blocked, never counted, and the one given is number 0."""
    found = discovered(shipped("nvidia-container-one-of-8"))

    assert list(states(found).values()).count(DeviceState.BLOCKED) == 7
    assert found.devices[3].state is DeviceState.UNKNOWN
    assert [d.numbers["index"] for d in found.devices] == [None, None, None, 0, None, None, None, None]
    assert "not accessible here: /dev/nvidia0" in found.devices[0].reason


def test_missing_node_on_a_host_says_how_it_is_made(discovered):
    """A host without the device file: unusable, with the command that makes it."""
    fault = '[[fault]]\nkind = "no-node"\npath = "/dev/nvidia0"\n'
    (device,) = discovered(cards("0000:1b:00.0") + fault).devices

    assert device.state is DeviceState.UNUSABLE
    assert "nvidia-modprobe" in device.hint


def test_missing_control_node_in_a_container_blocks(discovered):
    """Without /dev/nvidiactl no card can be used here."""
    fault = '[[fault]]\nkind = "no-node"\npath = "/dev/nvidiactl"\n'
    (device,) = discovered('[host]\nboundary = "container"\n' + cards("0000:1b:00.0") + fault).devices

    assert device.state is DeviceState.BLOCKED
    assert "/dev/nvidiactl" in device.reason


def test_node_without_permission_is_denied(discovered):
    """The group that owns the device file is named."""
    fault = '[[fault]]\nkind = "no-permission"\npath = "/dev/nvidia0"\ngroup = "hpc"\n'
    (device,) = discovered(cards("0000:1b:00.0") + fault).devices

    assert device.state is DeviceState.DENIED
    assert "belongs to group hpc" in device.reason
    assert device.numbers["index"] is None


def test_tree_without_device_files_blames_none(machine_of):
    """A copy of /sys and /proc alone says nothing about device files."""
    machine = machine_of(cards("0000:1b:00.0"))

    (device,) = discover_devices(Machine(MemoryTree(machine.tree.files, machine.tree.links))).devices

    assert device.state is DeviceState.UNKNOWN


@pytest.mark.parametrize(
    ("fault", "code"), [("no-driver", "no-driver"), ("vfio", "passed-through"), ("excluded", "excluded-by-driver")]
)
def test_cards_the_driver_does_not_hold(fault, code, discovered):
    """Unbound, passed through and excluded cards are unusable and take no number from the others."""
    plugin = 'plugin = "nvidia"\n' if fault == "excluded" else ""
    found = discovered(
        cards("0000:1b:00.0", "0000:43:00.0") + f'[[fault]]\nkind = "{fault}"\ncard = "0000:1b:00.0"\n{plugin}'
    )

    assert [c.code for c in found.devices[0].conditions] == [code]
    assert found.devices[0].state is DeviceState.UNUSABLE
    assert [d.numbers["index"] for d in found.devices] == [None, 0]


def test_nouveau_is_the_wrong_driver(discovered):
    """A card under another driver cannot compute, and its name comes from the table of ids."""
    (device,) = discovered(cards("0000:1b:00.0", model="rtx-3090", more='driver = "nouveau"')).devices

    assert device.state is DeviceState.UNUSABLE
    assert device.model == "NVIDIA GeForce RTX 3090"


def test_sleeping_card_is_left_asleep(machine_of):
    """Of a card in runtime suspend the driver's file is not read, because that would wake it."""
    machine = machine_of(cards("0000:1b:00.0", more='runtime_status = "suspended"'))
    read = []

    class Watched(Machine):
        def read_bytes(self, path):
            read.append(path)
            return super().read_bytes(path)

    (device,) = discover_devices(Watched(machine.tree)).devices

    assert device.state is DeviceState.ASLEEP or DeviceState.ASLEEP in [c.state for c in device.conditions]
    assert not [path for path in read if path.endswith("/information")]
    assert "asleep" in device.why_unknown("numbers.minor")


def test_never_used_card_has_no_id_yet(discovered):
    """Question marks in /proc are no id."""
    (device,) = discovered(cards("0000:1b:00.0", more="never_used = true")).devices

    assert device.uuid is None
    assert "first use" in device.why_unknown("uuid")


def test_integrated_board_shares_memory(discovered, shipped):
    """GB10 is integrated; its memory is unknown for a reason and never 0."""
    (device,) = discovered(shipped("nvidia-gb10")).devices

    assert device.is_integrated is True
    assert device.memory_bytes is None
    assert "unified with the host" in device.why_unknown("memory_bytes")


def test_board_without_pci_is_one_integrated_device(discovered, shipped):
    """Jetson: one device from the device tree, counted, memory shared with 15.3 GiB of the host."""
    (device,) = discovered(shipped("nvidia-jetson-orin")).devices

    assert device.id == "nvidia:tegra234"
    assert device.is_integrated is True
    assert device.is_counted
    assert device.numbers["index"] == 0
    assert "15.3 GiB of system memory" in device.why_unknown("memory_bytes")
    assert device.attributes["board"] == "NVIDIA Jetson AGX Orin Developer Kit"


def test_device_tree_of_another_board_is_nothing():
    """A board whose device tree names another chip holds no GPU of ours."""
    found = discover_devices(Machine(MemoryTree({"/proc/device-tree/compatible": b"brcm,bcm2711\0"})))

    assert found.devices == ()
    assert found.reason is not None


def test_board_without_its_device_files_is_unusable():
    """A Tegra board without the GPU's device files lists the GPU with that reason."""
    tree = MemoryTree({"/proc/device-tree/compatible": b"nvidia,p3737\0nvidia,tegra234\0", "/sys/class/x": b""})

    (device,) = discover_devices(Machine(tree)).devices

    assert device.state is DeviceState.UNUSABLE


def test_wsl_shows_one_adapter(discovered, shipped):
    """WSL has no PCI function: one device that only the library can tell about."""
    (device,) = discovered(shipped("nvidia-wsl")).devices

    assert device.id == "nvidia:dxg"
    assert device.nodes == ("/dev/dxg",)
    assert "only the library knows" in device.why_unknown("model")


def test_wsl_of_another_vendor_is_nothing():
    """The device file of WSL alone says nothing about NVIDIA."""
    tree = MemoryTree({"/usr/lib/wsl/lib/libd3d12.so": b""}, {}, {"/dev/dxg": NodeFact()})

    assert discover_devices(Machine(tree)).devices == ()


def test_numa_memory_node_of_a_card(machine_of):
    """numa_status tells the node that the card's own memory forms; it is not the nearest node."""
    machine = machine_of(cards("0000:1b:00.0", more="numa_node = 0"))
    path = "/proc/driver/nvidia/gpus/0000:1b:00.0/numa_status"
    files = {**machine.tree.files, path: b"Node:      255\nStatus:    online\nAddress:   40000000000\n"}

    (device,) = discover_devices(Machine(MemoryTree(files, machine.tree.links, machine.tree.nodes))).devices

    assert device.attributes["memory_numa_node"] == 255
    assert device.numa_node == 0


def test_ids_that_cannot_be_read_are_known_from_proc(machine_of):
    """A function whose id files are missing is ours when the driver lists its address."""
    machine = machine_of(cards("0000:1b:00.0"))
    files = {path: data for path, data in machine.tree.files.items() if not path.endswith(("/vendor", "/device"))}
    links = {path: target for path, target in machine.tree.links.items() if not path.endswith("/driver")}

    (device,) = discover_devices(Machine(MemoryTree(files, links, machine.tree.nodes))).devices

    assert device.driver == "nvidia"
    assert device.state is DeviceState.UNKNOWN


def test_partitions_are_known_from_files(discovered, shipped):
    """The driver's capability files tell the MIG instances before anybody asks it."""
    found = discovered(shipped("nvidia-a100x4-mig"))

    below = [d for d in found.devices if d.parent == "nvidia:0000:47:00.0"]
    assert [d.id.rpartition("0.0/")[2] for d in below] == ["gi2/ci0", "gi3/ci0", "gi7/ci0"]
    assert all(len(d.nodes) == 2 and d.max_per_process == 1 for d in below)
    assert states(found)["0000:47:00.0"] is DeviceState.PARTITIONED


@pytest.mark.parametrize("loaded", [True, False])
def test_nothing_has_a_reason(loaded):
    """Without a card the reason says so, and with a loaded driver the hint says where to look."""
    files = {"/sys/devices/pci0000:00/0000:00:01.0/vendor": b"0x8086\n"}
    links = {"/sys/bus/pci/devices/0000:00:01.0": "/sys/devices/pci0000:00/0000:00:01.0"}
    proc = {"/proc/driver/nvidia/version": b"NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue\n"}

    found = discover_devices(Machine(MemoryTree({**files, **(proc if loaded else {})}, links)))

    assert found.devices == ()
    assert ("535.54.03 is loaded" in found.reason) is loaded
    assert (found.hint is not None) is loaded


def test_virtual_function_is_not_counted(machine_of):
    """A virtual function is listed beside its card and not counted twice."""
    machine = machine_of(cards("0000:1b:00.0", "0000:1b:00.4"))
    folder = "/sys/devices/pci0000:1b/0000:1b:00.4"
    links = {**machine.tree.links, f"{folder}/physfn": "/sys/devices/pci0000:1b/0000:1b:00.0"}

    found = discover_devices(Machine(MemoryTree(machine.tree.files, links, machine.tree.nodes)))

    assert [d.is_counted for d in found.devices] == [True, False]
    assert [d.numbers["index"] for d in found.devices] == [0, None]


def test_container_without_proc_cannot_match_cards_and_files(machine_of):
    """Two cards, one device file, and nothing that tells whose it is: unknown, with the counts."""
    machine = machine_of('[host]\nboundary = "container"\n' + cards("0000:1b:00.0", "0000:43:00.0"))
    files = {path: data for path, data in machine.tree.files.items() if not path.startswith("/proc/driver")}
    nodes = {path: node for path, node in machine.tree.nodes.items() if path != "/dev/nvidia1"}

    found = discover_devices(Machine(MemoryTree(files, machine.tree.links, nodes)))

    assert [c.code for c in found.devices[0].conditions] == ["node-unknown", "not-asked"]
    assert "1 of 2 device files" in found.devices[0].reason
    assert "counts 0000:1b:00.0 here is unknown" in found.devices[0].why_unknown("numbers.index")


def test_bound_card_the_driver_does_not_list(machine_of):
    """A card that is bound and missing in /proc takes the certainty from every number."""
    machine = machine_of(cards("0000:1b:00.0", "0000:43:00.0"))
    gone = "/proc/driver/nvidia/gpus/0000:43:00.0/"
    files = {path: data for path, data in machine.tree.files.items() if not path.startswith(gone)}

    found = discover_devices(Machine(MemoryTree(files, machine.tree.links, machine.tree.nodes)))

    assert "the driver does not list 0000:43:00.0" in found.devices[0].why_unknown("numbers.index")


def test_card_without_its_number_says_so(machine_of):
    """A driver file without the device number leaves it unknown with that reason."""
    machine = machine_of(cards("0000:1b:00.0"))
    path = "/proc/driver/nvidia/gpus/0000:1b:00.0/information"
    files = {**machine.tree.files, path: b"Model: \t\t Unknown\nGPU UUID: \t GPU-????????-????\n"}

    (device,) = discover_devices(Machine(MemoryTree(files, machine.tree.links, machine.tree.nodes))).devices

    assert device.why_unknown("numbers.minor") == "the driver's files do not tell it"
    assert device.model == "NVIDIA H100 SXM5 80GB"
