import pytest

from anyaccel.device import FamilyView
from anyaccel.frozen import FrozenMap
from anyaccel.topology import Boundary, HostParts, Link, LinkState, Nic, NumaNode, PairLevel, PciPath
from anyaccel_cli.formats import default_devices, matrix_table, topology_matrix
from anyaccel_cli.selection import select

PATHS = {
    "0000:10:00.0": ("pci0000:0f", ("0000:0f:01.0", "0000:a0:00.0", "0000:a1:00.0"), 0),
    "0000:11:00.0": ("pci0000:0f", ("0000:0f:01.0", "0000:a0:00.0", "0000:a1:01.0"), 0),
    "0000:12:00.0": ("pci0000:1e", ("0000:1e:01.0",), 0),
    "0000:13:00.0": ("pci0000:80", ("0000:80:01.0",), 1),
    "0000:f0:00.0": ("pci0000:0f", ("0000:0f:01.0", "0000:a0:00.0", "0000:a1:02.0"), 0),
}


def path(address, **changes):
    root, bridges, node = PATHS[address]
    return PciPath(address, root, bridges, changes.get("numa_node", node))


def host(**fields):
    values = {
        "numa_nodes": (NumaNode(0, (0, 1, 2, 3)), NumaNode(1, (4, 5, 6, 7))),
        "nics": (Nic("mlx5_0", "infiniband", path("0000:f0:00.0")),),
        "paths": FrozenMap({address: path(address) for address in PATHS if not address.startswith("0000:f0")}),
        **fields,
    }
    return HostParts(**values)


def link(a, b, **fields):
    values = {"kind": "nvlink", "label": "NV4", "bytes_per_second_each_way": 100_000_000_000, "count": 4, "hops": 1}
    return Link(a, b, **{**values, "state": LinkState.UP, **fields})


@pytest.fixture
def make_server(make_gpu, make_inventory):
    """Make four cards: two on one switch, two alone, the last one at the other memory node; links by keyword."""

    def make(*links, **fields):
        cards = [make_gpu(n, numa_node=(0, 0, 0, 1)[n]) for n in range(4)]
        views = (FamilyView("gpu", tuple(cards), tuple(links)),)
        return make_inventory(*cards, **{"views": views, "host": host(), **fields})

    return make


GPU = [f"gpu:0000:1{n}:00.0" for n in range(4)]


def test_matrix_is_square_with_self_on_the_diagonal(make_server):
    """Every device and network card is a row and a column, and each is itself on the diagonal."""
    matrix = topology_matrix(make_server())

    assert [row[place].level for place, row in enumerate(matrix.cells)] == [PairLevel.SELF] * 5


def test_names_are_those_that_select_takes(make_server):
    """Rows are named by vendor and number, network cards by their kernel name."""
    assert topology_matrix(make_server()).names == ("gpu:0", "gpu:1", "gpu:2", "gpu:3", "mlx5_0")


def test_levels_between_devices(make_server):
    """Nearness follows from the bridges and memory nodes."""
    levels = [cell.level.value for cell in topology_matrix(make_server()).cells[0]]

    assert levels == ["self", "same switch", "same NUMA node", "across NUMA", "same switch"]


def test_cell_keeps_the_level_beside_the_link(make_server):
    """The fast link and the nearness on PCIe are both said: host copies use the second."""
    matrix = topology_matrix(make_server(link(GPU[0], GPU[3])))

    assert matrix.cells[0][3].words == ("NV4", "across NUMA")


def test_link_is_seen_from_both_ends(make_server):
    """A link is one connection, whichever end is asked."""
    matrix = topology_matrix(make_server(link(GPU[0], GPU[3])))

    assert matrix.cells[3][0].words == matrix.cells[0][3].words


def test_right_columns_give_node_and_cpus(make_server):
    """Beside the square stand the memory node and the CPUs near each device."""
    matrix = topology_matrix(make_server())

    assert (matrix.numa[3], matrix.cpus[3]) == ("1", "4-7")


def test_unknown_node_is_a_word(make_gpu, make_inventory):
    """A device whose node the kernel does not know shows unknown, never 0."""
    matrix = topology_matrix(make_inventory(make_gpu(0, numa_node=None)))

    assert (matrix.numa, matrix.cpus) == (("unknown",), ("unknown",))


def test_no_local_cpu_is_not_unknown(make_server):
    """A container that may only use CPUs of the other node says that none is local."""
    matrix = topology_matrix(make_server(host=host(allowed_cpus=(4, 5))))

    assert matrix.cpus[0] == "none of the allowed CPUs is local"


def test_virtual_machine_without_bridges_shows_unknown(make_gpu, make_inventory):
    """A virtual machine that gives every card a root of its own shows unknown, not the far ends of the machine."""
    flat = {f"0000:1{n}:00.0": PciPath(f"0000:1{n}:00.0", f"pci000{n}:10", (), n) for n in range(2)}
    parts = HostParts(paths=FrozenMap(flat), boundary=Boundary("vm", is_container=False, is_vm=True, reason="DMI"))
    matrix = topology_matrix(make_inventory(make_gpu(0), make_gpu(1), host=parts))

    assert matrix.cells[0][1].words == ("unknown",)


def test_two_vendors_below_one_switch(make_gpu, make_inventory):
    """Devices of two families have no vendor link, and the switch they share is still seen."""
    cards = (make_gpu(0), make_gpu(1, family="npu", id="npu:0000:11:00.0"))
    matrix = topology_matrix(make_inventory(*cards, host=host()))

    assert matrix.cells[0][1].words == ("same switch",)


def test_link_without_speed_says_so(make_server):
    """A link of which only the number of lanes is known says that its speed is unknown and names no generation."""
    table = matrix_table(topology_matrix(make_server(link(GPU[0], GPU[1], bytes_per_second_each_way=None))))

    assert "NV4             nvlink, 4 links, speed unknown" in table.legend


def test_legend_holds_only_words_in_use(make_server):
    """A word that no cell has is not explained."""
    words = [line.split("  ")[0] for line in matrix_table(topology_matrix(make_server(link(GPU[0], GPU[1])))).legend]

    assert words == ["NV4", "X", "same switch", "same NUMA node", "across NUMA"]


def test_legend_tells_links_of_one_word_apart(make_server):
    """Two links with one word and two speeds are two lines."""
    slow = link(GPU[2], GPU[3], bytes_per_second_each_way=50_000_000_000)
    table = matrix_table(topology_matrix(make_server(link(GPU[0], GPU[1]), slow)))

    assert len([line for line in table.legend if line.startswith("NV4")]) == 2


def test_link_that_is_down_is_marked(make_server):
    """A link that is there but down is not shown as a fast path."""
    matrix = topology_matrix(make_server(link(GPU[0], GPU[1], state=LinkState.DOWN)))

    assert matrix.cells[0][1].words[0] == "NV4 down"


def test_wide_terminal_has_one_line_a_device(make_server):
    """Where there is room every cell is one line."""
    table = matrix_table(topology_matrix(make_server(link(GPU[0], GPU[1]))), width=200)

    assert (len(table.rows), table.rows[0].cells[2]) == (5, "NV4 · same switch")


def test_middle_terminal_stacks_the_words(make_server):
    """Where one line a device is too wide, the words of a cell stand below each other and nothing is cut."""
    table = matrix_table(topology_matrix(make_server(link(GPU[0], GPU[1]))), width=90)

    assert [row.cells[2] for row in table.rows[:3]] == ["NV4", "same", "switch"]


def test_every_line_fits_the_terminal(make_server):
    """A stacked matrix is not wider than the terminal."""
    table = matrix_table(topology_matrix(make_server(link(GPU[0], GPU[1]))), width=90)
    titles = [heading.title for heading in table.headings]
    widths = [max(map(len, column)) for column in zip(titles, *(row.cells for row in table.rows), strict=True)]

    assert sum(widths) + 2 * (len(widths) - 1) <= 90


def test_network_cards_stand_below_when_they_do_not_fit(make_server):
    """Where only the network cards are too much, the devices stay a square and each names its nearest card."""
    nics = tuple(Nic(f"mlx5_{n}", "infiniband", path("0000:f0:00.0")) for n in range(6))
    table = matrix_table(topology_matrix(make_server(host=host(nics=nics))), width=100)

    assert (len(table.headings), table.legend[3]) == (
        7,
        "gpu:3: nearest network card mlx5_0, mlx5_1, mlx5_2, mlx5_3, mlx5_4, mlx5_5, across NUMA",
    )


def test_legend_explains_the_words_below_the_square_too(make_server):
    """A word that only stands in the lines about network cards is explained as well."""
    nics = tuple(Nic(f"mlx5_{n}", "infiniband", path("0000:f0:00.0")) for n in range(6))
    table = matrix_table(topology_matrix(make_server(host=host(nics=nics))), width=100)

    assert any(line.startswith("same switch ") for line in table.legend)


@pytest.mark.parametrize("width", [79, 40, 1])
def test_narrow_terminal_lists_pairs(make_server, width):
    """Below 80 columns every pair is one line instead of a broken table."""
    table = matrix_table(topology_matrix(make_server(link(GPU[0], GPU[1]))), width=width)

    assert (table.is_pairs, len(table.rows), table.rows[0].cells) == (
        True,
        6,
        ("gpu:0", "gpu:1", "NV4", "same switch"),
    )


def test_pairs_keep_node_and_cpus(make_server):
    """The list of pairs loses nothing: node and CPUs of each device stand below it."""
    table = matrix_table(topology_matrix(make_server()), width=60)

    assert "gpu:3: NUMA node 1, CPUs 4-7, nearest network card mlx5_0, across NUMA" in table.legend


def test_pairs_are_of_devices_alone(make_server):
    """Network cards have no rows among the pairs, and no word is explained that is not shown."""
    nics = tuple(Nic(f"mlx5_{n}", "infiniband", path("0000:f0:00.0")) for n in range(4))
    table = matrix_table(topology_matrix(make_server(host=host(nics=nics))), width=60)
    explained = [line.split("  ")[0] for line in table.legend if ": " not in line.split("  ")[0]]

    assert ([row for row in table.rows if "mlx5" in str(row.cells)], explained) == (
        [],
        ["same switch", "same NUMA node", "across NUMA"],
    )


def _eight(make_gpu, make_inventory):
    cards = [make_gpu(n) for n in range(8)]
    places = {
        f"0000:1{n}:00.0": PciPath(f"0000:1{n}:00.0", f"pci0000:{n}0", (f"0000:{n}0:01.0",), n // 4) for n in range(8)
    }
    links = tuple(
        link(f"gpu:0000:1{a}:00.0", f"gpu:0000:1{b}:00.0", label="NV18") for a in range(8) for b in range(a + 1, 8)
    )
    nodes = (NumaNode(0, (*range(56), *range(112, 168))), NumaNode(1, (*range(56, 112), *range(168, 224))))
    parts = host(numa_nodes=nodes, paths=FrozenMap(places))
    return make_inventory(*cards, views=(FamilyView("gpu", tuple(cards), links),), host=parts)


@pytest.mark.parametrize("width", [80, 100])
def test_eight_devices_fit_with_short_codes(make_gpu, make_inventory, width):
    """The link's word stands above the code of nearness, and the vendor's word stands at the rows alone."""
    table = matrix_table(topology_matrix(_eight(make_gpu, make_inventory)), width=width)
    cells = [row.cells[:3] + row.cells[5:6] for row in table.rows[:2]]

    assert (table.is_pairs, table.headings[1].title, cells) == (
        False,
        ":0",
        [("gpu:0", "X", "NV18", "NV18"), ("", "", "NODE", "SYS")],
    )


def test_the_legend_explains_codes_by_our_words(make_gpu, make_inventory):
    """Only codes that are shown, and beside each the word that every other form uses."""
    legend = matrix_table(topology_matrix(_eight(make_gpu, make_inventory)), width=80).legend

    assert [line.partition(": ")[0].split(None, 1) for line in legend[-3:-1]] == [
        ["X", "the device itself"],
        ["NODE", "same NUMA node"],
    ]


def test_the_square_of_a_connection_is_what_core_says(make_server):
    """What is worked out once for each end gives the same as asking for every pair."""
    inventory = make_server(link(GPU[0], GPU[3]), link(GPU[0], GPU[3], count=2))
    devices = inventory.devices
    matrix = topology_matrix(inventory, devices, with_nics=False)

    assert [[(cell.level, cell.link) for cell in row] for row in matrix.cells] == [
        [(inventory.pair_level(a, b), None if a is b else inventory.link_between(a, b)) for b in devices]
        for a in devices
    ]


def test_matrix_without_network_cards(make_server):
    """Network cards can be left out."""
    assert len(topology_matrix(make_server(), with_nics=False).names) == 4


def test_integrated_parts_are_left_out_unless_chosen(make_gpu, make_inventory):
    """An integrated part that no request would get is not in a topology by default."""
    inventory = make_inventory(make_gpu(0, is_integrated=True, is_counted=False), make_gpu(1))

    assert [device.id for device in default_devices(inventory)] == [GPU[1]]


def test_partitions_are_shown_when_chosen(partitioned_server):
    """Partitions of one card are in one package."""
    parts = [device for device in partitioned_server.devices if device.parent is not None]
    matrix = topology_matrix(partitioned_server, parts)

    assert matrix.cells[0][1].level is PairLevel.SAME_PACKAGE


def test_short_names_are_what_select_resolves(partitioned_server):
    """A number that a whole card and a partition share means the card; the partition goes by its id."""
    names = topology_matrix(partitioned_server, partitioned_server.devices).names

    assert [select(partitioned_server, (name,)).chosen[0].id for name in names] == [
        device.id for device in partitioned_server.devices
    ]


def test_empty_machine_has_an_empty_matrix(make_inventory):
    """No device is no row, and no word is explained."""
    table = matrix_table(topology_matrix(make_inventory()), width=120)

    assert (table.rows, table.legend) == ((), ())
