"""Find, understand, reserve and use any AI accelerator, whoever made it.

Names are resolved on first use: importing this package loads no plugin and no messaging library.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = ["Inventory", "Registry", "__version__", "discover", "hookimpl"]

_HOMES = {
    "Inventory": "anyaccel.inventory",
    "Registry": "anyaccel.registry",
    "discover": "anyaccel.discovery",
    "hookimpl": "anyaccel.hookspec",
}

if TYPE_CHECKING:
    from anyaccel.discovery import discover
    from anyaccel.hookspec import hookimpl
    from anyaccel.inventory import Inventory
    from anyaccel.registry import Registry


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'anyaccel' has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
