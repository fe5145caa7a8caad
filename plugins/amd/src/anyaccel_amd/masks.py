"""How AMD's runtimes read their masks, entry by entry.

ROCR: `RvdFilter` in `runtime/hsa-runtime/core/runtime/amd_filter_device.cpp` of ROCm/ROCR-Runtime (cdbe554), with the examples
in `amd_filter_device.h`. HIP: `Device::init` in `rocclr/device/rocm/rocdevice.cpp` and `Flag::init`, `removeQuotes` in
`rocclr/utils/flags.cpp` of ROCm/clr (01c0e69) and ROCm/rocm-systems (01280b9, 02fcd1b). Both end a list at the first entry they
cannot use, but do not agree on spaces, number forms, unique ids and repeats.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from anyaccel.masks import MaskLayer, Slot, Verdict, read_entries
from anyaccel.visibility import TokenEffect, TokenReport

__all__ = ["Listing", "read_hip", "read_rocr"]


@dataclass(frozen=True)
class Listing:
    """What a runtime finds before it reads a mask.

    Args: is_ordered: the slots are all of them and in the runtime's order; False = numbers cannot be mapped.
    """

    slots: tuple[Slot, ...]
    is_ordered: bool = True


_ROCR = "ROCR_VISIBLE_DEVICES"
_ENDS = TokenEffect.ENDS_LIST
_NO_ORDER = "numbers cannot be mapped: the KFD order in which the runtime counts is unknown here"
_USE_IDS = "use unique ids (GPU-<16 hex digits>), or look at a machine with /sys/class/kfd"
_BATCH_WORD = "NoDevFiles"
_C_BLANKS = " \t\n\v\f\r"
_MOST = (1 << 63) - 1
_MOST_DIGITS = 64


def _entries(value: str) -> list[str]:
    """Split at commas; both runtimes take no entry after a trailing comma."""
    entries = value.split(",")
    return entries[:-1] if len(entries) > 1 and entries[-1] == "" else entries


def read_rocr(value: str, listing: Listing) -> MaskLayer:
    """Read ROCR_VISIBLE_DEVICES.

    Args: listing: every GPU that ROCR finds. An empty value hides all.
    """
    entries = _entries(value) if value else []
    limit = len(listing.slots) if listing.is_ordered else len(entries)
    result = read_entries(_ROCR, entries[:limit], lambda text, chosen: _rocr_entry(text, listing, _taken(chosen)))
    beyond = tuple(
        TokenReport(
            _ROCR,
            limit + number,
            text,
            TokenEffect.IGNORED,
            reason=f"the runtime reads no more entries than there are GPUs ({limit})",
        )
        for number, text in enumerate(entries[limit:])
    )
    return MaskLayer(_ROCR, result.slots, (*result.tokens, *beyond))


def read_hip(variable: str, value: str, listing: Listing) -> MaskLayer:
    """Read HIP_VISIBLE_DEVICES, or CUDA_VISIBLE_DEVICES in its place.

    Args: listing: every GPU that ROCR left. An empty value is one blank entry to HIP and hides all.
    """
    entries = _entries(_without_quotes(value)) if value else []
    return read_entries(variable, entries, lambda text, chosen: _hip_entry(text, listing, _taken(chosen)))


def _taken(chosen: tuple[Slot, ...]) -> frozenset[int | None]:
    return frozenset(slot.number for slot in chosen)


def _without_quotes(value: str) -> str:
    """Take the quotes off that HIP takes off: one pair around everything, blanks outside allowed."""
    match = re.fullmatch(r' *"(.*)" *', value, re.DOTALL)
    return match.group(1) if match else value


def _rocr_entry(text: str, listing: Listing, taken: frozenset[int | None]) -> Verdict:
    token = text.strip(_C_BLANKS).upper()
    if token == "":
        return Verdict(
            TokenEffect.EMPTIES_LIST,
            reason="an empty entry stops the HSA runtime with an error, so nothing is visible",
            hint="remove the empty entry",
        )
    if token.startswith("G"):
        return _rocr_unique_id(token, listing, taken)
    number = _c_number(token)
    if number is None:
        return Verdict(_ENDS, reason=_why_no_number(text))
    return _rocr_index(number, listing, taken)


def _c_number(token: str) -> int | None:
    """Read a number as strtol with base 0 does: decimal, 0x and octal, with a sign.

    Example: _c_number("0X1F") == 31; _c_number("010") == 8
    """
    match = re.fullmatch(r"([+-]?)(0X[0-9A-F]+|0[0-7]*|[1-9][0-9]*)", token)
    if match is None:
        return None
    digits = match.group(2)
    is_octal = len(digits) > 1 and digits[0] == "0" and digits[1] != "X"
    number = _bounded(digits, 8 if is_octal else 16 if "X" in digits else 10)
    return -number if match.group(1) == "-" else number


def _bounded(digits: str, base: int) -> int:
    """Read a number; one too long for any runtime becomes the greatest, as strtol has it."""
    return _MOST if len(digits) > _MOST_DIGITS else min(int(digits, base), _MOST)


def _why_no_number(text: str) -> str:
    if text.strip() == _BATCH_WORD:
        return "no number: the batch system granted no GPU; nothing more is visible"
    return f"{_short(text)!r} is neither a number nor a unique id and ends the list"


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}..."


def _rocr_index(number: int, listing: Listing, taken: frozenset[int | None]) -> Verdict:
    if number < 0:
        return Verdict(_ENDS, reason="a negative number ends the list")
    if not listing.is_ordered:
        return _unmapped()
    if number >= len(listing.slots):
        return Verdict(_ENDS, reason=_out_of_range(number, listing))
    if number in taken:
        return Verdict(_ENDS, reason=f"GPU {number} was named before; ROCR ends the list at a repeat")
    return _chosen(number, listing)


def _chosen(number: int, listing: Listing, reason: str = "") -> Verdict:
    slot = listing.slots[number]
    if slot.device_id is None:
        return Verdict(TokenEffect.UNKNOWN, (replace(slot, number=number),), reason or slot.reason or "")
    return Verdict(TokenEffect.COUNTS, (replace(slot, number=number, reason=None),), reason)


def _unmapped() -> Verdict:
    return Verdict(TokenEffect.UNKNOWN, (Slot(None),), reason=_NO_ORDER, hint=_USE_IDS)


def _out_of_range(number: int, listing: Listing) -> str:
    have = f"0-{len(listing.slots) - 1}" if listing.slots else "none"
    return f"{'it' if number == _MOST else number} is out of range ({have}) and ends the list"


def _rocr_unique_id(token: str, listing: Listing, taken: frozenset[int | None]) -> Verdict:
    """Match the beginning of exactly one GPU's unique id, 5 to 20 characters long (`ProcessUuidToken`)."""
    if not 5 <= len(token) <= 20:
        return Verdict(_ENDS, reason=f"a unique id has 5 to 20 characters, not {len(token)}; it ends the list")
    fitting = [number for number, slot in enumerate(listing.slots) if (slot.uuid or "").upper().startswith(token)]
    if not fitting:
        return Verdict(_ENDS, reason="no GPU has this unique id; it ends the list")
    if len(fitting) > 1:
        return Verdict(
            _ENDS,
            reason=f"{len(fitting)} GPUs or partitions have a unique id that begins so; ROCR ends the list at it",
            hint="name partitions by their number, and GPUs by the whole id",
        )
    if fitting[0] in taken:
        return Verdict(_ENDS, reason="this GPU was named before; ROCR ends the list at a repeat")
    return _chosen(fitting[0], listing)


def _hip_entry(text: str, listing: Listing, taken: frozenset[int | None]) -> Verdict:
    if "GPU-" in text:
        return _hip_unique_id(text, listing, taken)
    if re.fullmatch(r"0|[1-9][0-9]*", text) is None:
        return Verdict(_ENDS, reason=_why_no_hip_number(text))
    if not listing.is_ordered:
        return _unmapped()
    number = _bounded(text, 10)
    if number >= len(listing.slots):
        return Verdict(_ENDS, reason=_out_of_range(number, listing))
    return _hip_choice(number, listing, taken)


def _why_no_hip_number(text: str) -> str:
    if re.fullmatch(r"-[0-9]+", text):
        return "a negative number ends the list"
    if text.strip() == "":
        return "an empty entry ends the list"
    if re.fullmatch(r"\s*[+]?[0-9]+\s*", text):
        return f"HIP takes plain decimal numbers only: {_short(text)!r} has a blank, sign or leading zero and ends the list"
    return _why_no_number(text)


def _hip_choice(number: int, listing: Listing, taken: frozenset[int | None], reason: str = "") -> Verdict:
    if number in taken:
        return Verdict(TokenEffect.IGNORED, reason=f"GPU {number} was named before; HIP passes over a repeat")
    return _chosen(number, listing, reason)


def _hip_unique_id(text: str, listing: Listing, taken: frozenset[int | None]) -> Verdict:
    """Take the first GPU whose unique id contains the entry, letter case included.

    A GPU without one is called GPU-XX. Sources of HIP before this branch was added end the list at any unique id.
    """
    fitting = [number for number, slot in enumerate(listing.slots) if text in (slot.uuid or "GPU-XX")]
    if not fitting:
        return Verdict(_ENDS, reason="no GPU has this unique id; it ends the list")
    is_first_of_many = len(fitting) > 1
    if is_first_of_many and not listing.is_ordered:
        return _unmapped()
    return _hip_choice(
        fitting[0], listing, taken, "the first of several with this unique id" if is_first_of_many else ""
    )
