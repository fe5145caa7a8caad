"""Discovery: which NVIDIA GPUs there are, from files alone. No library is loaded and no device file is opened."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from anyaccel.device import Blocks, Condition, Device, DeviceState, Discovery, Level
from anyaccel.frozen import FrozenMap
from anyaccel.host import read_boundary
from anyaccel.machine import Machine
from anyaccel.pci import PciFunction, address_key, device_from_function, match_functions
from anyaccel.topology import Boundary
from anyaccel_nvidia.declaration import DRIVER, FAMILY, MATCHES
from anyaccel_nvidia.kernel_files import CardFile, DriverFiles, SocBoard, read_driver_files, read_soc_board
from anyaccel_nvidia.partitions import parent_with_partitions, partitions_from_files
from anyaccel_nvidia.pci_names import INTEGRATED_IDS, product_name

__all__ = ["NOT_ASKED", "UNCOUNTED_BY_DRIVER", "discover_devices"]

NOT_ASKED = "not-asked"
"""Code of the condition of a card whose driver nobody has asked yet; inspection takes it away."""

UNCOUNTED_BY_DRIVER = frozenset(
    {"no-driver", "passed-through", "wrong-driver", "excluded-by-driver", "node-not-granted", "not-shown", "virtual"}
)
"""Codes of conditions under which the driver does not count a card, so that it takes no number."""

_WSL_ID = f"{FAMILY}:dxg"
_WSL_WHY_NO_NODE = "WSL shows no files of the GPU"
_CONTROL_NODES = ("/dev/nvidiactl", "/dev/nvidia-uvm")
_CHIPS = {
    "tegra210": "Tegra X1",
    "tegra186": "Tegra X2",
    "tegra194": "Xavier",
    "tegra234": "Orin",
    "tegra264": "Thor",
}


@dataclass(frozen=True)
class _Scene:
    """Everything looked at before the first device is made."""

    machine: Machine
    files: DriverFiles
    boundary: Boundary
    bound_count: int


def discover_devices(machine: Machine) -> Discovery:
    """Find NVIDIA GPUs in the machine's files.

    Returns: cards in the order of their PCI addresses with the MIG instances that files tell of, or why there are none.
    """
    matched = match_functions(machine, MATCHES)
    functions = tuple(function for function, rule in matched if rule.is_accelerator)
    scene = _look(machine, functions)
    functions = _with_listed(machine, functions, scene.files)
    devices = [_from_function(scene, function) for function in functions]
    devices += _without_pci(scene, {function.address for function in functions})
    devices.sort(key=lambda device: min((address_key(a) for a in device.pci_addresses), default=(1 << 41, 0, 0, 0)))
    numbered = _with_index(tuple(devices), scene.files)
    return Discovery(
        devices=tuple(node for root in numbered for node in _with_partitions(machine, root)),
        reason=None if devices else _why_none(machine, scene.files),
        hint=None if devices else _none_hint(scene.files),
        claimed=tuple(function.address for function, rule in matched if not rule.is_accelerator),
        facts=FrozenMap(_facts(scene.files)),
    )


def _with_partitions(machine: Machine, root: Device) -> tuple[Device, ...]:
    children = partitions_from_files(machine, root)
    if not children:
        return (root,)
    return (parent_with_partitions(root, sum(child.is_counted for child in children)), *children)


def _look(machine: Machine, functions: Sequence[PciFunction]) -> _Scene:
    details = [(function, machine.pci_detail(function)) for function in functions]
    asleep = frozenset(function.address for function, detail in details if detail.runtime_status == "suspended")
    bound_count = sum(detail.driver == DRIVER for _, detail in details)
    return _Scene(machine, read_driver_files(machine, asleep), read_boundary(machine), bound_count)


def _with_listed(machine: Machine, functions: tuple[PciFunction, ...], files: DriverFiles) -> tuple[PciFunction, ...]:
    """Add functions that the driver lists and no rule matches: dead ones, and ones whose ids cannot be read."""
    known = {function.address for function in functions}
    return (*functions, *(f for f in machine.pci_functions() if f.address in files.cards and f.address not in known))


def _from_function(scene: _Scene, function: PciFunction) -> Device:
    card = scene.files.cards.get(function.address)
    model = card.model if card is not None and card.model else product_name(function.device_id)
    base = device_from_function(
        scene.machine, function, family=FAMILY, drivers=(DRIVER,), label="GPU", model=_branded(model)
    )
    if card is not None and base.driver is None and not function.is_dead:
        kept = tuple(condition for condition in base.conditions if condition.code != "no-driver")
        base = replace(base, driver=DRIVER, conditions=kept)
    shared = INTEGRATED_IDS.get(function.device_id or 0)
    enriched = _with_card(scene, base, card)
    if not enriched.is_counted:
        virtual = Condition("virtual", enriched.count_reason or "a virtual function", None, Blocks.NOTHING)
        enriched = replace(enriched, conditions=(*enriched.conditions, virtual))
    memory = f"memory is {shared}" if shared else "only the driver knows it"
    return replace(
        enriched,
        is_integrated=shared is not None,
        unknown=enriched.unknown.with_items({"memory_bytes": memory}),
    )


def _branded(model: str | None) -> str | None:
    if model is None or model.startswith(("NVIDIA", "Tesla", "Quadro", "GRID", "GeForce GTX 10")):
        return model
    return f"NVIDIA {model}"


def _with_card(scene: _Scene, base: Device, card: CardFile | None) -> Device:
    """Add what /proc tells of a card, and what is wrong with its device files."""
    minor = None if card is None else card.minor
    conditions = (*base.conditions, *_card_conditions(scene, base, card, minor))
    denied = tuple(condition for condition in conditions if condition.state is DeviceState.DENIED)
    unknown = dict(base.unknown)
    if minor is None:
        unknown["numbers.minor"] = _why_no_minor(card)
    if card is None or card.uuid is None:
        unknown["uuid"] = "the driver's files do not tell it; a card shows it after its first use"
    attributes = dict(base.attributes)
    if card is not None and card.memory_node is not None:
        attributes["memory_numa_node"] = card.memory_node
    return replace(
        base,
        uuid=None if card is None else card.uuid,
        numbers=base.numbers.with_items({"index": None, "minor": minor}),
        nodes=_nodes(base, minor),
        conditions=(*denied, *(condition for condition in conditions if condition not in denied)),
        driver_version=scene.files.version if base.driver == DRIVER else None,
        attributes=FrozenMap(attributes),
        unknown=FrozenMap(unknown),
    )


def _nodes(base: Device, minor: int | None) -> tuple[str, ...]:
    if base.driver not in (DRIVER, None):
        return ()
    own = () if minor is None else (f"/dev/nvidia{minor}",)
    return (*own, *_CONTROL_NODES)


def _why_no_minor(card: CardFile | None) -> str:
    if card is None:
        return "the driver does not list this card"
    if not card.is_read:
        return "the card is asleep and asking for it would wake it"
    return "the driver's files do not tell it"


def _card_conditions(scene: _Scene, base: Device, card: CardFile | None, minor: int | None) -> Iterable[Condition]:
    if base.driver != DRIVER or base.state is DeviceState.LOST:
        return
    if card is not None and card.is_excluded:
        yield Condition(
            "excluded-by-driver",
            "the driver was told to leave this card alone (NVreg_ExcludedGpus)",
            DeviceState.UNUSABLE,
            hint="remove it from the module option and reload the driver",
        )
        return
    yield from _node_conditions(scene, minor)
    yield Condition(NOT_ASKED, "the driver was not asked", DeviceState.UNKNOWN, Blocks.NOTHING)


def _node_conditions(scene: _Scene, minor: int | None) -> Iterable[Condition]:
    """Say what is wrong with the files that a process must open: the card's own, and the control file of all."""
    if not scene.files.shows_nodes:
        return
    is_container = scene.boundary.is_container
    if minor is not None:
        own = scene.machine.node_condition(f"/dev/nvidia{minor}", is_container=is_container)
        if own is not None:
            yield _with_node_hint(own)
            return
    elif is_container and len(scene.files.minors) < scene.bound_count:
        yield Condition(
            "node-unknown",
            f"this container has {len(scene.files.minors)} of {scene.bound_count} device files "
            "and the number of this card's is unknown",
            DeviceState.UNKNOWN,
        )
    control = scene.machine.node_condition("/dev/nvidiactl", is_container=is_container)
    if control is not None:
        yield _with_node_hint(control)


def _with_node_hint(condition: Condition) -> Condition:
    if condition.code != "node-missing":
        return condition
    return replace(condition, hint="run nvidia-smi or nvidia-modprobe once as root: the driver makes it on first use")


def _without_pci(scene: _Scene, seen: set[str]) -> list[Device]:
    """Give the devices that PCI does not show: cards that left it, boards with the GPU in the processor, WSL."""
    can_see_pci = bool(scene.machine.pci_functions())
    devices = [
        _from_proc(scene, card, is_lost=can_see_pci)
        for address, card in scene.files.cards.items()
        if address not in seen
    ]
    board = read_soc_board(scene.machine)
    if board is not None:
        devices.append(_from_board(scene, board))
    if scene.files.has_wsl and not devices and not seen:
        devices.append(_from_wsl(scene))
    return devices


def _from_proc(scene: _Scene, card: CardFile, *, is_lost: bool) -> Device:
    base = Device(
        id=f"{FAMILY}:{card.address}",
        family=FAMILY,
        label="GPU",
        model=_branded(card.model),
        pci_addresses=(card.address,),
        driver=DRIVER,
        attributes=FrozenMap({"pci_id": None}),
        unknown=FrozenMap(
            {
                "attributes.pci_id": "PCI does not show this card",
                "numa_node": "PCI does not show this card",
                "memory_bytes": "only the driver knows it",
                **({} if card.model else {"model": "the driver's files do not tell it"}),
            }
        ),
        conditions=_gone_from_pci() if is_lost else (),
        is_simulated=scene.machine.is_simulated,
    )
    return _with_card(scene, base, card)


def _gone_from_pci() -> tuple[Condition, ...]:
    return (
        Condition(
            "left-pci",
            "the driver still lists it, PCI does not: it has left the bus",
            DeviceState.LOST,
            hint="reset or reseat the card, or reboot",
        ),
    )


def _from_board(scene: _Scene, board: SocBoard) -> Device:
    total = _memory_words(scene.machine)
    conditions: tuple[Condition, ...] = (
        Condition(NOT_ASKED, "the driver was not asked", DeviceState.UNKNOWN, Blocks.NOTHING),
    )
    if not board.nodes:
        missing = scene.machine.node_condition("/dev/nvhost-gpu", is_container=scene.boundary.is_container)
        conditions = (missing,) if missing is not None else conditions
    return Device(
        id=f"{FAMILY}:{board.chip}",
        family=FAMILY,
        label="integrated GPU",
        model=_CHIPS.get(board.chip),
        numbers=FrozenMap({"index": None, "minor": None}),
        nodes=board.nodes,
        conditions=conditions,
        is_integrated=True,
        count_reason="integrated, and the vendor supports compute on it",
        attributes=FrozenMap({"chip": board.chip, **({"board": board.board} if board.board else {})}),
        unknown=FrozenMap(
            {
                "memory_bytes": f"memory is shared with the host ({total})",
                "numa_node": "the GPU sits in the processor package",
                "numbers.minor": "this GPU has no /dev/nvidia<number>",
                "uuid": "files do not tell it",
                **({} if board.chip in _CHIPS else {"model": f"no name is known for {board.chip}"}),
            }
        ),
        is_simulated=scene.machine.is_simulated,
    )


def _memory_words(machine: Machine) -> str:
    text = machine.read_text_or_none("/proc/meminfo") or ""
    words = next((line.split() for line in text.splitlines() if line.startswith("MemTotal:")), [])
    if len(words) < 2 or not words[1].isdecimal():
        return "how much is unknown"
    return f"{int(words[1]) / 2**20:.1f} GiB of system memory"


def _from_wsl(scene: _Scene) -> Device:
    why = "WSL shows no files of the GPU; only the library knows"
    return Device(
        id=_WSL_ID,
        family=FAMILY,
        level=Level.DEVICE,
        label="GPU",
        numbers=FrozenMap({"index": None, "minor": None}),
        nodes=("/dev/dxg",),
        conditions=(Condition(NOT_ASKED, "the driver was not asked", DeviceState.UNKNOWN, Blocks.NOTHING),),
        driver="dxgkrnl",
        is_integrated=None,
        unknown=FrozenMap(
            {
                **dict.fromkeys(("model", "uuid", "memory_bytes", "is_integrated", "numbers.minor"), why),
                "numa_node": _WSL_WHY_NO_NODE,
            }
        ),
        is_simulated=scene.machine.is_simulated,
    )


def _with_index(devices: tuple[Device, ...], files: DriverFiles) -> tuple[Device, ...]:
    """Number the cards as the driver does, by PCI address, where files leave no doubt.

    Sources of doubt: a card that is lost, whose file may not be opened, or that the driver has not taken up; whether it
    still holds a number is for the driver to say.
    """
    counted = tuple(device for device in devices if not _is_uncounted(device))
    doubt = next((reason for device in counted if (reason := _doubt(device, files, len(counted))) is not None), None)
    positions = {device.id: position for position, device in enumerate(counted)}
    return tuple(_numbered(device, positions.get(device.id), doubt) for device in devices)


def _is_uncounted(device: Device) -> bool:
    return any(condition.code in UNCOUNTED_BY_DRIVER for condition in device.conditions)


def _doubt(device: Device, files: DriverFiles, count: int) -> str | None:
    where = device.id.removeprefix(f"{FAMILY}:")
    if device.state is DeviceState.LOST:
        return f"{where} is lost, and whether the driver still counts it is unknown"
    if device.state is DeviceState.DENIED or any(c.code == "node-unknown" for c in device.conditions):
        return f"whether the driver counts {where} here is unknown"
    if device.pci_addresses and device.pci_addresses[0] not in files.cards:
        return f"the driver does not list {where}"
    if not device.pci_addresses and (count > 1 or device.id == _WSL_ID):
        return "only the driver knows the order of GPUs that are not on PCI"
    return None


def _numbered(device: Device, position: int | None, doubt: str | None) -> Device:
    if position is not None and doubt is None:
        attributes = device.attributes.with_items({"index_source": "files"})
        return replace(device, numbers=device.numbers.with_items({"index": position}), attributes=attributes)
    reason = doubt if position is not None else "the driver does not count this card"
    unknown = device.unknown.with_items({"numbers.index": reason or "unknown"})
    return replace(device, numbers=device.numbers.with_items({"index": None}), unknown=unknown)


def _why_none(machine: Machine, files: DriverFiles) -> str:
    if not machine.pci_functions():
        return "no PCI functions can be seen here, and no other sign of an NVIDIA GPU"
    if files.version is not None:
        return f"driver {files.version} is loaded, no NVIDIA GPU is on PCI"
    return "no NVIDIA GPU (PCI vendor 10de, class 03) is on PCI"


def _none_hint(files: DriverFiles) -> str | None:
    return "a card may have left the bus: look for 'fallen off the bus' in dmesg" if files.version is not None else None


def _facts(files: DriverFiles) -> dict[str, str | None]:
    if files.version is None:
        return {}
    return {"kernel_driver_version": files.version, "kernel_driver_flavour": files.flavour}
