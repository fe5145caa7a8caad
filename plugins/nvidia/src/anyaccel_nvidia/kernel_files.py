"""What NVIDIA's kernel driver shows in files, without its library: /proc/driver/nvidia, /sys/module, device files.

The layout of these files: README of the Linux driver, chapter on the proc interface; NVIDIA/open-gpu-kernel-modules,
kernel-open/nvidia/nv-procfs.c.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from anyaccel.errors import FileUnavailableError
from anyaccel.frozen import FrozenMap
from anyaccel.machine import Machine
from anyaccel.pci import normal_address

__all__ = [
    "CardFile",
    "DriverFiles",
    "SocBoard",
    "kernel_driver_version",
    "read_driver_files",
    "read_soc_board",
    "xid_lines",
]

_PROC = "/proc/driver/nvidia"
_NODE_NAMES = "null|nvidia(ctl|-uvm|[0-9]{1,9})"
"""What is looked for in /dev: the driver's files, and one that every system has, to see that device files are there at all."""
_ADDRESS_NAME = "[0-9a-fA-F:.]{12,16}"
_WSL_FOLDER = "/usr/lib/wsl/lib"
_TREE_ROOTS = ("/proc/device-tree", "/sys/firmware/devicetree/base")
_SOC_NODES = ("/dev/nvhost-gpu", "/dev/nvhost-ctrl-gpu", "/dev/nvgpu/igpu0/ctrl", "/dev/nvmap")
_LOGS = ("/var/log/kern.log", "/var/log/messages", "/var/log/dmesg")
"""Never the kernel's own device: reading it would wait for the next message."""
_BOOT = re.compile(r"(?:^|\] |kernel: )Linux version ", re.MULTILINE)
_XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})(?:\.\d)?\): (\d+)")


@dataclass(frozen=True)
class CardFile:
    """What /proc/driver/nvidia/gpus/<address> tells of one card; None = not said.

    Args: is_read: False when it was left unread so as not to wake the card. memory_node: NUMA node that the card's own
        memory forms. is_excluded: the administrator told the driver to leave it alone.
    """

    address: str
    is_read: bool = True
    model: str | None = None
    uuid: str | None = None
    minor: int | None = None
    memory_node: int | None = None
    is_excluded: bool = False


@dataclass(frozen=True)
class DriverFiles:
    """What the kernel driver shows.

    Args: version: of the kernel module, None = not loaded or not said. flavour: `open` or `proprietary`.
        cards: by PCI address. minors: numbers of the device files present. shows_nodes: whether device files are part of
        what can be seen; a copy of /sys and /proc alone has none. has_control: whether /dev/nvidiactl is there.
        has_wsl: whether this is WSL with NVIDIA's library handed in by the host.
    """

    version: str | None = None
    flavour: str | None = None
    cards: FrozenMap[CardFile] = field(default_factory=FrozenMap)
    minors: frozenset[int] = frozenset()
    shows_nodes: bool = False
    has_control: bool = False
    has_wsl: bool = False


@dataclass(frozen=True)
class SocBoard:
    """A board whose GPU sits in the processor package and not on PCI.

    Args: chip: `tegra234` … board: name of the board. nodes: device files of the GPU that are present.
    """

    chip: str
    board: str | None
    nodes: tuple[str, ...]


def read_driver_files(machine: Machine, asleep: frozenset[str]) -> DriverFiles:
    """Read what the kernel driver shows.

    Args: asleep: addresses of cards in runtime suspend; reading their `information` would power them up, because the
        driver takes a power reference to fill the file in.
    """
    version, flavour = _version(machine)
    cards = {}
    for name in machine.list_folder(f"{_PROC}/gpus", _ADDRESS_NAME):
        address = normal_address(name)
        if address is not None:
            cards[address] = _card(machine, name, address, is_read=address not in asleep)
    names = machine.list_folder("/dev", _NODE_NAMES)
    minors = (re.fullmatch(r"nvidia([0-9]{1,9})", name) for name in names)
    return DriverFiles(
        version=version,
        flavour=flavour,
        cards=FrozenMap(cards),
        minors=frozenset(int(match.group(1)) for match in minors if match is not None),
        shows_nodes=bool(names),
        has_control=machine.exists("/dev/nvidiactl"),
        has_wsl=_has_wsl(machine),
    )


def kernel_driver_version(machine: Machine) -> str | None:
    """Give the version of the loaded kernel module, None when it is not loaded or does not say."""
    return _version(machine)[0]


def _version(machine: Machine) -> tuple[str | None, str | None]:
    text = machine.read_text_or_none(f"{_PROC}/version")
    module = machine.read_text_or_none("/sys/module/nvidia/version")
    if text is None:
        return module, None
    first = text.splitlines()[0] if text else ""
    match = re.search(r"\b(\d+\.\d+(?:\.\d+)*)\b", first)
    flavour = "open" if "Open Kernel Module" in first else "proprietary"
    return (match.group(1) if match else module), flavour


def _card(machine: Machine, name: str, address: str, *, is_read: bool) -> CardFile:
    memory_node = _memory_node(machine, f"{_PROC}/gpus/{name}/numa_status")
    if not is_read:
        return CardFile(address, is_read=False, memory_node=memory_node)
    facts = _facts(machine.read_text_or_none(f"{_PROC}/gpus/{name}/information") or "")
    minor = facts.get("Device Minor", "")
    uuid = facts.get("GPU UUID", "")
    return CardFile(
        address,
        model=_known(facts.get("Model", "")),
        uuid=uuid if uuid.startswith("GPU-") and "?" not in uuid else None,
        minor=_number(minor),
        memory_node=memory_node,
        is_excluded=facts.get("GPU Excluded") == "Yes" or facts.get("GPU Blacklisted") == "Yes",
    )


def _known(text: str) -> str | None:
    return text if text and text.lower() not in ("unknown", "n/a") and "?" not in text else None


def _facts(text: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in text.splitlines())
    return {name.strip(): value.strip() for name, separator, value in pairs if separator}


def _memory_node(machine: Machine, path: str) -> int | None:
    """Give the NUMA node that holds the card's memory; only states `online` mean that it is there."""
    facts = _facts(machine.read_text_or_none(path) or "")
    node = facts.get("Node", "")
    return _number(node) if facts.get("Status") == "online" else None


def _number(text: str) -> int | None:
    return int(text) if re.fullmatch("[0-9]{1,9}", text) else None


def _has_wsl(machine: Machine) -> bool:
    libraries = machine.list_folder(_WSL_FOLDER, r"libnvidia-ml\.so\.1|libcuda\.so\.1")
    return bool(libraries) and machine.exists("/dev/dxg")


def read_soc_board(machine: Machine) -> SocBoard | None:
    """Give the board whose device tree names an NVIDIA Tegra chip, None on every other machine."""
    for root in _TREE_ROOTS:
        compatible = _strings(machine, f"{root}/compatible")
        chip = next((word for word in compatible if re.fullmatch(r"nvidia,tegra\d+\w*", word)), None)
        if chip is not None:
            board = " ".join(_strings(machine, f"{root}/model")) or None
            nodes = tuple(node for node in _SOC_NODES if machine.exists(node))
            return SocBoard(chip.removeprefix("nvidia,"), board, nodes)
    return None


def _strings(machine: Machine, path: str) -> tuple[str, ...]:
    """Read a device tree property: texts that each end with a zero byte."""
    try:
        content = machine.read_bytes(path)
    except FileUnavailableError:
        return ()
    return tuple(part.decode("utf-8", "replace").strip() for part in content.split(b"\0") if part.strip())


def xid_lines(machine: Machine) -> tuple[tuple[str, int], ...]:
    """Give (PCI address, Xid number) of every error of this boot that a readable kernel log tells of.

    Of what is read a scrubbed recording keeps the lines of errors and boots, from those words on; both must be found in
    the whole log and in what is kept of it.
    """
    for path in _LOGS:
        text = machine.read_text_or_none(path)
        if text is not None and "NVRM" in text:
            return _xids(_since_boot(text))
    return ()


def _since_boot(text: str) -> str:
    boots = [match.start() for match in _BOOT.finditer(text)]
    return text[boots[-1] :] if boots else text


def _xids(text: str) -> tuple[tuple[str, int], ...]:
    found = ((normal_address(f"{match.group(1)}.0"), int(match.group(2))) for match in _XID.finditer(text))
    return tuple((address, number) for address, number in found if address is not None)
