import re
import shutil
import subprocess
from xml.etree import ElementTree

import pytest

from anyaccel.device import Device, FamilyView, Level
from anyaccel.frozen import FrozenMap
from anyaccel.topology import (
    Boundary,
    FabricNode,
    HostParts,
    Link,
    LinkState,
    Nic,
    NumaNode,
    PcieLink,
    PciPath,
)
from anyaccel_cli.formats import dot_text, hwloc_xml_text, tree_lines

SWITCHED = ("0000:0f:01.0", "0000:a0:00.0")


def host(**fields):
    """Two packages with a memory node each and a node of card memory; one switch with two cards and a network card."""
    values = {
        "numa_nodes": (
            NumaNode(0, (0, 1), 1 << 30, (10, 21, 80)),
            NumaNode(1, (2, 3), 1 << 30, (21, 10, 80)),
            NumaNode(255, (), None, (80, 80, 10)),
        ),
        "packages": FrozenMap({"0": (0, 1), "1": (2, 3)}),
        "nics": (Nic("mlx5_0", "infiniband", PciPath("0000:f0:00.0", "pci0000:0f", SWITCHED, 0)),),
        "paths": FrozenMap(
            {
                "0000:10:00.0": PciPath("0000:10:00.0", "pci0000:0f", SWITCHED, 0),
                "0000:11:00.0": PciPath("0000:11:00.0", "pci0000:0f", SWITCHED, 0),
                "10000:12:00.0": PciPath("10000:12:00.0", None, (), None),
            }
        ),
        "pcie_links": FrozenMap({"0000:10:00.0": PcieLink(8.0, 8, 16.0, 16, "0000:10:00.0")}),
        **fields,
    }
    return HostParts(**values)


@pytest.fixture
def server(make_gpu, make_inventory):
    """Two linked cards, the first divided in two; a third of another family in a far PCI domain; a board without PCI."""
    first, second = make_gpu(0, attributes=FrozenMap({"pci_id": "1d0f:7164", "pci_class": "120000"})), make_gpu(1)
    part = Device(id=f"{first.id}/part0", family="gpu", level=Level.PARTITION, label="slice", parent=first.id)
    third = make_gpu(2, family="npu", id="npu:10000:12:00.0", pci_addresses=("10000:12:00.0",), numa_node=None)
    board = Device(id="soc:0", family="soc", model='SoC "A" <1>')
    speed = 50_000_000_000
    links = (
        Link(first.id, second.id, "nvlink", "NV2", speed, 2, 1, state=LinkState.UP),
        Link(first.id, "gpu:switch0", "nvlink", "NV2", None, 2, state=LinkState.UNKNOWN),
    )
    views = (
        FamilyView("gpu", (first, part, second), links),
        FamilyView("npu", (third,)),
        FamilyView("soc", (board,)),
    )
    nodes = (FabricNode("gpu:switch0", "fabric-switch", "NVSwitch"),)
    return make_inventory(first, part, second, third, board, views=views, host=host(), fabric=nodes)


def test_tree_puts_devices_below_their_switch(server):
    """A card stands below its bridges, and bridges without a branch share a line."""
    lines = tree_lines(server)
    switch = next(place for place, line in enumerate(lines) if "0000:0f:01.0 > 0000:a0:00.0" in line)

    assert "gpu:0 ACME G100 80GB 0000:10:00.0" in lines[switch + 1]


def test_tree_puts_parts_below_their_card(server):
    """A part of a card is one step further in."""
    lines = tree_lines(server)
    card = next(place for place, line in enumerate(lines) if "gpu:0 " in line)

    assert lines[card + 1].index("gpu:0000:10:00.0/part0") > lines[card].index("gpu:0 ")


def test_tree_tells_what_the_pcie_link_could_be(server):
    """A link that trained below its best shows both."""
    assert any("PCIe 8 GT/s x8 (of 16 GT/s x16)" in line for line in tree_lines(server))


def test_tree_says_unknown_node_and_unknown_bridges(server):
    """What the machine does not show is said, and the device is still there."""
    text = "\n".join(tree_lines(server))

    assert re.search(r"NUMA node unknown\n.*PCIe tree unknown\n.*npu:2", text)


def test_tree_names_the_machine_as_simulated(server):
    """Whatever is simulated says so."""
    assert tree_lines(server)[0] == "machine by-hand (simulated)"


def test_tree_lists_links_with_unknown_speed(server):
    """A link to a switch whose speed is not known says so."""
    assert "  gpu:0 to gpu:switch0: NV2 (nvlink, 2 links, speed unknown)" in tree_lines(server)


def test_tree_in_ascii(server):
    """A terminal without UTF-8 gets ASCII only."""
    assert all(line.isascii() for line in tree_lines(server, is_ascii=True))


def test_tree_of_chosen_devices(server):
    """Only chosen devices are shown, and links to others are left out."""
    text = "\n".join(tree_lines(server, (server.views[1].devices[0],)))

    assert ("npu:2" in text, "gpu:0" in text, "links" in text) == (True, False, False)


def test_dot_has_a_node_for_every_device(server):
    """Every device, network card and fabric switch is a node of the graph."""
    text = dot_text(server)
    names = [*(device.id for device in server.devices), "mlx5_0", "gpu:switch0"]

    assert [name for name in names if f'"{name}" [' not in text] == []


def test_dot_draws_a_link_of_unknown_state_dashed(server):
    """A link nobody knows the state of does not look like one that works."""
    line = next(line for line in dot_text(server).splitlines() if '-- "gpu:switch0"' in line)

    assert "style=dashed" in line


def test_dot_escapes_what_devices_say(server):
    """A quote in a model's name does not end the label."""
    assert r"SoC \"A\" <1>" in dot_text(server)


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_graphviz_reads_the_graph(server):
    """Graphviz itself accepts the text."""
    result = subprocess.run(
        ["dot", "-Tplain"], input=dot_text(server), capture_output=True, text=True, check=False, timeout=15
    )

    assert result.returncode == 0, result.stderr


def parsed(inventory):
    return ElementTree.fromstring(hwloc_xml_text(inventory))


def test_hwloc_has_an_os_device_for_every_device(server):
    """Accelerators of every level and without PCI are OS devices, by id."""
    names = {found.get("name") for found in parsed(server).iter("object") if found.get("osdev_type") == "5"}

    assert names == {device.id for device in server.devices}


def test_hwloc_memory_nodes_are_the_kernels(server):
    """Memory nodes keep their numbers; the one without CPUs is there too."""
    nodes = [found.get("os_index") for found in parsed(server).iter("object") if found.get("type") == "NUMANode"]

    assert sorted(nodes, key=int) == ["0", "1", "255"]


def test_hwloc_packages_only_where_they_nest(make_gpu, make_inventory):
    """A virtual machine whose lists contradict each other gets no package made up, and the warning goes along."""
    crossed = host(packages=FrozenMap({"0": (0, 2), "1": (1, 3)}), warnings=("the kernel contradicts itself",))
    top = parsed(make_inventory(make_gpu(0), host=crossed))

    assert (
        [found for found in top.iter("object") if found.get("type") == "Package"],
        [info.get("value") for info in top.iter("info") if info.get("name") == "AnyaccelWarning"],
    ) == ([], ["the kernel contradicts itself"])


def test_hwloc_makes_up_no_cpus(make_gpu, make_inventory):
    """When nothing is known of CPUs there is none in the document, and it says so."""
    top = parsed(make_inventory(make_gpu(0)))

    assert (
        [found for found in top.iter("object") if found.get("type") in ("PU", "Core", "Package")],
        any(info.get("name") == "AnyaccelCpus" for info in top.iter("info")),
    ) == ([], True)


def test_hwloc_bandwidth_matrix_holds_known_speeds(server):
    """Links of known speed stand in one matrix, in MB/s each way; a link of unknown speed is not in it."""
    matrix = parsed(server).find("distances2hetero")
    values = [word for row in matrix.findall("u64values") for word in row.text.split()]

    assert (matrix.get("name"), values) == ("NVLinkBandwidth", ["0", "50000", "50000", "0"])


def test_hwloc_ids_are_those_of_the_device(server):
    """The PCI type holds class and ids where the device knows them."""
    types = {found.get("pci_busid"): found.get("pci_type") for found in parsed(server).iter("object")}

    assert types["0000:10:00.0"].startswith("1200 [1d0f:7164]")


def test_two_chips_on_one_function_are_one_pci_device(make_inventory):
    """Chips that share a PCI function are two OS devices on one PCI device."""
    chips = [Device(id=f"gpu:0000:10:00.0/{n}", family="gpu", pci_addresses=("0000:10:00.0",)) for n in range(2)]
    kinds = [found.get("type") for found in parsed(make_inventory(*chips)).iter("object")]

    assert (kinds.count("PCIDev"), kinds.count("OSDev")) == (1, 2)


def test_a_chip_on_two_functions_is_two_pci_devices(make_inventory):
    """A chip that has two PCI functions is one OS device, and both functions are there."""
    chip = Device(id="gpu:0000:10:00.0", family="gpu", pci_addresses=("0000:10:00.0", "0000:10:00.1"))
    kinds = [found.get("type") for found in parsed(make_inventory(chip)).iter("object")]

    assert (kinds.count("PCIDev"), kinds.count("OSDev")) == (2, 1)


@pytest.fixture
def lstopo(tmp_path):
    """Run Debian's lstopo on an inventory's XML and give its console text."""
    if shutil.which("lstopo") is None:
        pytest.skip("lstopo is not installed (Debian package hwloc)")

    def run(inventory):
        path = tmp_path / "machine.xml"
        path.write_text(hwloc_xml_text(inventory))
        command = ["lstopo", "--input", str(path), "--of", "console", "-v"]
        result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=15)
        assert (result.returncode, result.stderr.replace(f"assuming `{path}' is a XML file\n", "")) == (0, "")
        return result.stdout

    return run


def counts(text):
    """Count accelerators, other PCI functions and memory nodes in lstopo's console text."""
    return tuple(len(re.findall(pattern, text)) for pattern in (r"Co-Processor\(", r"PCI L#", r"NUMANode L#"))


def test_lstopo_finds_the_same_devices_and_memory_nodes(server, lstopo):
    """An independent reader counts what the inventory has: accelerators, memory nodes, PCI functions but those it cannot hold.

    hwloc as distributions build it drops PCI domains above ffff; the accelerator there is still counted.
    """
    addresses = {address for device in server.devices for address in device.pci_addresses} | {"0000:f0:00.0"}
    functions = [address for address in addresses if len(address.partition(":")[0]) == 4]

    assert counts(lstopo(server)) == (len(server.devices), len(functions), len(server.host.numa_nodes))


def test_lstopo_puts_devices_below_their_package(server, lstopo):
    """The reader sees a card below the package whose memory node it is near."""
    package = lstopo(server).split("Package L#1")[0].split("Package L#0")[1]

    assert "busid=0000:10:00.0" in package


def test_lstopo_reads_the_bandwidth(server, lstopo):
    """The reader shows the matrix with our numbers."""
    text = lstopo(server)

    assert re.search(r"NVLinkBandwidth kind 25\) between 2 heterogeneous objects.*\n.*\n.*\s0\s+50000\n", text)


def test_lstopo_reads_a_machine_of_which_nothing_is_known(make_gpu, make_inventory, lstopo):
    """A document without CPUs is still valid; the one memory node hwloc insists on is marked as a stand-in."""
    text = lstopo(make_inventory(make_gpu(0, numa_node=None)))

    assert (counts(text), "so node 0 stands in" in text) == ((1, 1, 1), True)


def test_lstopo_reads_an_empty_machine(make_inventory, lstopo):
    """A machine without devices is a valid document too."""
    assert counts(lstopo(make_inventory(host=host(nics=())))) == (0, 0, 3)


def test_lstopo_reads_names_that_would_break_xml(make_gpu, make_inventory, lstopo):
    """Control characters and quotes from a device do not break the document."""
    text = lstopo(make_inventory(make_gpu(0, model='A"<&>\x1b[31m\x00'), name="a\nb"))

    assert counts(text)[0] == 1


def test_boundary_is_said_in_the_tree(make_gpu, make_inventory):
    """A container or virtual machine is named, with the sign that gave it away."""
    inside = HostParts(boundary=Boundary("container", is_container=True, is_vm=False, reason="/.dockerenv exists"))

    assert tree_lines(make_inventory(make_gpu(0), host=inside))[0].endswith("(container: /.dockerenv exists)")
