from __future__ import annotations

import json

from anyaccel._scrub import scrubbed
from anyaccel.files import MemoryTree

UUID = "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"
ANSWER = {"devices": [{"uuid": UUID, "serial": "1652922010000", "board_id": "0x1", "memory": 5}]}


def clean(files, salt=b"salt"):
    content = scrubbed(MemoryTree({p: t.encode() for p, t in files.items()}), salt)
    return {path: data.decode() for path, data in content.files.items()}


def test_a_name_has_one_pseudonym_everywhere():
    """A uuid in an answer, in a file and in a mask stays the same name, and is not the real one."""
    meta = {"environ": {"CUDA_VISIBLE_DEVICES": UUID}}
    files = clean(
        {
            "/answers/nvidia.json": json.dumps(ANSWER),
            "/machine.json": json.dumps(meta),
            "/root/proc/driver/nvidia/gpus/0000:1b:00.0/information": f"GPU UUID: \t {UUID}\n",
        }
    )

    fake = json.loads(files["/answers/nvidia.json"])["devices"][0]["uuid"]
    assert fake != UUID
    assert len(fake) == len(UUID)
    assert fake.startswith("GPU-")
    assert json.loads(files["/machine.json"])["environ"]["CUDA_VISIBLE_DEVICES"] == fake
    assert fake in files["/root/proc/driver/nvidia/gpus/0000:1b:00.0/information"]
    assert "8932f937" not in "".join(files.values())


def test_a_short_prefix_in_a_mask_still_names_its_device():
    """A mask with a unique prefix resolves to the pseudonym's prefix."""
    meta = {"environ": {"CUDA_VISIBLE_DEVICES": "GPU-8932f9,GPU-ffff"}}
    files = clean({"/answers/nvidia.json": json.dumps(ANSWER), "/machine.json": json.dumps(meta)})

    fake = json.loads(files["/answers/nvidia.json"])["devices"][0]["uuid"]
    assert json.loads(files["/machine.json"])["environ"]["CUDA_VISIBLE_DEVICES"] == f"{fake[:10]},GPU-ffff"


def test_serial_numbers_are_dropped_and_other_values_kept():
    """Serial and board numbers are gone from answers and files; memory stays."""
    files = clean({"/answers/nvidia.json": json.dumps(ANSWER), "/root/sys/x/serial_number": "1652922010000\n"})

    device = json.loads(files["/answers/nvidia.json"])["devices"][0]
    assert (device["serial"], device["board_id"], device["memory"]) == ("scrubbed", "scrubbed", 5)
    assert files["/root/sys/x/serial_number"] == "scrubbed\n"


def test_unique_ids_agree_in_hexadecimal_and_decimal():
    """AMD writes one number in hexadecimal in one file and in decimal in another."""
    number = 0xE3A9D1F2C4B5A697
    files = clean(
        {
            "/root/sys/bus/pci/devices/0000:03:00.0/unique_id": f"{number:016x}\n",
            "/root/sys/class/kfd/kfd/topology/nodes/1/properties": f"simd_count 4\nunique_id {number}\nhive_id 0\n",
            "/machine.json": json.dumps({"environ": {"ROCR_VISIBLE_DEVICES": f"GPU-{number:016x}"}}),
        }
    )

    fake = int(files["/root/sys/bus/pci/devices/0000:03:00.0/unique_id"], 16)
    assert fake != number
    assert f"unique_id {fake}\n" in files["/root/sys/class/kfd/kfd/topology/nodes/1/properties"]
    assert "hive_id 0\n" in files["/root/sys/class/kfd/kfd/topology/nodes/1/properties"]
    assert f"GPU-{fake:016x}" in files["/machine.json"]


def test_host_and_user_names_are_replaced(monkeypatch):
    """The names of this host and user stand nowhere."""
    monkeypatch.setattr("platform.node", lambda: "build-host-17")
    monkeypatch.setenv("USER", "jane")

    files = clean({"/root/proc/version": "Linux (jane@build-host-17) #1", "/root/x": "janet"})

    assert files["/root/proc/version"] == "Linux (user@host) #1"
    assert files["/root/x"] == "janet"


def test_only_the_cpu_list_is_kept_of_the_process_status():
    """The status file of the recording process is cut to what is needed."""
    files = clean({"/root/proc/self/status": "Name:\tpython\nPid:\t17\nCpus_allowed_list:\t0-3\n"})

    assert files["/root/proc/self/status"] == "Cpus_allowed_list:\t0-3\n"


def test_two_recordings_cannot_be_joined():
    """Without a given salt the pseudonyms differ from one recording to the next."""
    content = MemoryTree({"/answers/nvidia.json": json.dumps(ANSWER).encode()})

    assert scrubbed(content).files != scrubbed(content).files


def test_undecodable_files_survive():
    """A file that is no text keeps its bytes."""
    content = scrubbed(MemoryTree({"/root/x": b"\xff\xfe\x00"}), b"s")

    assert content.files["/root/x"] == b"\xff\xfe\x00"


def test_container_ids_are_blanked():
    """The sixty-four digits of a container id lead back to a machine."""
    files = clean({"/root/proc/1/cgroup": "0::/docker/" + "ab" * 32})

    assert files["/root/proc/1/cgroup"] == "0::/docker/" + "0" * 64


def test_only_events_are_kept_of_a_kernel_log():
    """A kernel log is cut to the lines that tell an error event or a boot, without host name and time."""
    log = (
        "Dec  1 03:00:00 build-17 kernel: [    0.0] Linux version 6.8.0\n"
        "Dec  1 03:00:01 build-17 kernel: NVRM: GPU Board Serial Number: 1650522\n"
        "Dec  1 03:00:02 build-17 kernel: [   12.3] NVRM: Xid (PCI:0000:1b:00): 79, pid=7, GPU has fallen off the bus.\n"
    )

    files = clean({"/root/var/log/kern.log": log})

    assert files["/root/var/log/kern.log"] == (
        "Linux version 6.8.0\nNVRM: Xid (PCI:0000:1b:00): 79, pid=7, GPU has fallen off the bus.\n"
    )
