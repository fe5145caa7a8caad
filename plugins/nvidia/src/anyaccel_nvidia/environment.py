"""Writing an environment that shows a process exactly the devices selected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anyaccel.device import Device, FamilyView
from anyaccel.errors import SelectionNotExpressibleError
from anyaccel.visibility import (
    Effect,
    EnvironmentChange,
    Order,
    Resolution,
    Selection,
    apply_change,
    check_granted,
    check_selection,
)
from anyaccel_nvidia.declaration import MASK, ORDER, ORDER_BY_BUS
from anyaccel_nvidia.numbering import list_units
from anyaccel_nvidia.visibility import resolve_visibility

__all__ = ["visibility_environment"]


def visibility_environment(view: FamilyView, selection: Selection, environ: Mapping[str, str]) -> EnvironmentChange:
    """Give the change that makes exactly this selection visible, in the order listed.

    Devices are named by id wherever the id is known; by number only where every number is certain, and never without the
    order that gives the numbers their meaning.
    Raises: SelectionNotExpressibleError; NotGrantedError.
    """
    devices = check_selection(view, selection)
    check_granted(view, selection, resolve_visibility(view, environ))
    leaves = _leaves(view, devices)
    _check_partitions(leaves)
    change = EnvironmentChange(
        set=_variables(view, leaves, environ),
        order=Order.AS_LISTED,
        device_ids=selection.device_ids,
        effect=Effect.ASSUMED,
    )
    _check_result(view, selection, resolve_visibility(view, apply_change(environ, change)))
    return change


def _leaves(view: FamilyView, devices: Sequence[Device]) -> tuple[Device, ...]:
    return tuple(view.device(leaf) for device in devices for leaf in view.leaves(device.id))


def _check_partitions(leaves: Sequence[Device]) -> None:
    """Refuse what CUDA cannot show one process: more than one MIG instance, or one beside whole GPUs."""
    instances = [leaf for leaf in leaves if "gpu_instance" in leaf.numbers]
    if instances and len(leaves) > 1:
        others = "whole GPUs beside it" if len(instances) == 1 else f"{len(instances)} of them"
        raise SelectionNotExpressibleError(
            f"one process can use one MIG instance, and the selection holds {others}",
            hint="start one process for each MIG instance",
        )


def _variables(view: FamilyView, leaves: Sequence[Device], environ: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    if not leaves:
        return ((MASK, ""),)
    ids = [_stable_name(leaf) for leaf in leaves]
    names = [name for name in ids if name is not None]
    if len(names) < len(ids):
        names = _numbers(view, leaves, environ)
    return ((ORDER, ORDER_BY_BUS), (MASK, ",".join(names)))


def _stable_name(leaf: Device) -> str | None:
    """Give the id that a mask takes; whether it takes ids of GPUs that are not on PCI is not documented."""
    return leaf.uuid if leaf.pci_addresses or leaf.parent is not None else None


def _numbers(view: FamilyView, leaves: Sequence[Device], environ: Mapping[str, str]) -> list[str]:
    listing = list_units(view, {**environ, ORDER: ORDER_BY_BUS})
    numbers = {unit.device_id: unit.number for unit in listing.units}
    unnamed = next((leaf for leaf in leaves if numbers.get(leaf.id) is None), None)
    if unnamed is not None:
        raise SelectionNotExpressibleError(
            f"{unnamed.id} has no known id ({unnamed.why_unknown('uuid') or 'unknown'}) and no certain number "
            f"({listing.reason or 'the runtime does not list it'})",
            hint="ask the driver first: its library tells the ids",
        )
    return [str(numbers[leaf.id]) for leaf in leaves]


def _check_result(view: FamilyView, selection: Selection, resolution: Resolution) -> None:
    wanted = view.leaves_of(selection.device_ids)
    if resolution.leaves != wanted or not resolution.is_complete:
        raise SelectionNotExpressibleError(
            f"no environment is known to show exactly {', '.join(selection.device_ids) or 'nothing'}: "
            f"{'; '.join(resolution.warnings) or 'what is set already narrows it further'}"
        )
