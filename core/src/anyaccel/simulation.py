"""Imaginary machines: a description in TOML becomes files and answers that agree, or disagree on purpose."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from anyaccel.cpus import parse_cpu_list
from anyaccel.errors import RecordingError
from anyaccel.files import MemoryTree, NodeFact
from anyaccel.frozen import FrozenMap
from anyaccel.machine import Machine, MachineKind, StoredAnswers, UserFacts
from anyaccel.machine_description import (
    CardDescription,
    FaultDescription,
    HostDescription,
    LinkDescription,
    MachineDescription,
    NicDescription,
    SimulatedFamily,
    SimulatedFunction,
)
from anyaccel.pci import normal_address
from anyaccel.registry import Plugin, Registry

__all__ = ["find_machine", "list_machines", "load_description", "parse_description", "simulate"]

SCHEMA = "anyaccel-machine/1"
_TABLES = frozenset({"schema", "name", "title", "host", "environment", "bridge", "card", "link", "nic", "fault"})
_HOST_KEYS = frozenset({"numa_cpus", "numa_memory_gib", "boundary", "kernel", "user"})
_BRIDGE_KEYS = frozenset({"address", "parent", "numa_node"})
_NIC_KEYS = frozenset({"name", "address", "kind", "parent", "numa_node"})
_GENERIC_FAULTS = frozenset(
    {"no-driver", "vfio", "no-node", "no-permission", "numa-unknown", "dead-link", "file-vanishes"}
)
_BRIDGE_CLASS = "060400"
_NIC_CLASS = "020000"


def load_description(path: Path | str) -> MachineDescription:
    """Read a machine description from a file. Raises: RecordingError saying what is wrong with it."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise RecordingError(f"machine description {str(path)!r} cannot be read: {why}") from error
    return parse_description(text, name=Path(path).stem)


def parse_description(text: str, *, name: str = "machine") -> MachineDescription:
    """Read a machine description.

    Args: text: TOML, see docs/simulation.md. name: used when the text gives none.
    Raises: RecordingError naming the table and key.
    """
    document = _toml(text)
    if document.get("schema") != SCHEMA:
        raise RecordingError(f"machine description {name!r} has schema {document.get('schema')!r}, not {SCHEMA!r}")
    try:
        return _description(document, name)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RecordingError(
            f"machine description {name!r} is malformed: {type(error).__name__} at {error}",
            hint="compare it with docs/simulation.md",
        ) from error


def _toml(text: str) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        document: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RecordingError(f"machine description is not TOML: {error}") from error
    return document


def _description(document: Mapping[str, Any], name: str) -> MachineDescription:
    stray = [key for key, value in document.items() if key not in _TABLES and not isinstance(value, dict)]
    if stray:
        raise RecordingError(f"machine description {name!r} has the unknown key {stray[0]!r} outside any table")
    _check_keys(document.get("host", {}), _HOST_KEYS, "host")
    for table, known in (("bridge", _BRIDGE_KEYS), ("nic", _NIC_KEYS)):
        for row in _rows(document, table):
            _check_keys(row, known, table)
    return MachineDescription(
        name=str(document.get("name", name)),
        title=str(document.get("title", "")),
        host=_host(document.get("host", {})),
        bridges=tuple(_bridge_row(row) for row in _rows(document, "bridge")),
        cards=tuple(_card(row) for row in _rows(document, "card")),
        links=tuple(_link(row) for row in _rows(document, "link")),
        nics=tuple(_nic(row) for row in _rows(document, "nic")),
        faults=tuple(_fault(row) for row in _rows(document, "fault")),
        environ=FrozenMap({str(k): str(v) for k, v in document.get("environment", {}).items()}),
        families=FrozenMap({k: _frozen(v) for k, v in document.items() if k not in _TABLES}),
    )


def _check_keys(table: Mapping[str, Any], known: frozenset[str], name: str) -> None:
    unknown = sorted(set(table) - known)
    if unknown:
        raise RecordingError(f"table {name!r} has the unknown key {unknown[0]!r} (known: {', '.join(sorted(known))})")


def _bridge_row(row: Mapping[str, Any]) -> tuple[str, str, int | None]:
    return (_address(row["address"]), _parent(row["parent"]) or "", row.get("numa_node"))


def _rows(document: Mapping[str, Any], table: str) -> list[dict[str, Any]]:
    rows = document.get(table, [])
    if not isinstance(rows, list):
        raise TypeError(f"[[{table}]] is no array of tables")
    return rows


def _frozen(table: Mapping[str, Any]) -> FrozenMap[Any]:
    return FrozenMap({key: _frozen_value(value) for key, value in table.items()})


def _frozen_value(value: Any) -> Any:
    if isinstance(value, dict):
        return _frozen(value)
    return tuple(_frozen_value(v) for v in value) if isinstance(value, list) else value


def _rest(row: Mapping[str, Any], *taken: str) -> FrozenMap[Any]:
    return _frozen({key: value for key, value in row.items() if key not in taken})


def _address(text: str) -> str:
    address = normal_address(text)
    if address is None:
        raise ValueError(f"{text!r} is no PCI address")
    return address


def _parent(text: str | None) -> str | None:
    if text is None or re.fullmatch(r"pci[0-9a-f]{4,8}:[0-9a-f]{2}", text):
        return text
    return _address(text)


def _host(row: Mapping[str, Any]) -> HostDescription:
    default = HostDescription()
    user = row.get("user", {})
    return HostDescription(
        numa_cpus=tuple(row.get("numa_cpus", default.numa_cpus)),
        numa_memory_bytes=tuple(int(gib * 2**30) for gib in row.get("numa_memory_gib", [64])),
        boundary=str(row.get("boundary", default.boundary)),
        kernel=str(row.get("kernel", default.kernel)),
        user=UserFacts(int(user.get("uid", 1000)), tuple(user.get("groups", default.user.groups))),
    )


def _card(row: Mapping[str, Any]) -> CardDescription:
    return CardDescription(
        plugin=row["plugin"],
        model=row["model"],
        address=_address(row["address"]) if "address" in row else None,
        parent=_parent(row.get("parent")),
        numa_node=row.get("numa_node"),
        driver=row.get("driver", "default") or None,
        options=_rest(row, "plugin", "model", "address", "parent", "numa_node", "driver"),
    )


def _link(row: Mapping[str, Any]) -> LinkDescription:
    return LinkDescription(row["a"], row["b"], row["kind"], row.get("count", 1), _rest(row, "a", "b", "kind", "count"))


def _nic(row: Mapping[str, Any]) -> NicDescription:
    kind = row.get("kind", "infiniband")
    return NicDescription(row["name"], _address(row["address"]), kind, _parent(row.get("parent")), row.get("numa_node"))


def _fault(row: Mapping[str, Any]) -> FaultDescription:
    return FaultDescription(row["kind"], row.get("card"), row.get("plugin"), _rest(row, "kind", "card", "plugin"))


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
    near = get_close_matches(key, [*known, *sorted(_TABLES)], n=1)
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
            path = str(fault.options["path"])
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
