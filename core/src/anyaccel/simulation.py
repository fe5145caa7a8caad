"""Imaginary machines: a description in TOML becomes files and answers that agree, or disagree on purpose."""

from __future__ import annotations

import sys
from importlib.resources import files
from typing import Any

from anyaccel.cpus import parse_cpu_list
from anyaccel.descriptions import TABLES, load_description, parse_description
from anyaccel.errors import RecordingError
from anyaccel.files import MemoryTree, NodeFact
from anyaccel.frozen import FrozenMap
from anyaccel.machine import Machine, MachineKind, StoredAnswers
from anyaccel.machine_description import (
    FaultDescription,
    MachineDescription,
    NicDescription,
    SimulatedFamily,
    SimulatedFunction,
)
from anyaccel.pci import normal_address
from anyaccel.registry import Plugin, Registry

__all__ = ["find_machine", "list_machines", "load_description", "parse_description", "simulate"]

_GENERIC_FAULTS = frozenset(
    {"no-driver", "vfio", "no-node", "no-permission", "numa-unknown", "dead-link", "file-vanishes"}
)
_BRIDGE_CLASS = "060400"
_NIC_CLASS = "020000"


def list_machines(registry: Registry) -> FrozenMap[Any]:
    """Give the descriptions that plugins ship, by name; each is a file `machines/*.toml` of the plugin's package."""
    found = {}
    for plugin in registry.plugins:
        package = plugin.module_name.partition(".")[0]
        folder = files(package) / "machines" if hasattr(sys.modules[package], "__path__") else None
        if folder is not None and folder.is_dir():
            for entry in sorted(folder.iterdir(), key=lambda e: e.name):
                if entry.name.endswith(".toml"):
                    found[entry.name.removesuffix(".toml")] = entry
    return FrozenMap(dict(sorted(found.items())))


def find_machine(name: str, registry: Registry) -> MachineDescription:
    """Give the description of a shipped machine by name, or of a file by path.

    Raises: RecordingError listing the known names.
    """
    machines = list_machines(registry)
    if name in machines:
        return parse_description(machines[name].read_text(encoding="utf-8"), name=name)
    if name.endswith(".toml"):
        return load_description(name)
    raise RecordingError(
        f"unknown machine {name!r} (known: {', '.join(machines) or 'none'})", hint="a path must end in .toml"
    )


def simulate(description: MachineDescription, registry: Registry) -> Machine:
    """Make an imaginary machine.

    Args: registry: every plugin that the description's cards name must be in it.
    Raises: RecordingError for an unknown plugin, model, option or fault.
    """
    families = {key: _family(registry, key, description) for key in _plugins_named(description)}
    layout = _Layout(description)
    for family in families.values():
        layout.add_family(family)
    tree = layout.tree()
    answers = {key: StoredAnswers(family.answers) for key, family in families.items()}
    return Machine(
        tree,
        environ=description.environ,
        kind=MachineKind.SIMULATED,
        answers={"*": StoredAnswers(), **answers},
        user=description.host.user,
        name=description.name,
    )


def _plugins_named(description: MachineDescription) -> tuple[str, ...]:
    return tuple(sorted({card.plugin for card in description.cards} | set(description.families)))


def _family(registry: Registry, key: str, description: MachineDescription) -> SimulatedFamily:
    plugin: Plugin | None = next((p for p in registry.plugins if p.key == key), None)
    if plugin is None:
        raise _no_such_plugin(registry, key, description)
    family: SimulatedFamily = plugin.call("accel_simulate", description=description)
    return family


def _no_such_plugin(registry: Registry, key: str, description: MachineDescription) -> RecordingError:
    from difflib import get_close_matches

    known = [plugin.key for plugin in registry.plugins]
    off = next((o.reason for o in registry.failures if o.plugin == key), None)
    near = get_close_matches(key, [*known, *sorted(TABLES)], n=1)
    return RecordingError(
        f"machine {description.name!r} names plugin {key!r}, which is not loaded (loaded: {', '.join(known) or 'none'})"
        + (f": {off}" if off else ""),
        hint=f"did you mean {near[0]!r}?" if near else None,
    )


class _Layout:
    """The files of an imaginary machine while they are laid out."""

    def __init__(self, description: MachineDescription) -> None:
        self._description = description
        self._files: dict[str, bytes] = {}
        self._links: dict[str, str] = {}
        self._nodes: dict[str, NodeFact] = {}
        self._paths: dict[str, str] = {}
        self._add_host()
        for address, parent, numa_node in description.bridges:
            self._add_function(_bridge(address, parent, numa_node))
        for nic in description.nics:
            self._add_nic(nic)

    def add_family(self, family: SimulatedFamily) -> None:
        """Lay out what one plugin made."""
        for function in family.functions:
            self._add_function(function)
        self._files.update({path: text.encode() for path, text in family.files.items()})
        self._links.update(family.links)
        self._nodes.update(family.nodes)

    def tree(self) -> MemoryTree:
        """Give the files with the generic faults put in."""
        for fault in self._description.faults:
            if fault.plugin is None and fault.kind in _GENERIC_FAULTS:
                self._put_fault(fault)
            elif fault.plugin is None:
                known = ", ".join(sorted(_GENERIC_FAULTS))
                raise RecordingError(f"unknown fault {fault.kind!r} (generic faults: {known})", hint="name its plugin")
        return MemoryTree(self._files, self._links, self._nodes)

    def _add_host(self) -> None:
        host = self._description.host
        self._text(
            "/proc/sys/kernel/osrelease", host.kernel + ("-microsoft-standard-WSL2" if host.boundary == "wsl" else "")
        )
        if host.boundary == "container":
            self._text("/.dockerenv", "")
        self._text("/sys/class/dmi/id/sys_vendor", "QEMU" if host.boundary == "vm" else "Simulated")
        if host.boundary == "wsl":
            self._nodes["/dev/dxg"] = NodeFact(mode=0o666, owner="0", group="0", major=10, minor=125)
        count = len(host.numa_cpus)
        for number, cpus in enumerate(host.numa_cpus):
            self._add_numa_node(number, cpus, count)
        self._text("/proc/self/status", f"Name:\tpython\nCpus_allowed_list:\t{','.join(host.numa_cpus)}")
        total = sum(host.numa_memory_bytes) // 1024
        self._text("/proc/meminfo", f"MemTotal:       {total} kB")

    def _add_numa_node(self, number: int, cpus: str, count: int) -> None:
        folder = f"/sys/devices/system/node/node{number}"
        memory = self._description.host.numa_memory_bytes
        self._text(f"{folder}/cpulist", cpus)
        self._text(f"{folder}/distance", " ".join("10" if other == number else "21" for other in range(count)))
        if number < len(memory):
            self._text(f"{folder}/meminfo", f"Node {number} MemTotal:       {memory[number] // 1024} kB")
        for cpu in parse_cpu_list(cpus):
            self._text(f"/sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id", str(number))

    def _add_nic(self, nic: NicDescription) -> None:
        function = SimulatedFunction(
            nic.address, 0x15B3, 0x1021, _NIC_CLASS, parent=nic.parent, numa_node=nic.numa_node, driver="mlx5_core"
        )
        folder = self._add_function(function)
        kind = "infiniband" if nic.kind == "infiniband" else "net"
        self._links[f"/sys/class/{kind}/{nic.name}"] = f"{folder}/{kind}/{nic.name}"
        self._links[f"{folder}/{kind}/{nic.name}/device"] = folder

    def _add_function(self, function: SimulatedFunction) -> str:
        folder = f"{self._parent_folder(function)}/{function.address}"
        self._paths[function.address] = folder
        self._links[f"/sys/bus/pci/devices/{function.address}"] = folder
        for name, text in _function_files(function).items():
            self._text(f"{folder}/{name}", text)
        for name, target in function.links.items():
            self._links[f"{folder}/{name}"] = target
        if function.driver is not None:
            self._bind(folder, function.driver)
        return folder

    def _parent_folder(self, function: SimulatedFunction) -> str:
        domain, bus, _ = function.address.split(":")
        parent = function.parent or f"pci{domain}:{bus}"
        if parent.startswith("pci"):
            return f"/sys/devices/{parent}"
        if parent not in self._paths:
            raise RecordingError(
                f"{function.address} hangs below {parent}, which is no bridge of {self._description.name!r}"
            )
        return self._paths[parent]

    def _bind(self, folder: str, driver: str) -> None:
        home = f"/sys/bus/pci/drivers/{driver}"
        self._links[f"{folder}/driver"] = home
        self._files.setdefault(f"{home}/bind", b"")

    def _text(self, path: str, text: str) -> None:
        self._files[path] = (text + "\n").encode()

    def _put_fault(self, fault: FaultDescription) -> None:
        if fault.kind == "file-vanishes":
            path = str(fault.options.get("path", ""))
            if not path.startswith("/"):
                raise RecordingError("fault 'file-vanishes' needs the path of a file, from / on")
            self._files.pop(path, None)
            self._links[path] = "/vanished"
            return
        if fault.kind in ("no-node", "no-permission") and "path" in fault.options:
            self._put_node_fault(fault, str(fault.options["path"]))
            return
        address = normal_address(fault.card or "")
        if address not in self._paths:
            raise RecordingError(f"fault {fault.kind!r} concerns card {fault.card!r}, which is not there")
        folder = self._paths[address]
        if fault.kind == "dead-link":
            for name, text in (("vendor", "0xffff"), ("device", "0xffff"), ("class", "0xffffff")):
                self._text(f"{folder}/{name}", text)
        elif fault.kind == "numa-unknown":
            self._text(f"{folder}/numa_node", "-1")
        elif fault.kind == "no-driver":
            self._links.pop(f"{folder}/driver", None)
        elif fault.kind == "vfio":
            self._bind(folder, "vfio-pci")
        else:
            raise RecordingError(f"fault {fault.kind!r} needs the path of a device file")

    def _put_node_fault(self, fault: FaultDescription, path: str) -> None:
        if path not in self._nodes:
            raise RecordingError(f"fault {fault.kind!r} concerns device file {path!r}, which is not there")
        if fault.kind == "no-node":
            del self._nodes[path]
        else:
            group = str(fault.options.get("group", "root"))
            self._nodes[path] = NodeFact(0o660, "0", group, self._nodes[path].major, self._nodes[path].minor)


def _bridge(address: str, parent: str, numa_node: int | None) -> SimulatedFunction:
    return SimulatedFunction(
        address, 0x1000, 0xC030, _BRIDGE_CLASS, parent=parent, numa_node=numa_node, driver="pcieport"
    )


def _function_files(function: SimulatedFunction) -> dict[str, str]:
    numa_node = -1 if function.numa_node is None else function.numa_node
    texts = {
        "vendor": f"0x{function.vendor_id:04x}",
        "device": f"0x{function.device_id:04x}",
        "class": f"0x{function.class_code}",
        "subsystem_vendor": f"0x{function.subsystem_vendor_id:04x}",
        "subsystem_device": f"0x{function.subsystem_id:04x}",
        "revision": "0xa1",
        "numa_node": str(numa_node),
    }
    for name, speed in (("current", function.speed_gts), ("max", function.max_speed_gts)):
        if speed is not None:
            texts[f"{name}_link_speed"] = f"{speed:.1f} GT/s PCIe"
    for name, width in (("current", function.width), ("max", function.max_width)):
        if width is not None:
            texts[f"{name}_link_width"] = str(width)
    return {**texts, **function.files}
