"""Divided GPUs: as many partitions as there are, never more; memory that is not counted twice; what a container sees."""

from __future__ import annotations

import pytest

from anyaccel.device import Blocks, DeviceState, Level
from anyaccel.files import MemoryTree, NodeFact
from anyaccel.machine import Machine

GIB = 1 << 30
CPX = {"compute_partition": '"CPX"', "memory_partition": '"NPS4"'}
PCI = "/sys/bus/pci/devices/0000:23:00.0"


def condition(device, code):
    return next((found for found in device.conditions if found.code == code), None)


def parts_of(view):
    return [device for device in view.devices if device.level is Level.PARTITION]


def test_63_of_64_partitions_are_63(shipped, view_of):
    """The one that is not there is not made up: 63 partitions, and seven on the GPU that lacks it."""
    view = view_of(shipped("amd-mi300x8-cpx-63"))

    assert len(parts_of(view)) == 63
    assert [len(view.children(root.id)) for root in view.roots] == [8] * 7 + [7]
    assert "amd:0000:d2:00.0/7" not in {device.id for device in view.devices}


def test_the_gpu_that_lacks_one_says_so(shipped, view_of):
    """Only the eighth GPU tells how many are present and where the expected number comes from."""
    *whole, lacking = view_of(shipped("amd-mi300x8-cpx-63")).roots

    found = condition(lacking, "partitions-missing")
    assert found.reason.startswith("7 of 8 partitions present in mode CPX")
    assert found.blocks is Blocks.NOTHING
    assert lacking.reason == "divided into partitions (CPX), 7 of 8 are here"
    assert whole[0].reason == "divided into 8 partitions (CPX)"
    assert [condition(root, "partitions-missing") for root in whole] == [None] * 7


def test_partitions_that_are_there_stay_usable(shipped, view_of):
    """A missing sibling takes nothing from the others."""
    assert {device.state for device in parts_of(view_of(shipped("amd-mi300x8-cpx-63")))} == {DeviceState.READY}


def test_no_partition_present_makes_the_gpu_unusable(described, view_of, card):
    """A GPU in CPX whose partitions are all missing is neither whole nor ready."""
    text = card("mi300x", **CPX, has_kfd_node="false") + card("mi300x", "0000:26:00.0", **CPX)

    first, *_ = view_of(described(text)).roots

    assert first.state is DeviceState.UNUSABLE
    assert condition(first, "partitions-missing").reason.startswith("0 of 8")


@pytest.mark.parametrize(("mode", "count", "dies"), [("DPX", 2, 4), ("QPX", 4, 2), ("CPX", 8, 1)])
def test_each_mode_has_its_number_of_partitions(mode, count, dies, described, view_of, card):
    """DPX makes two, QPX four and CPX one of every die."""
    view = view_of(described(card("mi300x", compute_partition=f'"{mode}"')))

    assert len(parts_of(view)) == count
    assert {device.attributes["dies"] for device in parts_of(view)} == {dies}
    assert view.roots[0].state is DeviceState.PARTITIONED


def test_a_whole_gpu_has_no_partition(shipped, view_of):
    """SPX is one device with one number."""
    view = view_of(shipped("amd-mi300x8"))

    assert parts_of(view) == []
    assert view.roots[0].attributes["compute_partition"] == "SPX"


def test_numbers_belong_to_the_partitions(described, view_of, card):
    """A divided GPU has no number of the runtime; its partitions count through, in order."""
    view = view_of(described(card("mi300x", **CPX) + card("mi300x", "0000:26:00.0")))
    first, second = view.roots

    assert [device.numbers["index"] for device in view.children(first.id)] == list(range(8))
    assert first.numbers["index"] is None
    assert first.why_unknown("numbers.index") == "its partitions have numbers of their own"
    assert second.numbers["index"] == 8


def test_partition_memory_is_never_counted_twice(shipped, view_of):
    """Sums over devices with memory of their own equal the cards' memory."""
    view = view_of(shipped("amd-mi300x8-cpx-63"))

    assert sum(device.memory_bytes or 0 for device in view.devices) == 8 * 192 * GIB
    assert {device.memory_owner for device in parts_of(view)} == {root.id for root in view.roots}


def test_the_share_kfd_shows_is_an_attribute(described, view_of, card):
    """A partition's bank is told, as a share of the owner's memory."""
    part = parts_of(view_of(described(card("mi300x", **CPX))))[0]

    assert part.attributes["kfd_memory_bytes"] == 24 * GIB
    assert part.memory_bytes is None
    assert part.why_unknown("memory_bytes") == "drawn from the GPU's memory"


def test_a_missing_partition_leaves_kfd_s_sum_unknown(described, inventory_of, card, changed):
    """Without the driver's own size, seven banks of eight are no size of the card."""
    text = '[amd]\nsmi = "binding-missing"\n' + card("mi300x", **CPX, missing_partitions="[3]")

    root = inventory_of(changed(described(text), gone=(f"{PCI}/mem_info_vram_total",))).view("amd").roots[0]

    assert root.memory_bytes is None


def test_partitions_have_no_uuid_of_their_own(described, view_of, card):
    """They share the GPU's unique id; the reason says what names them instead."""
    part = parts_of(view_of(described(card("mi300x", **CPX))))[3]

    assert part.uuid is None
    assert "use the index" in part.why_unknown("uuid")
    assert part.numbers["partition"] == 3


def test_the_profile_names_both_modes(described, view_of, card):
    """`cpx_nps4` is what AMD's Kubernetes plugin calls it."""
    view = view_of(described(card("mi300x", **CPX)))

    assert {device.attributes["partition_profile"] for device in view.devices} == {"cpx_nps4"}


def test_each_partition_opens_its_own_render_node(described, view_of, card):
    """Device files differ by partition; a denied one leaves the others alone."""
    parts = parts_of(view_of(described(card("mi300x", **CPX))))

    assert [part.nodes for part in parts] == [("/dev/kfd", f"/dev/dri/renderD{128 + n}") for n in range(8)]


def test_a_container_with_some_partitions_is_told_so(described, view_of, card):
    """Four of eight were given: four partitions, told as not granted instead of missing."""
    text = '[host]\nboundary = "container"\n' + card("mi300x", **CPX, granted_partitions="[0, 1, 2, 3]")
    view = view_of(described(text))

    assert len(parts_of(view)) == 4
    assert condition(view.roots[0], "partitions-missing") is None
    assert condition(view.roots[0], "partitions-not-granted").reason.startswith("4 of 8 partitions accessible")


def test_mode_is_told_by_dies_where_the_driver_file_is_missing(described, view_of, card, changed):
    """Old drivers have no current_compute_partition: nodes of one die each mean CPX."""
    machine = changed(
        described(card("mi300x", **CPX)), gone=(f"{PCI}/current_compute_partition", f"{PCI}/current_memory_partition")
    )

    view = view_of(machine)

    assert view.roots[0].attributes["compute_partition"] == "CPX"
    assert len(parts_of(view)) == 8


def test_a_mode_in_another_form_is_not_taken(described, view_of, card, changed):
    """While a mode is being set the file may hold something else; the dies still tell."""
    machine = changed(described(card("mi300x", **CPX)), {f"{PCI}/current_compute_partition": b"UNKNOWN\n"})

    assert view_of(machine).roots[0].attributes["compute_partition"] == "CPX"


def test_trouble_of_the_function_reaches_its_partitions(described, view_of, card):
    """A GPU asleep means partitions asleep."""
    view = view_of(described(card("mi300x", **CPX, suspended="true")))

    assert {device.state for device in parts_of(view)} == {DeviceState.ASLEEP}


def test_a_denied_node_hits_one_partition_only(described, view_of, card, changed):
    """The rights of one render node matter to its partition, not to the GPU or the others."""
    node = {"/dev/dri/renderD130": NodeFact(0o660, "0", "secret", 226, 130)}

    parts = parts_of(view_of(changed(described(card("mi300x", **CPX)), nodes=node)))

    assert [part.state for part in parts].count(DeviceState.DENIED) == 1
    assert parts[2].state is DeviceState.DENIED


def test_amdsmi_joins_partitions_by_their_node(described, inventory_of, card):
    """Rows of one function are told apart by KFD node."""
    view = inventory_of(described(card("mi300x", **CPX))).view("amd")

    assert [part.numbers["hip"] for part in parts_of(view)] == list(range(8))
    assert "hip" not in view.roots[0].numbers


def test_equal_gpus_tell_how_many_partitions_there_should_be(view_of):
    """Nothing knows the dies of a new part: a GPU with fewer partitions than its equal lacks some."""
    root = "/sys/class/kfd/kfd/topology/nodes"
    places = [(0x2300, part) for part in range(4)] + [(0x2600, part) for part in range(3)]
    files = {}
    for number, (slot, part) in enumerate(places):
        text = f"simd_count 8\nlocation_id {slot + part}\ndomain 0\ndevice_id 32767\nunique_id {slot}\n"
        files |= {f"{root}/{number}/gpu_id": b"7\n", f"{root}/{number}/properties": text.encode()}

    first, second = view_of(Machine(MemoryTree(files=files))).roots

    assert condition(first, "partitions-missing") is None
    assert condition(second, "partitions-missing").reason == (
        "3 of 4 partitions present (by the equal GPUs of this machine)"
    )
