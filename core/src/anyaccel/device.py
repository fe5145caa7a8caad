"""The unit tree: card → device → partition → core, as frozen values, and the view of one whole family."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import Any

from anyaccel.errors import DeviceNotFoundError
from anyaccel.frozen import FrozenMap
from anyaccel.topology import Boundary, Link

__all__ = [
    "Blocks",
    "Condition",
    "Device",
    "DeviceState",
    "Discovery",
    "FamilyView",
    "Inspection",
    "Level",
    "Place",
    "Scalar",
    "Sharing",
    "with_known",
]

Scalar = str | int | float | bool | None


class Level(str, Enum):
    """Depth in the unit tree; the vendor's own word is the device's label."""

    CARD = "card"
    DEVICE = "device"
    PARTITION = "partition"
    CORE = "core"


class DeviceState(str, Enum):
    """One word for a device, worst first: a device with several causes shows the first that applies."""

    LOST = "lost"
    UNUSABLE = "unusable"
    BLOCKED = "blocked"
    DENIED = "denied"
    PARTITIONED = "partitioned"
    ASLEEP = "asleep"
    HIDDEN = "hidden"
    BUSY = "busy"
    UNKNOWN = "unknown"
    READY = "ready"

    @property
    def rank(self) -> int:
        """Position in the order above; 0 is worst."""
        return list(DeviceState).index(self)


class Blocks(str, Enum):
    """What a condition prevents."""

    COMPUTE = "compute"
    LINKS = "links"
    NOTHING = "nothing"


class Sharing(str, Enum):
    """How many processes may use a device at a time."""

    SHARED = "shared"
    ONE_PROCESS = "one-process"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Condition:
    """One cause of a device's state.

    Args: code: stable kebab-case name. reason: one clause for people. state: what it makes of the device;
        None = noted without changing the state (a degraded link, a corrected error). blocks: what it prevents.
        hint: what to do, when known.
    """

    code: str
    reason: str
    state: DeviceState | None
    blocks: Blocks = Blocks.COMPUTE
    hint: str | None = None


@dataclass(frozen=True)
class Place:
    """Where a device sits in a fabric.

    Args: kind: fabric word of the vendor (`nvlink-domain`, `hive`, `ici-grid`). name: the domain, None = unknown.
        coordinates: position in the grid, shape (dimensions,), or None. size: members or extent, or None.
        reason: why a None above is unknown.
    """

    kind: str
    name: str | None
    coordinates: tuple[int, ...] | None = None
    size: int | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Device:
    """One node of the unit tree.

    Args:
        id: fixed by discovery from the location, `<plugin>:<location>`, for example `nvidia:0000:1b:00.0`.
        family: the plugin's key.
        level, label: depth in the tree and the vendor's word for it (`GPU`, `tile`, `die`, `MIG instance`).
        parent: id of the node above, None for a root.
        model: product name, None = unknown.
        uuid: the name that survives PCI reordering, when something knows it.
        pci_addresses: zero or more, `domain:bus:device.function`, domain of 4 to 8 hex digits.
        numbers: every number space by name (`index`, `minor`, `module`, `render` …); None = unknown.
        memory_bytes: memory of the node that owns it, in bytes; memory_owner: the id of the node it is drawn from.
        sharing, max_per_process: processes at a time; how many of these one process can use (None = no limit known).
        conditions: every cause at once.
        places: positions in fabrics.
        numa_node: node number, None = unknown.
        nodes: device files a process must open.
        driver, driver_version: bound kernel driver and its version text.
        is_integrated: shares memory and package with the host; None = unknown.
        is_counted, count_reason: whether a plain request may take it, and the rule that decided when it is not obvious.
        attributes: further facts with unit in the key.
        unknown: for each field above that is None, or `numbers.<space>` and `attributes.<key>`, why.
        is_simulated: part of an imaginary machine.
    """

    id: str
    family: str
    level: Level = Level.DEVICE
    label: str = "device"
    parent: str | None = None
    model: str | None = None
    uuid: str | None = None
    pci_addresses: tuple[str, ...] = ()
    numbers: FrozenMap[int | str | None] = field(default_factory=FrozenMap)
    memory_bytes: int | None = None
    memory_owner: str | None = None
    sharing: Sharing = Sharing.UNKNOWN
    max_per_process: int | None = None
    conditions: tuple[Condition, ...] = ()
    places: tuple[Place, ...] = ()
    numa_node: int | None = None
    nodes: tuple[str, ...] = ()
    driver: str | None = None
    driver_version: str | None = None
    is_integrated: bool | None = False
    is_counted: bool = True
    count_reason: str | None = None
    attributes: FrozenMap[Scalar] = field(default_factory=FrozenMap)
    unknown: FrozenMap[str] = field(default_factory=FrozenMap)
    is_simulated: bool = False

    @property
    def state(self) -> DeviceState:
        """The first state, in the order of `DeviceState`, that one of the conditions gives."""
        states = [condition.state for condition in self.conditions if condition.state is not None]
        return min(states, key=lambda state: state.rank, default=DeviceState.READY)

    @property
    def reason(self) -> str | None:
        """Why the device is in its state, None when it is ready."""
        state = self.state
        return next((c.reason for c in self.conditions if c.state is state), None)

    @property
    def hint(self) -> str | None:
        """What to do about the state, when known."""
        state = self.state
        return next((c.hint for c in self.conditions if c.state is state), None)

    def why_unknown(self, name: str) -> str | None:
        """Give the reason why a field or `numbers.<space>` is None."""
        return self.unknown.get(name)


def with_known(device: Device, **fields: Any) -> Device:
    """Give the device with fields filled in, and without the reasons why these were unknown.

    Args: fields: `numbers` and `attributes` add to what is there; a None in any of them changes nothing.
    Example: with_known(device, memory_bytes=1 << 30, numbers={"index": 0})
    """
    given: dict[str, Any] = {}
    settled: set[str] = set()
    for name, value in fields.items():
        if name in ("numbers", "attributes"):
            table = {key: entry for key, entry in value.items() if entry is not None}
            given[name] = getattr(device, name).with_items(table)
            settled |= {f"{name}.{key}" for key in table}
        elif value is not None:
            given[name] = value
            settled.add(name)
    unknown = FrozenMap({name: reason for name, reason in device.unknown.items() if name not in settled})
    return replace(device, **given, unknown=unknown)


@dataclass(frozen=True)
class Discovery:
    """What `accel_discover_devices` found in the machine's files.

    Args: devices: roots and, where files tell, their children. reason: why there is none; required when empty.
        hint: what to do about that. notes: facts for people that concern no single device.
        claimed: PCI addresses that belong to this family without being devices (switches, virtual functions).
        facts: family-wide facts (driver version, build) by name.
    """

    devices: tuple[Device, ...] = ()
    reason: str | None = None
    hint: str | None = None
    notes: tuple[str, ...] = ()
    claimed: tuple[str, ...] = ()
    facts: FrozenMap[Scalar] = field(default_factory=FrozenMap)


@dataclass(frozen=True)
class Inspection:
    """What asking the driver added.

    Args: devices: the devices given, in their order with the same id and parent, attributes and conditions added,
        each followed by children the driver told of. notes: facts for people. facts: family-wide facts by name.
    """

    devices: tuple[Device, ...]
    notes: tuple[str, ...] = ()
    facts: FrozenMap[Scalar] = field(default_factory=FrozenMap)


@dataclass(frozen=True)
class FamilyView:
    """All devices, links and places of one family, and the boundary the program runs inside.

    Every pure hook receives the whole family, never just the selected devices.
    Args: family: the plugin's key. devices: every node of the tree, parents before children.
        links: links between them or to switches. boundary: host, container, virtual machine or unknown.
        facts: family-wide facts (driver version …) by name.
    """

    family: str
    devices: tuple[Device, ...] = ()
    links: tuple[Link, ...] = ()
    boundary: Boundary = field(default_factory=Boundary)
    facts: FrozenMap[Scalar] = field(default_factory=FrozenMap)

    @cached_property
    def _by_id(self) -> Mapping[str, Device]:
        return {device.id: device for device in self.devices}

    @cached_property
    def _children(self) -> Mapping[str, tuple[Device, ...]]:
        table: dict[str, list[Device]] = {}
        for device in self.devices:
            if device.parent is not None:
                table.setdefault(device.parent, []).append(device)
        return {parent: tuple(children) for parent, children in table.items()}

    @property
    def roots(self) -> tuple[Device, ...]:
        """The devices without a parent, in order."""
        return tuple(device for device in self.devices if device.parent is None)

    def device(self, device_id: str) -> Device:
        """Give the device with exactly this id, or raise DeviceNotFoundError."""
        found = self._by_id.get(device_id)
        if found is None:
            raise DeviceNotFoundError(
                f"unknown {self.family} device {device_id!r} (known: {', '.join(self._by_id) or 'none'})",
                device_id=device_id,
            )
        return found

    def children(self, device_id: str) -> tuple[Device, ...]:
        """Give the nodes directly below, in order."""
        return self._children.get(device_id, ())

    def ancestors(self, device_id: str) -> tuple[str, ...]:
        """Give the ids above this node, nearest first."""
        chain: list[str] = []
        parent = self.device(device_id).parent
        while parent is not None:
            chain.append(parent)
            parent = self.device(parent).parent
        return tuple(chain)

    def leaves(self, device_id: str) -> tuple[str, ...]:
        """Give the ids of the smallest units below this node, or its own id when it has none."""
        children = self.children(device_id)
        if not children:
            return (self.device(device_id).id,)
        return tuple(leaf for child in children for leaf in self.leaves(child.id))

    def leaves_of(self, device_ids: Iterable[str]) -> frozenset[str]:
        """Give the union of the leaves of several nodes: the form in which sets of devices are compared."""
        return frozenset(leaf for device_id in device_ids for leaf in self.leaves(device_id))

    def find(self, name: str) -> Device:
        """Find one device by id, uuid, unique prefix of either (a uuid's vendor word may be left out), or PCI address.

        Raises: DeviceNotFoundError naming the candidates when none or several answer.
        """
        candidates = self.candidates(name)
        if len(candidates) == 1:
            return candidates[0]
        if candidates:
            listed = ", ".join(device.id for device in candidates)
            raise DeviceNotFoundError(f"name {name!r} is ambiguous ({listed})", device_id=name)
        raise DeviceNotFoundError(
            f"no {self.family} device is named {name!r} (known: {', '.join(self._by_id) or 'none'})",
            device_id=name,
        )

    def candidates(self, name: str) -> tuple[Device, ...]:
        """Give every device that answers to a name.

        An exact match leaves the prefixes out, and a device the parts below it that begin alike.
        """
        exact = tuple(d for d in self.devices if name in (d.id, d.uuid))
        if exact:
            return exact
        at_address = tuple(d for d in self.devices if d.parent is None and _is_at(d, name))
        if at_address:
            return at_address
        found = {d.id: d for d in self.devices if name and _begins_with(d, name)}
        return tuple(d for d in found.values() if not any(a in found for a in self.ancestors(d.id)))


def _begins_with(device: Device, name: str) -> bool:
    """Compare with the id, the uuid, and the uuid behind its vendor's prefix (`GPU-`)."""
    uuid = device.uuid or ""
    return device.id.startswith(name) or uuid.startswith(name) or uuid.partition("-")[2].startswith(name)


def _is_at(device: Device, name: str) -> bool:
    wanted = name.lower()
    return any(wanted in (address, address.removeprefix("0000:")) for address in device.pci_addresses)
