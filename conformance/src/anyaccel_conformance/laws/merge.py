"""The law of the merge: what one process may see of several families at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anyaccel.capabilities import Capability
from anyaccel.environment import environment_for, resolve_all
from anyaccel.errors import NotGrantedError, SelectionNotExpressibleError, VisibilityConflictError
from anyaccel.inventory import Inventory
from anyaccel.registry import Registry
from anyaccel.visibility import apply_change
from anyaccel_conformance.laws.breach import need

__all__ = ["check_merge"]


def check_merge(
    inventory: Inventory, registry: Registry, device_ids: Sequence[str], environ: Mapping[str, str]
) -> bool:
    """VIS-001 over several families: each sees its own part of the selection, or the conflict names the families.

    Returns: whether there was an environment to look at.
    """
    families = {device_id.partition(":")[0] for device_id in device_ids}
    try:
        change = environment_for(inventory, registry, device_ids, environ)
    except VisibilityConflictError as error:
        named = [view.family for view in inventory.views if view.family in error.message]
        need(named, "VIS-001", f"a conflict that names no family: {error.message}")
        return False
    except (NotGrantedError, SelectionNotExpressibleError):
        return False
    resolutions = resolve_all(inventory, registry, apply_change(environ, change))
    for view in inventory.views:
        own = [device_id for device_id in device_ids if device_id.partition(":")[0] == view.family]
        hides = registry.plugin(view.family).declaration.supports(Capability.HIDE_ALL)
        if view.family in resolutions and (view.family in families or hides):
            seen, wanted = resolutions[view.family].leaves, view.leaves_of(own)
            need(seen == wanted, "VIS-001", f"{view.family} shows {sorted(seen)} instead of {sorted(wanted)}")
    return True
