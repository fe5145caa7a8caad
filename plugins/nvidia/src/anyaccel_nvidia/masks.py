"""Reading CUDA_VISIBLE_DEVICES entry by entry, as the CUDA runtime does.

Sources: CUDA programming guide (indices, ids and unique prefixes, order, the first invalid entry ends the list); MIG user
guide (MIG-<uuid>, and MIG-GPU-<uuid>/<gi>/<ci> before R470); torch.cuda, whose parser was written against the runtime
(numbers as strtoul reads them, duplicates leave nothing, the first entry fixes the kind).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from anyaccel.device import Device, FamilyView, Level
from anyaccel.visibility import ListedUnit, TokenEffect, TokenReport, split_tokens
from anyaccel_nvidia.declaration import MASK
from anyaccel_nvidia.numbering import Listing, is_uncounted
from anyaccel_nvidia.partitions import is_divided

__all__ = ["ID_HINT", "MaskResult", "Named", "read_mask", "read_number"]

ID_HINT = "use ids instead of numbers (GPU-… or MIG-…, as discover shows them)"
_CONTAINER_WORDS = frozenset({"all", "none", "void"})
_NO_DEVICES_WORD = "NoDevFiles"
_LEGACY = re.compile(r"^MIG-(GPU-[0-9a-fA-F-]*)/([0-9]{1,9})/([0-9]{1,9})$")
_MOST_DIGITS = 18
"""Digits read of a number: every longer one is out of range too."""
_ONLY_FIRST = "granted, but one process can use only one MIG instance, and an earlier entry is that one"


class _Kind(Enum):
    NUMBER = "number"
    GPU = "GPU id"
    MIG = "MIG id"
    WORD = "word"


@dataclass(frozen=True)
class Named:
    """One entry of a mask that the runtime takes.

    Args: unit: what it names, None = unknown. has_ordinal: False for a further MIG instance, which no process can use
        beside the first.
    """

    token: str
    unit: ListedUnit | None
    reason: str | None = None
    has_ordinal: bool = True


@dataclass(frozen=True)
class MaskResult:
    """What a mask leaves.

    Args: named: in order. is_certain: False when what it names, or where its list ends, is not known for sure.
        is_unusual: some entry is spelled in a way that other tools do not read. is_numeric: its entries are numbers.
    """

    named: tuple[Named, ...] = ()
    tokens: tuple[TokenReport, ...] = ()
    is_certain: bool = True
    is_unusual: bool = False
    is_numeric: bool = False


@dataclass(frozen=True)
class _Entry:
    """What one entry says: how it acts, what it names, and what it is the same as when it stands twice."""

    effect: TokenEffect
    reason: str
    unit: ListedUnit | None = None
    identity: str | None = None
    hint: str | None = None
    may_end: bool = False
    is_unusual: bool = False


@dataclass
class _Reading:
    """A mask while it is read."""

    kind: _Kind | None = None
    named: list[Named] = field(default_factory=list)
    tokens: list[TokenReport] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    is_over: bool = False
    is_perhaps_over: bool = False
    is_certain: bool = True
    is_unusual: bool = False


def read_number(text: str) -> int | None:
    """Read a number as the C library's strtol does at the start of a text; blanks, a sign and a tail are allowed.

    Returns: None when there is none, or when base 10 and base by prefix (0x…, 0…) disagree, which nobody has documented.
    Example: read_number(" +3ampere") == 3
    """
    match = re.match(r"\s*([+-]?)([0-9]+)(x[0-9a-fA-F]+)?", text)
    if match is None:
        return None
    sign, digits, hexadecimal = match.groups()
    if (digits == "0" and hexadecimal is not None) or _is_octal_different(digits):
        return None
    number = int(digits[:_MOST_DIGITS])
    return -number if sign == "-" else number


def _is_octal_different(digits: str) -> bool:
    if len(digits) == 1 or not digits.startswith("0"):
        return False
    octal = re.match(r"0[0-7]*", digits)
    return octal is None or int(octal.group(0)[:_MOST_DIGITS], 8) != int(digits[:_MOST_DIGITS])


def read_mask(value: str, listing: Listing, view: FamilyView) -> MaskResult:
    """Say what CUDA_VISIBLE_DEVICES leaves, and for each entry why it counts or not.

    Args: listing: what the runtime lists without it.
    """
    reading = _Reading()
    for position, text in enumerate(split_tokens(value)):
        _take(reading, position, text, listing, view)
    return MaskResult(
        named=tuple(reading.named),
        tokens=tuple(reading.tokens),
        is_certain=reading.is_certain,
        is_unusual=reading.is_unusual,
        is_numeric=reading.kind is _Kind.NUMBER,
    )


def _take(reading: _Reading, position: int, text: str, listing: Listing, view: FamilyView) -> None:
    if reading.is_over:
        _report(reading, position, text, _Entry(TokenEffect.IGNORED, "stands behind the end of the list"))
        return
    if reading.is_perhaps_over:
        _report(reading, position, text, _Entry(TokenEffect.UNKNOWN, "an earlier entry may have ended the list"))
        return
    kind = _kind(text)
    entry = _other_kind(reading.kind, kind) or _entry(text, kind, listing, view)
    reading.kind = reading.kind or kind
    if entry.identity is not None and entry.identity in reading.seen:
        entry = _Entry(
            TokenEffect.EMPTIES_LIST,
            f"{text.strip()!r} names a device twice, and the runtime then exposes nothing",
            hint=f"name each once: {','.join(dict.fromkeys(t.text.strip() for t in reading.tokens))}",
        )
    _act(reading, text, entry)
    _report(reading, position, text, entry)


def _act(reading: _Reading, text: str, entry: _Entry) -> None:
    reading.is_unusual |= entry.is_unusual
    if entry.effect in (TokenEffect.ENDS_LIST, TokenEffect.EMPTIES_LIST):
        reading.is_over = True
        if entry.effect is TokenEffect.EMPTIES_LIST:
            reading.named.clear()
            reading.is_certain = True
        return
    if entry.identity is not None:
        reading.seen.add(entry.identity)
    if entry.effect is TokenEffect.UNKNOWN:
        reading.is_certain = False
        reading.is_perhaps_over = entry.may_end
        if not entry.may_end:
            reading.named.append(Named(text, None, entry.reason))
        return
    is_further = reading.kind is _Kind.MIG and bool(reading.named)
    reading.named.append(Named(text, entry.unit, _ONLY_FIRST if is_further else None, not is_further))


def _report(reading: _Reading, position: int, text: str, entry: _Entry) -> None:
    ids = (entry.unit.device_id,) if entry.unit is not None and entry.unit.device_id is not None else ()
    reason = entry.reason
    if entry.effect is TokenEffect.COUNTS and reading.named and not reading.named[-1].has_ordinal:
        reason = _ONLY_FIRST
    reading.tokens.append(TokenReport(MASK, position, text, entry.effect, ids, reason, entry.hint))


def _kind(text: str) -> _Kind:
    if text.startswith("GPU-"):
        return _Kind.GPU
    if text.startswith("MIG-"):
        return _Kind.MIG
    return _Kind.NUMBER if re.match(r"\s*[+-]?[0-9]", text) else _Kind.WORD


def _other_kind(first: _Kind | None, kind: _Kind) -> _Entry | None:
    """Say what an entry of another kind than the first does, None when the kinds agree."""
    if first is None or kind in (first, _Kind.WORD):
        return None
    if {first, kind} == {_Kind.GPU, _Kind.MIG}:
        return _Entry(
            TokenEffect.UNKNOWN,
            "GPU ids and MIG ids in one list: what is left then is not documented",
            hint="name one MIG instance, or whole GPUs",
            may_end=True,
        )
    return _Entry(
        TokenEffect.ENDS_LIST,
        f"a {kind.value} after a {first.value}: the first entry fixes the kind, so the list ends here",
    )


def _entry(text: str, kind: _Kind, listing: Listing, view: FamilyView) -> _Entry:
    if kind is _Kind.NUMBER:
        return _number_entry(text, listing)
    if kind is _Kind.GPU:
        return _gpu_entry(text, listing, view)
    return _mig_entry(text, listing, view) if kind is _Kind.MIG else _word_entry(text)


def _word_entry(text: str) -> _Entry:
    word = text.strip()
    if word == _NO_DEVICES_WORD:
        return _Entry(TokenEffect.ENDS_LIST, "the batch system granted no GPU")
    if word in _CONTAINER_WORDS:
        reason = f"{word!r} belongs to NVIDIA_VISIBLE_DEVICES, the container runtime's variable; here it names nothing"
        return _Entry(TokenEffect.ENDS_LIST, reason)
    if word.startswith(("GPU-", "MIG-")):
        reason = "an id with a blank before it: whether the runtime takes it is not documented"
        return _Entry(TokenEffect.UNKNOWN, reason, hint="remove the blank", may_end=True, is_unusual=True)
    if not word:
        return _Entry(TokenEffect.ENDS_LIST, "an empty entry names nothing, so the list ends here")
    return _Entry(TokenEffect.ENDS_LIST, "neither a number nor an id, so the list ends here")


def _number_entry(text: str, listing: Listing) -> _Entry:
    number = read_number(text)
    is_unusual = re.fullmatch(r" ?[0-9]+ ?", text) is None
    if number is None:
        reason = "whether the runtime reads a leading 0 as another base is not documented"
        return _Entry(TokenEffect.UNKNOWN, reason, hint="write a plain number", may_end=True, is_unusual=True)
    if number < 0:
        return _Entry(TokenEffect.ENDS_LIST, f"{text.strip()!r} is negative, so the list ends here")
    if listing.most is not None and number >= listing.most:
        span = f"0-{listing.most - 1}" if listing.most else "none"
        return _Entry(TokenEffect.ENDS_LIST, f"{number} is out of range ({span}), so the list ends here")
    unit, identity = listing.by_number.get(number), f"number {number}"
    spelling = f"read as {number}; unusual spelling" if is_unusual else "a number the runtime gives"
    if unit is not None and not listing.grant.allows(unit.device_id or ""):
        return _outside(unit, listing)
    if unit is None:
        reason = f"cannot be mapped: {listing.reason}"
        may_end = listing.most is not None and number >= listing.least
        return _Entry(TokenEffect.UNKNOWN, reason, None, identity, ID_HINT, may_end, is_unusual)
    return _Entry(TokenEffect.COUNTS, spelling, unit, identity, is_unusual=is_unusual)


def _gpu_entry(text: str, listing: Listing, view: FamilyView) -> _Entry:
    cards = [device for device in view.devices if _is_card(device)]
    named = [card for card in cards if card.uuid is not None and card.uuid.startswith(text)]
    if len(named) > 1:
        return _Entry(TokenEffect.ENDS_LIST, f"ambiguous: {len(named)} GPUs begin with it, so the list ends here")
    if not named:
        return _unnamed(text, cards, "GPU")
    if is_divided(named[0]):
        reason = "this GPU is in MIG mode: which instance the runtime then takes is not documented"
        return _Entry(TokenEffect.UNKNOWN, reason, None, named[0].id, "name the MIG instance")
    return _listed_entry(named[0], listing, "GPU id" if text == named[0].uuid else "unique beginning of a GPU id")


def _is_card(device: Device) -> bool:
    return "gpu_instance" not in device.numbers and device.level is Level.DEVICE


def _mig_entry(text: str, listing: Listing, view: FamilyView) -> _Entry:
    nodes = (device for device in view.devices if "gpu_instance" in device.numbers)
    instances = [device for device in nodes if not view.children(device.id)]
    legacy = _LEGACY.match(text)
    if legacy is not None:
        named = [device for device in instances if _is_legacy(device, legacy, view)]
    else:
        named = [device for device in instances if device.uuid is not None and device.uuid.startswith(text)]
    if len(named) > 1:
        return _Entry(TokenEffect.ENDS_LIST, f"ambiguous: {len(named)} MIG instances fit, so the list ends here")
    if not named:
        return _unnamed(text, instances, "MIG instance")
    word = "MIG instance as drivers before R470 name it" if legacy is not None else "MIG id"
    return _listed_entry(named[0], listing, word)


def _is_legacy(device: Device, legacy: re.Match[str], view: FamilyView) -> bool:
    card = view.device(view.ancestors(device.id)[-1])
    pair = (device.numbers.get("gpu_instance"), device.numbers.get("compute_instance"))
    return pair == (int(legacy.group(2)), int(legacy.group(3))) and (card.uuid or "").startswith(legacy.group(1))


def _unnamed(text: str, devices: Sequence[Device], what: str) -> _Entry:
    nameless = sum(device.uuid is None and not is_uncounted(device) for device in devices)
    if nameless:
        reason = f"no known {what} has this id, and the ids of {nameless} are unknown"
        return _Entry(TokenEffect.UNKNOWN, reason, None, text, may_end=True)
    if any(device.uuid is not None and device.uuid.lower().startswith(text.lower()) for device in devices):
        reason = "an id in other case: whether the runtime takes it is not documented"
        return _Entry(TokenEffect.UNKNOWN, reason, None, text, "write it as discover shows it", may_end=True)
    return _Entry(TokenEffect.ENDS_LIST, f"no {what} has this id, so the list ends here")


def _listed_entry(device: Device, listing: Listing, word: str) -> _Entry:
    unit = next((unit for unit in listing.units if unit.device_id == device.id), None)
    if unit is None and is_uncounted(device):
        return _Entry(TokenEffect.ENDS_LIST, f"names {device.id}, which is not accessible here, so the list ends here")
    if unit is None:
        reason = f"names {device.id}, which is {device.state.value}: what the runtime makes of it is unknown"
        return _Entry(TokenEffect.UNKNOWN, reason, None, device.id, may_end=True)
    if not listing.grant.allows(device.id):
        return _outside(unit, listing)
    return _Entry(TokenEffect.COUNTS, word, unit, device.id)


def _outside(unit: ListedUnit, listing: Listing) -> _Entry:
    """Say what a card outside the batch system's grant does: device rules may or may not keep it back."""
    reason = f"names {unit.device_id}, which is outside what {listing.grant.variable} grants"
    return _Entry(TokenEffect.UNKNOWN, reason, hint="name devices of the job", may_end=True)
