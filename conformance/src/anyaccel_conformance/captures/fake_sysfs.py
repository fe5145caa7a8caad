"""A `/sys` made from what a tool printed, so that discovery can be run on machines of which only texts exist."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from anyaccel.cpus import cpu_list_text
from anyaccel.files import MemoryTree, NodeFact
from anyaccel.frozen import FrozenMap
from anyaccel.machine import Machine, MachineKind, StoredAnswers
from anyaccel.pci import address_key

__all__ = ["FakeSysfs"]

Json = Any

_PCI = "/sys/bus/pci/devices"
_BRIDGE_CLASS = "060400"


class FakeSysfs:
    """Collects parts of a machine and gives the machine. Only what a tool stated is put in; the kernel's files hold no more."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.links: dict[str, str] = {}
        self.nodes: dict[str, NodeFact] = {}
        self._folders: dict[str, str] = {}

    def write(self, path: str, text: object) -> None:
        """Put one file."""
        self.files[path] = f"{text}\n".encode()

    def add_numa(
        self, number: int, cpus: Iterable[int], memory_bytes: int | None = None, distances: Sequence[int] = ()
    ) -> None:
        """Put a memory node."""
        folder = f"/sys/devices/system/node/node{number}"
        self.write(f"{folder}/cpulist", cpu_list_text(cpus))
        if memory_bytes is not None:
            self.write(f"{folder}/meminfo", f"Node {number} MemTotal:       {memory_bytes // 1024} kB")
        if distances:
            self.write(f"{folder}/distance", " ".join(map(str, distances)))

    def add_cpu(self, number: int, package: int) -> None:
        """Put a CPU and the package it is in."""
        self.write(f"/sys/devices/system/cpu/cpu{number}/topology/physical_package_id", package)

    def add_function(
        self,
        address: str,
        *,
        bridges: Sequence[str] = (),
        vendor: int | None = None,
        device: int | None = None,
        class_code: str | None = None,
        subsystem: tuple[int, int] | None = None,
        numa: int | None = None,
        driver: str | None = None,
        root: str | None = None,
    ) -> str:
        """Put a PCI function below its bridges and give its folder; ids that are None are not written.

        Args: class_code: four or six hex digits. root: `pci0000:16`, None = made from the first address of the chain.
        """
        first = bridges[0] if bridges else address
        folder = f"/sys/devices/{root or 'pci' + first.rpartition(':')[0]}"
        for bridge in bridges:
            folder = f"{folder}/{bridge}"
            self._enter(bridge, folder)
            self.files.setdefault(f"{folder}/class", f"0x{_BRIDGE_CLASS}\n".encode())
        folder = f"{folder}/{address}"
        self._enter(address, folder)
        if vendor is not None:
            self.write(f"{folder}/vendor", f"0x{vendor:04x}")
        if device is not None:
            self.write(f"{folder}/device", f"0x{device:04x}")
        if class_code is not None:
            self.write(f"{folder}/class", f"0x{class_code:0<6}")
        if subsystem is not None:
            self.write(f"{folder}/subsystem_vendor", f"0x{subsystem[0]:04x}")
            self.write(f"{folder}/subsystem_device", f"0x{subsystem[1]:04x}")
        self.write(f"{folder}/numa_node", -1 if numa is None else numa)
        if driver is not None:
            self.links[f"{folder}/driver"] = f"/sys/bus/pci/drivers/{driver}"
            self.files.setdefault(f"/sys/bus/pci/drivers/{driver}/uevent", b"")
        return folder

    def _enter(self, address: str, folder: str) -> None:
        self._folders[address] = folder
        self.links[f"{_PCI}/{address}"] = folder

    def add_link_speed(
        self,
        address: str,
        now: tuple[float | None, int | None] = (None, None),
        most: tuple[float | None, int | None] = (None, None),
    ) -> None:
        """Put speed in GT/s and width of a function's PCIe link."""
        for word, (speed, width) in (("current", now), ("max", most)):
            if speed is not None:
                self.write(f"{self._folders[address]}/{word}_link_speed", f"{speed:.1f} GT/s PCIe")
            if width is not None:
                self.write(f"{self._folders[address]}/{word}_link_width", width)

    def add_network(self, name: str, address: str, *, is_infiniband: bool) -> None:
        """Put a network card's class folder."""
        kind = "infiniband" if is_infiniband else "net"
        here = f"{self._folders[address]}/{kind}/{name}"
        self.links[f"{here}/device"] = self._folders[address]
        self.links[f"/sys/class/{kind}/{name}"] = here

    def add_node(self, path: str, *, major: int = 195, minor: int = 0) -> None:
        """Put a device file that everybody may open."""
        self.nodes[path] = NodeFact(mode=0o666, owner="0", group="0", major=major, minor=minor, can_open=True)

    def has(self, address: str) -> bool:
        """Whether a function is there already."""
        return address in self._folders

    @property
    def addresses(self) -> tuple[str, ...]:
        """Addresses of every function, in numeric order."""
        return tuple(sorted(self._folders, key=address_key))

    def machine(self, name: str, answers: Mapping[str, Mapping[str, Json]] | None = None) -> Machine:
        """Give the machine. Args: answers: documents by plugin and topic."""
        stored = {key: StoredAnswers(FrozenMap(documents)) for key, documents in (answers or {}).items()}
        return Machine(
            MemoryTree(self.files, self.links, self.nodes),
            kind=MachineKind.ROOT,
            answers={"*": StoredAnswers(), **stored},
            name=name,
        )
