from __future__ import annotations

import time

import pytest

from anyaccel.cpus import MOST_CPUS, cpus_of, parse_cpu_list
from anyaccel.files import MemoryTree
from anyaccel.host import read_boundary, read_host
from anyaccel.machine import Machine, MachineKind

NODE = "/sys/devices/system/node/node0"


def _machine(**files):
    paths = {"cpulist": f"{NODE}/cpulist", "cpumap": f"{NODE}/cpumap", "distance": f"{NODE}/distance",
             "meminfo": f"{NODE}/meminfo", "status": "/proc/self/status"}  # fmt: skip
    return Machine(MemoryTree({paths[k]: v.encode() for k, v in files.items()}, {}, {}), kind=MachineKind.ROOT)


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("0-2,8", (0, 1, 2, 8)),
        ("8,0-2\n", (0, 1, 2, 8)),
        ("0-3,2-5,4", (0, 1, 2, 3, 4, 5)),
        ("", ()),
        ("3-1", ()),
        ("a,1,-2,3-", (1,)),
        ("²,٣", ()),
        ("9" * 5000, ()),
        (f"{MOST_CPUS - 1},{MOST_CPUS},999999999", (MOST_CPUS - 1,)),
    ],
)
def test_lists_of_the_kernel_are_read(text, cpus):
    """Ranges may overlap; what is malformed or too large is left out."""
    assert parse_cpu_list(text) == cpus


@pytest.mark.parametrize("text", ["0-65535," * 20_000, "0-999999999", ",".join(f"{n}-{n + 9}" for n in range(30_000))])
def test_long_lists_take_no_time(text):
    """A list of any length is read in time that grows with it, and gives no more CPUs than there can be."""
    started = time.monotonic()

    assert len(parse_cpu_list(text)) <= MOST_CPUS
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    ("mask", "cpus"),
    [
        ("0000000f", (0, 1, 2, 3)),
        ("00000001,80000000", (31, 32)),
        ("f", (0, 1, 2, 3)),
        ("", ()),
        ("g", ()),
        ("0x1", ()),
        ("ffffffff," * 30_000, ()),
    ],
)
def test_masks_of_old_kernels_are_read(mask, cpus):
    """32-bit words, highest first; a mask of more CPUs than there can be is none."""
    assert cpus_of(_machine(cpumap=mask), f"{NODE}/cpulist", f"{NODE}/cpumap") == cpus


@pytest.mark.parametrize(
    "files",
    [
        {"distance": "10 ²"},
        {"distance": "9" * 5000},
        {"meminfo": f"Node 0 MemTotal: {'9' * 5000} kB"},
        {"status": f"Cpus_allowed_list:\t{'9' * 5000}"},
        {"cpulist": "\0\0"},
    ],
    ids=lambda files: next(iter(files)),
)
def test_malformed_host_files_are_unknown(files):
    """No file of the host stops a command; what cannot be read is left out or unknown."""
    machine = _machine(**{"cpulist": "0-3", **files})

    (node,) = read_host(machine, (), read_boundary(machine)).numa_nodes

    assert (node.memory_bytes, [d for d in node.distances if d != 10]) == (None, [])
