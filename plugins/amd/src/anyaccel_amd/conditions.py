"""What keeps an AMD GPU from computing, as far as files tell: device files, partitions, errors that memory could not correct."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from anyaccel.device import Blocks, Condition, DeviceState
from anyaccel.machine import Machine, MachineKind

__all__ = [
    "KFD_FILE",
    "ErrorCounts",
    "divided",
    "error_conditions",
    "knows_device_files",
    "no_kfd_node",
    "node_conditions",
    "partitions_missing",
    "partitions_not_granted",
    "read_error_counts",
    "refused_by_kfd",
]

KFD_FILE = "/dev/kfd"
_LINK_BLOCKS = frozenset({"xgmi_wafl", "pcie_bif"})
"""RAS blocks of the links to other GPUs and to the host."""


def knows_device_files(machine: Machine) -> bool:
    """Whether a missing device file means something: a copied tree may simply lack `/dev`."""
    return machine.kind is not MachineKind.ROOT or machine.exists(KFD_FILE) or machine.exists("/dev/dri")


def node_conditions(machine: Machine, paths: Iterable[str], *, is_container: bool | None) -> tuple[Condition, ...]:
    """Say what is wrong with the device files that a process must open, and with no others.

    `/dev/dri/cardN` is for display: its rights never matter for computing.
    """
    if not knows_device_files(machine):
        return ()
    found = (machine.node_condition(path, is_container=is_container) for path in paths)
    return tuple(condition for condition in found if condition is not None)


def no_kfd_node() -> Condition:
    """Say that the kernel drives the GPU but offers no compute on it."""
    return Condition(
        "no-kfd-node",
        "the kernel's compute driver (KFD) offers no node for it",
        DeviceState.UNUSABLE,
        hint="the kernel log says why: dmesg | grep -i kfd",
    )


def refused_by_kfd() -> Condition:
    """Say that the container's device rules keep this GPU out."""
    return Condition(
        "node-not-granted",
        "on the host, not accessible here: the kernel refuses its KFD node to this container",
        DeviceState.BLOCKED,
        hint="start the container with its /dev/dri/renderD node",
    )


def divided(count: int, mode: str | None, *, missing: int) -> Condition:
    """Say that a GPU is used through its partitions. Args: missing: how many are not here."""
    how = f" ({mode})" if mode else ""
    plain = f"divided into {count} partition{'s' if count != 1 else ''}{how}"
    text = f"divided into partitions{how}, {count} of {count + missing} are here" if missing else plain
    return Condition("partitioned", text, DeviceState.PARTITIONED, Blocks.NOTHING)


def partitions_missing(present: int, expected: int, mode: str | None, source: str) -> Condition:
    """Say that a divided GPU does not have all of its partitions; the missing ones are never made up."""
    how = f" in mode {mode}" if mode else ""
    return Condition(
        "partitions-missing",
        f"{present} of {expected} partitions present{how} ({source})",
        None if present else DeviceState.UNUSABLE,
        Blocks.NOTHING if present else Blocks.COMPUTE,
        hint="reload the driver or set the partition mode again: amd-smi set --compute-partition",
    )


def partitions_not_granted(present: int, expected: int, denied: int) -> Condition:
    """Say that a container sees a part of a divided GPU."""
    text = f"{present} of {expected} partitions accessible here; the kernel refuses {denied} KFD nodes of this machine"
    return Condition("partitions-not-granted", text, None, Blocks.NOTHING)


@dataclass(frozen=True)
class ErrorCounts:
    """Errors one RAS block counted since the driver was loaded.

    Args: is_readable: False = the file said something else, such as that the GPU is being reset.
    """

    uncorrected: int = 0
    corrected: int = 0
    is_readable: bool = True


def read_error_counts(machine: Machine, folder: str) -> Mapping[str, ErrorCounts]:
    """Read the error counters of one GPU by RAS block; asks the GPU, so never on a sleeping one.

    File form: lines `ue: <n>` and `ce: <n>` (kernel documentation, "AMDGPU RAS sysfs Error Count Interface").
    """
    counts = {}
    for name in machine.list_folder(f"{folder}/ras"):
        match = re.fullmatch(r"(\w+)_err_count", name)
        if match is not None:
            counts[match.group(1)] = _counts(machine.read_text_or_none(f"{folder}/ras/{name}") or "")
    return counts


def _counts(text: str) -> ErrorCounts:
    numbers = dict(re.findall(r"^(ue|ce): ([0-9]{1,20})$", text, re.MULTILINE))
    if not numbers:
        return ErrorCounts(is_readable=False)
    return ErrorCounts(int(numbers.get("ue", 0)), int(numbers.get("ce", 0)))


def error_conditions(counts: Mapping[str, ErrorCounts]) -> tuple[Condition, ...]:
    """Say what the counters mean: uncorrected errors make a GPU unusable, those of a link only spoil the link."""
    conditions = []
    compute = {b: c.uncorrected for b, c in counts.items() if c.uncorrected and b not in _LINK_BLOCKS}
    links = {b: c.uncorrected for b, c in counts.items() if c.uncorrected and b in _LINK_BLOCKS}
    corrected = {b: c.corrected for b, c in counts.items() if c.corrected}
    if compute:
        conditions.append(
            Condition(
                "uncorrected-errors",
                f"uncorrected errors since the driver was loaded: {_listed(compute)}",
                DeviceState.UNUSABLE,
                hint="reset the GPU (amd-smi reset --gpureset) or reboot; replace it when they come back",
            )
        )
    if links:
        text = f"uncorrected link errors since the driver was loaded: {_listed(links)}"
        conditions.append(Condition("uncorrected-link-errors", text, None, Blocks.LINKS))
    if corrected:
        text = f"corrected errors since the driver was loaded: {_listed(corrected)}"
        conditions.append(Condition("corrected-errors", text, None, Blocks.NOTHING))
    return tuple(conditions)


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{block} {count}" for block, count in sorted(counts.items()))
