from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyaccel.cpus import cpu_list_text, parse_cpu_list
from anyaccel.files import MemoryTree
from anyaccel.host import memory_total_bytes, read_boundary, read_host
from anyaccel.machine import Machine
from anyaccel.topology import Boundary

NODES = "/sys/devices/system/node"


def machine_of(files=None, environ=None, links=None):
    return Machine(MemoryTree({p: t.encode() for p, t in (files or {}).items()}, links or {}), environ=environ)


@given(st.sets(st.integers(min_value=0, max_value=4096)))
def test_cpu_lists_survive_a_round_trip(cpus):
    """Writing and reading a CPU list gives the same CPUs."""
    assert parse_cpu_list(cpu_list_text(cpus)) == tuple(sorted(cpus))


@pytest.mark.parametrize(
    ("text", "cpus"), [("", ()), ("0", (0,)), ("0-2,8", (0, 1, 2, 8)), ("x,3", (3,)), ("\n", ()), ("5-3", ())]
)
def test_cpu_lists_of_the_kernel(text, cpus):
    """Empty and malformed lists give what can be read of them."""
    assert parse_cpu_list(text) == cpus


def test_a_huge_range_does_not_fill_memory():
    """A planted range of billions is cut."""
    assert len(parse_cpu_list("0-9999999999")) <= 70_000


@pytest.mark.parametrize(
    ("files", "environ", "kind", "is_vm"),
    [
        ({"/sys/x": ""}, {}, "host", False),
        ({"/.dockerenv": "", "/sys/x": ""}, {}, "container", False),
        ({"/run/.containerenv": ""}, {}, "container", False),
        ({"/sys/x": ""}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "container", False),
        ({"/proc/1/cgroup": "0::/kubepods/besteffort/pod1"}, {}, "container", False),
        ({"/sys/class/dmi/id/sys_vendor": "QEMU"}, {}, "vm", True),
        (
            {"/sys/class/dmi/id/sys_vendor": "Amazon EC2", "/sys/class/dmi/id/product_name": "p4d.24xlarge"},
            {},
            "vm",
            True,
        ),
        (
            {"/sys/class/dmi/id/sys_vendor": "Amazon EC2", "/sys/class/dmi/id/product_name": "g4dn.metal"},
            {},
            "host",
            False,
        ),
        ({"/sys/hypervisor/type": "xen"}, {}, "vm", True),
        ({"/proc/cpuinfo": "flags\t\t: fpu hypervisor lm"}, {}, "vm", True),
        ({"/.dockerenv": "", "/sys/class/dmi/id/sys_vendor": "QEMU"}, {}, "container", True),
        ({"/proc/sys/kernel/osrelease": "5.15.0-microsoft-standard-WSL2"}, {}, "wsl", True),
        ({"/proc/meminfo": "MemTotal: 1 kB"}, {}, "unknown", None),
    ],
)
def test_boundary_from_files_alone(files, environ, kind, is_vm):
    """Containers, virtual machines, both at once, WSL, and a machine without /sys are told apart."""
    boundary = read_boundary(machine_of(files, environ))

    assert (boundary.kind, boundary.is_vm) == (kind, is_vm)
    assert boundary.reason


def test_numa_nodes_with_memory_and_distances():
    """Nodes are read by number, with CPUs, bytes and distances; a node without CPUs has none."""
    files = {
        f"{NODES}/node0/cpulist": "0-3",
        f"{NODES}/node0/distance": "10 20",
        f"{NODES}/node0/meminfo": "Node 0 MemTotal:       1024 kB",
        f"{NODES}/node10/cpumap": "00000000,000000f0",
        f"{NODES}/node2/cpulist": "",
        f"{NODES}/possible": "0-2",
    }

    nodes = read_host(machine_of(files), (), Boundary()).numa_nodes

    assert [(n.number, n.cpus, n.memory_bytes, n.distances) for n in nodes] == [
        (0, (0, 1, 2, 3), 1_048_576, (10, 20)),
        (2, (), None, ()),
        (10, (4, 5, 6, 7), None, ()),
    ]


def test_allowed_cpus_are_those_of_the_process():
    """A restricted CPU set is read from the process's status; without it nothing is assumed."""
    restricted = read_host(machine_of({"/proc/self/status": "Name:\tx\nCpus_allowed_list:\t4-7\n"}), (), Boundary())

    assert restricted.allowed_cpus == (4, 5, 6, 7)
    assert read_host(machine_of(), (), Boundary()).allowed_cpus is None


def test_contradicting_tables_are_one_warning():
    """A package that cuts through a NUMA node is named once with both sources."""
    files = {f"/sys/devices/system/cpu/cpu{c}/topology/physical_package_id": str(c % 64 // 32) for c in range(128)}
    files |= {f"{NODES}/node0/cpulist": "0-63", f"{NODES}/node1/cpulist": "64-127"}

    warnings = read_host(machine_of(files), (), Boundary()).warnings

    assert len(warnings) == 1
    assert "package 0 has CPUs 0-31,64-95" in warnings[0]
    assert "NUMA node 0 has CPUs 0-63" in warnings[0]
    assert "the NUMA node's list is used" in warnings[0]


@pytest.mark.parametrize("packages", [{"0": range(4)}, {"0": range(2), "1": range(2, 4)}])
def test_nested_tables_are_no_contradiction(packages):
    """Several packages in a node, or several nodes in a package, are normal."""
    files = {
        f"/sys/devices/system/cpu/cpu{c}/topology/physical_package_id": p for p, cpus in packages.items() for c in cpus
    }
    files |= {f"{NODES}/node0/cpulist": "0-3"}

    assert read_host(machine_of(files), (), Boundary()).warnings == ()


def test_network_cards_are_found_by_their_pci_function():
    """An InfiniBand card that is also a network interface is listed once; interfaces without PCI are not."""
    folder = "/sys/devices/pci0000:00/0000:01:00.0"
    files = {f"{folder}/vendor": "0x15b3", f"{folder}/numa_node": "1", "/sys/class/net/lo/mtu": "1"}
    links = {
        "/sys/bus/pci/devices/0000:01:00.0": folder,
        "/sys/class/infiniband/mlx5_0": f"{folder}/infiniband/mlx5_0",
        f"{folder}/infiniband/mlx5_0/device": folder,
        "/sys/class/net/ib0": f"{folder}/net/ib0",
        f"{folder}/net/ib0/device": folder,
    }

    (nic,) = read_host(machine_of(files, links=links), (), Boundary()).nics

    assert (nic.id, nic.kind, nic.path.numa_node) == ("mlx5_0", "infiniband", 1)


def test_host_memory_is_bytes_or_unknown():
    """The kernel counts in KiB; without the file the total is unknown."""
    assert memory_total_bytes(machine_of({"/proc/meminfo": "MemTotal:  16 kB\n"})) == 16_384
    assert memory_total_bytes(machine_of()) is None
    assert memory_total_bytes(machine_of({"/proc/meminfo": "nothing"})) is None
