"""Inventory + devices → environment: what to set and unset so that a new process sees exactly these devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anyaccel.capabilities import Capability
from anyaccel.device import FamilyView
from anyaccel.errors import VisibilityConflictError
from anyaccel.frozen import FrozenMap
from anyaccel.inventory import Inventory
from anyaccel.registry import Registry
from anyaccel.visibility import EnvironmentChange, Gang, Resolution, Selection, apply_change, merge_changes

__all__ = ["environment_for", "resolve_all"]


def resolve_all(inventory: Inventory, registry: Registry, environ: Mapping[str, str]) -> FrozenMap[Resolution]:
    """Say what an environment leaves of every family that is present, by key."""
    keys = {plugin.key: plugin for plugin in registry.plugins}
    return FrozenMap(
        {
            view.family: keys[view.family].call("accel_resolve_visibility", view=view, environ=dict(environ))
            for view in inventory.views
            if view.family in keys and keys[view.family].implements("accel_resolve_visibility")
        }
    )


def environment_for(
    inventory: Inventory,
    registry: Registry,
    device_ids: Sequence[str],
    environ: Mapping[str, str],
    *,
    widen: bool = False,
    hide_others: bool = True,
    gang: Gang | None = None,
) -> EnvironmentChange:
    """Give the change that makes exactly these devices visible to a new process, over all families present.

    Args: device_ids: in the order the process shall count them within each family. environ: what it would inherit.
        widen: drop the masks in `environ` first, on purpose. hide_others: hide families without a selected device.
        gang: the process's place among peers, given to families with a selected device.
    Raises: DeviceNotFoundError; SelectionNotExpressibleError; NotGrantedError; VisibilityConflictError naming two families
        whose masks cannot stand together.
    """
    selections = _by_family(inventory, device_ids)
    start = _without_masks(registry, environ) if widen else dict(environ)
    changes: dict[str, EnvironmentChange] = {}
    for view in inventory.views:
        selection = selections.get(view.family, Selection())
        if selection.device_ids:
            changes[view.family] = _change(registry, view, selection, start, gang)
        elif hide_others:
            changes.update(_hiding(registry, view, start))
    merged = merge_changes(changes)
    if widen:
        dropped = set(environ) - set(start) - {name for name, _ in merged.set}
        merged = _with_unset(merged, dropped)
    _check_merged(inventory, registry, changes, selections, apply_change(environ, merged))
    return merged


def _by_family(inventory: Inventory, device_ids: Sequence[str]) -> dict[str, Selection]:
    families: dict[str, tuple[str, ...]] = {}
    for device_id in device_ids:
        family = device_id.partition(":")[0]
        device = inventory.view(family).device(device_id)
        families[family] = (*families.get(family, ()), device.id)
    return {family: Selection(ids) for family, ids in families.items()}


def _without_masks(registry: Registry, environ: Mapping[str, str]) -> dict[str, str]:
    masks = {variable.name for plugin in registry.plugins for variable in plugin.declaration.variables}
    return {name: value for name, value in environ.items() if name not in masks}


def _change(
    registry: Registry, view: FamilyView, selection: Selection, environ: Mapping[str, str], gang: Gang | None
) -> EnvironmentChange:
    change: EnvironmentChange = registry.plugin(view.family).call(
        "accel_visibility_environment", view=view, selection=selection, environ=dict(environ), gang=gang
    )
    return change


def _hiding(registry: Registry, view: FamilyView, environ: Mapping[str, str]) -> dict[str, EnvironmentChange]:
    """Give the change that hides a family, or none where the family says that it cannot be hidden."""
    plugin = registry.plugin(view.family)
    if not plugin.declaration.supports(Capability.HIDE_ALL):
        return {}
    return {view.family: _change(registry, view, Selection(), environ, None)}


def _with_unset(change: EnvironmentChange, names: set[str]) -> EnvironmentChange:
    return EnvironmentChange(
        change.set,
        tuple(sorted({*change.unset, *names})),
        change.order,
        change.device_ids,
        change.effect,
        change.notes,
    )


def _check_merged(
    inventory: Inventory,
    registry: Registry,
    changes: Mapping[str, EnvironmentChange],
    selections: Mapping[str, Selection],
    environ: Mapping[str, str],
) -> None:
    """Make sure that every family still sees its selection once the changes of all stand together."""
    resolutions = resolve_all(inventory, registry, environ)
    for family in changes:
        view = inventory.view(family)
        wanted = view.leaves_of(selections.get(family, Selection()).device_ids)
        if family in resolutions and resolutions[family].leaves != wanted:
            others = ", ".join(sorted(set(changes) - {family})) or "the starting environment"
            raise VisibilityConflictError(
                f"the mask of {family} does not hold together with {others}: "
                f"{len(resolutions[family].leaves)} units would be visible instead of {len(wanted)}",
                hint="use devices of one family in one process",
            )
