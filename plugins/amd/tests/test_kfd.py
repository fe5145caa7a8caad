"""Reading the KFD topology: old kernels, refused files, and a tree that changes meanwhile."""

from __future__ import annotations

import pytest

from anyaccel.files import MemoryTree
from anyaccel.machine import Machine, MachineKind
from anyaccel_amd.kfd import KfdBank, KfdNode, KfdTopology, read_links, read_topology

ROOT = "/sys/class/kfd/kfd/topology"
CPU = "cpu_cores_count 16\nsimd_count 0\n"
GPU = "simd_count 416\ngfx_target_version 90010\nlocation_id 8960\ndomain 0\nvendor_id 4098\ndevice_id 29711\n"


class RefusingTree(MemoryTree):
    """Files of which some answer EPERM, as those of a GPU that the device rules of a container keep out."""

    refused: frozenset[str] = frozenset()

    def read_bytes(self, path):
        if path in self.refused:
            raise PermissionError(1, "Operation not permitted", path)
        return super().read_bytes(path)


class GrowingTree(MemoryTree):
    """A tree whose generation goes up at each reading, at most `changes` times."""

    changes = 0

    def read_bytes(self, path):
        if path.endswith("/generation_id"):
            count = self.__dict__.setdefault("count", [0])
            count[0] = min(count[0] + 1, self.changes)
            return b"%d\n" % count[0]
        return super().read_bytes(path)


def _tree(nodes, kind=MemoryTree, **more):
    files = {f"{ROOT}/generation_id": b"2\n"}
    for number, texts in nodes.items():
        files |= {f"{ROOT}/nodes/{number}/{name}": text.encode() for name, text in texts.items()}
    return kind(files=files | more)


def _machine(tree):
    return Machine(tree, kind=MachineKind.SIMULATED).for_plugin("amd")


TWO = {0: {"gpu_id": "0\n", "properties": CPU}, 1: {"gpu_id": "49967\n", "properties": GPU}}


def test_a_machine_without_kfd_has_no_topology():
    """No folder is no topology, not an empty one that is trusted."""
    assert read_topology(_machine(MemoryTree())) == KfdTopology()


def test_gpus_are_told_from_cpus_by_their_compute_cores():
    """A node without SIMD units is no GPU."""
    topology = read_topology(_machine(_tree(TWO)))

    assert [node.number for node in topology.nodes] == [0, 1]
    assert [node.number for node in topology.gpus] == [1]
    assert topology.generation == 2


def test_numbers_are_ordered_as_numbers():
    """Node 10 follows node 9, not node 1."""
    nodes = dict.fromkeys((10, 9, 1), TWO[1])

    assert [node.number for node in read_topology(_machine(_tree(nodes))).gpus] == [1, 9, 10]


def test_keys_an_old_kernel_lacks_are_unknown():
    """Domain, unique id, hive and render node are None where the kernel writes none of them."""
    texts = {"gpu_id": "1\n", "properties": "simd_count 64\nlocation_id 1024\n"}

    (node,) = read_topology(_machine(_tree({1: texts}))).gpus

    assert (node.domain, node.unique_id, node.hive_id, node.render_minor, node.memory_bytes) == (None,) * 5
    assert node.slot == (4, 0)


def test_zero_means_none_for_ids():
    """A unique id, a hive or a render minor of 0 is no id."""
    properties = "simd_count 64\nunique_id 0\nhive_id 0\ndrm_render_minor 0\n"

    (node,) = read_topology(_machine(_tree({1: {"gpu_id": "1\n", "properties": properties}}))).gpus

    assert (node.unique_id, node.hive_id, node.render_minor) == (None, None, None)


@pytest.mark.parametrize(
    "text",
    [
        f"simd_count {'9' * 5000}\n",
        "",
        "garbage\n",
        "simd_count\nsimd_count x y\n",
        "simd_count -4\n",
        "simd_count \u00b2\n",
    ],
)
def test_lines_in_another_form_are_passed_over(text):
    """What is no pair of a name and a number changes nothing."""
    topology = read_topology(_machine(_tree({1: {"gpu_id": "1\n", "properties": text + "other 1\n"}})))

    assert topology.gpus == ()


@pytest.mark.parametrize("name", ["gpu_id", "properties"])
def test_a_refused_node_is_no_gpu_here_and_is_counted(name):
    """EPERM on either file keeps the node out of the runtime's list, and is told apart from absence."""
    tree = _tree(TWO, RefusingTree)
    object.__setattr__(tree, "refused", frozenset({f"{ROOT}/nodes/1/{name}"}))

    topology = read_topology(_machine(tree))

    assert topology.gpus == ()
    assert topology.denied_count == 1


def test_a_gpu_whose_id_reads_zero_is_refused():
    """Compute cores with a gpu_id of 0 is how some kernels show a GPU that was not granted."""
    topology = read_topology(_machine(_tree({1: {"gpu_id": "0\n", "properties": GPU}})))

    assert (topology.gpus, topology.denied_count) == ((), 1)


def test_only_memory_of_the_device_is_counted():
    """Banks of the host's heap on a GPU node are not its memory; several banks add up."""
    banks = (KfdBank(0, 1 << 40), KfdBank(1, 3 << 30), KfdBank(2, 1 << 30))

    assert KfdNode(1, banks=banks).memory_bytes == 4 << 30


def test_banks_are_read_from_their_folders():
    """A bank's size and heap come from its properties; a bank without a heap is passed over."""
    texts = {
        **TWO[1],
        "mem_banks/0/properties": "heap_type 1\nsize_in_bytes 68702699520\n",
        "mem_banks/1/properties": "width 4096\n",
    }

    (node,) = read_topology(_machine(_tree({1: texts}))).gpus

    assert node.banks == (KfdBank(1, 68702699520),)


@pytest.mark.parametrize(
    ("location", "partition"), [("8960", 0), ("8965", 5), (str(0x30000000 | 8960), 3), (str(0x70000000 | 8967), 7)]
)
def test_partition_number_is_in_the_low_or_the_high_bits(location, partition):
    """Bits 31 to 28 in one kernel release of 2024, else the function bits."""
    (node,) = read_topology(
        _machine(_tree({1: {"gpu_id": "1\n", "properties": f"simd_count 38\nlocation_id {location}\n"}}))
    ).gpus

    assert node.partition == partition
    assert node.slot == (0x23, 0)


@pytest.mark.parametrize(("changes", "is_stable"), [(1, True), (2, True), (100, False)])
def test_a_changing_tree_is_read_again_and_then_not_trusted(changes, is_stable):
    """Three readings with a change in each of them are marked; nodes are given all the same."""
    tree = _tree(TWO, GrowingTree)
    object.__setattr__(tree, "changes", changes)

    topology = read_topology(_machine(tree))

    assert topology.is_stable is is_stable
    assert len(topology.gpus) == 1


LINK = "type 11\nnode_from 1\nnode_to 2\nweight 15\nmin_bandwidth 50000\nmax_bandwidth 150000\nflags 1\n"


def test_links_of_both_folders_are_read():
    """io_links are direct ways, p2p_links lead through something else."""
    texts = {**TWO[1], "io_links/0/properties": LINK, "p2p_links/0/properties": LINK.replace("11", "2")}
    machine = _machine(_tree({1: texts}))

    direct, indirect = read_links(machine, read_topology(machine))

    assert (direct.type, direct.max_mbs, direct.is_enabled, direct.is_indirect) == (11, 150000, True, False)
    assert (indirect.type, indirect.is_indirect) == (2, True)


@pytest.mark.parametrize("missing", ["type 11\n", "node_to 2\n"])
def test_a_link_without_type_or_end_is_passed_over(missing):
    """A half-written link is no link."""
    machine = _machine(_tree({1: {**TWO[1], "io_links/0/properties": LINK.replace(missing, "")}}))

    assert read_links(machine, read_topology(machine)) == ()
