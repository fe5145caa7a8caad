"""What Habana's variables leave visible, and the environment that shows exactly one selection.

Source: "Multiple tenants on HPU" of the Gaudi documentation, and habanalabs-container-runtime. A process reads module ids; card
numbers (`hl-smi`'s index) are for the container runtime alone, and the two differ. No runtime was asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from anyaccel.device import DeviceState, FamilyView
from anyaccel.errors import SelectionNotExpressibleError
from anyaccel.masks import MaskLayer, Slot, Verdict, read_entries, resolution_of_layers, slots_of
from anyaccel.visibility import (
    Effect,
    EnvironmentChange,
    Gang,
    Order,
    Resolution,
    Selection,
    TokenEffect,
    VariableReport,
    check_granted,
    check_selection,
    number_tokens,
    split_tokens,
)
from anyaccel_gaudi.declaration import CONTAINER, DYNAMIC, MODULES, ONE_MODULE
from anyaccel_gaudi.devices import module_of

__all__ = ["change_for", "resolve"]

_FAILS = "the process fails when it opens a card"
_USE_MODULES = (
    "module ids stand in the column `module` of accel-cli discover --format wide, or in hl-smi -Q index,module_id"
)
_ANY_ORDER = "without a list a process takes the first card that is free"


def resolve(view: FamilyView, environ: Mapping[str, str]) -> Resolution:
    """Say which cards an environment leaves to a process: the list of modules, then the one module of a launcher."""
    opened = [d for d in view.roots if d.driver is not None and d.state.rank > DeviceState.DENIED.rank]
    listed = tuple(sorted(slots_of(view, (d.id for d in opened), "module"), key=_module_key))
    layers: list[MaskLayer] = []
    for variable in (MODULES, ONE_MODULE):
        value = environ.get(variable)
        if value is not None and (variable == MODULES or value.strip()):
            left = layers[-1].slots if layers else listed
            layers.append(_layer(variable, value, left))
    return resolution_of_layers(
        view,
        listed,
        layers,
        variables=tuple(_reports(environ, layers)),
        unordered_reason=_ANY_ORDER if not layers and len(listed) > 1 else None,
    )


def _module_key(slot: Slot) -> tuple[bool, int]:
    return (slot.number is None, slot.number or 0)


def _layer(variable: str, value: str, slots: tuple[Slot, ...]) -> MaskLayer:
    modules = {slot.number: slot for slot in slots if slot.number is not None}
    has_unnumbered = len(modules) < len(slots)

    def read(text: str, chosen: tuple[Slot, ...]) -> Verdict:
        number = number_tokens((text,))[0][1]
        if number is None:
            return Verdict(TokenEffect.EMPTIES_LIST, reason=f"is no module id; {_FAILS}", hint=_USE_MODULES)
        if number in modules:
            return _chosen(modules[number], chosen)
        if has_unnumbered:
            reason = "may be a card whose module id is unknown"
            return Verdict(TokenEffect.UNKNOWN, (Slot(None, reason=reason),), reason)
        known = ", ".join(str(module) for module in sorted(modules)) or "none"
        return Verdict(TokenEffect.EMPTIES_LIST, reason=f"no card has this module id (have {known}); {_FAILS}")

    return read_entries(variable, split_tokens(value) if variable == MODULES else (value,), read)


def _chosen(slot: Slot, chosen: tuple[Slot, ...]) -> Verdict:
    if any(other.device_id == slot.device_id for other in chosen):
        return Verdict(TokenEffect.IGNORED, reason="named before")
    return Verdict(TokenEffect.COUNTS, (slot,))


def _reports(environ: Mapping[str, str], layers: list[MaskLayer]) -> Iterator[VariableReport]:
    by_name = {layer.variable: layer for layer in layers}
    for name in (MODULES, ONE_MODULE):
        if name not in environ:
            continue
        layer = by_name.get(name)
        stop = (
            next((t for t in layer.tokens if t.effect is not TokenEffect.COUNTS and t.reason), None) if layer else None
        )
        if layer is None:
            yield VariableReport(name, environ[name], False, "empty, as if it were not set")
        elif stop is not None:
            yield VariableReport(
                name, environ[name], True, f"{stop.text.strip()[:40]!r} {stop.reason}", stop.hint, is_warning=True
            )
        else:
            reason = f"names {len(layer.slots)} modules" if layer.slots else "empty: no card is visible"
            yield VariableReport(name, environ[name], True, reason)
    if CONTAINER in environ:
        reason = "holds card numbers for the container runtime; no process reads it"
        yield VariableReport(CONTAINER, environ[CONTAINER], False, reason, f"use {MODULES} with module ids")
    if DYNAMIC in environ:
        yield VariableReport(
            DYNAMIC, environ[DYNAMIC], False, "is set beside the others by dynamic resource allocation"
        )


def change_for(
    view: FamilyView, selection: Selection, environ: Mapping[str, str], gang: Gang | None
) -> EnvironmentChange:
    """Give the change that shows exactly these cards to a new process, in the order listed.

    In a gang a process with one card is told its module as a launcher would. Card numbers are never written.
    Raises: SelectionNotExpressibleError for a card whose module id is unknown; NotGrantedError.
    """
    cards = check_selection(view, selection)
    if not cards:
        return EnvironmentChange(set=((MODULES, ""),), unset=(ONE_MODULE,))
    modules = [module_of(card) for card in cards]
    nameless = next((card for card, module in zip(cards, modules, strict=True) if module is None), None)
    if nameless is not None:
        raise SelectionNotExpressibleError(
            f"{nameless.id} cannot be named: {nameless.why_unknown('numbers.module')}",
            hint="see its state and reason in accel-cli discover",
        )
    check_granted(view, selection, resolve(view, environ))
    values = {MODULES: ",".join(str(module) for module in modules)}
    if gang is not None and len(cards) == 1:
        values[ONE_MODULE] = str(modules[0])
    several = "a process opens one card; start one process a card"
    return EnvironmentChange(
        set=tuple(sorted(values.items())),
        unset=() if ONE_MODULE in values else (ONE_MODULE,),
        order=Order.AS_LISTED,
        device_ids=tuple(card.id for card in cards),
        effect=Effect.ASSUMED,
        notes=(several,) if len(cards) > 1 else (),
    )
