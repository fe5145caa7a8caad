"""What the masks of AMD's runtimes leave, and the environment that shows exactly one selection.

The layers, in the order of the runtimes: ROCR_VISIBLE_DEVICES decides what the HSA runtime counts; HIP_VISIBLE_DEVICES, or
CUDA_VISIBLE_DEVICES where it is unset, then counts what is left. GPU_DEVICE_ORDINAL is read by OpenCL programs in HIP's place:
AMD's page "GPU isolation techniques" says that HIP reads it too, the source (`Device::init`, `amd::IS_HIP`) says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from anyaccel.device import Device, FamilyView
from anyaccel.errors import SelectionNotExpressibleError
from anyaccel.frozen import FrozenMap
from anyaccel.visibility import (
    Effect,
    EnvironmentChange,
    Order,
    Resolution,
    Selection,
    TokenReport,
    VisibleUnit,
    check_granted,
    check_selection,
)
from anyaccel_amd.declaration import CUDA, HIDE_ALL, HIP, OPENCL, ROCR
from anyaccel_amd.masks import LayerResult, Listing, Slot, read_hip, read_rocr
from anyaccel_amd.variables import variable_reports

__all__ = ["resolve_visibility", "visibility_environment"]


def resolve_visibility(view: FamilyView, environ: Mapping[str, str]) -> Resolution:
    """Say what an environment leaves of this family to a HIP program."""
    listing = _listing(view)
    all_ids = _countable_ids(listing)
    rocr = read_rocr(environ[ROCR], listing) if ROCR in environ else None
    left = listing if rocr is None else Listing(rocr.slots)
    variable = _hip_variable(environ)
    hip = None if variable is None else read_hip(variable, environ[variable], left)
    slots = left.slots if hip is None else hip.slots
    is_masked = rocr is not None or hip is not None
    is_numbered = left.is_ordered or hip is not None
    hidden = _hidden_by(view, all_ids, rocr, hip, variable)
    return Resolution(
        units=tuple(_unit(ordinal if is_numbered else None, slot) for ordinal, slot in enumerate(slots)),
        tokens=_tokens(rocr, hip),
        variables=variable_reports(environ, rocr, hip, has_devices=bool(all_ids)),
        hidden_by=hidden,
        is_masked=is_masked,
        is_complete=all(slot.device_id is not None for slot in slots),
    )


def _listing(view: FamilyView) -> Listing:
    """Give what the HSA runtime finds without a mask: leaves by their index, or all of them unordered when none has one."""
    leaves = [view.device(leaf) for root in view.roots for leaf in view.leaves(root.id)]
    ordered = sorted((d for d in leaves if isinstance(d.numbers.get("index"), int)), key=_index)
    if ordered:
        return Listing(tuple(_slot(view, device) for device in ordered))
    return Listing(tuple(_slot(view, device) for device in leaves), is_ordered=not leaves)


def _index(device: Device) -> int:
    index = device.numbers.get("index")
    assert isinstance(index, int)
    return index


def _slot(view: FamilyView, device: Device) -> Slot:
    return Slot(device.id, (device.id,), device.uuid or _gpu_uuid(view, device))


def _gpu_uuid(view: FamilyView, device: Device) -> str | None:
    """Give the unique id that a partition shares with its GPU."""
    return None if device.parent is None else view.device(device.parent).uuid


def _countable_ids(listing: Listing) -> tuple[str, ...]:
    return tuple(slot.device_id for slot in listing.slots if slot.device_id is not None)


def _hip_variable(environ: Mapping[str, str]) -> str | None:
    """Give the variable that HIP reads; an empty HIP_VISIBLE_DEVICES is set, and its alias is not looked at."""
    return next((name for name in (HIP, CUDA) if name in environ), None)


def _unit(ordinal: int | None, slot: Slot) -> VisibleUnit:
    reason = slot.reason if slot.device_id is None else None
    if ordinal is None:
        reason = reason or "the order in which the runtime counts is unknown without the KFD topology"
    return VisibleUnit(ordinal, slot.device_id, slot.leaves, slot.variable, slot.token, reason)


def _tokens(rocr: LayerResult | None, hip: LayerResult | None) -> tuple[TokenReport, ...]:
    return tuple(report for layer in (rocr, hip) if layer is not None for report in layer.tokens)


def _hidden_by(
    view: FamilyView, ids: Sequence[str], rocr: LayerResult | None, hip: LayerResult | None, variable: str | None
) -> FrozenMap[str]:
    """Name the mask that hid each device; a GPU is hidden when all of its partitions are."""
    hidden: dict[str, str] = {}
    left = list(ids)
    for layer, name in ((rocr, ROCR), (hip, variable)):
        if layer is None or name is None:
            continue
        kept = {slot.device_id for slot in layer.slots}
        if None not in kept:
            hidden.update({device_id: name for device_id in left if device_id not in kept})
        left = [device_id for device_id in left if device_id in kept]
    for root in view.roots:
        parts = view.children(root.id)
        names = [hidden.get(part.id) for part in parts]
        if parts and None not in names:
            hidden[root.id] = names[0] or ""
    return FrozenMap(hidden)


def visibility_environment(view: FamilyView, selection: Selection, environ: Mapping[str, str]) -> EnvironmentChange:
    """Give the change that shows exactly this selection to a new HIP program, in the order listed.

    One layered variable carries numbers, HIP_VISIBLE_DEVICES; the others are removed, or they would be counted through.
    Frameworks that read CUDA_VISIBLE_DEVICES as well demand that it is equal or unset.
    """
    devices = check_selection(view, selection)
    if not devices:
        return EnvironmentChange(set=tuple(sorted(HIDE_ALL)))
    leaves = tuple(view.device(leaf) for device in devices for leaf in _ordered_leaves(view, device))
    tokens = [_token(view, device) for device in leaves]
    check_granted(view, selection, resolve_visibility(view, environ))
    return EnvironmentChange(
        set=((HIP, ",".join(tokens)),),
        unset=tuple(sorted((CUDA, OPENCL, ROCR))),
        order=Order.AS_LISTED,
        device_ids=tuple(device.id for device in leaves),
        effect=Effect.ASSUMED,
        notes=("programs that use HSA or OpenCL without HIP, such as rocminfo, still see every GPU",),
    )


def _ordered_leaves(view: FamilyView, device: Device) -> Iterable[str]:
    """Give the leaves of a device in the runtime's order."""
    leaves = [view.device(leaf) for leaf in view.leaves(device.id)]
    return (leaf.id for leaf in sorted(leaves, key=_sort_key))


def _sort_key(device: Device) -> tuple[int, str]:
    index = device.numbers.get("index")
    return (index if isinstance(index, int) else 1 << 30, device.id)


def _token(view: FamilyView, device: Device) -> str:
    """Give what names a device in the mask: its number, or its unique id where the runtime's order is unknown."""
    index = device.numbers.get("index")
    if isinstance(index, int):
        return str(index)
    if device.uuid is not None and not _listing(view).is_ordered:
        return device.uuid
    raise SelectionNotExpressibleError(
        f"{device.id} cannot be named in a mask: {device.why_unknown('numbers.index') or 'its number is unknown'}",
        hint="see its state and reason in accel-cli discover",
    )
