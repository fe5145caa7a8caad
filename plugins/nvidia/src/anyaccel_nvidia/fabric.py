"""The NVLink fabric of switches: domain, readiness, health (nvml.h, nvmlGpuFabricInfoV_t)."""

from __future__ import annotations

from anyaccel.device import Blocks, Condition, DeviceState, Place
from anyaccel_nvidia.replies import Reply, code_words

__all__ = ["REMOTE_SWITCH", "fabric_condition", "fabric_place", "has_switch"]

REMOTE_SWITCH = 2
_COMPLETED = 3
_STATES = {1: "not started", 2: "in progress"}
_DEGRADED_BANDWIDTH = 1
_NO_CLUSTER = "0" * 32


def fabric_place(info: Reply) -> Place | None:
    """Give the NVLink domain, without a name while it is unknown; None for a card outside any fabric of nodes.

    Unknown never equals unknown: a domain without a name matches no other.
    """
    state = info.number("state")
    if not state:
        return None
    cluster, clique = info.text("cluster"), info.number("clique")
    if state in _STATES:
        return Place("nvlink-domain", None, reason=f"the card's registration with the fabric is {_STATES[state]}")
    if info.number("status") != 0 or cluster is None or clique is None:
        reason = f"registration failed: {code_words(info.number('status'))}"
        return Place("nvlink-domain", None, reason=reason)
    if cluster == _NO_CLUSTER:
        return None
    return Place("nvlink-domain", f"{_uuid_text(cluster)}.{clique}")


def _uuid_text(digits: str) -> str:
    """Write 16 bytes as a uuid; every byte counts, zeros in the middle too."""
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def has_switch(entry: Reply) -> bool:
    """Whether links of a card end at a switch."""
    return any(link.number("remote_type") == REMOTE_SWITCH for link in entry.each("nvlinks"))


def fabric_condition(entry: Reply) -> Condition | None:
    """Say what is wrong with a card's place in the fabric, None when nothing is known to be."""
    info = entry.inner("fabric")
    state = info.number("state")
    if state in _STATES and has_switch(entry):
        return Condition(
            "fabric-not-ready",
            f"its registration with the NVLink switches is {_STATES[state]}, until then CUDA does not start",
            DeviceState.UNUSABLE,
            hint="start the service nvidia-fabricmanager, of the same release as the driver",
        )
    if state == _COMPLETED and (info.number("health_mask") or 0) & 0x3 == _DEGRADED_BANDWIDTH:
        return Condition("fabric-degraded", "its NVLink bandwidth is degraded", None, Blocks.LINKS)
    return None
