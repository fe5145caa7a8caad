import gzip
import io
import json
import shutil
import subprocess
import sys
import tarfile
from hashlib import sha256
from itertools import combinations
from pathlib import Path

import pytest

from anyaccel.registry import Registry
from anyaccel.topology import PairLevel, pci_level
from anyaccel_conformance.captures import Looker, compare_folder
from anyaccel_conformance.captures.archives import CaptureError, read_archive
from anyaccel_conformance.captures.program import main
from anyaccel_conformance.captures.texts import udev_machine
from anyaccel_conformance.readers import parse_topo_matrix
from anyaccel_conformance.shared_data import shared_folder

pytest.importorskip("anyaccel_amd", reason="the comparison needs the amd plugin")
pytest.importorskip("anyaccel_nvidia", reason="the comparison needs the nvidia plugin")


@pytest.fixture(scope="session")
def looker():
    """Discovery with exactly these two plugins."""
    return Looker(Registry.of("anyaccel_amd.plugin", "anyaccel_nvidia.plugin"))


def write_tar(path, files, links=()):
    """Write an archive of texts by name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz" if path.name.endswith("gz") else "w:bz2") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            content = text.encode()
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        for name, target in links:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            archive.addfile(info)


def card_files(top="sys/class/drm/card0"):
    """One AMD card: what its driver and the PCI core write, ids in three places."""
    uevent = (
        "DRIVER=amdgpu\nPCI_CLASS=30000\nPCI_ID=1002:73BF\nPCI_SLOT_NAME=0000:0b:00.0\n"
        "MODALIAS=pci:v00001002d000073BFsv00001002sd00000E3Abc03sc00i00\n"
    )
    return {
        f"{top}/device/uevent": uevent,
        f"{top}/device/vendor": "0x1002\n",
        f"{top}/device/device": "0x73bf\n",
        f"{top}/device/numa_node": "-1\n",
        f"{top}/device/mem_info_vram_total": "17163091968\n",
        f"{top}/device/current_link_speed": "16.0 GT/s PCIe\n",
        f"{top}/device/current_link_width": "16\n",
    }


def kfd_files():
    """Two GPUs of one hive with two partitions each, linked inside the package and across."""
    root = "sys/class/kfd/kfd/topology"
    files = {f"{root}/generation_id": "1\n", f"{root}/nodes/0/properties": "cpu_cores_count 8\nsimd_count 0\n"}
    for number in range(1, 5):
        gpu, part = divmod(number - 1, 2)
        files[f"{root}/nodes/{number}/gpu_id"] = f"{100 + number}\n"
        files[f"{root}/nodes/{number}/properties"] = (
            "cpu_cores_count 0\nsimd_count 152\nsimd_per_cu 4\nio_links_count 3\nvendor_id 4098\ndevice_id 29857\n"
            f"location_id {(5 + gpu) * 256 + part}\ndomain 0\ndrm_render_minor {127 + number}\n"
            f"hive_id 77\nunique_id {1000 + gpu}\nnum_xcc 4\n"
        )
        for place, far in enumerate(n for n in range(1, 5) if n != number):
            speed = 819200 if (far - 1) // 2 == gpu else 0
            files[f"{root}/nodes/{number}/io_links/{place}/properties"] = (
                f"type 11\nnode_from {number}\nnode_to {far}\nweight {13 if speed else 41}\n"
                f"min_bandwidth {speed}\nmax_bandwidth {speed}\nflags 1\n"
            )
    return files


HWLOC_XML = """<topology version="2.0">
<object type="Machine" os_index="0" cpuset="0x0000000f">
 <object type="Package" os_index="0" cpuset="0x00000003">
  <object type="NUMANode" os_index="0" cpuset="0x00000003" local_memory="1048576"/>
  <object type="Bridge" bridge_type="0-1" bridge_pci="0000:[00-02]">
   <object type="Bridge" bridge_type="1-1" pci_busid="0000:00:01.0" pci_type="0604 [8086:0001] [0000:0000] 00">
    <object type="PCIDev" pci_busid="0000:02:00.0" pci_type="0302 [10de:20b2] [0000:0000] 00"/></object></object></object>
 <object type="Package" os_index="1" cpuset="0x0000000c">
  <object type="NUMANode" os_index="1" cpuset="0x0000000c" local_memory="1048576"/></object>
</object></topology>
"""


def plain_files(top="machine"):
    """A machine of two memory nodes with one NVIDIA card below a bridge, below a leading folder."""
    card = f"{top}/sys/devices/pci0000:00/0000:00:01.0/0000:02:00.0"
    files = {
        f"{card}/vendor": "0x10de\n",
        f"{card}/device": "0x20b2\n",
        f"{card}/class": "0x030200\n",
        f"{card}/numa_node": "0\n",
    }
    for node, cpus in ((0, "0-1"), (1, "2-3")):
        files[f"{top}/sys/devices/system/node/node{node}/cpulist"] = f"{cpus}\n"
        files[f"{top}/sys/devices/system/node/node{node}/meminfo"] = f"Node {node} MemTotal:  1024 kB\n"
    for cpu in range(4):
        files[f"{top}/sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id"] = f"{cpu // 2}\n"
    link = f"{top}/sys/bus/pci/devices/0000:02:00.0"
    return files, [(link, "../../../devices/pci0000:00/0000:00:01.0/0000:02:00.0")]


LSPCI = """00:01.0 PCI bridge [0604]: Example Corp. Port [8086:0001]
\tNUMA node: 0
\tBus: primary=00, secondary=02, subordinate=03, sec-latency=0
02:00.0 3D controller [0302]: NVIDIA Corporation Device [10de:20b2] (rev a1)
\tNUMA node: 0
\t\tLnkSta:\tSpeed 16GT/s, Width x16
\tKernel driver in use: nvidia
03:00.0 3D controller [0302]: NVIDIA Corporation Device [10de:20b2] (rev a1)
\tNUMA node: 0
\t\tLnkSta:\tSpeed 16GT/s, Width x16
\tKernel driver in use: nvidia
"""

MATRIX = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNV4\t0-3\t0\nGPU1\tNV4\t X \t4-7\t1\n"

NCCL = """<system version="1"><cpu numaid="0" affinity="0000000f">
<pci busid="0000:05:00.0" class="0x060400"><pci busid="0000:06:00.0" class="0x038000" vendor="0x1002"><gpu dev="0" gcn="gfx90a">
<xgmi target="0000:08:00.0" count="1"/></gpu></pci></pci></cpu>
<cpu numaid="1" affinity="000000f0"><pci busid="0000:08:00.0" class="0x038000" vendor="0x1002"><gpu dev="1" gcn="gfx90a">
<xgmi target="0000:06:00.0" count="1"/></gpu></pci></cpu></system>
"""

ROCM = {
    "card0": {"Device ID": "0x738c", "PCI Bus": "0000:83:00.0", "Unique ID": "0x1234", "(Topology) Numa Affinity": "1"}
}

SMI = """<nvidia_smi_log><driver_version>550.1</driver_version><attached_gpus>1</attached_gpus><gpu id="00000000:1B:00.0">
<product_name>NVIDIA A100</product_name><minor_number>0</minor_number><uuid>GPU-0</uuid>
<mig_mode><current_mig>Enabled</current_mig></mig_mode><mig_devices><mig_device><index>0</index>
<gpu_instance_id>3</gpu_instance_id><compute_instance_id>0</compute_instance_id>
<fb_memory_usage><total>512 MiB</total></fb_memory_usage></mig_device></mig_devices>
<fb_memory_usage><total>1024 MiB</total><reserved>4 MiB</reserved><used>20 MiB</used><free>1000 MiB</free></fb_memory_usage>
<pci><pci_device_id>20B010DE</pci_device_id><pci_bus_id>00000000:1B:00.0</pci_bus_id></pci></gpu>
</nvidia_smi_log>
"""


@pytest.fixture
def captures(tmp_path):
    """A folder of small captures written for these tests, one of each kind."""
    folder = tmp_path / "captures"
    write_tar(folder / "amd/card/sysfs.tar.gz", card_files())
    write_tar(folder / "amd/piece/sysfs.tar.gz", card_files("card0"))
    write_tar(folder / "amd/divided/kfd-topology.tar.gz", kfd_files())
    write_tar(folder / "topology/plain/sysfs.tar.bz2", *plain_files())
    (folder / "topology/plain/expected.xml").write_text(HWLOC_XML)
    texts = {
        "nvidia/server/lspci.txt": LSPCI,
        "nvidia/matrix/topo.txt": MATRIX,
        "amd/lab/topo.xml": NCCL,
        "amd/tool/all.json": json.dumps(ROCM),
        "nvidia/smi/a100.xml": SMI,
        "tpu/pod/info.txt": "nothing this project reads\n",
    }
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def changed_archive(path, member, old, new):
    """Change one value in one member of an archive."""
    with tarfile.open(path) as archive:
        members = [(info, archive.extractfile(info).read() if info.isreg() else b"") for info in archive]
    with tarfile.open(path, "w:gz" if path.name.endswith("gz") else "w:bz2") as archive:
        for info, content in members:
            is_meant = info.name.endswith(member) and info.isreg()
            assert not is_meant or old.encode() in content, (member, content)
            written = content.replace(old.encode(), new.encode(), 1) if is_meant else content
            info.size = len(written)
            archive.addfile(info, io.BytesIO(written) if info.isreg() else None)


def changed_text(path, old, new):
    """Change one value in a text, packed or not."""
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()
    assert old in text, (path, old)
    text = text.replace(old, new, 1)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


def test_agreeing_captures_end_with_zero(captures, looker, capsys):
    """When every machine agrees the program says how much was compared and ends with 0."""
    code = main([str(captures)], looker)

    assert (code, "0 of them different" in capsys.readouterr().out) == (0, True)


def test_every_machine_is_one_line(captures, looker, capsys):
    """Each machine is named with what was compared; what nothing reads is skipped with a reason."""
    main([str(captures)], looker)
    lines = capsys.readouterr().out.splitlines()

    assert (len(lines), [line for line in lines if line.startswith("skipped")]) == (
        11,
        ["skipped   tpu/pod/info.txt: no plugin of this family reads it yet"],
    )


@pytest.mark.parametrize(
    ("archive", "member", "old", "new", "kind"),
    [
        ("amd/card/sysfs.tar.gz", "uevent", "1002:73BF", "1002:73AF", "pci id"),
        ("amd/card/sysfs.tar.gz", "uevent", "v00001002d000073BF", "v00001002d000073BE", "modalias"),
        ("amd/card/sysfs.tar.gz", "device/device", "73bf", "73be", "pci id"),
        ("amd/piece/sysfs.tar.gz", "device/vendor", "1002", "1022", "pci id"),
        ("amd/divided/kfd-topology.tar.gz", "nodes/2/properties", "hive_id 77", "hive_id 78", "hive"),
        ("amd/divided/kfd-topology.tar.gz", "nodes/2/properties", "unique_id 1000", "unique_id 1007", "link"),
        ("amd/divided/kfd-topology.tar.gz", "nodes/2/properties", "simd_count 152", "simd_count 0", "linked nodes"),
        (
            "amd/divided/kfd-topology.tar.gz",
            "nodes/2/properties",
            "location_id 1281",
            "location_id 1793",
            "slots of a gpu",
        ),
        ("amd/divided/kfd-topology.tar.gz", "nodes/2/properties", "minor 129", "minor 128", "render nodes"),
        (
            "amd/divided/kfd-topology.tar.gz",
            "nodes/2/properties",
            "io_links_count 3",
            "io_links_count 4",
            "complete lists",
        ),
        ("amd/divided/kfd-topology.tar.gz", "nodes/1/io_links/0/properties", "type 11", "type 2", "link"),
        ("topology/plain/sysfs.tar.bz2", "numa_node", "0", "1", "numa"),
        ("topology/plain/sysfs.tar.bz2", "0000:02:00.0/device", "20b2", "20b5", "pci id"),
        ("topology/plain/sysfs.tar.bz2", "node1/cpulist", "2-3", "3", "numa cpus"),
        ("topology/plain/sysfs.tar.bz2", "node1/meminfo", "1024", "1023", "numa memory"),
        ("topology/plain/sysfs.tar.bz2", "cpu3/topology/physical_package_id", "1", "0", "package cpus"),
    ],
)
def test_one_changed_value_in_an_archive_is_found(captures, looker, capsys, archive, member, old, new, kind):
    """A single value changed in a copy ends with 1, and the line names what differs, with no list of digests to help."""
    changed_archive(captures / archive, member, old, new)
    code = main([str(captures)], looker)

    assert (code, f"    {kind} of " in capsys.readouterr().out) == (1, True)


@pytest.mark.parametrize(
    ("text", "old", "new", "kind"),
    [
        ("topology/plain/expected.xml", "10de:20b2", "10de:20b3", "pci id"),
        ("topology/plain/expected.xml", "0000:00:01.0", "0000:00:02.0", "bridges"),
        ("topology/plain/expected.xml", 'local_memory="1048576"', 'local_memory="1048577"', "numa memory"),
        ("topology/plain/expected.xml", '"1" cpuset="0x0000000c"', '"1" cpuset="0x00000004"', "package cpus"),
        ("nvidia/matrix/topo.txt", "GPU1\tNV4", "GPU1\tNV2", "word"),
        ("nvidia/matrix/topo.txt", "GPU0\t X \tNV4", "GPU0\t X \tPHB", "word"),
        ("nvidia/server/lspci.txt", "\tNUMA node: 0\n\tBus", "\tNUMA node: 1\n\tBus", "numa of its port"),
        ("nvidia/smi/a100.xml", "<total>1024", "<total>1028", "memory parts"),
        ("nvidia/smi/a100.xml", "<pci_bus_id>00000000:1B", "<pci_bus_id>00000000:1C", "bus id"),
        ("amd/lab/topo.xml", 'target="0000:06:00.0" count="1"', 'target="0000:06:00.0" count="2"', "link at both ends"),
    ],
)
def test_one_changed_value_in_a_tools_text_is_found(captures, looker, capsys, text, old, new, kind):
    """What a tool said is not taken from us, and of a machine that only has a text one place is held against another."""
    changed_text(captures / text, old, new)
    code = main([str(captures)], looker)

    assert (code, f"    {kind} of " in capsys.readouterr().out) == (1, True)


def test_changed_file_is_found_by_its_digest(captures, looker, capsys):
    """With a list of digests beside the captures even a value nothing else states cannot change unseen."""
    rows = [
        {"file": path.relative_to(captures).as_posix(), "sha256": sha256(path.read_bytes()).hexdigest()}
        for path in captures.rglob("*")
        if path.is_file()
    ]
    (captures / "MANIFEST.json").write_text(json.dumps(rows))
    unchanged = main([str(captures)], looker)
    changed_text(captures / "nvidia/smi/a100.xml", "GPU-0", "GPU-1")
    code = main([str(captures)], looker)

    assert (unchanged, code, "digest of nvidia/smi/a100.xml" in capsys.readouterr().out) == (0, 1, True)


def test_missing_file_is_found_by_the_list(captures, looker, capsys):
    """A file the list names and the folder lacks is a failure."""
    (captures / "MANIFEST.json").write_text(json.dumps([{"file": "amd/gone.tar.gz", "sha256": "0"}]))

    assert (main([str(captures)], looker), "digest of amd/gone.tar.gz" in capsys.readouterr().out) == (1, True)


@pytest.mark.parametrize("text", ["{}", "[1]", "nothing", '[{"file": "a"}]'])
def test_malformed_list_of_digests_is_a_failure(captures, looker, text):
    """A list that cannot be read does not pass for one that agrees."""
    (captures / "MANIFEST.json").write_text(text)

    assert main([str(captures)], looker) == 1


def test_archive_without_a_judge_is_a_failure(tmp_path, looker, capsys):
    """A plain archive beside which no other tool's result stands is named, and the program ends with 1."""
    write_tar(tmp_path / "plain/sysfs.tar.bz2", *plain_files())

    assert (main([str(tmp_path)], looker), "FAILED    plain:" in capsys.readouterr().out) == (1, True)


def test_archive_needs_the_plugins(captures, capsys):
    """Without the plugins an archive is not passed over in silence."""
    code = main([str(captures)], Looker(Registry()))

    assert (code, "plugin amd and nvidia is not loaded" in capsys.readouterr().out) == (1, True)


def test_cards_of_other_families_are_compared_on_plain_linux(tmp_path, looker):
    """An archive of a card without a plugin is still compared as far as core reads it."""
    files = {name: text.replace("1002", "8086").replace("amdgpu", "i915") for name, text in card_files().items()}
    write_tar(tmp_path / "intel/card/sysfs.tar.gz", files)
    (result,) = compare_folder(tmp_path, looker)

    assert (result.differences, {claim.kind for claim in result.claims}) == (
        (),
        {"pci id", "modalias", "driver", "numa", "current link"},
    )


def test_nothing_to_compare_is_a_failure(tmp_path, looker):
    """An empty folder does not look like a folder in which everything agrees."""
    assert main([str(tmp_path)], looker) == 1


@pytest.mark.parametrize("arguments", [[], ["/nonexistent/folder"]])
def test_wrong_use_ends_with_two(arguments, looker, capsys):
    """A missing folder is a usage error with one sentence."""
    assert (main(arguments, looker), capsys.readouterr().err.startswith("error: no ")) == (2, True)


def test_broken_document_differs_and_is_named(captures, looker):
    """A document that is malformed is a difference, not a skip."""
    (captures / "nvidia/smi/a100.xml").write_text("<nvidia_smi_log><gpu>")

    assert main([str(captures)], looker) == 1


def evil_tar(path, name, **fields):
    """Write an archive of one entry with these fields."""
    with tarfile.open(path, "w:gz") as archive:
        info = tarfile.TarInfo(name)
        for field, value in fields.items():
            setattr(info, field, value)
        archive.addfile(info)


@pytest.mark.parametrize(
    ("name", "fields", "words"),
    [
        ("../../etc/passwd", {}, "unsafe path"),
        ("/sys/class", {}, "unsafe path"),
        ("sys/class/a", {"type": tarfile.BLKTYPE}, "neither file, folder nor symbolic link"),
        ("sys/class/a", {"type": tarfile.LNKTYPE, "linkname": "/etc/passwd"}, "neither file"),
    ],
)
def test_unsafe_archives_are_refused(tmp_path, name, fields, words):
    """An archive that would reach outside, or holds what is no file, is refused in one sentence."""
    evil_tar(tmp_path / "a.tar.gz", name, **fields)

    with pytest.raises(CaptureError, match=words):
        read_archive(tmp_path / "a.tar.gz")


def test_large_archive_is_refused(tmp_path):
    """A file above the limit is refused, whatever it is called."""
    write_tar(tmp_path / "a.tar.gz", {"sys/a": "0" * (5 << 20)})

    with pytest.raises(CaptureError, match="too large at 'sys/a'"):
        read_archive(tmp_path / "a.tar.gz")


def test_archive_without_a_root_is_refused(tmp_path):
    """An archive in which no root of a machine can be found says what it holds instead."""
    write_tar(tmp_path / "a.tar.gz", {"one/a": "", "two/b": ""})

    with pytest.raises(CaptureError, match="no root of a machine"):
        read_archive(tmp_path / "a.tar.gz")


def test_no_archive_at_all_is_refused(tmp_path):
    """A file that only calls itself an archive is refused."""
    (tmp_path / "a.tar.gz").write_text("nothing of the kind")

    with pytest.raises(CaptureError):
        read_archive(tmp_path / "a.tar.gz")


def test_symbolic_links_never_leave_the_archive(tmp_path, looker):
    """A link to the host's own files leads nowhere."""
    files, links = plain_files()
    write_tar(tmp_path / "a.tar.bz2", files, [*links, ("machine/sys/class", "/etc")])
    tree = read_archive(tmp_path / "a.tar.bz2").tree()

    assert tree.exists("/sys/class/passwd") is False


def test_program_runs_as_a_command(captures):
    """The file in the repository runs with what is installed and ends with the same code."""
    program = Path(__file__).parents[1] / "compare_captures.py"
    result = subprocess.run(
        [sys.executable, str(program), str(captures)], capture_output=True, text=True, check=False, timeout=60
    )

    assert (result.returncode, result.stdout.splitlines()[-1].startswith("9 compared")) == (0, True), result.stdout


@pytest.fixture
def copied(tmp_path):
    """Copy one machine of the shared captures, and nothing of its list of digests."""

    def copy(name):
        return Path(shutil.copytree(shared_folder("captures") / name, tmp_path / name))

    return copy


def test_published_captures_agree(looker):
    """Every machine of the shared captures that can be compared agrees with its own tools, and every archive was read."""
    results = list(compare_folder(shared_folder("captures"), looker))

    assert ([c.sentence for r in results for c in r.differences], [r.line for r in results if r.is_failure]) == ([], [])


def test_published_topologies_agree(looker):
    """Every published matrix and topology document agrees after it went through our own values."""
    results = list(compare_folder(shared_folder("captures-topology"), looker))

    assert ([c.sentence for r in results for c in r.differences], [r.line for r in results if r.is_failure]) == ([], [])


@pytest.mark.parametrize(
    ("machine", "archive", "member", "old", "new"),
    [
        ("amd/rx580", "sysfs.tar.gz", "device/uevent", "67DF", "67DE"),
        ("amd/strixpoint", "sysfs.tar.gz", "nodes/1/properties", "simd_count 24", "simd_count 0"),
        ("amd/vega56", "sysfs.tar.gz", "device/device", "687f", "687e"),
        ("nvidia/rtx4080-sysfs", "sysfs.tar.gz", "device/vendor", "10de", "10df"),
        ("topology/pci-domain-32bit", "sysfs.tar.bz2", "10000:00:04.0/device", "0x1001", "0x1002"),
        ("topology/two-socket-pcilocality", "sysfs.tar.bz2", "node3/cpulist", "3", "5"),
        ("nvidia/dgx-spark-gb10", "sysfs.tar.bz2", "cpu3/topology/physical_package_id", "36", "37"),
        ("nvidia/power9-gpu-numa-nodes", "sysfs-procfs.tar.bz2", "0035:05:00.0/numa_status", "250", "249"),
    ],
)
def test_one_changed_value_in_a_published_archive_is_found(copied, looker, machine, archive, member, old, new):
    """The same program that agrees with the originals differs as soon as one value in a copy is changed."""
    folder = copied(machine)
    changed_archive(folder / archive, member, old, new)

    assert [result.is_failure for result in compare_folder(folder, looker)].count(True) == 1


@pytest.mark.parametrize(
    ("machine", "name", "old", "new"),
    [
        ("topology/pci-domain-32bit", "expected.console", "10000:00:04.0", "10001:00:04.0"),
        ("topology/two-socket-pcilocality", "expected.xml", 'pci_busid="0000:43:00.0"', 'pci_busid="0000:43:00.1"'),
        ("nvidia/power9-gpu-numa-nodes", "expected-kept.console", "P#253", "P#249"),
    ],
)
def test_one_changed_value_in_a_published_result_is_found(copied, looker, machine, name, old, new):
    """A changed value on the tool's side is found as well."""
    folder = copied(machine)
    changed_text(folder / name, old, new)

    assert [result.is_failure for result in compare_folder(folder, looker)].count(True) == 1


def test_nearness_of_a_dgx_a100_is_what_nvidia_prints_for_one(looker):
    """Our nearness on the bridges of one DGX A100 equals the words that NVIDIA's tool printed on another one.

    The database of the first tells no memory nodes, so only pairs below one PCIe root are compared.
    """
    database = shared_folder("captures") / "nvidia/dgx-a100/udevadm-export-db.txt.gz"
    text = (shared_folder("captures-topology") / "nvidia-smi-topo/dgx-a100-8x-10nic.txt").read_text()
    inventory, matrix = looker.look(udev_machine(database, "dgx-a100")), parse_topo_matrix(text)
    ends = {f"GPU{n}": inventory.path_of(gpu) for n, gpu in enumerate(inventory.view("nvidia").roots)}
    ends |= {f"NIC{nic.id.removeprefix('mlx5_')}": nic.path for nic in inventory.host.nics}
    words = {PairLevel.SAME_SWITCH: "PIX", PairLevel.SAME_PACKAGE: "PIX", PairLevel.SEVERAL_SWITCHES: "PXB"}
    ours = {pair: words.get(pci_level(ends[pair[0]], ends[pair[1]])) for pair in combinations(matrix.columns, 2)}
    theirs = {pair: word if (word := matrix.word(*pair)) in ("PIX", "PXB") else None for pair in ours}
    gpus = {pair for pair in ours if pair[1].startswith("GPU")}

    assert {p: w for p, w in ours.items() if p not in gpus} == {p: w for p, w in theirs.items() if p not in gpus}
