"""Health: what the driver's counters and the kernel log say about a card, as conditions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from anyaccel.device import Blocks, Condition, DeviceState
from anyaccel_nvidia.replies import LOST, NO_PERMISSION, NOT_FOUND, RESET_REQUIRED, Reply, code_words

__all__ = ["XID_WORDS", "counter_conditions", "lost_condition", "process_conditions", "xid_conditions"]

XID_WORDS: Mapping[int, str] = {
    48: "uncorrected memory error",
    62: "internal microcontroller halted",
    63: "memory row or page remapped",
    64: "remapping a memory row or page failed",
    74: "NVLink error",
    79: "card has fallen off the bus",
    92: "high rate of corrected memory errors",
    94: "contained memory error",
    95: "uncontained memory error",
    119: "timeout of the GPU system processor",
    120: "error of the GPU system processor",
    140: "unrecovered memory error",
}
"""Errors that concern the card, not one program, by number: NVIDIA, "Xid errors", the Xid catalog."""

_RIGHTS_HINT = (
    "compare owner, group and mode of the driver's device files (ls -l /dev/nvidia*) with this user's groups (id)"
)
_RESET_HINT = "reset the card while nothing uses it (sudo nvidia-smi --gpu-reset -i UUID), or reboot"


def lost_condition(code: int) -> Condition:
    """Give the condition of a card whose handle the driver refuses."""
    if code == RESET_REQUIRED:
        return Condition(
            "reset-required", "the driver says that it must be reset", DeviceState.UNUSABLE, hint=_RESET_HINT
        )
    if code in (LOST, NOT_FOUND):
        reason = "the driver has lost it" if code == LOST else "it vanished while the driver was asked"
        return Condition("lost", reason, DeviceState.LOST, hint="reset or reseat the card, or reboot")
    if code == NO_PERMISSION:
        return Condition("refused", "the driver refuses this user", DeviceState.DENIED, hint=_RIGHTS_HINT)
    return Condition("refused", f"the driver refuses it: {code_words(code)}", DeviceState.UNUSABLE)


def counter_conditions(reply: Reply) -> Iterable[Condition]:
    """Give what the memory error counters say; none of it stops the card by itself."""
    uncorrected = reply.number("ecc_uncorrected")
    if uncorrected:
        reason = f"{uncorrected} uncorrected memory errors since the driver was loaded"
        yield Condition("ecc-uncorrected", reason, None, Blocks.NOTHING, _RESET_HINT)
    _, _, pending, failure = (*reply.numbers("remapped_rows"), None, None, None, None)[:4]
    if failure:
        yield Condition(
            "row-remap-failed",
            "a broken memory row could not be replaced",
            None,
            Blocks.NOTHING,
            "have the card tested and replaced",
        )
    if pending:
        yield Condition(
            "row-remap-pending", "a broken memory row is replaced at the next reset", None, Blocks.NOTHING, _RESET_HINT
        )
    if reply.number("retired_pages_pending"):
        reason = "broken memory pages are retired at the next reset"
        yield Condition("page-retirement-pending", reason, None, Blocks.NOTHING, _RESET_HINT)
    current, wanted = (*reply.numbers("mig_mode"), None, None)[:2]
    if current is not None and wanted is not None and current != wanted:
        reason = f"MIG mode turns {'on' if wanted else 'off'} at the next reset"
        yield Condition("mig-mode-pending", reason, None, Blocks.NOTHING, _RESET_HINT)


def process_conditions(reply: Reply) -> Iterable[Condition]:
    """Say which compute processes use a card."""
    pids = [pid for pid in reply.numbers("processes") if pid is not None]
    if pids:
        listed = ", ".join(str(pid) for pid in pids[:4]) + (", …" if len(pids) > 4 else "")
        what = "process" if len(pids) == 1 else f"{len(pids)} processes:"
        yield Condition("in-use", f"used by {what} {listed}", DeviceState.BUSY, Blocks.NOTHING)


def xid_conditions(xids: Sequence[tuple[str, int]], address: str) -> Iterable[Condition]:
    """Give what the kernel log tells of one card since boot: each kind of error that concerns the card once."""
    counts = Counter(number for where, number in xids if where == address)
    for number in sorted(counts):
        if number in XID_WORDS:
            times = "" if counts[number] == 1 else f", {counts[number]} times"
            reason = f"kernel log since boot: Xid {number} ({XID_WORDS[number]}{times})"
            yield Condition(f"xid-{number}", reason, None, Blocks.NOTHING, "see dmesg and NVIDIA's Xid catalog")
