"""Devices and cores from files, and what neuron-ls adds."""

from __future__ import annotations

import pytest

from anyaccel.device import DeviceState, Level
from anyaccel.files import MemoryTree
from anyaccel.machine import Machine, MachineKind, NoAnswers
from anyaccel_neuron.devices import discover_devices
from anyaccel_neuron.inspection import inspect_devices


def told(**row):
    """Give one row of neuron-ls."""
    return {"neuron_device": 0, "nc_count": 2, "memory_size": 1 << 35, "neuron_processes": [], **row}


def without_tool(machine):
    return machine.with_answers({"*": NoAnswers("nobody is here")})


def tree_of(files):
    return Machine(MemoryTree(files), kind=MachineKind.SIMULATED).for_plugin("neuron")


def test_device_is_known_by_the_drivers_number(server):
    """Numbers do not follow the PCI bus, and the program joins the two."""
    assert [(d.id, d.numbers["index"], d.pci_addresses) for d in server.roots[:2]] == [
        ("neuron:5", 5, ("0000:58:00.0",)),
        ("neuron:6", 6, ("0000:59:00.0",)),
    ]


def test_two_physical_cores_make_one(server):
    """Trainium2 has eight cores of which the runtime makes four."""
    assert [core.numbers["core"] for core in server.children("neuron:3")] == [12, 13, 14, 15]
    assert server.leaves("neuron:3/1") == ("neuron:3/1/0", "neuron:3/1/1")
    assert [server.device(leaf).numbers["physical_core"] for leaf in server.leaves("neuron:3/1")] == [26, 27]


def test_device_count_and_core_count_differ(described):
    """Two devices with two cores each: four cores, two devices."""
    view = described(2)

    assert (len(view.roots), len([d for d in view.devices if d.level is Level.PARTITION])) == (2, 4)


@pytest.mark.parametrize(("model", "cores", "memory"), [("inf1", 4, 8), ("inf2", 2, 32), ("trn3", 4, 144)])
def test_every_chip_has_its_cores(model, cores, memory, described):
    """What the runtime counts of each generation."""
    view = described(1, model)

    assert len(view.children("neuron:0")) == cores
    assert view.roots[0].memory_bytes == memory << 30


def test_files_alone_tell_devices_cores_and_models(machine_of):
    """Without neuron-ls the rows are the same; position, memory and NUMA node are unknown with a reason."""
    found = discover_devices(without_tool(machine_of("neuron-trn2x16")))
    device = found.devices[0]

    assert [d.id for d in found.devices if d.level is Level.DEVICE] == [f"neuron:{n}" for n in range(16)]
    assert (device.model, device.uuid, device.driver_version) == ("Trainium2", "51a0000000000000", "2.19.64.0")
    assert (device.memory_bytes, device.numa_node, device.pci_addresses) == (None, None, ())
    assert device.why_unknown("memory_bytes") == "only neuron-ls tells, and it was not heard"
    assert "does not tell which PCI function" in device.why_unknown("numa_node")


def test_a_single_device_is_joined_without_the_program(machine_of):
    """With one device and one function there is nothing to confuse."""
    (device, *_) = discover_devices(without_tool(machine_of("neuron-trn1-vm"))).devices

    assert device.pci_addresses == ("0000:00:1e.0",)
    assert device.why_unknown("numa_node") == "the kernel reports -1"


def test_function_without_the_driver_is_a_row_of_its_own(view_of):
    """It has no number and no cores, and says why."""
    device = view_of("neuron-inf2x6-faults").device("neuron:0000:22:00.0")

    assert (device.state, device.reason, device.model) == (
        DeviceState.UNUSABLE,
        "no kernel driver is bound",
        "Inferentia2",
    )
    assert device.why_unknown("numbers.index") == "the kernel driver does not show the device"


def test_dead_function_makes_its_device_lost(view_of):
    """The program says which device sits on the function that reads all ones; its cores are lost with it."""
    view = view_of("neuron-inf2x6-faults")

    assert [view.device(name).state.value for name in ("neuron:1", "neuron:1/0", "neuron:0")] == [
        "lost",
        "lost",
        "ready",
    ]


def test_processes_make_a_device_busy(view_of):
    """Who holds it is named."""
    assert view_of("neuron-inf2x6-faults").device("neuron:3").reason == "used by process 4242 (python train.py)"


def test_the_program_itself_is_no_user(machine_of):
    """neuron-ls lists itself without a runtime version."""
    machine = machine_of("neuron-trn1-vm")
    devices = discover_devices(machine).devices
    rows = [told(neuron_processes=[{"pid": 1, "command": "neuron-ls", "neuron_runtime_version": "NA"}])]

    assert inspect_devices(machine, devices, lambda: rows).devices[0].state is DeviceState.READY


def test_many_users_are_cut_short(machine_of):
    """Three are named, the rest is counted; a user without a name keeps its number."""
    machine = machine_of("neuron-trn1-vm")
    users = [{"pid": number, "neuron_runtime_version": "2.0"} for number in range(5)]

    told_of = inspect_devices(machine, discover_devices(machine).devices, lambda: [told(neuron_processes=users)])

    assert told_of.devices[0].reason == "used by process 0, process 1, process 2 and 2 more"


@pytest.mark.parametrize(
    ("rows", "memory"),
    [
        ([told(bdf="00:1e.0")], 32),
        ([told(bdf="0000:00:1e.0", numa_node="-1", connected_to=None)], 32),
        ({"instance_type": "trn1.2xlarge", "mlas": [told()]}, 32),
        ([{}], None),
        ([None, told(memory_size="32 GB")], None),
    ],
)
def test_every_version_of_the_program_is_read(rows, memory, machine_of):
    """Short and long addresses, NUMA nodes as text, wrapped lists; an empty object is no device."""
    machine = machine_of("neuron-trn1-vm")

    device = inspect_devices(machine, discover_devices(machine).devices, lambda: rows).devices[0]

    assert device.memory_bytes == (None if memory is None else memory << 30)
    assert (device.why_unknown("memory_bytes") is None) == (memory is not None)


def test_core_numbers_are_what_the_program_says(machine_of):
    """A program that counts from elsewhere is believed."""
    machine = machine_of("neuron-trn1-vm")

    devices = inspect_devices(machine, discover_devices(machine).devices, lambda: [told(neuroncore_ids=[6, 7])]).devices

    assert [d.numbers["core"] for d in devices[1:]] == [6, 7]


def test_device_the_driver_does_not_show_is_a_note(machine_of):
    """The program cannot add devices."""
    machine = machine_of("neuron-trn1-vm")

    told_of = inspect_devices(machine, discover_devices(machine).devices, lambda: [told(neuron_device=9)])

    assert len(told_of.devices) == 3
    assert told_of.notes == ("neuron-ls lists devices that the kernel driver does not show: [9]",)


def test_address_of_no_function_here_is_left_out(machine_of):
    """A container may be told an address that its /sys does not show."""
    machine = machine_of("neuron-trn2x16")
    devices = discover_devices(machine).devices

    (device, *_) = inspect_devices(machine, devices, lambda: [told(bdf="0000:10:00.0")]).devices

    assert (device.id, device.pci_addresses, device.memory_bytes) == ("neuron:0", (), 1 << 35)


def test_driver_bound_to_more_than_it_shows_is_a_note():
    """A probe that failed leaves a function without its device; nothing is doubled."""
    files = {"/sys/class/neuron_device/neuron0/info/architecture/device_name": b"Trainium1\n"}
    links = {}
    for bus in ("10", "11"):
        folder = f"/sys/devices/pci0000:{bus}/0000:{bus}:00.0"
        files |= {f"{folder}/vendor": b"0x1d0f\n", f"{folder}/device": b"0x7164\n", f"{folder}/class": b"0x088000\n"}
        links |= {f"/sys/bus/pci/devices/0000:{bus}:00.0": folder, f"{folder}/driver": "/sys/bus/pci/drivers/neuron"}
    files["/sys/bus/pci/drivers/neuron/bind"] = b""

    found = discover_devices(Machine(MemoryTree(files, links), kind=MachineKind.SIMULATED))

    assert [d.id for d in found.devices] == ["neuron:0", "neuron:0/0", "neuron:0/1"]
    assert found.notes == ("the driver is bound to 2 PCI functions and shows 1 devices",)
    assert found.claimed == ("0000:10:00.0", "0000:11:00.0")


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({"neuron_core0/dev": b"", "neuron_core1/dev": b"", "neuron_core2/dev": b""}, 3),
        ({"core_count": b"4\n"}, 4),
        ({"core_count": b"lots\n"}, 0),
        ({"info/architecture/device_name": b"Inferentia2\n", "core_count": b"7\n"}, 2),
    ],
)
def test_cores_of_a_chip_nobody_knows(files, cores):
    """The driver's folders count first, then the file that only root reads; a known chip has what it has."""
    folder = "/sys/class/neuron_device/neuron0"
    found = discover_devices(tree_of({f"{folder}/dev": b"1:0\n", **{f"{folder}/{k}": v for k, v in files.items()}}))

    assert len(found.devices) == 1 + cores


def test_nothing_is_said_with_a_reason():
    """A machine without Neuron says what was looked for."""
    assert "1d0f" in discover_devices(tree_of({})).reason


def test_the_program_is_not_asked_for_nothing(machine_of):
    """Without a device that the driver shows there is nothing to ask for."""
    machine = machine_of('[[card]]\nplugin = "neuron"\nmodel = "trn1"\naddress = "0000:10:00.0"\ndriver = "vfio-pci"\n')
    devices = discover_devices(machine).devices

    assert inspect_devices(machine, devices, lambda: pytest.fail("asked")).devices == devices


def test_serial_numbers_get_pseudonyms_in_a_recording(machine_of, view_of, registry, tmp_path):
    """A recording holds no real serial number, and its devices can still be told apart."""
    from anyaccel.recording import open_recording, record, write_recording

    write_recording(record(machine_of("neuron-trn2x16"), registry)[1], tmp_path / "machine.tar.gz")
    names = [device.uuid for device in view_of(open_recording(tmp_path / "machine.tar.gz")).roots]

    assert len({*names, None}) == 17
    assert not [name for name in names if name.startswith("51a0")]


@pytest.mark.parametrize("text", [b"0000000000000000\n", b"scrubbed\n", b"\n"])
def test_what_is_no_serial_number_is_unknown(text):
    """Zeros and words tell no device apart."""
    (device,) = discover_devices(tree_of({"/sys/class/neuron_device/neuron0/info/serial_number": text})).devices

    assert device.uuid is None
    assert device.why_unknown("uuid") == "the driver shows no serial number"
