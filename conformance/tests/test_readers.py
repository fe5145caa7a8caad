import gzip

import pytest

from anyaccel_conformance.readers import (
    ForeignFormatError,
    parse_hwloc_console,
    parse_hwloc_xml,
    parse_lspci,
    parse_nccl_xml,
    parse_nvidia_smi_xml,
    parse_nvlink_status,
    parse_rocm_json,
    parse_rocm_topology,
    parse_topo_matrix,
    parse_udev_db,
    parse_xml,
    read_document,
    write_hwloc_xml,
    write_nccl_xml,
    write_rocm_topology,
    write_topo_matrix,
)
from anyaccel_conformance.readers.hwloc_xml import (
    hwloc_numa_nodes,
    hwloc_pci_devices,
    os_device_types,
    read_bitmap,
)
from anyaccel_conformance.readers.lspci import lspci_bridges
from anyaccel_conformance.shared_data import find_shared_folder, shared_folder

MATRIX = (
    "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
    "GPU0\t X \tNV4\tPXB\t0-3,8-11\t0\t\tN/A\n"
    "GPU1\tNV4\t X \tSYS\t4-7\t1\t\t3\n"
    "NIC0\tPXB\tSYS\t X \n"
    "\n"
    "NIC Legend:\n"
    "  NIC0: mlx5_bond_0\n"
)


def test_topology_matrix_gives_words_and_affinities():
    """Words are found by device name, and the last of the right-hand columns is the GPU's own memory node."""
    matrix = parse_topo_matrix(MATRIX)

    assert (matrix.word("GPU0", "GPU1"), matrix.row("GPU1").numa_affinity, matrix.row("GPU1").gpu_numa_id) == (
        "NV4",
        "1",
        "3",
    )


def test_topology_matrix_names_the_network_cards():
    """The second legend maps the short name of a network card to its kernel name."""
    assert parse_topo_matrix(MATRIX).nic_names["NIC0"] == "mlx5_bond_0"


def test_topology_matrix_with_glued_headers():
    """Names that lost the blank between them in a pasted text are taken apart."""
    matrix = parse_topo_matrix("  GPU0 GPU1 NIC8NIC9 CPU Affinity\nGPU0 X PIX SYS SYS 0-3\n")

    assert matrix.columns == ("GPU0", "GPU1", "NIC8", "NIC9")


def test_topology_matrix_with_glued_affinity():
    """A node number glued to the N/A after it is still the node number."""
    matrix = parse_topo_matrix(
        "     GPU0 GPU1 CPU Affinity NUMA Affinity GPU NUMA ID\nGPU0  X  NV18 0-55,112-167 0N/A\nGPU1 NV18  X  56-111 1 N/A\n"
    )

    assert [(row.cpu_affinity, row.numa_affinity) for row in matrix.rows] == [("0-55,112-167", "0"), ("56-111", "1")]


def test_topology_matrix_with_blank_affinity():
    """A container that sees no node prints blanks: that is unknown, not node 0."""
    matrix = parse_topo_matrix("\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \tPHB\t\t\t\tN/A\n")

    assert (matrix.rows[0].cpu_affinity, matrix.rows[0].numa_affinity) == (None, None)


def test_topology_matrix_with_terminal_codes():
    """The tool underlines its header on a terminal; the codes are no part of a name."""
    matrix = parse_topo_matrix("\x1b[4m\tGPU0\tGPU1\tCPU Affinity\x1b[0m\nGPU0\t X \tSOC\t0-7\n")

    assert matrix.columns == ("GPU0", "GPU1")


def test_cut_topology_matrix_has_no_word_for_missing_rows():
    """A row that was cut off gives None, unless the other device's row has the word."""
    matrix = parse_topo_matrix("\tGPU0\tNIC0\tNIC1\nGPU0\t X \tPIX\tSYS\n")

    assert (matrix.word("NIC0", "GPU0"), matrix.word("NIC0", "NIC1")) == ("PIX", None)


def test_topology_matrix_survives_writing():
    """What is read of a written matrix equals it."""
    matrix = parse_topo_matrix(MATRIX)

    assert parse_topo_matrix(write_topo_matrix(matrix)) == matrix


def test_text_without_a_matrix_is_refused():
    """A text that holds no matrix is an error, not an empty matrix."""
    with pytest.raises(ForeignFormatError, match="no header line"):
        parse_topo_matrix("no devices were found\n")


ROCM = """
============ Link Type between two GPUs ============
       GPU0   GPU1
GPU0   0      XGMI
GPU1   XGMI   0
============ Weight between two GPUs ============
       GPU0   GPU1
GPU0   0      15
GPU1   15     0
================= Numa Nodes =================
GPU[0] : (Topology) Numa Node: 1
GPU[0] : (Topology) Numa Affinity: -1
GPU[1] : (Topology) Numa Node: 1
"""


def test_rocm_topology_gives_link_types():
    """Each table is found by its title."""
    topology = parse_rocm_topology(ROCM)

    assert (topology.kind("GPU0", "GPU1"), topology.kind("GPU0", "GPU0")) == ("XGMI", None)


def test_rocm_topology_keeps_minus_one():
    """An affinity of -1 is kept as printed, so that a comparison can see it."""
    assert parse_rocm_topology(ROCM).numa_affinities["GPU0"] == -1


def test_rocm_topology_survives_writing():
    """What is read of written tables equals them."""
    topology = parse_rocm_topology(ROCM)

    assert parse_rocm_topology(write_rocm_topology(topology)) == topology


HWLOC = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
  <object type="Machine" os_index="0" cpuset="0x00000003" nodeset="0x00000001">
    <info name="Backend" value="Linux &quot;a&quot;"/>
    <object type="NUMANode" os_index="4" cpuset="0x00000003" nodeset="0x00000010" local_memory="1024"/>
    <object type="Bridge" bridge_type="0-1" bridge_pci="0000:[00-02]">
      <object type="Bridge" bridge_type="1-1" pci_busid="0000:01:00.0" pci_type="0604 [10b5:8747] [0000:0000] 00">
        <object type="PCIDev" gp_index="9" pci_busid="0000:02:00.0" pci_type="0302 [10de:1db8] [10de:1] a1"
                pci_link_speed="15.75">
          <object type="OSDev" name="cuda0" osdev_type="5" gp_index="11"/>
        </object>
      </object>
    </object>
  </object>
  <distances2hetero nbobjs="2" kind="25" name="NVLinkBandwidth">
    <indexes length="22">OSDev:11 PCIDev:9 </indexes>
    <u64values length="4">0 5 </u64values>
    <u64values length="4">5 0 </u64values>
  </distances2hetero>
</topology>
"""


def test_hwloc_device_has_its_bridges_and_cpus():
    """A PCI device knows the bridges above it and the CPUs of the object they hang on."""
    device = hwloc_pci_devices(parse_hwloc_xml(HWLOC))[0]

    assert (device.address, device.bridges, device.cpus) == ("0000:02:00.0", ("0000:01:00.0",), (0, 1))


def test_hwloc_device_types_of_version_two():
    """Up to version 2 an OS device has one type, given by its number."""
    assert hwloc_pci_devices(parse_hwloc_xml(HWLOC))[0].os_devices == (("cuda0", ("coproc",)),)


def test_hwloc_device_types_of_version_three():
    """Since version 3 the number is a bit mask."""
    node = parse_hwloc_xml(HWLOC.replace('osdev_type="5"', 'osdev_type="12"')).root
    device = next(found for found in node.walk() if found.kind == "OSDev")

    assert os_device_types(device, "3.0") == ("gpu", "coproc")


def test_hwloc_memory_nodes():
    """Memory nodes have the system's number and their size."""
    node = hwloc_numa_nodes(parse_hwloc_xml(HWLOC))[0]

    assert (node.number, node.memory_bytes) == (4, 1024)


def test_hwloc_matrix_is_read_row_by_row():
    """A matrix over unlike objects keeps the names of its ends."""
    matrix = parse_hwloc_xml(HWLOC).matrix("NVLinkBandwidth")

    assert (matrix.ends, matrix.values) == (("OSDev:11", "PCIDev:9"), ((0, 5), (5, 0)))


def test_hwloc_document_survives_writing():
    """What is read of a written topology equals it, quotes in values included."""
    topology = parse_hwloc_xml(HWLOC)

    assert parse_hwloc_xml(write_hwloc_xml(topology)) == topology


def test_short_hwloc_matrix_is_refused():
    """A matrix with too few values is an error, not a smaller matrix."""
    with pytest.raises(ForeignFormatError, match="3 values for 2 objects"):
        parse_hwloc_xml(HWLOC.replace(">5 0 <", ">5 <"))


def test_infinite_bitmap_is_unknown():
    """A set without end names no CPUs."""
    assert read_bitmap("0xf...f,0x00000000") is None


NCCL = """<system version="1">
  <cpu numaid="1" affinity="00000001,00000002" arch="x86_64">
    <pci busid="0000:05:00.0" class="0x060400" link_speed="16 GT/s" link_width="16">
      <pci busid="0000:06:00.0" class="0x038000"><gpu dev="3" sm="104">
        <xgmi target="0000:09:00.0" count="2" tclass="0x038000"/></gpu></pci>
    </pci>
    <nic><net name="eth0" dev="0"/></nic>
  </cpu>
</system>
"""


def test_nccl_gpu_has_its_bridges_and_links():
    """A GPU knows the bridges above it, and a link its target and count."""
    device, above = list(parse_nccl_xml(NCCL).cpus[0].walk())[1]

    assert (above, device.gpu.links[0].target, device.gpu.links[0].count) == (("0000:05:00.0",), "0000:09:00.0", 2)


def test_nccl_affinity_has_the_highest_word_first():
    """The mask of CPUs is the kernel's: 32 bits a word, the highest first."""
    assert parse_nccl_xml(NCCL).cpus[0].cpus == (1, 32)


def test_nccl_document_survives_writing():
    """What is read of a written file equals it."""
    system = parse_nccl_xml(NCCL)

    assert parse_nccl_xml(write_nccl_xml(system)) == system


LSPCI = """00:01.0 PCI bridge: Example Corp. Device 352a (rev 04) (prog-if 00 [Normal decode])
\tNUMA node: 1
\tBus: primary=00, secondary=02, subordinate=05, sec-latency=0
\t\tLnkCap:\tPort #1, Speed 32GT/s, Width x16, ASPM L1
02:00.0 PCI bridge [0604]: Example Corp. Switch [1234:0001]
\tBus: primary=02, secondary=03, subordinate=05, sec-latency=0
03:00.0 3D controller [0302]: NVIDIA Corporation GA100 [A100] [10de:20b2] (rev a1)
\tNUMA node: 1
\t\tLnkCap:\tPort #0, Speed 16GT/s, Width x16, ASPM L1
\t\tLnkSta:\tSpeed 8GT/s (downgraded), Width x8 (downgraded)
\tKernel driver in use: nvidia
10000:e0:00.0 3D controller: NVIDIA Corporation Device 2330 (rev a1)
"""


def test_lspci_reads_ids_node_driver_and_link():
    """Numbers come from `-nn`, the rest from `-vvv`; a link that trained lower shows both speeds."""
    card = parse_lspci(LSPCI)[2]

    assert (card.vendor_id, card.device_id, card.numa_node, card.driver, card.speed_gts, card.max_speed_gts) == (
        0x10DE,
        0x20B2,
        1,
        "nvidia",
        8.0,
        16.0,
    )


def test_lspci_bridges_follow_from_bus_numbers():
    """Every bridge whose buses hold the function's bus is above it."""
    functions = parse_lspci(LSPCI)

    assert lspci_bridges(functions, functions[2]) == ("0000:00:01.0", "0000:02:00.0")


def test_lspci_without_numbers_knows_only_a_bare_device_id():
    """Without `-nn` a device the id list does not name still prints its number; nothing else is made up."""
    card = parse_lspci(LSPCI)[3]

    assert (card.address, card.vendor_id, card.device_id, card.class_code) == ("10000:e0:00.0", None, 0x2330, None)


def test_udev_record_has_node_and_properties():
    """A record gives path, device file, further names and properties."""
    record = parse_udev_db("P: /devices/a\nN: accel/accel0\nS: x\nE: SUBSYSTEM=accel\nE: A=b=c\n\nP: /devices/b\n")[0]

    assert (record.node, record.links, record.subsystem, record.properties["A"]) == (
        "accel/accel0",
        ("x",),
        "accel",
        "b=c",
    )


SMI = """<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log><driver_version>550.1</driver_version><attached_gpus>1</attached_gpus>
<gpu id="00000000:1B:00.0"><product_name>Example</product_name><minor_number>N/A</minor_number>
<uuid>GPU-00000000-1111-2222-3333-444444444444</uuid>
<mig_mode><current_mig>Enabled</current_mig></mig_mode>
<mig_devices><mig_device><index>0</index><gpu_instance_id>3</gpu_instance_id><compute_instance_id>0</compute_instance_id>
<fb_memory_usage><total>512 MiB</total></fb_memory_usage></mig_device></mig_devices>
<fb_memory_usage><total>1024 MiB</total></fb_memory_usage>
<pci><pci_device_id>20B010DE</pci_device_id><pci_sub_system_id>N/A</pci_sub_system_id><pci_gpu_link_info>
<link_widths><current_link_width>16x</current_link_width></link_widths></pci_gpu_link_info></pci></gpu></nvidia_smi_log>
"""


def test_nvidia_smi_gpu_facts():
    """Address, ids, memory and link width are numbers; the id has the vendor last."""
    card = parse_nvidia_smi_xml(SMI).gpus[0]

    assert (card.address, card.vendor_id, card.device_id, card.memory_bytes, card.pcie_width) == (
        "0000:1b:00.0",
        0x10DE,
        0x20B0,
        1 << 30,
        16,
    )


def test_nvidia_smi_not_available_is_none():
    """What the tool prints as N/A is unknown."""
    card = parse_nvidia_smi_xml(SMI).gpus[0]

    assert (card.minor_number, card.subsystem_id) == (None, None)


def test_nvidia_smi_mig_devices():
    """MIG devices have their instance numbers and their own memory."""
    mig = parse_nvidia_smi_xml(SMI).gpus[0].mig_devices[0]

    assert (mig.gpu_instance_id, mig.compute_instance_id, mig.memory_bytes) == (3, 0, 512 << 20)


def test_nvlink_status_tells_inactive_from_fast():
    """An inactive link has no speed."""
    gpus = parse_nvlink_status("GPU 0: Example (UUID: GPU-0)\n\t Link 0: 26.562 GB/s\n\t Link 1: <inactive>\n")

    assert gpus[0].links == ((0, 26_562_000_000), (1, None))


def test_rocm_json_of_old_and_new_releases():
    """Facts are found under the key names of both releases."""
    log = parse_rocm_json(
        '{"card0": {"GPU ID": "0x6861", "PCI Bus": "0000:04:00.0", "Unique ID": "N/A"},'
        ' "card1": {"Device ID": "0x738c", "Unique ID": "0x10", "(Topology) Numa Affinity": "-1",'
        ' "pcie clock level": "1 (8.0GT/s x16)"}, "system": {"Driver version": "6.3"}}'
    )

    assert [(c.device_id, c.unique_id, c.pcie_width, c.numa_affinity) for c in log.cards] == [
        (0x6861, None, None, None),
        (0x738C, 16, 16, None),
    ]


def test_console_of_lstopo():
    """PCI functions and memory nodes know the package they are printed under."""
    machine = parse_hwloc_console(
        "Machine (P#0 total=1GiB)\n"
        "  Package L#0 (P#8 CPUModel=x)\n"
        "    NUMANode(GPUMemory) L#1 (P#253 local=15GiB total=15GiB memorytier=1 PCIBusID=0006:00:00.0)\n"
        "    PU L#0 (P#5)\n"
        "    PCI L#0 (busid=10000:05:00.0 id=10de:1db1 class=0302(3D))\n"
    )

    assert (machine.functions[0].address, machine.functions[0].package, machine.nodes[0].address, machine.packages) == (
        "10000:05:00.0",
        8,
        "0006:00:00.0",
        ((8, (5,)),),
    )


def test_xml_with_entities_is_refused():
    """A document that declares an entity could grow without limit or name a file, so it is not read."""
    bomb = '<!DOCTYPE a [<!ENTITY b "bb"><!ENTITY c "&b;&b;">]><a>&c;</a>'

    with pytest.raises(ForeignFormatError, match="declares the entity 'b'"):
        parse_xml(bomb)


def test_xml_with_an_external_entity_is_refused():
    """An entity that names a file of this host is refused before anything is opened."""
    with pytest.raises(ForeignFormatError, match="declares the entity"):
        parse_xml('<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>')


def test_deep_xml_is_refused():
    """Nesting has a limit, so that no reader recurses without end."""
    with pytest.raises(ForeignFormatError, match="too large at 'a'"):
        parse_xml("<a>" * 300 + "</a>" * 300)


def test_broken_xml_is_one_sentence():
    """A malformed document gives our error with the cause in it."""
    with pytest.raises(ForeignFormatError, match="no well-formed XML"):
        parse_xml("<a><b></a>")


@pytest.mark.parametrize("parse", [parse_hwloc_xml, parse_nccl_xml, parse_nvidia_smi_xml])
def test_foreign_xml_is_refused_by_name(parse):
    """A document of another kind is refused, naming what was found."""
    with pytest.raises(ForeignFormatError, match="<other>"):
        parse("<other/>")


@pytest.mark.parametrize(
    "parse", [parse_lspci, parse_udev_db, parse_nvlink_status, parse_hwloc_console, parse_rocm_topology]
)
def test_foreign_text_is_refused(parse):
    """A text that holds nothing of the tool is an error, not an empty answer."""
    with pytest.raises(ForeignFormatError, match="text"):
        parse("hello\n")


@pytest.mark.parametrize("document", ["[]", "{", '{"a": 1}'])
def test_foreign_json_is_refused(document):
    """JSON that is not of rocm-smi is an error."""
    with pytest.raises(ForeignFormatError):
        parse_rocm_json(document)


def test_gzip_documents_are_unpacked(tmp_path):
    """A name that ends in .gz is unpacked."""
    path = tmp_path / "a.xml.gz"
    path.write_bytes(gzip.compress(b"<a/>"))

    assert read_document(path) == b"<a/>"


def test_false_gzip_is_one_sentence(tmp_path):
    """A file that only calls itself gzip is our error."""
    path = tmp_path / "a.gz"
    path.write_bytes(b"nothing of the kind")

    with pytest.raises(ForeignFormatError):
        read_document(path)


def test_missing_document_is_one_sentence(tmp_path):
    """A missing file is our error."""
    with pytest.raises(ForeignFormatError, match="cannot be read"):
        read_document(tmp_path / "missing")


def test_shared_data_is_found_by_its_variable(tmp_path, monkeypatch):
    """The variable names the folder of shared data."""
    (tmp_path / "captures").mkdir()
    monkeypatch.setenv("ANYACCEL_SHARED", str(tmp_path))

    assert find_shared_folder("captures") == tmp_path / "captures"


def test_missing_shared_data_skips_with_a_reason(tmp_path, monkeypatch):
    """A test that needs shared data is skipped where there is none, and the reason names what is missing."""
    monkeypatch.setenv("ANYACCEL_SHARED", str(tmp_path))

    with pytest.raises(pytest.skip.Exception, match="'captures' is not here"):
        shared_folder("captures")


def test_published_matrices_survive_writing():
    """Every published matrix, whatever its driver, reads as the same after it was written."""
    folder = shared_folder("captures-topology") / "nvidia-smi-topo"
    matrices = [parse_topo_matrix(path.read_text()) for path in sorted(folder.iterdir())]

    assert [parse_topo_matrix(write_topo_matrix(matrix)) for matrix in matrices] == matrices


def test_published_matrices_are_complete():
    """Every row of every published matrix has all words of its header: nothing was dropped on the way."""
    folder = shared_folder("captures-topology") / "nvidia-smi-topo"
    rows = [row for path in folder.iterdir() for row in parse_topo_matrix(path.read_text()).rows]

    assert (len(rows) > 100, [row.name for row in rows if None in row.words]) == (True, [])


def test_published_hwloc_documents_survive_writing():
    """Every published hwloc document of versions 1 to 3 reads as the same after it was written."""
    folder = shared_folder("captures-topology") / "hwloc"
    topologies = [parse_hwloc_xml(read_document(path)) for path in sorted(folder.glob("*.xml*"))]

    assert [parse_hwloc_xml(write_hwloc_xml(topology)) for topology in topologies] == topologies


def test_published_nccl_documents_survive_writing():
    """Every published topology file of NCCL and RCCL reads as the same after it was written."""
    folder = shared_folder("captures-topology") / "rccl-models"
    systems = [parse_nccl_xml(read_document(path)) for path in sorted(folder.glob("*.xml"))]

    assert [parse_nccl_xml(write_nccl_xml(system)) for system in systems] == systems
