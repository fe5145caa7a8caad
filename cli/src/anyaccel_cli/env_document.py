"""What `env --shell json` prints; the schema file is `schemas/accel-env.json`. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from anyaccel.inventory import Inventory
from anyaccel.visibility import EnvironmentChange
from anyaccel_cli.documents import as_json, machine_document, schema_of

if TYPE_CHECKING:
    from anyaccel.placement import Placement

__all__ = ["env_document"]


def env_document(inventory: Inventory, placements: Sequence[Placement], change: EnvironmentChange) -> dict[str, Any]:
    """Give the change with the devices it shows, and for each resource why these and not the others."""
    return {
        "schema": schema_of("accel-env"),
        "machine": machine_document(inventory),
        "devices": list(change.device_ids),
        "set": dict(change.set),
        "unset": list(change.unset),
        "order": change.order.value,
        "effect": change.effect.value,
        "placements": as_json(tuple(placements)),
        "notes": [*as_json(inventory.notes), *as_json(change.notes)],
    }
