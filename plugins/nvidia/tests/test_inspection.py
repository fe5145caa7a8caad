"""Inspection: what the driver adds, and that odd or missing answers cost attributes, never rows."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyaccel.device import DeviceState, Level, Sharing
from anyaccel.discovery import discover
from anyaccel.errors import UnavailableError
from anyaccel.files import MemoryTree
from anyaccel.machine import Machine
from anyaccel.recording import open_recording, record, write_recording
from anyaccel.simulation import parse_description, simulate
from anyaccel.topology import Boundary
from anyaccel_nvidia.devices import discover_devices
from anyaccel_nvidia.inspection import inspect_devices, inspect_without_driver
from anyaccel_nvidia.kernel_files import xid_lines
from anyaccel_nvidia.matching import InspectionScene

SCHEMA = 'schema = "anyaccel-machine/1"\n'
CARD = '[[card]]\nplugin = "nvidia"\nmodel = "{model}"\naddress = "{address}"\n{more}\n'
HOST = InspectionScene(Boundary("host", False, False, "a test"))
CONTAINER = InspectionScene(Boundary("container", True, False, "a test"))


def cards(*addresses, model="h100-sxm5-80gb", more=""):
    return "".join(CARD.format(model=model, address=address, more=more) for address in addresses)


@pytest.fixture
def inventory_of(registry, shipped):
    """Give the inventory of a shipped machine by name, or of a description."""

    def make(text):
        description = shipped(text) if "\n" not in text else parse_description(SCHEMA + text)
        return discover(simulate(description, registry), registry, timeout_seconds=3)

    return make


@pytest.fixture
def one(inventory_of):
    """Give the one card of a description."""
    return lambda text: inventory_of(text).devices[0]


def codes(device):
    return [condition.code for condition in device.conditions]


def test_healthy_cards_are_ready(inventory_of):
    """Eight H100: ready, with id, memory, numbers and figures."""
    inventory = inventory_of("nvidia-h100x8")

    assert [device.state for device in inventory.devices] == [DeviceState.READY] * 8
    first = inventory.devices[0]
    assert first.memory_bytes == 81559 * 2**20
    assert first.sharing is Sharing.SHARED
    assert first.attributes["compute_capability"] == "9.0"
    assert first.attributes["nvlinks_active"] == 18
    assert inventory.views[0].facts["cuda_version"] == "12.4"


def test_every_unknown_has_a_reason(inventory_of, shipped_names):
    """On no shipped machine is a value None without a word why."""
    for name in shipped_names:
        for device in inventory_of(name).devices:
            if device.state is DeviceState.LOST:
                continue
            silent = [f"numbers.{space}" for space, number in device.numbers.items() if number is None]
            silent += [f"attributes.{key}" for key, value in device.attributes.items() if value is None]
            silent += [field for field in ("model", "uuid", "numa_node") if getattr(device, field) is None]

            assert [field for field in silent if not device.why_unknown(field)] == [], (name, device.id)


def test_version_mismatch_names_both_versions(inventory_of):
    """Library and kernel module disagree: both cards unusable, both numbers, a hint."""
    inventory = inventory_of("nvidia-driver-mismatch")

    assert [device.state for device in inventory.devices] == [DeviceState.UNUSABLE] * 2
    reason = inventory.devices[0].reason
    assert "driver version mismatch" in reason
    assert "515.65.01" in reason
    assert "510.73.08" in reason
    assert "reboot" in inventory.devices[0].hint


def test_missing_library_leaves_the_state_unknown(inventory_of):
    """Without the library the cards may well compute: unknown, not broken, with the reason."""
    inventory = inventory_of("nvidia-library-missing")

    assert [device.state for device in inventory.devices] == [DeviceState.UNKNOWN] * 2
    assert "libnvidia-ml.so.1 was not found" in inventory.devices[0].reason
    assert inventory.outcomes[0].status.value == "found"


@pytest.mark.parametrize(("name", "word"), [("nvidia-library-hangs", "hung"), ("nvidia-library-crashes", "SIGSEGV")])
def test_hang_and_crash_cost_attributes_only(name, word, inventory_of):
    """A library that hangs or ends its process leaves both rows and breaks the plugin by name."""
    inventory = inventory_of(name)

    assert [device.model for device in inventory.devices] == ["NVIDIA L4"] * 2
    assert inventory.outcomes[0].status.value == "broken"
    assert word in inventory.outcomes[0].reason


def test_start_error_in_a_container_means_lost_rules(machine_of):
    """NVML's unknown error inside a container: blocked by device rules, with the cause."""
    machine = machine_of('[host]\nboundary = "container"\n' + cards("0000:1b:00.0"))
    devices = discover_devices(machine).devices

    inspection = inspect_without_driver(devices, UnavailableError("answered 999", reason_code="nvml-999"), CONTAINER)

    assert inspection.devices[0].state is DeviceState.BLOCKED
    assert "daemon-reload" in inspection.devices[0].hint


def test_lost_card_is_one_row_of_eight(inventory_of):
    """A refused handle (15) and a dead link are one lost card with its number; seven are ready."""
    inventory = inventory_of("nvidia-h100x8-one-lost")

    assert [device.state.value for device in inventory.devices].count("ready") == 7
    assert inventory.devices[3].state is DeviceState.LOST
    assert inventory.devices[3].numbers["index"] == 3


@pytest.mark.parametrize(
    ("fault", "state"), [("lost-card", DeviceState.LOST), ("reset-required", DeviceState.UNUSABLE)]
)
def test_refused_handle_finds_its_card(fault, state, inventory_of):
    """The one card without an answer is the one whose handle is refused, although PCI looks healthy."""
    fault = f'[[fault]]\nkind = "{fault}"\ncard = "0000:43:00.0"\nplugin = "nvidia"\n'

    first, second = inventory_of(cards("0000:1b:00.0", "0000:43:00.0") + fault).devices

    assert first.state is DeviceState.READY
    assert second.state is state
    assert second.numbers["index"] == 1


def test_two_refused_handles_get_no_number(inventory_of):
    """Two lost cards are lost, and which of them has which number is not guessed."""
    fault = '[[fault]]\nkind = "lost-card"\ncard = "{}"\nplugin = "nvidia"\n'
    text = cards("0000:1b:00.0", "0000:43:00.0", "0000:52:00.0") + fault.format("0000:43:00.0")

    inventory = inventory_of(text + fault.format("0000:52:00.0"))

    assert [device.state.value for device in inventory.devices] == ["ready", "lost", "lost"]
    assert [device.numbers["index"] for device in inventory.devices] == [0, None, None]
    assert "does not say which" in inventory.devices[1].why_unknown("numbers.index")


def test_device_that_vanishes_is_a_note(inventory_of):
    """The driver counts four and cannot find one that PCI no longer shows: three rows and a note."""
    fault = '[[fault]]\nkind = "vanished"\nplugin = "nvidia"\n'

    inventory = inventory_of(cards("0000:1b:00.0", "0000:43:00.0", "0000:52:00.0") + fault)

    assert [device.state.value for device in inventory.devices] == ["ready"] * 3
    assert inventory.notes == ("1 device vanished during the scan",)


def test_card_the_library_does_not_list(inventory_of):
    """On a host the library's silence is a failed start, inside a batch job the job's device rules."""
    text = (
        cards("0000:1b:00.0", "0000:43:00.0")
        + '[[fault]]\nkind = "not-shown"\ncard = "0000:43:00.0"\nplugin = "nvidia"\n'
    )

    on_host = inventory_of(text).devices[1]
    in_job = inventory_of('[environment]\nSLURM_JOB_GPUS = "0"\n' + text).devices[1]

    assert (on_host.state, codes(on_host)) == (DeviceState.UNUSABLE, ["not-listed"])
    assert (in_job.state, codes(in_job)) == (DeviceState.BLOCKED, ["not-shown"])


def test_permission_refused_by_the_driver_is_denied(inventory_of):
    """A device file of another group: denied, by the file and by the driver."""
    fault = '[[fault]]\nkind = "no-permission"\npath = "/dev/nvidia1"\ngroup = "hpc"\n'

    inventory = inventory_of(cards("0000:1b:00.0", "0000:43:00.0") + fault)

    assert [device.state.value for device in inventory.devices] == ["ready", "denied"]
    assert codes(inventory.devices[1]) == ["permission-denied"]
    assert "/dev/nvidia1 belongs to group hpc" in inventory.devices[1].reason
    assert "usermod -aG hpc" in inventory.devices[1].hint


def denied(path):
    return f'[[fault]]\nkind = "no-permission"\npath = "{path}"\ngroup = "hpc"\n'


def test_denied_control_file_stands_before_the_drivers_refusal(inventory_of):
    """Who may not open /dev/nvidiactl may not ask the driver either; the file comes first, with the hint."""
    (device,) = inventory_of(cards("0000:1b:00.0") + denied("/dev/nvidiactl")).devices

    assert codes(device) == ["permission-denied", "no-permission"]
    assert "/dev/nvidiactl belongs to group hpc" in device.reason
    assert "usermod -aG hpc" in device.hint


def test_denied_file_stands_before_every_other_condition(machine_of):
    """A denied card whose function also says something of itself tells of the file first."""
    machine = machine_of(cards("0000:1b:00.0", more='runtime_status = "suspended"') + denied("/dev/nvidiactl"))

    (device,) = discover_devices(machine).devices

    assert codes(device)[0] == "permission-denied"
    assert DeviceState.ASLEEP in [condition.state for condition in device.conditions]


def test_member_of_the_group_is_not_refused(inventory_of):
    """The fault keeps out only users who are not in the group it names."""
    fault = '[[fault]]\nkind = "no-permission"\npath = "/dev/nvidia0"\ngroup = "render"\n'

    (device,) = inventory_of(cards("0000:1b:00.0") + fault).devices

    assert device.state is DeviceState.READY


def test_denied_card_does_not_take_the_refusal_of_a_lost_one(inventory_of):
    """Two refused handles: one is explained by its device file, so the other card is the lost one."""
    fault = '[[fault]]\nkind = "lost-card"\ncard = "0000:1b:00.0"\nplugin = "nvidia"\n'

    lost, kept_out = inventory_of(cards("0000:1b:00.0", "0000:43:00.0") + fault + denied("/dev/nvidia1")).devices

    assert (lost.state, codes(lost)) == (DeviceState.LOST, ["lost"])
    assert (kept_out.state, codes(kept_out)) == (DeviceState.DENIED, ["permission-denied"])


def test_denied_card_that_the_driver_does_not_list(machine_of):
    """The device file explains the driver's silence; nothing is said of a failed start."""
    machine = machine_of(cards("0000:1b:00.0") + denied("/dev/nvidia0"))

    (device,) = inspect_devices(discover_devices(machine).devices, {"devices": []}, HOST).devices

    assert codes(device) == ["permission-denied"]
    assert device.why_unknown("numbers.index") == "the driver does not list it"


def test_refusal_without_a_denied_file_says_where_to_look(machine_of):
    """The driver refuses the user and no file tells why: the hint names the files to compare."""
    machine = machine_of(cards("0000:1b:00.0"))

    (device,) = inspect_devices(discover_devices(machine).devices, {"devices": [{"index": 0, "code": 4}]}, HOST).devices

    assert device.reason == "the driver refuses this user"
    assert "ls -l /dev/nvidia*" in device.hint


def test_unified_memory_is_unknown_for_a_reason(inventory_of):
    """GB10 answers "not supported" for memory: the device is ready, memory None (report 1 of the ranking)."""
    (device,) = inventory_of("nvidia-gb10").devices

    assert device.state is DeviceState.READY
    assert device.memory_bytes is None
    assert "unified with the host" in device.why_unknown("memory_bytes")


def test_jetson_is_ready_without_memory(inventory_of):
    """Orin: memory and PCI "not supported", one ready device."""
    (device,) = inventory_of("nvidia-jetson-orin").devices

    assert device.state is DeviceState.READY
    assert device.model == "Orin (nvgpu)"
    assert "shared with the host (15.3 GiB" in device.why_unknown("memory_bytes")


def test_wsl_uses_the_working_library_and_names_the_other(inventory_of):
    """WSL: one device, the file used, and why the first was passed over."""
    inventory = inventory_of("nvidia-wsl")

    assert [device.model for device in inventory.devices] == ["NVIDIA GeForce RTX 3090"]
    assert inventory.views[0].facts["library"] == "/usr/lib/wsl/lib/libnvidia-ml.so.1"
    assert inventory.views[0].facts["library_skipped"] == "libnvidia-ml.so.1 (the driver is not loaded)"


def test_wsl_with_two_gpus_gets_two_children(machine_of, shipped):
    """One adapter in files, two GPUs in the answer: the adapter becomes a card with two devices below."""
    machine = machine_of(shipped("nvidia-wsl"))
    document = machine.answers["nvidia"].documents["nvml"]
    second = {**document["devices"][0], "index": 1, "uuid": "GPU-1", "pci_address": "0000:02:00.0"}

    devices = inspect_devices(
        discover_devices(machine).devices, {**document, "devices": [document["devices"][0], second]}, HOST
    ).devices

    assert [(d.id, d.level) for d in devices] == [
        ("nvidia:dxg", Level.CARD),
        ("nvidia:dxg/gpu0", Level.DEVICE),
        ("nvidia:dxg/gpu1", Level.DEVICE),
    ]
    assert [d.is_counted for d in devices] == [False, True, True]


@pytest.mark.parametrize(
    ("mode", "sharing", "state"),
    [
        (0, Sharing.SHARED, DeviceState.READY),
        (1, Sharing.ONE_PROCESS, DeviceState.READY),
        (2, Sharing.SHARED, DeviceState.UNUSABLE),
        (3, Sharing.ONE_PROCESS, DeviceState.READY),
    ],
)
def test_compute_mode(mode, sharing, state, one):
    """Exclusive modes allow one process, the prohibited one none."""
    device = one(cards("0000:1b:00.0", more=f"compute_mode = {mode}"))

    assert (device.sharing, device.state) == (sharing, state)


@pytest.mark.parametrize(
    ("option", "code"),
    [
        ("ecc_uncorrected = 2", "ecc-uncorrected"),
        ("remapped_rows = [0, 1, 1, 0]", "row-remap-pending"),
        ("remapped_rows = [0, 1, 0, 1]", "row-remap-failed"),
        ("mig_pending = 1", "mig-mode-pending"),
    ],
)
def test_health_is_noted_without_changing_the_state(option, code, one):
    """Memory errors and pending resets are conditions with a hint; the card stays ready."""
    device = one(cards("0000:1b:00.0", more=option))

    assert codes(device) == [code]
    assert device.conditions[0].hint
    assert device.state is DeviceState.READY


def test_pages_to_retire_are_noted_on_older_cards(one):
    """Cards before Ampere retire memory pages; a pending retirement waits for a reset."""
    device = one(cards("0000:1b:00.0", model="t4", more="retired_pages = 3\nretired_pages_pending = 1"))

    assert codes(device) == ["page-retirement-pending"]


def test_driver_that_is_not_loaded_makes_cards_unusable(inventory_of):
    """The library finds no driver: unusable, with the command that loads it."""
    fault = '[[fault]]\nkind = "driver-not-loaded"\nplugin = "nvidia"\n'

    (device,) = inventory_of(cards("0000:1b:00.0") + fault).devices

    assert device.state is DeviceState.UNUSABLE
    assert device.hint == "sudo modprobe nvidia"


def test_fewer_refusals_than_silent_cards_accuse_nobody(machine_of):
    """One handle is refused and two cards are silent: neither is called lost."""
    machine = machine_of(cards("0000:1b:00.0", "0000:43:00.0"))
    document = {"devices": [{"index": 0, "code": 999}]}

    seen = inspect_devices(discover_devices(machine).devices, document, HOST).devices

    assert [codes(device) for device in seen] == [["perhaps-lost"]] * 2


def test_odd_refusal_is_told_in_words(machine_of):
    """A refusal with another code keeps the code's meaning."""
    machine = machine_of(cards("0000:1b:00.0"))

    (seen,) = inspect_devices(discover_devices(machine).devices, {"devices": [{"index": 0, "code": 27}]}, HOST).devices

    assert seen.reason == "the driver refuses it: not ready"


def test_processes_make_a_card_busy(one):
    """A compute process is named by its number."""
    device = one(cards("0000:1b:00.0", more="processes = [4711, 815]"))

    assert device.state is DeviceState.BUSY
    assert "815, 4711" in device.reason
    assert device.attributes["processes"] == 2


def test_processes_are_unknown_in_a_container(one):
    """Inside a container an empty list says nothing."""
    device = one('[host]\nboundary = "container"\n' + cards("0000:1b:00.0", more="processes = [4711]"))

    assert device.state is DeviceState.READY
    assert device.attributes["processes"] is None
    assert "container" in device.why_unknown("attributes.processes")


def test_numa_node_of_the_driver_fills_a_gap(one):
    """The kernel says -1 and the driver names one node: that node, with its source."""
    device = one(cards("0000:1b:00.0", more="driver_numa_node = 1"))

    assert device.numa_node == 1
    assert device.attributes["numa_source"] == "driver"
    assert device.why_unknown("numa_node") is None


def test_numa_node_unknown_to_both_stays_unknown(one):
    """Neither kernel nor driver knows: None with both reasons, never 0."""
    device = one(cards("0000:1b:00.0"))

    assert device.numa_node is None
    assert device.why_unknown("numa_node").endswith("; the driver names none")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ([0, 1], "the driver names 2 nodes"),
        (None, "the driver does not name it (the driver was not asked)"),
        ("", "the driver does not name it (the driver answered with nothing)"),
        ("far", "the driver does not name it (the driver answered 'far')"),
    ],
)
def test_numa_node_the_driver_does_not_help_with(answer, words, machine_of):
    """Whatever the driver answers instead of one node, the reason says it in words."""
    machine = machine_of(cards("0000:1b:00.0"))
    document = machine.answers["nvidia"].documents["nvml"]
    device = {**document["devices"][0], "numa_nodes": answer}

    (seen,) = inspect_devices(discover_devices(machine).devices, {**document, "devices": [device]}, HOST).devices

    assert seen.numa_node is None
    assert seen.why_unknown("numa_node").endswith(f"; {words}")


def test_numa_node_under_wsl_is_unknown_in_words(inventory_of):
    """WSL shows no files and its driver names no node: a sentence, not an empty list."""
    (device,) = inventory_of("nvidia-wsl").devices

    assert device.why_unknown("numa_node") == "WSL shows no files of the GPU; the driver names none"


def test_kernel_log_errors_are_told_per_card(machine_of, plugin):
    """Xid lines of this boot become conditions of their card; errors of programs and older boots do not."""
    machine = machine_of(cards("0000:1b:00.0", "0000:9b:00.0"))
    log = (
        "Dec  1 00:00:01 node kernel: [    1.0] NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off the bus.\n"
        "Dec  1 01:00:00 node kernel: [    0.0] Linux version 6.8.0\n"
        "Dec  1 01:10:00 node kernel: [  600.0] NVRM: Xid (PCI:0000:9b:00): 119, pid=1, Timeout\n"
        "Dec  1 01:11:00 node kernel: [  660.0] NVRM: Xid (PCI:0000:9b:00): 119, pid=1, Timeout\n"
        "Dec  1 01:12:00 node kernel: [  720.0] NVRM: Xid (PCI:0000:9b:00): 13, pid=1, Graphics Exception\n"
    )
    files = {**machine.tree.files, "/var/log/kern.log": log.encode()}
    tree = MemoryTree(files, machine.tree.links, machine.tree.nodes)
    machine = Machine(tree, answers=machine.answers).for_plugin("nvidia")
    devices = plugin.call("accel_discover_devices", machine=machine).devices

    first, second = plugin.call("accel_inspect_devices", machine=machine, devices=devices).devices

    assert codes(first) == []
    assert codes(second) == ["xid-119"]
    assert "2 times" in second.conditions[0].reason


LOG = b"""\
Dec  1 00:00:01 pine kernel: [    9.0] NVRM: Xid (PCI:0000:1b:00): 48, an earlier boot
Dec  1 01:00:00 pine kernel: [    0.0] Linux version 6.8.0
Dec  1 01:00:01 pine kernel: [    0.1] DMI: Board X9, serial BRD1700033
Dec  1 01:10:00 pine kernel: [  600.0] NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off the bus.
Dec  1 01:10:01 pine login[7]: session opened for user rosalind
"""


@pytest.fixture
def logged_machine(registry):
    """A machine with one card and a kernel log, among device files and libraries of others."""
    machine = simulate(parse_description(SCHEMA + cards("0000:1b:00.0")), registry)
    files = {**machine.tree.files, "/var/log/kern.log": LOG, "/dev/secret-volume": b"", "/usr/lib/wsl/lib/own.so": b""}
    tree = MemoryTree(files, machine.tree.links, machine.tree.nodes)
    return Machine(tree, kind=machine.kind, answers=machine.answers, user=machine.user)


def recorded(machine, registry, path):
    """Record a machine to a file and give what is in it, and the machine that replays it."""
    _, content = record(machine, registry)
    write_recording(content, path)
    return content, open_recording(path)


def test_replay_shows_the_errors_of_the_kernel_log(logged_machine, registry, tmp_path):
    """A recording keeps the errors of this boot, so that its replay tells of the same ones."""
    _, replay = recorded(logged_machine, registry, tmp_path / "machine.tar.gz")

    for machine in (logged_machine, replay):
        assert codes(discover(machine, registry).devices[0]) == ["xid-79"]


def test_recording_holds_nothing_else_of_the_kernel_log(logged_machine, registry, tmp_path):
    """Host name, board serial, sessions and times of the log stay out of a recording."""
    content, _ = recorded(logged_machine, registry, tmp_path / "machine.tar.gz")

    everything = "\n".join(content.files) + b"\n".join(content.files.values()).decode()
    assert "Xid (PCI:0000:1b:00): 79" in everything
    assert [word for word in ("pine", "BRD1700033", "rosalind", "Dec  1", "600.0") if word in everything] == []


def test_recording_holds_no_names_of_others(logged_machine, registry, tmp_path):
    """Of /dev and the folder of WSL only what is NVIDIA's is named."""
    content, replay = recorded(logged_machine, registry, tmp_path / "machine.tar.gz")

    names = "\n".join((*content.files, *content.links, *content.folders))
    assert "secret-volume" not in names
    assert "own.so" not in names
    assert "/root/dev/nvidia0" in names
    assert discover(replay, registry).devices[0].numbers["minor"] == 0


def test_log_without_a_boot_is_read_whole(machine_of):
    """Where the log does not reach back to the boot, all its errors count."""
    machine = Machine(MemoryTree({"/var/log/messages": b"pine kernel: NVRM: Xid (PCI:0000:1b:00): 79\n"}))

    assert xid_lines(machine) == (("0000:1b:00.0", 79),)


def test_display_board_is_listed_and_not_counted(inventory_of):
    """The board for the screen in a DGX Station is flagged; four cards are counted."""
    devices = inventory_of("nvidia-dgx-station").devices

    assert [device.is_counted for device in devices] == [True, True, True, False, True]
    assert "board for the screen" in devices[3].count_reason


def test_small_card_that_drives_the_screen_is_not_counted(inventory_of):
    """Beside a much larger card without a screen the small one is left out; alone it counts."""
    both = inventory_of("nvidia-mixed-workstation").devices
    alone = inventory_of(cards("0000:01:00.0", model="gtx-1660-super", more="display_active = true")).devices

    assert [device.is_counted for device in both] == [False, True]
    assert "drives the screen" in both[0].count_reason
    assert alone[0].is_counted


def test_two_cards_with_screens_both_count(inventory_of):
    """Where the larger card drives a screen too, neither is left out."""
    screen = "display_active = true"
    small = cards("0000:01:00.0", model="gtx-1660-super", more=screen)

    devices = inventory_of(small + cards("0000:0a:00.0", model="rtx-3090", more=screen)).devices

    assert [device.is_counted for device in devices] == [True, True]


def test_id_with_zero_byte_is_found_by_its_beginning(inventory_of):
    """An id with a zero byte in the middle is kept whole and found by its first digits."""
    uuid = "GPU-13096139-7ada-8313-ee08-000dd8540fe1"
    inventory = inventory_of(cards("0000:1b:00.0", more=f'uuid = "{uuid}"') + cards("0000:43:00.0"))

    view = inventory.views[0]

    assert view.find(uuid).id == "nvidia:0000:1b:00.0"
    assert view.find("GPU-13096139").id == "nvidia:0000:1b:00.0"
    assert view.find("13096139").id == "nvidia:0000:1b:00.0"


def test_refused_and_answered_placeholders_are_unknown(machine_of):
    """Text where a number belongs is None with the driver's text as reason."""
    machine = machine_of(cards("0000:1b:00.0"))
    document = machine.answers["nvidia"].documents["nvml"]
    device = {**document["devices"][0], "memory_bytes": "[Insufficient Permissions]", "name": "[Unknown Error]"}

    (seen,) = inspect_devices(discover_devices(machine).devices, {**document, "devices": [device]}, HOST).devices

    assert seen.memory_bytes is None
    assert "[Insufficient Permissions]" in seen.why_unknown("memory_bytes")
    assert seen.model == "NVIDIA H100 80GB HBM3"


@pytest.mark.parametrize("value", [-1, 0, True, 1.5, "80 GiB", [1], {}])
def test_impossible_memory_is_unknown(value, machine_of):
    """A size that is negative, nothing, or no whole number is None with a reason."""
    machine = machine_of(cards("0000:1b:00.0"))
    document = machine.answers["nvidia"].documents["nvml"]
    device = {**document["devices"][0], "memory_bytes": value}

    (seen,) = inspect_devices(discover_devices(machine).devices, {**document, "devices": [device]}, HOST).devices

    assert seen.memory_bytes is None
    assert seen.why_unknown("memory_bytes")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_no_answer_can_raise(data, simulated_pair):
    """Whatever stands in the place of any value, every row stays with its id and no number is negative or invented."""
    devices, document = simulated_pair
    odd = data.draw(_mutated(document))

    inspection = inspect_devices(devices, odd, HOST)

    roots = [device.id for device in inspection.devices if device.parent is None]
    assert roots == [device.id for device in devices if device.parent is None]
    assert all(device.memory_bytes is None or device.memory_bytes > 0 for device in inspection.devices)


@pytest.fixture(scope="module")
def simulated_pair(registry):
    text = SCHEMA + cards("0000:1b:00.0") + cards("0000:47:00.0", model="a100-sxm4-40gb", more='mig = ["1g.5gb"]')
    machine = simulate(parse_description(text), registry).for_plugin("nvidia")
    return discover_devices(machine).devices, machine.answers["nvidia"].documents["nvml"]


def _mutated(value, depth=3):
    """Draw a copy of a document in which any part may be replaced by anything."""
    if depth == 0 or not isinstance(value, (dict, list)):
        return st.one_of(st.just(value), JSON)
    if isinstance(value, dict):
        whole = st.fixed_dictionaries({key: _mutated(inner, depth - 1) for key, inner in value.items()})
    else:
        whole = st.tuples(*(_mutated(inner, depth - 1) for inner in value)).map(list)
    return st.one_of(whole, whole, whole, JSON)
