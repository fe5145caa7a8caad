"""What is told of one GPU: identity, memory, driver, rights, rest, and whether it is counted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from anyaccel.device import DeviceState, Level
from anyaccel.discovery import discover
from anyaccel.errors import UnavailableError
from anyaccel.files import MemoryTree, NodeFact
from anyaccel.machine import Answers, Machine, MachineKind

GIB = 1 << 30
PCI = "/sys/bus/pci/devices"


def codes(device):
    return [condition.code for condition in device.conditions]


def test_all_sources_together_tell_everything(shipped, view_of):
    """A GPU with driver, KFD and DRM has no unknown fact."""
    for device in view_of(shipped("amd-mi300x8")).devices:
        assert dict(device.unknown) == {}
        assert device.state is DeviceState.READY


def test_the_card_is_named_by_its_own_memory_first(described, view_of, card):
    """The product name of the board wins over the table of ids."""
    (device,) = view_of(described(card(product_name='"MI210 of an OEM"'))).devices

    assert device.model == "MI210 of an OEM"


def test_an_unknown_id_is_found_without_a_name(described, view_of, card, changed):
    """A part newer than the table is listed; its target comes from KFD."""
    machine = described(card())
    new = changed(machine, {f"{PCI}/0000:23:00.0/device": b"0x7fff\n", f"{PCI}/0000:23:00.0/product_name": b"\n"})

    (device,) = view_of(new).devices

    assert device.attributes["target"] == "gfx90a"
    assert device.attributes["pci_id"] == "1002:7fff"


def test_the_uuid_is_the_unique_id_with_all_its_zeros(described, view_of, card):
    """`GPU-` and sixteen hexadecimal digits, as the runtime prints it."""
    (device,) = view_of(described(card(unique_id='"ab12"'))).devices

    assert device.uuid == "GPU-000000000000ab12"


def test_a_gpu_without_unique_id_has_none(described, view_of, card):
    """A unique id of 0 is none, with the reason."""
    (device,) = view_of(described(card(unique_id='"0"'))).devices

    assert device.uuid is None
    assert device.why_unknown("uuid") == "it reports no unique id"


def test_memory_is_the_card_s(shipped, view_of):
    """A card owns its memory, as the driver tells the size."""
    device = view_of(shipped("amd-mi300x8")).devices[0]

    assert (device.memory_bytes, device.memory_owner) == (192 * GIB, device.id)


def test_memory_of_an_integrated_part_is_the_host_s(shipped, view_of):
    """An integrated part owns none; what it may use is told, the carve-out beside it."""
    (device,) = view_of(shipped("amd-strix-halo")).devices

    assert device.memory_owner is None
    assert device.memory_bytes == 64 * GIB
    assert device.attributes["carved_out_bytes"] == GIB // 2
    assert device.why_unknown("memory_owner") == "drawn from the host's memory"


def test_memory_comes_from_kfd_where_the_driver_file_is_missing(described, view_of, card, changed):
    """Banks of KFD stand in for mem_info_vram_total."""
    machine = changed(described(card()), gone=(f"{PCI}/0000:23:00.0/mem_info_vram_total",))

    assert view_of(machine).devices[0].memory_bytes == 64 * GIB


def test_memory_nobody_tells_is_unknown(described, inventory_of, card, changed):
    """Without both sources, and without amdsmi, the size is unknown with a reason, never 0."""
    bank = "/sys/class/kfd/kfd/topology/nodes/1/mem_banks/0/properties"
    machine = changed(
        described('[amd]\nsmi = "binding-missing"\n' + card()), gone=(f"{PCI}/0000:23:00.0/mem_info_vram_total", bank)
    )

    (device,) = inventory_of(machine).devices

    assert device.memory_bytes is None
    assert "mem_info_vram_total" in device.why_unknown("memory_bytes")


@pytest.mark.parametrize(
    ("files", "version"),
    [
        ({"/sys/module/amdgpu/version": b"6.12.12\n"}, "6.12.12"),
        ({"/sys/module/amdgpu/srcversion": b"ABC\n"}, "6.8.0 (srcversion ABC)"),
        ({"/sys/module/amdgpu/refcnt": b"1\n"}, "6.8.0"),
    ],
)
def test_driver_version_is_its_own_or_the_kernel_s(files, version, described, view_of, card, changed):
    """The separately built driver has a version file; the kernel's own is told by the release."""
    gone = ("/sys/module/amdgpu/version", "/sys/module/amdgpu/srcversion")
    release = {"/proc/sys/kernel/osrelease": b"6.8.0\n"}
    machine = changed(changed(described(card()), gone=gone), {**release, **files})

    assert view_of(machine).devices[0].driver_version == version


def test_a_sleeping_gpu_is_asleep_and_not_asked(described, view_of, card):
    """Runtime suspend is a state of its own; no counter of the GPU is read and amdsmi is not asked."""
    (device,) = view_of(described(card(suspended="true"))).devices

    assert device.state is DeviceState.ASLEEP
    assert device.why_unknown("attributes.uncorrected_errors") == "it is asleep, and asking would wake it"
    assert "market_name" not in device.attributes


def test_sleeping_gpus_are_named_in_a_note(described, inventory_of, card):
    """Why amdsmi was not asked is told once, with the GPU it would wake."""
    text = card(suspended="true") + card(address="0000:26:00.0")

    (note,) = inventory_of(described(text)).notes

    assert "would wake amd:0000:23:00.0" in note


def test_no_hook_asks_amdsmi_while_a_gpu_sleeps(described, registry, card):
    """Neither inspection nor topology asks, since asking opens every GPU."""
    asked = []

    class Counting(Answers):
        def answer(self, topic, collect):
            asked.append(topic)
            raise UnavailableError("not here", reason_code="binding-missing")

    asleep = described(card(suspended="true") + card(address="0000:26:00.0")).with_answers({"amd": Counting()})
    awake = described(card()).with_answers({"amd": Counting()})

    discover(asleep, registry, isolate=False)
    assert asked == []
    discover(awake, registry, isolate=False)
    assert set(asked) == {"amdsmi"}


def test_a_gpu_without_driver_has_one_reason(described, view_of, card):
    """Its missing device files follow from that and are not told again."""
    (device,) = view_of(described(card(driver='""'))).devices

    assert codes(device) == ["no-driver"]


def test_denied_nodes_name_group_and_remedy(shipped, view_of):
    """Both GPUs stay in the list as denied; node, owning group, the user's groups and the remedy are told."""
    first, second = view_of(shipped("amd-no-permission")).devices
    condition = next(c for c in first.conditions if "/dev/kfd" in c.reason)

    assert (first.state, second.state) == (DeviceState.DENIED, DeviceState.DENIED)
    assert condition.reason == "permission denied: /dev/kfd belongs to group render, this user is in video"
    assert "usermod -aG render" in condition.hint


def test_card_nodes_do_not_matter(described, view_of, card):
    """Compute nodes open to all and card nodes of a group the user lacks: four usable GPUs without a word."""
    text = '[host]\nuser = { uid = 1000, groups = ["users"] }\n[amd]\nnode_mode = "0666"\n'
    text += "".join(card(address=f"0000:{bus}:00.0") for bus in (23, 26, 43, 46))

    devices = view_of(described(text)).devices

    assert [device.state for device in devices] == [DeviceState.READY] * 4
    assert [codes(device) for device in devices] == [[]] * 4


def test_a_missing_kfd_file_blocks(described, view_of, card, changed):
    """Without /dev/kfd nothing computes."""
    machine = changed(described(card()), gone=("/dev/kfd",))

    (device,) = view_of(machine).devices

    assert device.state is DeviceState.BLOCKED or device.state is DeviceState.UNUSABLE
    assert any("/dev/kfd" in condition.reason for condition in device.conditions)


def test_the_runtime_does_not_count_a_gpu_without_its_render_node(described, view_of, card, changed):
    """Its number goes to the next GPU, as in libhsakmt."""
    machine = described("".join(card(address=f"0000:{bus}:00.0") for bus in (23, 26, 43)))

    devices = view_of(changed(machine, gone=("/dev/dri/renderD129",))).devices

    assert [device.numbers["index"] for device in devices] == [0, None, 1]


def test_a_copied_tree_without_dev_raises_no_alarm(described, view_of, card, changed):
    """A folder that holds /sys only says nothing about device files."""
    machine = described(card())
    gone = tuple(path for path in machine.tree.nodes if path.startswith("/dev"))

    (device,) = view_of(changed(machine, gone=gone, kind=MachineKind.ROOT)).devices

    assert codes(device) == []
    assert device.numbers["index"] == 0


def test_a_container_sees_the_granted_gpus_and_why_not_the_others(shipped, view_of):
    """Two of eight were given: they count 0 and 1, the others are on the host and not accessible."""
    devices = view_of(shipped("amd-container-2-of-8")).devices

    assert [device.numbers["index"] for device in devices if device.state is DeviceState.READY] == [0, 1]
    blocked = [device for device in devices if device.state is DeviceState.BLOCKED]
    assert len(blocked) == 6
    assert all("on the host, not accessible here" in device.reason for device in blocked)


def test_only_kfd_refuses(described, view_of, card, changed):
    """A GPU whose device file is there while its KFD files are refused is blocked, not broken."""
    text = '[host]\nboundary = "container"\n' + card() + card(address="0000:26:00.0", granted="false")
    render = {"/dev/dri/renderD129": NodeFact(0o666, "0", "render", 226, 129)}

    machine = described(text)
    device = view_of(changed(machine, nodes=render)).devices[1]

    assert device.state is DeviceState.BLOCKED
    assert "refuses its KFD node" in device.reason


def test_a_gpu_that_kfd_leaves_out_is_unusable(described, view_of, card):
    """Driven, device files there, and no compute node: the kernel does not support it for compute."""
    first, second = view_of(described(card("rx580", has_kfd_node="false") + card(address="0000:26:00.0"))).devices

    assert (first.state, codes(first)) == (DeviceState.UNUSABLE, ["no-kfd-node"])
    assert first.numbers["index"] is None
    assert second.numbers["index"] == 0


def test_the_workstation_counts_its_card_only(shipped, view_of):
    """Both GPUs are listed, the integrated one flagged and not counted, with the switch named."""
    discrete, integrated = view_of(shipped("amd-workstation-dgpu-igpu")).devices

    assert (discrete.is_integrated, discrete.is_counted) == (False, True)
    assert (integrated.is_integrated, integrated.is_counted) == (True, False)
    assert "ANYACCEL_COUNT_INTEGRATED=1" in integrated.count_reason


def test_the_switch_counts_integrated_parts(shipped, view_of):
    """The documented switch includes it, and the rule that did so is told."""
    machine = shipped("amd-workstation-dgpu-igpu")
    integrated = view_of(machine.with_environ({"ANYACCEL_COUNT_INTEGRATED": "1"})).devices[1]

    assert integrated.is_counted
    assert integrated.count_reason == "integrated, and counted because ANYACCEL_COUNT_INTEGRATED=1"


@pytest.mark.parametrize("value", ["", "0", "yes", "true"])
def test_only_one_switches_it_on(value, shipped, view_of):
    """Any other value of the switch changes nothing."""
    machine = shipped("amd-workstation-dgpu-igpu").with_environ({"ANYACCEL_COUNT_INTEGRATED": value})

    assert not view_of(machine).devices[1].is_counted


@pytest.mark.parametrize(("model", "target"), [("strix-halo", "gfx1151"), ("mi300a", "gfx942")])
def test_supported_integrated_parts_are_counted(model, target, described, view_of, card):
    """Where AMD supports the target for compute an integrated part is counted without a switch."""
    (device,) = view_of(described(card(model))).devices

    assert (device.is_integrated, device.is_counted) == (True, True)
    assert device.count_reason == f"integrated, and counted because AMD supports {target} for compute"


def test_integrated_parts_take_a_number_all_the_same(shipped, view_of):
    """The runtime counts the integrated GPU, so masks count it too."""
    assert [d.numbers["index"] for d in view_of(shipped("amd-workstation-dgpu-igpu")).devices] == [0, 1]


def test_amdsmi_is_not_asked_about_integrated_parts_only(shipped, inventory_of):
    """A machine with nothing else gets no message about a missing amdsmi."""
    assert inventory_of(shipped("amd-strix-halo")).notes == ()


def test_a_hive_is_a_place_with_its_size(shipped, view_of):
    """All eight are in one hive of eight, each pair of four in one of two."""
    mesh = {place for device in view_of(shipped("amd-mi300x8")).devices for place in device.places}
    pairs = [device.places[0] for device in view_of(shipped("amd-mi210x4")).devices]

    assert [(place.kind, place.size) for place in mesh] == [("hive", 8)]
    assert [place.size for place in pairs] == [2, 2, 2, 2]
    assert pairs[0] == pairs[1] != pairs[2] == pairs[3]


def test_the_longest_way_in_the_hive_is_told(described, view_of, card):
    """`xgmi_num_hops` gives the hops of the farthest GPU."""
    text = "".join(card(address=f"0000:{bus}:00.0") for bus in (23, 26))
    text += '[[link]]\na = "0000:23:00.0"\nb = "0000:26:00.0"\nkind = "xgmi"\nhops = 2\n'

    assert view_of(described(text)).devices[0].attributes["xgmi_most_hops"] == 2


def test_compute_units_are_simds_by_unit(shipped, view_of):
    """304 on an MI300X, 96 on an RX 7900 XTX."""
    assert view_of(shipped("amd-mi300x8")).devices[0].attributes["compute_units"] == 304
    assert view_of(shipped("amd-workstation-dgpu-igpu")).devices[0].attributes["compute_units"] == 96


def test_numbers_are_left_out_while_the_topology_changes(shipped, inventory_of, changed):
    """A tree that changes at each reading gives GPUs without the runtime's numbers, and says so."""

    class Restless(MemoryTree):
        def read_bytes(self, path):
            if path.endswith("/generation_id"):
                self.__dict__["reads"] = self.__dict__.get("reads", 0) + 1
                return b"%d\n" % self.__dict__["reads"]
            return super().read_bytes(path)

    inventory = inventory_of(changed(shipped("amd-mi210x4"), tree=Restless))

    assert [device.numbers["index"] for device in inventory.devices] == [None] * 4
    assert any("kept changing" in note for note in inventory.notes)


def test_no_device_says_why_there_is_none(plugin):
    """An empty machine gives a reason, not an empty list."""
    found = plugin.call("accel_discover_devices", machine=Machine(MemoryTree(), kind=MachineKind.SIMULATED))

    assert found.devices == ()
    assert "vendor 1002" in found.reason


def test_refused_nodes_without_pci_are_told(plugin):
    """A container without PCI files where KFD refuses its nodes says that they are there."""
    root = "/sys/class/kfd/kfd/topology/nodes/1"
    tree = MemoryTree(files={f"{root}/gpu_id": b"", f"{root}/properties": b""})

    found = plugin.call("accel_discover_devices", machine=Machine(tree, kind=MachineKind.SIMULATED))

    assert "refuses 1 KFD nodes" in found.reason


def test_inventory_equality_holds_for_one_machine(shipped, inventory_of):
    """The same machine gives the same devices twice."""
    machine = shipped("amd-mi300x8-cpx-63")

    assert inventory_of(machine).devices == inventory_of(machine).devices


def test_every_device_is_a_device_of_the_family(shipped, view_of):
    """Ids start with the family's key, and whole GPUs are of level device."""
    for device in view_of(shipped("amd-mi300x8-cpx-63")).devices:
        assert device.id.startswith("amd:")
        assert device.level is (Level.DEVICE if device.parent is None else Level.PARTITION)
        assert replace(device) == device


def test_a_part_that_nothing_knows_stays_unknown(view_of):
    """An id that is in no table and has no KFD node: target and integration are unknown, with reasons, and it is counted."""
    address = "0000:23:00.0"
    ids = {"vendor": b"0x1002\n", "device": b"0x7fff\n", "class": b"0x038000\n"}
    tree = MemoryTree(files={f"{PCI}/{address}/{name}": text for name, text in ids.items()})

    (device,) = view_of(Machine(tree, kind=MachineKind.ROOT)).devices

    assert (device.is_integrated, device.attributes["target"]) == (None, None)
    assert "is_integrated" in device.unknown
    assert device.is_counted


def test_a_node_with_cpu_cores_is_integrated(plugin):
    """Old integrated parts are one KFD node with CPU cores and compute cores."""
    root = "/sys/class/kfd/kfd/topology/nodes/0"
    properties = b"cpu_cores_count 4\nsimd_count 32\nlocation_id 8\ndomain 0\ndevice_id 39028\n"
    tree = MemoryTree(files={f"{root}/gpu_id": b"5\n", f"{root}/properties": properties})

    (device,) = plugin.call("accel_discover_devices", machine=Machine(tree)).devices

    assert (device.is_integrated, device.is_counted) == (True, False)
    assert device.why_unknown("numbers.render") == "KFD tells no render minor"


def test_inside_wsl_the_reason_names_it(described, plugin):
    """WSL shows AMD GPUs in no file: that is said instead of "none"."""
    machine = described('[host]\nboundary = "wsl"\n')

    assert "inside WSL" in plugin.call("accel_discover_devices", machine=machine).reason
