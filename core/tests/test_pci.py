from __future__ import annotations

import pytest

from anyaccel.capabilities import MatchRule
from anyaccel.device import DeviceState
from anyaccel.files import MemoryTree, NodeFact
from anyaccel.machine import Machine, MachineKind, UserFacts
from anyaccel.pci import (
    address_key,
    device_from_function,
    match_functions,
    node_condition,
    normal_address,
    read_functions,
)
from anyaccel.topology import PairLevel, PcieLink, PciPath, pci_level

ROOT = "/sys/devices/pci0000:00/0000:00:01.0"


def machine_of(functions, files=None, links=None, nodes=None, user=None):
    """Make a machine of functions: (path of folder, vendor, class)."""
    content, all_links = {}, dict(links or {})
    for folder, vendor, class_code in functions:
        address = folder.rpartition("/")[2]
        all_links[f"/sys/bus/pci/devices/{address}"] = folder
        content[f"{folder}/vendor"] = vendor.encode()
        content[f"{folder}/device"] = b"0x2330\n"
        content[f"{folder}/class"] = class_code.encode()
    content.update({path: text.encode() for path, text in (files or {}).items()})
    return Machine(MemoryTree(content, all_links, nodes or {}), kind=MachineKind.ROOT, user=user)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("00000000:1B:00.0", "0000:1b:00.0"),
        ("1b:00.0", "0000:1b:00.0"),
        ("0000:1b:00.0", "0000:1b:00.0"),
        ("00010000:00:02.0", "10000:00:02.0"),
        ("10000:00:02.0", "10000:00:02.0"),
        ("4321abcd:00:00.7", "4321abcd:00:00.7"),
        (" 1B:00.0 ", "0000:1b:00.0"),
        ("GPU-1b", None),
        ("1b:00.9", None),
        ("", None),
    ],
)
def test_addresses_of_every_tool_become_those_of_sysfs(text, address):
    """Eight-digit, short and upper-case spellings name the same function; anything else is no address."""
    assert normal_address(text) == address


def test_order_is_numeric_with_32_bit_domains():
    """Domain 10000 comes after ffff, bus 0a before 1b."""
    addresses = ["10000:00:00.0", "ffff:00:00.0", "0000:1b:00.0", "0000:0a:00.0"]

    assert sorted(addresses, key=address_key) == list(reversed(addresses))


def test_chain_runs_from_the_root_to_the_function():
    """The bridge chain is the resolved path."""
    folder = f"{ROOT}/0000:01:00.0/0000:02:00.0/0000:03:00.0"
    machine = machine_of([(folder, "0x10de", "0x030200")])

    position = machine.pci_detail(machine.pci_functions()[0]).position

    assert position.root == "pci0000:00"
    assert position.bridges == ("0000:00:01.0", "0000:01:00.0", "0000:02:00.0")


@pytest.mark.parametrize(
    ("files", "node", "reason"),
    [
        ({}, None, "the kernel does not say"),
        ({"card": "-1"}, None, "the kernel reports -1"),
        ({"card": "1"}, 1, None),
        (
            {"card": "-1", "bridge": "0"},
            0,
            "taken from bridge 0000:00:01.0: the kernel reports -1 for the card itself",
        ),
    ],
)
def test_numa_node_minus_one_is_unknown_never_zero(files, node, reason):
    """A card without a node asks its bridge, then stays unknown with the reason."""
    folder = f"{ROOT}/0000:01:00.0"
    places = {"card": folder, "bridge": ROOT}
    machine = machine_of(
        [(folder, "0x10de", "0x030200")], files={f"{places[k]}/numa_node": v for k, v in files.items()}
    )

    detail = machine.pci_detail(machine.pci_functions()[0])

    assert detail.position.numa_node == node
    assert detail.numa_reason == reason


def test_link_is_read_at_the_upstream_port_of_a_card_with_a_switch_inside():
    """The inner bridge's 2.5 GT/s x1 is not the card's link; the root port's is not either."""
    upstream = f"{ROOT}/0000:01:00.0"
    card = f"{upstream}/0000:02:01.0/0000:03:00.0"
    files = {
        f"{ROOT}/vendor": "0x8086",
        f"{upstream}/vendor": "0x8086",
        f"{upstream}/0000:02:01.0/vendor": "0x8086",
        f"{upstream}/current_link_speed": "16.0 GT/s PCIe",
        f"{upstream}/current_link_width": "8",
        f"{upstream}/max_link_speed": "16.0 GT/s PCIe",
        f"{upstream}/max_link_width": "16",
        f"{card}/current_link_speed": "2.5 GT/s PCIe",
        f"{card}/current_link_width": "1",
    }
    machine = machine_of([(card, "0x8086", "0x030000")], files=files)

    link = machine.pci_detail(machine.pci_functions()[0]).link

    assert link == PcieLink(16.0, 8, 16.0, 16, at="0000:01:00.0")


@pytest.mark.parametrize(("speed", "width"), [("Unknown", "0"), ("Unknown speed", "255"), ("", "x")])
def test_unknown_speed_or_width_is_none(speed, width):
    """What the kernel does not know is None."""
    folder = f"{ROOT}/0000:01:00.0"
    files = {
        f"{folder}/current_link_speed": speed,
        f"{folder}/current_link_width": width,
        f"{folder}/max_link_speed": "8 GT/s",
        f"{folder}/max_link_width": "16",
    }
    machine = machine_of([(folder, "0x10de", "0x030200")], files=files)

    link = machine.pci_detail(machine.pci_functions()[0]).link

    assert (link.speed_gts, link.width, link.max_speed_gts) == (None, None, 8.0)
    assert link.bytes_per_second_each_way is None


def test_pcie_bytes_follow_the_line_coding():
    """Sixteen lanes at 16 GT/s carry 31.5 GB/s each way, one lane at 2.5 GT/s 250 MB/s."""
    assert PcieLink(16.0, 16, 16.0, 16, "").bytes_per_second_each_way == 31_507_692_308
    assert PcieLink(2.5, 1, 2.5, 1, "").bytes_per_second_each_way == 250_000_000


def path(address, root="pci0000:00", bridges=(), numa=0):
    return PciPath(address, root, tuple(bridges), numa)


@pytest.mark.parametrize(
    ("a", "b", "level"),
    [
        (path("0000:01:00.0"), path("0000:01:00.0"), PairLevel.SELF),
        (path("0000:01:00.0"), path("0000:01:00.1"), PairLevel.SAME_PACKAGE),
        (path("0000:03:00.0", bridges="abc"), path("0000:04:00.0", bridges="abd"), PairLevel.SAME_SWITCH),
        (path("0000:03:00.0", bridges="abcef"), path("0000:04:00.0", bridges="abd"), PairLevel.SEVERAL_SWITCHES),
        (path("0000:03:00.0", bridges="ab"), path("0000:04:00.0", bridges="cd"), PairLevel.SAME_HOST_BRIDGE),
        (path("0000:03:00.0"), path("0000:04:00.0"), PairLevel.SAME_HOST_BRIDGE),
        (path("0000:03:00.0", "pci0000:00"), path("0000:44:00.0", "pci0000:40"), PairLevel.SAME_NUMA),
        (path("0000:03:00.0", "pci0000:00"), path("0000:84:00.0", "pci0000:80", numa=1), PairLevel.ACROSS_NUMA),
        (path("0000:03:00.0", "pci0000:00"), path("0000:84:00.0", "pci0000:80", numa=None), PairLevel.UNKNOWN),
        (path("0000:03:00.0", None, numa=None), path("0000:04:00.0", None, numa=None), PairLevel.UNKNOWN),
    ],
)
def test_level_of_a_pair_follows_chain_and_node(a, b, level):
    """Each level of nearness follows from the bridge chains, then from the NUMA nodes; unknown is not equal to unknown."""
    assert pci_level(a, b) is level
    assert pci_level(b, a) is level


def test_hidden_tree_makes_levels_unknown():
    """In a virtual machine without bridges nothing follows from sharing a root."""
    assert pci_level(path("0000:03:00.0"), path("0000:04:00.0"), hides_tree=True) is PairLevel.UNKNOWN


GPU = MatchRule(vendor_id=0x10DE, class_prefixes=("03",), drivers=("nvidia",))


@pytest.mark.parametrize(
    ("vendor", "class_code", "driver", "matched"),
    [
        ("0x10de", "0x030200", "nvidia", True),
        ("0x10de", "0x040300", "nvidia", False),
        ("0x1002", "0x030200", "nvidia", False),
        ("0x10de", "0x030200", "vfio-pci", False),
        ("0x10de", "0x030200", None, False),
        ("0xffff", "0xffffff", "nvidia", True),
        ("0xffff", "0xffffff", "amdgpu", False),
        ("", "", "nvidia", False),
    ],
)
def test_every_part_of_a_rule_must_agree(vendor, class_code, driver, matched):
    """Vendor, class and driver all count; a dead function belongs to its driver's family."""
    folder = f"{ROOT}/0000:01:00.0"
    links = {} if driver is None else {f"{folder}/driver": f"/sys/bus/pci/drivers/{driver}"}
    files = {f"/sys/bus/pci/drivers/{driver}/bind": ""}
    machine = machine_of([(folder, vendor, class_code)], files=files, links=links)

    assert bool(match_functions(machine, [GPU])) is matched


@pytest.mark.parametrize("rule", [MatchRule(class_prefixes=("03",)), MatchRule(node_pattern="accel.*")])
def test_class_or_node_alone_never_matches(rule):
    """A rule without vendor or driver is not used."""
    machine = machine_of([(f"{ROOT}/0000:01:00.0", "0x10de", "0x030200")])

    assert match_functions(machine, [rule]) == ()


@pytest.mark.parametrize(
    ("vendor", "driver", "code", "state"),
    [
        ("0x10de", "nvidia", None, DeviceState.READY),
        ("0x10de", None, "no-driver", DeviceState.UNUSABLE),
        ("0x10de", "vfio-pci", "passed-through", DeviceState.UNUSABLE),
        ("0x10de", "nouveau", "wrong-driver", DeviceState.UNUSABLE),
        ("0xffff", "nvidia", "pci-dead", DeviceState.LOST),
    ],
)
def test_conditions_that_plain_files_tell(vendor, driver, code, state):
    """Driver and link state of a function become conditions of the device."""
    folder = f"{ROOT}/0000:01:00.0"
    links = {} if driver is None else {f"{folder}/driver": f"/sys/bus/pci/drivers/{driver}"}
    machine = machine_of([(folder, vendor, "0x030200")], {f"/sys/bus/pci/drivers/{driver}/bind": ""}, links)

    device = device_from_function(machine, machine.pci_functions()[0], family="toy", drivers=("nvidia",))

    assert [c.code for c in device.conditions] == ([code] if code else [])
    assert device.state is state


def test_suspended_device_is_asleep_and_not_woken():
    """Runtime power management is reported from the file alone."""
    folder = f"{ROOT}/0000:01:00.0"
    machine = machine_of(
        [(folder, "0x10de", "0x030200")],
        {f"{folder}/power/runtime_status": "suspended", "/sys/bus/pci/drivers/nvidia/bind": ""},
        {f"{folder}/driver": "/sys/bus/pci/drivers/nvidia"},
    )

    device = device_from_function(machine, machine.pci_functions()[0], family="toy", drivers=("nvidia",))

    assert device.state is DeviceState.ASLEEP


def test_virtual_function_is_listed_and_not_counted():
    """A virtual function names its parent and is not counted beside it."""
    folder = f"{ROOT}/0000:01:00.1"
    machine = machine_of(
        [(folder, "0x8086", "0x030000"), (f"{ROOT}/0000:01:00.0", "0x8086", "0x030000")],
        links={f"{folder}/physfn": "../0000:01:00.0"},
    )
    function = machine.pci_functions()[1]

    device = device_from_function(machine, function, family="toy", drivers=("xe",))

    assert not device.is_counted
    assert device.count_reason == "virtual function of 0000:01:00.0, which is counted itself"


def test_denied_node_names_group_and_user():
    """The sentence holds the node, its group, the user's groups, and the command that helps."""
    nodes = {"/dev/kfd": NodeFact(mode=0o660, owner="0", group="render")}
    machine = machine_of([], nodes=nodes, user=UserFacts(1000, ("video",)))

    condition = node_condition(machine, "/dev/kfd", is_container=False)

    assert condition.state is DeviceState.DENIED
    assert condition.reason == "permission denied: /dev/kfd belongs to group render, this user is in video"
    assert "usermod -aG render" in condition.hint


@pytest.mark.parametrize(("is_container", "state"), [(True, DeviceState.BLOCKED), (False, DeviceState.UNUSABLE)])
def test_missing_node_means_not_granted_in_a_container(is_container, state):
    """In a container /sys shows every card of the host and /dev only the granted ones."""
    assert node_condition(machine_of([]), "/dev/x0", is_container=is_container).state is state


def test_open_node_has_no_condition():
    """A node that can be opened, or of which nothing is known, raises no condition."""
    nodes = {"/dev/x0": NodeFact(mode=0o666, owner="0", group="0"), "/dev/x1": NodeFact()}
    machine = machine_of([], nodes=nodes, user=UserFacts(1000, ()))

    assert node_condition(machine, "/dev/x0", is_container=True) is None
    assert node_condition(machine, "/dev/x1", is_container=True) is None


def test_address_that_is_none_sorts_last():
    """Text that is no address stands behind every address."""
    assert address_key("nonsense") > address_key("ffffffff:ff:1f.7")


def test_group_numbers_are_named_where_the_system_knows_them():
    """Group 0 is root; an unknown number stays a number; text stays text; nothing is unknown."""
    from anyaccel.pci import group_name

    assert group_name("0") == "root"
    assert group_name("987654") == "987654"
    assert group_name("render") == "render"
    assert group_name(None) == "unknown"


def test_rank_orders_levels():
    """Nearest first."""
    assert PairLevel.SELF.rank < PairLevel.SAME_SWITCH.rank < PairLevel.UNKNOWN.rank


def test_device_id_narrows_a_rule():
    """A rule with device ids takes no other."""
    folder = f"{ROOT}/0000:01:00.0"
    machine = machine_of([(folder, "0x10de", "0x030200")])

    assert match_functions(machine, [MatchRule(vendor_id=0x10DE, device_ids=(0x2330,))])
    assert not match_functions(machine, [MatchRule(vendor_id=0x10DE, device_ids=(0x1AF1,))])


@pytest.mark.parametrize(
    ("local", "node"),
    [
        ("local_cpulist=4-7", 1),
        ("local_cpulist=4-5", 1),
        ("local_cpus=000000f0", 1),
        ("local_cpulist=3-4", None),
        ("local_cpulist=0-7", None),
        ("local_cpulist=", None),
    ],
)
def test_local_cpus_tell_the_node_when_one_holds_them(local, node):
    """A kernel that gives no node but CPUs of exactly one has told it; all CPUs, or those of two nodes, tell nothing."""
    folder = f"{ROOT}/0000:01:00.0"
    name, _, text = local.partition("=")
    nodes = "/sys/devices/system/node"
    files = {f"{folder}/{name}": text, f"{nodes}/node0/cpulist": "0-3", f"{nodes}/node1/cpulist": "4-7"}
    machine = machine_of([(folder, "0x10de", "0x030200")], files=files)

    detail = machine.pci_detail(machine.pci_functions()[0])

    assert detail.position.numa_node == node
    assert detail.numa_reason


def test_the_only_node_of_a_machine_is_not_a_guess():
    """A guest with one node and a card without one keeps it unknown, although all CPUs are that node's."""
    folder = f"{ROOT}/0000:01:00.0"
    files = {
        f"{folder}/numa_node": "-1",
        f"{folder}/local_cpulist": "0-3",
        "/sys/devices/system/node/node0/cpulist": "0-3",
    }
    machine = machine_of([(folder, "0x10de", "0x030200")], files=files)

    assert machine.pci_detail(machine.pci_functions()[0]).position.numa_node is None


def test_node_may_list_cpus_that_are_not_online():
    """A node with offline CPUs still holds the local ones; all online CPUs tell nothing."""
    folder, nodes = f"{ROOT}/0000:01:00.0", "/sys/devices/system/node"
    files = {
        f"{nodes}/node0/cpulist": "0-7",
        f"{nodes}/node8/cpulist": "8-15",
        "/sys/devices/system/cpu/online": "0-3,8-11",
    }
    near = machine_of([(folder, "0x10de", "0x030200")], files={**files, f"{folder}/local_cpulist": "8-11"})
    anywhere = machine_of([(folder, "0x10de", "0x030200")], files={**files, f"{folder}/local_cpulist": "0-3,8-11"})

    assert near.pci_detail(near.pci_functions()[0]).position.numa_node == 8
    assert anywhere.pci_detail(anywhere.pci_functions()[0]).position.numa_node is None


def test_nobody_is_told_to_join_the_group_of_root():
    """A device file of group root asks for a udev rule, not for membership."""
    nodes = {"/dev/x0": NodeFact(mode=0o660, owner="0", group="0")}
    machine = machine_of([], nodes=nodes, user=UserFacts(1000, ("video",)))

    assert "udev rule" in node_condition(machine, "/dev/x0", is_container=False).hint


def test_a_name_with_a_line_end_is_no_address():
    """A folder that is called almost like a function is none, and counts as no second card."""
    machine = Machine(MemoryTree({"/sys/bus/pci/devices/0000:41:00.0\n/vendor": b"0x1de8"}, {}, {}))

    assert read_functions(machine) == ()
    assert normal_address("0000:41:00.0\n") == "0000:41:00.0"
