"""How things are connected: links, levels of nearness, and the parts of the host. Pure values and functions."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from anyaccel.frozen import FrozenMap

__all__ = [
    "Boundary",
    "FabricNode",
    "HostParts",
    "Link",
    "LinkSource",
    "LinkState",
    "Nic",
    "NumaNode",
    "PairLevel",
    "PciPath",
    "PcieLink",
    "TopologyReport",
    "pci_level",
]


class LinkState(str, Enum):
    """Whether a link carries data now."""

    UP = "up"
    DOWN = "down"
    UNKNOWN = "unknown"


class LinkSource(str, Enum):
    """Who says that a link exists and how fast it is."""

    DECLARED = "declared"
    READ = "read"
    MEASURED = "measured"
    TABLE = "table"


class PairLevel(str, Enum):
    """How near two devices are to each other inside the host, best first."""

    SELF = "self"
    SAME_PACKAGE = "same package"
    SAME_SWITCH = "same switch"
    SEVERAL_SWITCHES = "several switches"
    SAME_HOST_BRIDGE = "same host bridge"
    SAME_NUMA = "same NUMA node"
    ACROSS_NUMA = "across NUMA"
    UNKNOWN = "unknown"

    @property
    def rank(self) -> int:
        """Position in the order above; 0 is nearest."""
        return list(PairLevel).index(self)


@dataclass(frozen=True)
class Boundary:
    """What separates the program from the hardware.

    Args: kind: `host`, `container`, `vm` (a virtual machine), `wsl` or `unknown`. is_container, is_vm: a pod in a
        virtual machine is both. reason: what was seen.
    """

    kind: str = "unknown"
    is_container: bool | None = None
    is_vm: bool | None = None
    reason: str = "nothing was looked at"


@dataclass(frozen=True)
class Link:
    """One connection between two ends.

    Args: a, b: device ids, fabric node ids or `numa:<n>`. kind: `nvlink`, `xgmi`, `pcie` … label: the vendor's short
        word (`NV18`). bytes_per_second_each_way: sum over the `count` links, one direction, None = unknown.
        count: parallel links, None = unknown. hops: device hops, 1 = direct, None = unknown.
        via: id of a switch both ends hang on. state: up, down or unknown. source: who says so.
        reason: why something above is unknown.
    """

    a: str
    b: str
    kind: str
    label: str
    bytes_per_second_each_way: int | None = None
    count: int | None = None
    hops: int | None = None
    via: str | None = None
    state: LinkState = LinkState.UNKNOWN
    source: LinkSource = LinkSource.READ
    reason: str | None = None


@dataclass(frozen=True)
class FabricNode:
    """A node of a vendor's fabric that is no device: a switch, a remote end.

    Args: id: `<plugin>:<location>`. kind: `fabric-switch`, `fabric` or `remote`. label: the vendor's word.
    """

    id: str
    kind: str
    label: str
    pci_address: str | None = None


@dataclass(frozen=True)
class TopologyReport:
    """What `accel_describe_topology` answers: links and fabric nodes of one family.

    Empty means looked and found none; reason says why nothing could be known.
    """

    links: tuple[Link, ...] = ()
    nodes: tuple[FabricNode, ...] = ()
    notes: tuple[str, ...] = ()
    reason: str | None = None


@dataclass(frozen=True)
class PcieLink:
    """Speed and width of a PCIe link.

    Args: speed_gts: transfers per second and lane, in GT/s. width: lanes. None = unknown.
        at: address of the function whose link this is (the upstream port when the card has a bridge inside).
    """

    speed_gts: float | None
    width: int | None
    max_speed_gts: float | None
    max_width: int | None
    at: str

    @property
    def bytes_per_second_each_way(self) -> int | None:
        """Payload bound of the link as trained now: GT/s × lanes × line coding / 8 (PCIe base specification)."""
        return _pcie_bytes(self.speed_gts, self.width)

    @property
    def max_bytes_per_second_each_way(self) -> int | None:
        """The same for the best both ends could train to."""
        return _pcie_bytes(self.max_speed_gts, self.max_width)


def _pcie_bytes(speed_gts: float | None, width: int | None) -> int | None:
    if speed_gts is None or width is None:
        return None
    coding = 0.8 if speed_gts <= 5.0 else 128 / 130
    return round(speed_gts * 1e9 * width * coding / 8)


@dataclass(frozen=True)
class PciPath:
    """Where a PCI function hangs.

    Args: root: `pci0000:16`, None where the kernel shows no bridge tree. bridges: addresses from the root down,
        the function itself left out. numa_node: None = unknown.
    """

    address: str
    root: str | None
    bridges: tuple[str, ...] = ()
    numa_node: int | None = None


@dataclass(frozen=True)
class NumaNode:
    """One memory node of the host.

    Args: cpus: logical CPU numbers, sorted. memory_bytes: None = unknown. distances: to each node in order of number.
        has_cpus False marks device memory onlined as a node.
    """

    number: int
    cpus: tuple[int, ...] = ()
    memory_bytes: int | None = None
    distances: tuple[int, ...] = ()


@dataclass(frozen=True)
class Nic:
    """A network interface card beside the accelerators.

    Args: id: kernel name (`mlx5_0`, `eth0`). kind: `infiniband` or `ethernet`.
    """

    id: str
    kind: str
    path: PciPath


@dataclass(frozen=True)
class HostParts:
    """The parts of the machine that belong to no vendor.

    Args: numa_nodes: by number. allowed_cpus: what this process may run on, None = unknown.
        nics: network cards. paths: PCI position of every device's function by address.
        pcie_links: link of each of these addresses. boundary: what separates us from the hardware.
        packages: CPU numbers by package number. warnings: contradictions in what the kernel shows.
    """

    numa_nodes: tuple[NumaNode, ...] = ()
    allowed_cpus: tuple[int, ...] | None = None
    nics: tuple[Nic, ...] = ()
    paths: FrozenMap[PciPath] = field(default_factory=FrozenMap)
    pcie_links: FrozenMap[PcieLink] = field(default_factory=FrozenMap)
    boundary: Boundary = field(default_factory=Boundary)
    packages: FrozenMap[tuple[int, ...]] = field(default_factory=FrozenMap)
    warnings: tuple[str, ...] = ()


def pci_level(a: PciPath, b: PciPath, *, hides_tree: bool = False) -> PairLevel:
    """Tell how near two PCI functions are from their bridge chains and NUMA nodes.

    Args: hides_tree: a hypervisor shows every function under a root of its own, so nothing follows from the chains.
    Returns: the level; UNKNOWN rather than a guess.
    """
    if a.address == b.address:
        return PairLevel.SELF
    if a.address.rpartition(".")[0] == b.address.rpartition(".")[0]:
        return PairLevel.SAME_PACKAGE
    if hides_tree:
        return PairLevel.UNKNOWN
    if a.root is not None and a.root == b.root:
        return _level_below_root(a, b)
    if a.numa_node is None or b.numa_node is None:
        return PairLevel.UNKNOWN
    return PairLevel.SAME_NUMA if a.numa_node == b.numa_node else PairLevel.ACROSS_NUMA


def _level_below_root(a: PciPath, b: PciPath) -> PairLevel:
    shared = 0
    for left, right in zip(a.bridges, b.bridges, strict=False):
        if left != right:
            break
        shared += 1
    if shared == 0:
        return PairLevel.SAME_HOST_BRIDGE
    longest_leg = max(len(a.bridges), len(b.bridges)) - shared
    return PairLevel.SAME_SWITCH if longest_leg <= 1 else PairLevel.SEVERAL_SWITCHES
