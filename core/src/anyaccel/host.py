"""The parts of the machine that belong to no vendor: memory nodes, CPUs, network cards, and what separates us from them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable

from anyaccel.cpus import CPUS, NODES, cpu_list_text, node_cpus, node_numbers, parse_cpu_list
from anyaccel.errors import FileUnavailableError
from anyaccel.frozen import FrozenMap
from anyaccel.machine import Machine
from anyaccel.pci import read_int
from anyaccel.topology import Boundary, HostParts, Nic, NumaNode, PcieLink, PciPath

__all__ = ["memory_total_bytes", "read_boundary", "read_host"]


def read_boundary(machine: Machine) -> Boundary:
    """Tell whether the program runs on a host, in a container, in a virtual machine or in WSL, from files alone.

    Read once a machine. Sources: the container tools' marker files, DMI strings, the hypervisor CPU flag.
    """
    return machine.cached("boundary", lambda: _read_boundary(machine))


def _read_boundary(machine: Machine) -> Boundary:
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
    return tuple(_numa_node(machine, number) for number in node_numbers(machine))


def _numa_node(machine: Machine, number: int) -> NumaNode:
    folder = f"{NODES}/node{number}"
    memory = re.search(r"MemTotal:\s+([0-9]{1,15}) kB", machine.read_text_or_none(f"{folder}/meminfo") or "")
    distances = (machine.read_text_or_none(f"{folder}/distance") or "").split()
    return NumaNode(
        number=number,
        cpus=node_cpus(machine).get(number, ()),
        memory_bytes=int(memory.group(1)) * 1024 if memory else None,
        distances=tuple(int(d) for d in distances if re.fullmatch(r"[0-9]{1,9}", d)),
    )


def _packages(machine: Machine) -> FrozenMap[tuple[int, ...]]:
    packages: dict[str, list[int]] = {}
    for name in machine.list_folder(CPUS):
        match = re.fullmatch(r"cpu([0-9]{1,9})", name)
        if match is None:
            continue
        package = read_int(machine, f"{CPUS}/{name}/topology/physical_package_id")
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
                    f"({CPUS}/cpu*/topology), NUMA node {node.number} has CPUs {cpu_list_text(ours)} "
                    f"({NODES}/node{node.number}/cpulist); the NUMA node's list is used"
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
        match = re.search(r"MemTotal:\s+([0-9]{1,15}) kB", machine.read_text("/proc/meminfo"))
    except FileUnavailableError:
        return None
    return int(match.group(1)) * 1024 if match else None
