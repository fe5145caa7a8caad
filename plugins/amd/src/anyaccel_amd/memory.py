"""How much memory a GPU has and whose it is: its own, or the host's for an integrated one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from anyaccel.frozen import FrozenMap
from anyaccel_amd.kfd import KfdNode
from anyaccel_amd.sysfs import CardFacts

__all__ = ["Memory", "memory_of"]


@dataclass(frozen=True)
class Memory:
    """Memory of one GPU.

    Args: owner: id of the device that has it, None = the host. kind: `device` or `host`. reasons: why something is unknown.
    """

    bytes: int | None
    owner: str | None
    kind: str
    reasons: FrozenMap[str]


def memory_of(
    device_id: str, nodes: Sequence[KfdNode], facts: CardFacts, *, is_complete: bool, integrated: bool | None
) -> Memory:
    """Tell the memory of one GPU.

    Args: nodes: its KFD nodes, whose banks add up to the GPU. is_complete: no partition is missing.
    """
    banks = [node.memory_bytes for node in nodes]
    known = [bank for bank in banks if bank is not None]
    listed = sum(known) if known and is_complete and len(known) == len(banks) else None
    if integrated:
        reasons = {"memory_owner": "drawn from the host's memory"}
        if listed is None:
            reasons["memory_bytes"] = "shared with the host, and KFD lists no bank of it"
        return Memory(listed, None, "host", FrozenMap(reasons))
    size = facts.vram_bytes or listed
    why = {} if size else {"memory_bytes": "neither mem_info_vram_total nor every KFD memory bank can be read here"}
    return Memory(size, device_id, "device", FrozenMap(why))
