"""CPU numbers as the kernel writes them, and which of them are near what. Reading only.

Files may be a stranger's: a number from 65,536 on is none, and everything is read in time that grows with its length.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anyaccel.machine import Machine

__all__ = ["cpu_list_text", "cpus_of", "local_cpus", "node_cpus", "node_numbers", "online_cpus", "parse_cpu_list"]

NODES = "/sys/devices/system/node"
CPUS = "/sys/devices/system/cpu"
MOST_CPUS = 65_536
"""Eight times what the kernel can be built for (NR_CPUS)."""


def parse_cpu_list(text: str) -> tuple[int, ...]:
    """Read a kernel CPU list.

    Returns: CPU numbers, sorted; empty for an empty or malformed list.
    Example: parse_cpu_list("0-2,8") == (0, 1, 2, 8)
    """
    cpus: list[int] = []
    for first, last in sorted(_range(part) for part in set(text.strip().split(","))):
        start = max(first, cpus[-1] + 1) if cpus else first
        cpus.extend(range(start, min(last, MOST_CPUS - 1) + 1))
    return tuple(cpus)


def _range(text: str) -> tuple[int, int]:
    """Read `4` or `2-5`; a range of nothing for anything else."""
    match = re.fullmatch(r"\s*([0-9]{1,9})(?:-([0-9]{1,9}))?\s*", text)
    return (int(match.group(1)), int(match.group(2) or match.group(1))) if match is not None else (0, -1)


def cpu_list_text(cpus: Iterable[int]) -> str:
    """Write CPU numbers as the kernel does.

    Example: cpu_list_text((0, 1, 2, 8)) == "0-2,8"
    """
    ranges: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if ranges and cpu == ranges[-1][1] + 1:
            ranges[-1][1] = cpu
        else:
            ranges.append([cpu, cpu])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges)


def node_numbers(machine: Machine) -> tuple[int, ...]:
    """Give the numbers of the NUMA nodes, sorted."""
    matches = (re.fullmatch(r"node([0-9]{1,9})", name) for name in machine.list_folder(NODES))
    return tuple(sorted(int(match.group(1)) for match in matches if match is not None))


def _read_node_cpus(machine: Machine) -> dict[int, tuple[int, ...]]:
    folders = ((number, f"{NODES}/node{number}") for number in node_numbers(machine))
    return {number: cpus_of(machine, f"{folder}/cpulist", f"{folder}/cpumap") for number, folder in folders}


def local_cpus(machine: Machine, path: str) -> tuple[int, ...]:
    """Give the CPUs the kernel calls local to a PCI function, empty when it does not say."""
    return cpus_of(machine, f"{path}/local_cpulist", f"{path}/local_cpus")


def node_cpus(machine: Machine) -> dict[int, tuple[int, ...]]:
    """Give the CPUs of each NUMA node by number, read once a machine."""
    return machine.cached("node-cpus", lambda: _read_node_cpus(machine))


def online_cpus(machine: Machine) -> set[int]:
    """Give the CPUs that are online; those of all NUMA nodes together where the kernel keeps no list."""
    listed = machine.read_text_or_none(f"{CPUS}/online")
    if listed is not None:
        return set(parse_cpu_list(listed))
    return {cpu for cpus in node_cpus(machine).values() for cpu in cpus}


def cpus_of(machine: Machine, list_path: str, mask_path: str) -> tuple[int, ...]:
    """Read CPUs from a list (`0-3`) or, on old kernels, from a mask of 32-bit words."""
    listed = machine.read_text_or_none(list_path)
    if listed is not None:
        return parse_cpu_list(listed)
    words = (machine.read_text_or_none(mask_path) or "").split(",")
    if len(words) > MOST_CPUS // 32 or not all(re.fullmatch(r"[0-9a-fA-F]{1,8}", word) for word in words):
        return ()
    bits = ((32 * place, int(word, 16)) for place, word in enumerate(reversed(words)))
    return tuple(base + bit for base, word in bits for bit in range(32) if word >> bit & 1)
