"""What an environment leaves visible of NVIDIA's devices, and why.

Layers, outermost first: the batch system's grant; the container runtime, which has done its work before a process starts
(what is left of it are the device files); CUDA_VISIBLE_DEVICES in the order that CUDA_DEVICE_ORDER gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from anyaccel.device import FamilyView
from anyaccel.frozen import FrozenMap
from anyaccel.visibility import ListedUnit, Resolution, TokenEffect, VariableReport, VisibleUnit
from anyaccel_nvidia.container_mask import read_container_mask
from anyaccel_nvidia.declaration import CONTAINER_MASK, MASK, ORDER, ORDER_BY_BUS, ORDER_BY_SPEED, SHARED_DAEMON
from anyaccel_nvidia.masks import ID_HINT, MaskResult, read_mask
from anyaccel_nvidia.numbering import Listing, list_units
from anyaccel_nvidia.partitions import is_divided

__all__ = ["resolve_visibility"]

_ONE_INSTANCE = "one process can use one MIG instance; which one it gets without a mask is not documented"


def resolve_visibility(view: FamilyView, environ: Mapping[str, str]) -> Resolution:
    """Say what an environment leaves of the family."""
    listing = list_units(view, environ)
    value = environ.get(MASK)
    result = None if value is None else read_mask(value, listing, view)
    units = tuple(_unmasked(view, listing)) if result is None else tuple(_masked(result))
    container_tokens, container_report = read_container_mask(environ.get(CONTAINER_MASK), view)
    return Resolution(
        units=units,
        tokens=(*listing.grant.tokens, *container_tokens, *(result.tokens if result is not None else ())),
        variables=(*listing.grant.reports, *container_report, *_reports(environ, result, view)),
        hidden_by=FrozenMap(_hidden_by(view, listing, units, result)),
        is_masked=value is not None or listing.grant.ids is not None,
        is_complete=all(unit.device_id is not None for unit in units) and (result is None or result.is_certain),
    )


def _unmasked(view: FamilyView, listing: Listing) -> Iterator[VisibleUnit]:
    """Give everything granted: numbered units first, then those whose number is unknown."""
    granted = [unit for unit in listing.units if listing.grant.allows(unit.device_id or "")]
    has_partitions = any(is_divided(device) for device in view.devices)
    reason = _ONE_INSTANCE if has_partitions else listing.reason
    numbered = sorted((u for u in granted if u.number is not None), key=lambda unit: unit.number or 0)
    for unit in (*numbered, *(unit for unit in granted if unit.number is None)):
        yield VisibleUnit(unit.number, unit.device_id, unit.leaves, reason=None if unit.number is not None else reason)


def _masked(result: MaskResult) -> Iterator[VisibleUnit]:
    ordinal = 0
    for named in result.named:
        unit = named.unit or ListedUnit(None, None, ())
        number = ordinal if named.has_ordinal else None
        yield VisibleUnit(number, unit.device_id, unit.leaves, MASK, named.token, named.reason)
        ordinal += named.has_ordinal


def _hidden_by(
    view: FamilyView, listing: Listing, units: tuple[VisibleUnit, ...], result: MaskResult | None
) -> dict[str, str]:
    """Give the variable that hid each device; a device that an unknown entry may name is not called hidden."""
    visible = {unit.device_id for unit in units}
    hidden: dict[str, str] = {}
    for unit in listing.units:
        device_id = unit.device_id or ""
        if not listing.grant.allows(device_id):
            hidden[device_id] = listing.grant.variable or ""
        elif result is not None and device_id not in visible and _is_surely_out(unit, result):
            hidden[device_id] = MASK
    return {**hidden, **_hidden_parents(view, hidden)}


def _is_surely_out(unit: ListedUnit, result: MaskResult) -> bool:
    return result.is_certain or (result.is_numeric and unit.number is not None)


def _hidden_parents(view: FamilyView, hidden: Mapping[str, str]) -> dict[str, str]:
    """A card in MIG mode is hidden when each of its instances is."""
    parents: dict[str, str] = {}
    for device in view.devices:
        leaves = view.leaves(device.id)
        if view.children(device.id) and all(leaf in hidden for leaf in leaves):
            parents[device.id] = hidden[leaves[0]]
    return parents


def _reports(environ: Mapping[str, str], result: MaskResult | None, view: FamilyView) -> Iterator[VariableReport]:
    if result is not None:
        yield _mask_report(environ[MASK], result, by_speed=_is_by_speed(view, environ))
    if ORDER in environ:
        yield _order_report(environ[ORDER])
    if environ.get(SHARED_DAEMON):
        uses_numbers = result is not None and result.is_numeric
        yield VariableReport(
            SHARED_DAEMON,
            environ[SHARED_DAEMON],
            True,
            "an MPS server stands between: numbers count what the server was given, ids keep their meaning",
            ID_HINT if uses_numbers else None,
            is_warning=uses_numbers,
        )


def _is_by_speed(view: FamilyView, environ: Mapping[str, str]) -> bool:
    """Whether a number means another card than it does to the driver's own tools, which follow the PCI bus."""
    models = {(d.attributes.get("pci_id"), d.model) for d in view.roots}
    return len(models) > 1 and environ.get(ORDER) != ORDER_BY_BUS


def _mask_report(value: str, result: MaskResult, *, by_speed: bool) -> VariableReport:
    effects = {token.effect for token in result.tokens}
    stop = next((t for t in result.tokens if t.effect in (TokenEffect.ENDS_LIST, TokenEffect.EMPTIES_LIST)), None)
    further = any(not named.has_ordinal for named in result.named)
    if value == "":
        reason = "empty: it hides every GPU"
    elif stop is not None:
        reason = f"{stop.text.strip()!r}: {stop.reason}"
    elif TokenEffect.UNKNOWN in effects:
        reason = next(token.reason for token in result.tokens if token.effect is TokenEffect.UNKNOWN)
    elif further:
        reason = f"names {len(result.named)} MIG instances, and one process can use only one of them, the first"
    elif result.is_unusual:
        reason = "unusual spelling, which other tools read in other ways"
    else:
        reason = f"names {len(result.named)} of the devices, counted in this order"
    is_doubtful = stop is not None or TokenEffect.UNKNOWN in effects or further or result.is_unusual
    depends = by_speed and result.is_numeric and bool(result.named) and not is_doubtful
    if depends:
        reason = (
            "names cards by number, and the models differ: CUDA counts the fastest first, the driver's tools by slot"
        )
    is_warning = is_doubtful or depends
    hint = next((token.hint for token in result.tokens if token.hint is not None), ID_HINT if depends else None)
    return VariableReport(MASK, value, True, reason, hint, is_warning=is_warning)


def _order_report(value: str) -> VariableReport:
    if value == ORDER_BY_BUS:
        return VariableReport(ORDER, value, True, "numbers follow the PCI bus, as the driver's do")
    if value == ORDER_BY_SPEED:
        return VariableReport(ORDER, value, True, "numbers begin with the fastest card, which is also the default")
    if not value:
        return VariableReport(ORDER, value, False, "empty, as if it were not set")
    reason = f"unknown value; documented are {ORDER_BY_SPEED} and {ORDER_BY_BUS}"
    return VariableReport(ORDER, value, False, reason, is_warning=True)
