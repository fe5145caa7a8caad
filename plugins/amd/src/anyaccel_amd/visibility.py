"""What the masks of AMD's runtimes leave, and the environment that shows exactly one selection.

The layers, in the order of the runtimes: ROCR_VISIBLE_DEVICES decides what the HSA runtime counts; HIP_VISIBLE_DEVICES, or
CUDA_VISIBLE_DEVICES where it is unset, then counts what is left. GPU_DEVICE_ORDINAL is read by OpenCL programs in HIP's place:
AMD's page "GPU isolation techniques" says that HIP reads it too, the source (`Device::init`, `amd::IS_HIP`) says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from anyaccel.device import Device, FamilyView
from anyaccel.errors import SelectionNotExpressibleError
from anyaccel.masks import Slot, resolution_of_layers
from anyaccel.visibility import (
    Effect,
    EnvironmentChange,
    Order,
    Resolution,
    Selection,
    check_granted,
    check_selection,
)
from anyaccel_amd.declaration import CUDA, HIDE_ALL, HIP, OPENCL, ROCR
from anyaccel_amd.masks import Listing, read_hip, read_rocr
from anyaccel_amd.variables import variable_reports

__all__ = ["resolve_visibility", "visibility_environment"]

_UNORDERED = "the order in which the runtime counts is unknown without the KFD topology"


def resolve_visibility(view: FamilyView, environ: Mapping[str, str]) -> Resolution:
    """Say what an environment leaves of this family to a HIP program."""
    listing = _listing(view)
    rocr = read_rocr(environ[ROCR], listing) if ROCR in environ else None
    left = listing if rocr is None else Listing(rocr.slots)
    variable = _hip_variable(environ)
    hip = None if variable is None else read_hip(variable, environ[variable], left)
    layers = [layer for layer in (rocr, hip) if layer is not None]
    return resolution_of_layers(
        view,
        listing.slots,
        layers,
        variables=variable_reports(environ, rocr, hip, has_devices=bool(listing.slots)),
        unordered_reason=None if left.is_ordered or hip is not None else _UNORDERED,
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
    return Slot(device.id, (device.id,), uuid=device.uuid or _gpu_uuid(view, device))


def _gpu_uuid(view: FamilyView, device: Device) -> str | None:
    """Give the unique id that a partition shares with its GPU."""
    return None if device.parent is None else view.device(device.parent).uuid


def _hip_variable(environ: Mapping[str, str]) -> str | None:
    """Give the variable that HIP reads; an empty HIP_VISIBLE_DEVICES is set, and its alias is not looked at."""
    return next((name for name in (HIP, CUDA) if name in environ), None)


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
