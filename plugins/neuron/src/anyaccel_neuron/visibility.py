"""What Neuron's variables leave visible, and the environment that shows exactly one selection.

Source: "Neuron Runtime configuration" and "Logical NeuronCore configuration" of the AWS Neuron documentation. A process counts
NeuronCores, not devices, and two variables say how many physical cores make one on Trainium2 and later. No runtime was asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from anyaccel.device import Device, DeviceState, FamilyView, Level
from anyaccel.errors import SelectionNotExpressibleError
from anyaccel.masks import MaskLayer, Slot, Verdict, read_entries, read_range, resolution_of_layers, slots_of
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
    split_tokens,
)
from anyaccel_neuron.declaration import (
    CONTAINER,
    CORE_COUNT,
    CORE_SIZES,
    CORES,
    PROCESS_CORES,
    PROCESS_RANK,
    ROOT,
)
from anyaccel_neuron.devices import index_of

__all__ = ["change_for", "resolve"]

_REFUSED = "the runtime refuses to start with it, so nothing is visible"
_UNSORTED = "the documentation does not tell how cores are counted that are not listed in rising order"
_FIRST_FREE = "the runtime takes the first cores that no other process holds"


def resolve(view: FamilyView, environ: Mapping[str, str]) -> Resolution:
    """Say which cores an environment leaves to a process, in the order of their numbers."""
    is_split = _size(view, environ) == 1
    listed = _listed(view, is_split=is_split)
    layer = _layer(listed, environ)
    numbers = [slot.number for slot in layer.slots if slot.number is not None] if layer else []
    return resolution_of_layers(
        view,
        listed,
        [layer] if layer else [],
        variables=tuple(_reports(view, environ, layer)),
        unordered_reason=_UNSORTED if numbers != sorted(numbers) else None,
    )


def _size(view: FamilyView, environ: Mapping[str, str]) -> int:
    """Give how many physical cores make one, for chips that can be set: 2 unless a variable says 1."""
    texts = [environ[name].strip() for name in CORE_SIZES if environ.get(name, "").strip() in ("1", "2")]
    return int(texts[0]) if texts and _paired(view) else 2


def _paired(view: FamilyView) -> bool:
    return any(device.level is Level.CORE for device in view.devices)


def _listed(view: FamilyView, *, is_split: bool) -> tuple[Slot, ...]:
    """Give what the runtime would count without a list: the cores of every device that opens, by number."""
    opened = [d for d in view.roots if index_of(d) is not None and d.state.rank > DeviceState.DENIED.rank]
    cores = [core for device in opened for core in view.children(device.id)]
    halves = [half for core in cores for half in view.children(core.id)]
    space = "physical_core" if is_split and halves else "core"
    units = halves if is_split and halves else cores
    return tuple(sorted(slots_of(view, (unit.id for unit in units), space), key=lambda slot: slot.number or 0))


def _layer(listed: tuple[Slot, ...], environ: Mapping[str, str]) -> MaskLayer | None:
    if CORES in environ:
        numbers = {slot.number: slot for slot in listed}
        return read_entries(CORES, split_tokens(environ[CORES]), lambda text, chosen: _entry(text, chosen, numbers))
    if CORE_COUNT in environ and environ[CORE_COUNT].strip() not in ("", "0"):
        return read_entries(CORE_COUNT, (environ[CORE_COUNT],), lambda text, _: _count(text, listed))
    return None


def _entry(text: str, chosen: tuple[Slot, ...], numbers: Mapping[int | None, Slot]) -> Verdict:
    """Read one core or one range of cores."""
    wanted = read_range(text)
    if wanted is None:
        return Verdict(TokenEffect.EMPTIES_LIST, reason=f"is neither a core nor a range of cores; {_REFUSED}")
    if not wanted:
        return Verdict(TokenEffect.EMPTIES_LIST, reason=f"the range runs backwards; {_REFUSED}")
    if wanted[0] not in numbers or wanted[-1] not in numbers or len(wanted) > len(numbers):
        known = sorted(number for number in numbers if number is not None)
        have = f"{known[0]}-{known[-1]}" if known else "none"
        return Verdict(TokenEffect.EMPTIES_LIST, reason=f"names a core that is not here (have {have}); {_REFUSED}")
    missing = [number for number in wanted if number not in numbers]
    if missing:
        return Verdict(TokenEffect.EMPTIES_LIST, reason=f"names core {missing[0]}, which is not here; {_REFUSED}")
    taken = {slot.number for slot in chosen}
    fresh = tuple(numbers[number] for number in wanted if number not in taken)
    if not fresh:
        return Verdict(TokenEffect.IGNORED, reason="named before")
    return Verdict(TokenEffect.COUNTS, fresh)


def _count(text: str, listed: tuple[Slot, ...]) -> Verdict:
    wanted = read_range(text)
    if wanted is None or len(wanted) != 1:
        return Verdict(TokenEffect.EMPTIES_LIST, reason=f"is no number of cores; {_REFUSED}")
    if wanted[0] > len(listed):
        return Verdict(TokenEffect.EMPTIES_LIST, reason=f"there are {len(listed)} cores here; {_REFUSED}")
    if wanted[0] == len(listed):
        return Verdict(TokenEffect.COUNTS, listed)
    return Verdict(TokenEffect.UNKNOWN, (Slot(None, reason=_FIRST_FREE),) * wanted[0], _FIRST_FREE)


def _reports(view: FamilyView, environ: Mapping[str, str], layer: MaskLayer | None) -> Iterator[VariableReport]:
    if CORES in environ:
        yield _cores_report(environ[CORES], layer)
    if CORE_COUNT in environ:
        yield _count_report(environ, layer)
    yield from _size_reports(view, environ)
    for name in (PROCESS_CORES, PROCESS_RANK, ROOT):
        if name in environ:
            yield VariableReport(name, environ[name], True, "tells the process its peers and hides nothing")
    if CONTAINER in environ:
        yield VariableReport(CONTAINER, environ[CONTAINER], False, "is read when a container starts, not by a process")


def _cores_report(value: str, layer: MaskLayer | None) -> VariableReport:
    if layer is None or not value:
        return VariableReport(CORES, value, True, "empty: no core is visible")
    stop = next((token for token in layer.tokens if token.effect is TokenEffect.EMPTIES_LIST), None)
    if stop is not None:
        return VariableReport(CORES, value, True, f"{stop.text.strip()[:40]!r} {stop.reason}", is_warning=True)
    return VariableReport(CORES, value, True, f"names {len(layer.slots)} cores")


def _count_report(environ: Mapping[str, str], layer: MaskLayer | None) -> VariableReport:
    value = environ[CORE_COUNT]
    if CORES in environ:
        return VariableReport(
            CORE_COUNT, value, False, f"{CORES} is set as well and wins", "unset one", is_warning=True
        )
    if layer is None:
        return VariableReport(CORE_COUNT, value, False, "every core is visible, as if it were not set")
    return VariableReport(CORE_COUNT, value, True, layer.tokens[0].reason or "every core is visible", is_warning=True)


def _size_reports(view: FamilyView, environ: Mapping[str, str]) -> Iterator[VariableReport]:
    values = {name: environ[name] for name in CORE_SIZES if name in environ}
    is_conflict = len({value.strip() for value in values.values()}) > 1
    for position, (name, value) in enumerate(values.items()):
        if not _paired(view):
            yield VariableReport(name, value, False, "every core is one physical core here")
        elif value.strip() not in ("1", "2"):
            yield VariableReport(name, value, False, "is neither 1 nor 2", is_warning=True)
        elif is_conflict:
            reason = f"{' and '.join(values)} say different things; the first is what the runtime reads"
            yield VariableReport(name, value, position == 0, reason, "unset one", is_warning=True)
        else:
            word = "physical cores" if value.strip() == "1" else "pairs of physical cores"
            yield VariableReport(name, value, True, f"numbers count {word}")


def change_for(
    view: FamilyView, selection: Selection, environ: Mapping[str, str], gang: Gang | None
) -> EnvironmentChange:
    """Give the change that shows exactly these devices or cores to a new process, in the order of their numbers.

    Raises: SelectionNotExpressibleError for a device that the driver does not show; NotGrantedError.
    """
    devices = check_selection(view, selection)
    fixed = (CORE_COUNT, PROCESS_CORES, PROCESS_RANK)
    if not devices:
        return EnvironmentChange(set=((CORES, ""),), unset=tuple(sorted(fixed)))
    is_split = any(device.level is Level.CORE for device in devices)
    units = [unit for device in devices for unit in _units(view, device, is_split=is_split)]
    check_granted(view, selection, resolve(view, environ))
    numbers = {_number(unit): unit.id for unit in units}
    values = {CORES: _ranges(sorted(numbers))}
    if _paired(view):
        values.update(dict.fromkeys(CORE_SIZES, "1" if is_split else "2"))
    if gang is not None:
        values[PROCESS_CORES] = ",".join(str(_gang_size(view, member)) for member in gang.members)
        values[PROCESS_RANK] = str(gang.rank)
    return EnvironmentChange(
        set=tuple(sorted(values.items())),
        unset=tuple(sorted(name for name in fixed if name not in values)),
        order=Order.CANONICAL,
        device_ids=tuple(numbers[number] for number in sorted(numbers)),
        effect=Effect.ASSUMED,
        notes=tuple(_notes(sorted(numbers), environ, gang)),
    )


def _units(view: FamilyView, device: Device, *, is_split: bool) -> tuple[Device, ...]:
    """Give what a mask counts of a device or core: cores, or physical cores when one of these was selected."""
    if device.parent is None and not view.children(device.id):
        raise SelectionNotExpressibleError(
            f"{device.id} has no NeuronCore that could be named: {device.reason or 'its model is unknown'}",
            hint="see its state and reason in accel-cli discover",
        )
    cores = view.children(device.id) if device.parent is None else (device,)
    if not is_split:
        return cores
    return tuple(view.device(leaf) for core in cores for leaf in view.leaves(core.id))


def _number(unit: Device) -> int:
    """Give the number of a core; one without halves has the same number in both spaces."""
    number = unit.numbers.get("physical_core", unit.numbers.get("core"))
    assert isinstance(number, int)
    return number


def _ranges(numbers: Iterable[int]) -> str:
    """Write numbers as ranges.

    Example: _ranges([0, 1, 2, 5]) == "0-2,5"
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _gang_size(view: FamilyView, member: Selection) -> int:
    devices = check_selection(view, member)
    is_split = any(device.level is Level.CORE for device in devices)
    return sum(len(_units(view, device, is_split=is_split)) for device in devices)


def _notes(numbers: list[int], environ: Mapping[str, str], gang: Gang | None) -> Iterator[str]:
    if numbers[-1] - numbers[0] >= len(numbers):
        yield f"{CORES} names cores with gaps between: runtimes before 2.16.18 take one range only"
    if gang is not None and len(gang.members) > 1 and ROOT not in environ:
        yield f"set {ROOT} to an address and port of the first process"
