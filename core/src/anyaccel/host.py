"""The parts of the machine that belong to no vendor: memory nodes, CPUs, network cards, and what separates us from them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable

from anyaccel.errors import FileUnavailableError
from anyaccel.frozen import FrozenMap
from anyaccel.machine import Machine
from anyaccel.pci import read_int
from anyaccel.topology import Boundary, HostParts, Nic, NumaNode, PcieLink, PciPath

__all__ = ["cpu_list_text", "parse_cpu_list", "read_boundary", "read_host"]

_NODES = "/sys/devices/system/node"
_CPUS = "/sys/devices/system/cpu"


def parse_cpu_list(text: str) -> tuple[int, ...]:
    """Read a kernel CPU list.

    Returns: CPU numbers, sorted; empty for an empty or malformed list.
    Example: parse_cpu_list("0-2,8") == (0, 1, 2, 8)
    """
    cpus: set[int] = set()
    for part in text.strip().split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part.strip())
        if match is not None:
            first = int(match.group(1))
            last = int(match.group(2) or first)
            cpus.update(range(first, min(last, first + 65_536) + 1))
    return tuple(sorted(cpus))


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


def read_boundary(machine: Machine) -> Boundary:
    """Tell whether the program runs on a host, in a container, in a virtual machine or in WSL, from files alone.

    Sources: systemd's and the container tools' marker files, DMI strings, the hypervisor CPU flag.
    """
    release = machine.read_text_or_none("/proc/sys/kernel/osrelease") or ""
    if "microsoft" in release.lower() or machine.exists("/dev/dxg"):
        return Boundary("wsl", is_container=False, is_vm=True, reason="the kernel is that of WSL")
    container = _container_sign(machine)
    virtual = _vm_sign(machine)
    if container is not None:
        return Boundary("container", is_container=True, is_vm=virtual is not None, reason=container)
    if virtual is not None:
        return Boundary("vm", is_container=False, is_vm=True, reason=virtual)
    if machine.list_folder("/sys"):
        return Boundary("host", is_container=False, is_vm=False, reason="no sign of a container or virtual machine")
    return Boundary("unknown", reason="/sys cannot be read")


def _container_sign(machine: Machine) -> str | None:
    for marker in ("/.dockerenv", "/run/.containerenv"):
        if machine.exists(marker):
            return f"{marker} exists"
    for variable in ("KUBERNETES_SERVICE_HOST", "container"):
        if machine.environ.get(variable):
            return f"{variable} is set"
    if re.search(r"/(docker|kubepods|lxc|containerd|crio)", machine.read_text_or_none("/proc/1/cgroup") or ""):
        return "the first process is in a container's control group"
    return None


def _vm_sign(machine: Machine) -> str | None:
    vendor = " ".join(
        text
        for name in ("sys_vendor", "product_name")
        if (text := machine.read_text_or_none(f"/sys/class/dmi/id/{name}")) is not None
    )
    match = re.search(
        r"QEMU|KVM|VMware|VirtualBox|Xen|Microsoft Corporation Virtual|Google Compute Engine"
        r"|Bochs|Firecracker|OpenStack|Parallels|innotek",
        vendor,
    )
    if match is not None:
        return f"DMI says {match.group(0)}"
    if vendor.startswith("Amazon EC2"):
        return None if ".metal" in vendor else "DMI says Amazon EC2"
    if machine.exists("/sys/hypervisor/type"):
        return "the kernel names a hypervisor"
    if re.search(r"^flags\s*:.*\bhypervisor\b", machine.read_text_or_none("/proc/cpuinfo") or "", re.MULTILINE):
        return "the CPU reports a hypervisor"
    return None


def read_host(machine: Machine, addresses: Iterable[str], boundary: Boundary) -> HostParts:
    """Read the host's parts.

    Args: addresses: PCI addresses of the devices, whose positions and links are wanted.
    """
    numa_nodes = _numa_nodes(machine)
    packages = _packages(machine)
    paths, links = _positions(machine, frozenset(addresses))
    return HostParts(
        numa_nodes=numa_nodes,
        allowed_cpus=_allowed_cpus(machine),
        nics=_nics(machine),
        paths=paths,
        pcie_links=links,
        boundary=boundary,
        packages=packages,
        warnings=tuple(_contradictions(numa_nodes, packages)),
    )


def _numa_nodes(machine: Machine) -> tuple[NumaNode, ...]:
    numbers = (re.fullmatch(r"node(\d+)", name) for name in machine.list_folder(_NODES))
    return tuple(_numa_node(machine, number) for number in sorted(int(m.group(1)) for m in numbers if m is not None))


def _numa_node(machine: Machine, number: int) -> NumaNode:
    folder = f"{_NODES}/node{number}"
    memory = re.search(r"MemTotal:\s+(\d+) kB", machine.read_text_or_none(f"{folder}/meminfo") or "")
    distances = (machine.read_text_or_none(f"{folder}/distance") or "").split()
    return NumaNode(
        number=number,
        cpus=_node_cpus(machine, folder),
        memory_bytes=int(memory.group(1)) * 1024 if memory else None,
        distances=tuple(int(d) for d in distances if d.isdigit()),
    )


def _node_cpus(machine: Machine, folder: str) -> tuple[int, ...]:
    return _cpus_of(machine, f"{folder}/cpulist", f"{folder}/cpumap")


def local_cpus(machine: Machine, path: str) -> tuple[int, ...]:
    """Give the CPUs the kernel calls local to a PCI function, empty when it does not say."""
    return _cpus_of(machine, f"{path}/local_cpulist", f"{path}/local_cpus")


def node_cpus(machine: Machine) -> dict[int, tuple[int, ...]]:
    """Give the CPUs of each NUMA node by number, read once a machine."""
    return machine.cached("node-cpus", lambda: {node.number: node.cpus for node in _numa_nodes(machine)})


def online_cpus(machine: Machine) -> set[int]:
    """Give the CPUs that are online; those of all NUMA nodes together where the kernel keeps no list."""
    listed = machine.read_text_or_none(f"{_CPUS}/online")
    if listed is not None:
        return set(parse_cpu_list(listed))
    return {cpu for cpus in node_cpus(machine).values() for cpu in cpus}


def _cpus_of(machine: Machine, list_path: str, mask_path: str) -> tuple[int, ...]:
    """Read CPUs from a list (`0-3`) or, on old kernels, from a mask of 32-bit words."""
    listed = machine.read_text_or_none(list_path)
    if listed is not None:
        return parse_cpu_list(listed)
    words = (machine.read_text_or_none(mask_path) or "").split(",")
    try:
        mask = int("".join(word.zfill(8) for word in words), 16)
    except ValueError:
        return ()
    return tuple(cpu for cpu in range(mask.bit_length()) if mask >> cpu & 1)


def _packages(machine: Machine) -> FrozenMap[tuple[int, ...]]:
    packages: dict[str, list[int]] = {}
    for name in machine.list_folder(_CPUS):
        match = re.fullmatch(r"cpu(\d+)", name)
        if match is None:
            continue
        package = read_int(machine, f"{_CPUS}/{name}/topology/physical_package_id")
        if package is not None and package >= 0:
            packages.setdefault(str(package), []).append(int(match.group(1)))
    return FrozenMap({p: tuple(sorted(packages[p])) for p in sorted(packages, key=int)})


def _contradictions(nodes: Iterable[NumaNode], packages: FrozenMap[tuple[int, ...]]) -> Iterable[str]:
    for node in nodes:
        for package, cpus in packages.items():
            ours, theirs = set(node.cpus), set(cpus)
            if ours & theirs and not ours <= theirs and not theirs <= ours:
                yield (
                    f"the kernel contradicts itself: package {package} has CPUs {cpu_list_text(theirs)} "
                    f"({_CPUS}/cpu*/topology), NUMA node {node.number} has CPUs {cpu_list_text(ours)} "
                    f"({_NODES}/node{node.number}/cpulist); the NUMA node's list is used"
                )
                return


def _allowed_cpus(machine: Machine) -> tuple[int, ...] | None:
    status = machine.read_text_or_none("/proc/self/status") or ""
    match = re.search(r"^Cpus_allowed_list:\s*(\S+)", status, re.MULTILINE)
    return parse_cpu_list(match.group(1)) if match else None


def _positions(machine: Machine, addresses: frozenset[str]) -> tuple[FrozenMap[PciPath], FrozenMap[PcieLink]]:
    paths, links = {}, {}
    for function in machine.pci_functions():
        if function.address in addresses:
            detail = machine.pci_detail(function)
            paths[function.address] = detail.position
            if detail.link is not None:
                links[function.address] = detail.link
    return FrozenMap(paths), FrozenMap(links)


def _nics(machine: Machine) -> tuple[Nic, ...]:
    functions = {function.address: function for function in machine.pci_functions()}
    found: dict[str, Nic] = {}
    for kind, folder in (("infiniband", "/sys/class/infiniband"), ("ethernet", "/sys/class/net")):
        for name in machine.list_folder(folder):
            real = machine.resolve(f"{folder}/{name}/device")
            address = posixpath.basename(real or "")
            if address in functions and address not in found:
                found[address] = Nic(name, kind, machine.pci_detail(functions[address]).position)
    return tuple(sorted(found.values(), key=lambda nic: (nic.kind != "infiniband", _natural(nic.id))))


def _natural(text: str) -> tuple[tuple[int, str], ...]:
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", text) if part)


def memory_total_bytes(machine: Machine) -> int | None:
    """Give the host's memory in bytes, None = unknown. Source: /proc/meminfo."""
    try:
        match = re.search(r"MemTotal:\s+(\d+) kB", machine.read_text("/proc/meminfo"))
    except FileUnavailableError:
        return None
    return int(match.group(1)) * 1024 if match else None
