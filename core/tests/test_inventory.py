from __future__ import annotations

import pytest

from anyaccel.device import Condition, Device, DeviceState, FamilyView
from anyaccel.errors import DeviceNotFoundError
from anyaccel.frozen import FrozenMap
from anyaccel.inventory import Inventory, OutcomeStatus, PluginOutcome
from anyaccel.topology import Boundary, HostParts, Link, NumaNode, PairLevel, PciPath


def card(number, numa=0, **more):
    address = f"0000:0{number}:00.0"
    return Device(f"toy:{address}", "toy", pci_addresses=(address,), numa_node=numa, **more)


def paths(*rows):
    return FrozenMap(
        {f"0000:0{n}:00.0": PciPath(f"0000:0{n}:00.0", root, bridges, numa) for n, root, bridges, numa in rows}
    )


def inventory_of(devices, rows=(), links=(), is_vm=False, host=None):
    boundary = Boundary("vm" if is_vm else "host", False, is_vm, "test")
    host = host or HostParts(paths=paths(*rows), boundary=boundary)
    return Inventory(views=(FamilyView("toy", tuple(devices), tuple(links), boundary),), host=host)


def test_nearness_comes_from_the_bridges():
    """Two cards behind one switch are nearer than two under one root."""
    a, b, c = card(1), card(2), card(3)
    rows = [(1, "pci0000:00", ("x", "y", "p"), 0), (2, "pci0000:00", ("x", "y", "q"), 0), (3, "pci0000:00", ("z",), 0)]
    inventory = inventory_of((a, b, c), rows)

    assert inventory.pair_level(a, b) is PairLevel.SAME_SWITCH
    assert inventory.pair_level(a, c) is PairLevel.SAME_HOST_BRIDGE
    assert inventory.pair_level(a, a) is PairLevel.SELF


def test_parts_of_one_card_share_its_package_and_place():
    """Parts are as near as can be to each other and inherit the card's place towards others."""
    a, b = card(1), card(2)
    parts = tuple(Device(f"{a.id}/{n}", "toy", parent=a.id) for n in range(2))
    rows = [(1, "pci0000:00", ("x", "y", "p"), 0), (2, "pci0000:00", ("x", "y", "q"), 0)]
    inventory = inventory_of((a, *parts, b), rows)

    assert inventory.pair_level(*parts) is PairLevel.SAME_PACKAGE
    assert inventory.pair_level(parts[0], b) is PairLevel.SAME_SWITCH
    assert inventory.path_of(parts[1]).address == "0000:01:00.0"


def test_two_chips_on_one_function_share_a_package():
    """Two devices behind one PCI function are near, and still two."""
    address = "0000:01:00.0"
    a, b = (Device(f"toy:{address}/{n}", "toy", pci_addresses=(address,)) for n in range(2))

    assert inventory_of((a, b), [(1, "pci0000:00", (), 0)]).pair_level(a, b) is PairLevel.SAME_PACKAGE


def test_virtual_machine_without_bridges_knows_no_levels():
    """When a hypervisor hides the tree, every level is unknown, not 'across NUMA'."""
    a, b = card(1), card(2, numa=1)
    inventory = inventory_of((a, b), [(1, "pci0001:00", (), 0), (2, "pci0002:00", (), 1)], is_vm=True)

    assert inventory.hides_tree
    assert inventory.pair_level(a, b) is PairLevel.UNKNOWN


def test_virtual_machine_that_shows_bridges_is_believed():
    """When two devices share a bridge the tree is there and levels follow from it."""
    a, b = card(1), card(2)
    rows = [(1, "pci0000:00", ("x", "y", "p"), 0), (2, "pci0000:00", ("x", "y", "q"), 0)]
    inventory = inventory_of((a, b), rows, is_vm=True)

    assert inventory.pair_level(a, b) is PairLevel.SAME_SWITCH


@pytest.mark.parametrize(
    ("left", "right", "level"),
    [
        (0, 0, PairLevel.SAME_NUMA),
        (0, 1, PairLevel.ACROSS_NUMA),
        (0, None, PairLevel.UNKNOWN),
        (None, None, PairLevel.UNKNOWN),
    ],
)
def test_boards_without_pci_are_compared_by_numa_node(left, right, level):
    """Unknown never equals unknown."""
    a, b = (Device(f"toy:{n}", "toy", numa_node=numa) for n, numa in (("a", left), ("b", right)))

    assert inventory_of((a, b)).pair_level(a, b) is level


def test_fastest_link_wins_and_counts_for_parts():
    """Of several links the fastest is given; parts use the links of their card."""
    a, b = card(1), card(2)
    part = Device(f"{a.id}/0", "toy", parent=a.id)
    slow = Link(a.id, b.id, "bus", "B1", 10, 1)
    fast = Link(b.id, a.id, "bus", "B4", 40, 4)
    inventory = inventory_of((a, part, b), links=(slow, fast))

    assert inventory.link_between(a, b) is fast
    assert inventory.link_between(part, b) is fast
    assert inventory.link_between(a, a) is None


def test_local_cpus_are_cut_to_the_allowed():
    """Near CPUs are those of the node that the process may use; none is not the same as unknown."""
    host = HostParts(numa_nodes=(NumaNode(0, (0, 1, 2, 3)), NumaNode(1, (4, 5))), allowed_cpus=(2, 3))
    a, b, c = card(1), card(2, numa=1), card(3, numa=None)
    inventory = inventory_of((a, b, c), host=host)

    assert inventory.local_cpus(a) == (2, 3)
    assert inventory.local_cpus(b) == ()
    assert inventory.local_cpus(c) is None


def test_broken_plugin_or_conflict_makes_an_inventory_incomplete():
    """Completeness is what the exit code follows."""
    assert Inventory(outcomes=(PluginOutcome("a", OutcomeStatus.NOTHING),)).is_complete
    assert not Inventory(outcomes=(PluginOutcome("a", OutcomeStatus.BROKEN),)).is_complete
    assert not Inventory(conflicts=("two claim one",)).is_complete


def test_state_is_the_worst_of_all_conditions():
    """Every cause is kept; the state is the first in the order of states."""
    hidden = Condition("hidden", "hidden by V", DeviceState.HIDDEN, hint="unset V")
    lost = Condition("lost", "gone", DeviceState.LOST, hint="reboot")
    note = Condition("note", "slow link", None)
    device = card(1, conditions=(note, hidden, lost))

    assert (device.state, device.reason, device.hint) == (DeviceState.LOST, "gone", "reboot")
    assert card(1).state is DeviceState.READY
    assert card(1, conditions=(note,)).state is DeviceState.READY
    assert card(1, conditions=(note,)).reason is None


def test_names_find_devices():
    """Ids, uuids, prefixes of both, a uuid without its vendor word, and PCI addresses all name a device."""
    a = card(1, uuid="GPU-13096139-7ada-8313-ee08-000dd8540fe1")
    part = Device(f"{a.id}/0", "toy", parent=a.id)
    b = card(2, uuid="GPU-13aa6139-0000-8313-ee08-000dd8540fe1")
    view = FamilyView("toy", (a, part, b))

    for name in (a.id, a.uuid, "GPU-1309", "13096139", "0000:01:00.0", "01:00.0", "toy:0000:01"):
        assert view.find(name) is a
    with pytest.raises(DeviceNotFoundError, match="ambiguous"):
        view.find("GPU-13")
    with pytest.raises(DeviceNotFoundError, match="no toy device is named 'x'"):
        view.find("x")
    with pytest.raises(DeviceNotFoundError, match="no toy device"):
        view.find("")


def test_view_walks_the_tree():
    """Roots, children and ancestors follow the parents."""
    a, b = card(1), card(2)
    part = Device(f"{a.id}/0", "toy", parent=a.id)
    core = Device(f"{a.id}/0/0", "toy", parent=part.id)
    view = FamilyView("toy", (a, part, core, b))

    assert view.roots == (a, b)
    assert view.children(a.id) == (part,)
    assert view.ancestors(core.id) == (part.id, a.id)
    assert view.leaves(a.id) == (core.id,)


def test_unknown_values_have_reasons():
    """A field that is None says why when somebody knows."""
    device = card(1, unknown=FrozenMap({"memory_bytes": "unified with the host"}))

    assert device.why_unknown("memory_bytes") == "unified with the host"
    assert device.why_unknown("uuid") is None


def test_absent_family_is_an_empty_view():
    """Asking for a family that is not here gives a view without devices."""
    assert Inventory().view("toy").devices == ()
