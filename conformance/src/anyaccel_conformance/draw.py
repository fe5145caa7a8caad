"""What hypothesis draws: masks as people write them, starting environments, selections."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from anyaccel.capabilities import Declaration, MaskVariable, VariableScope
from anyaccel.device import FamilyView

__all__ = ["environs", "for_all", "mask_values", "masks", "plain_environs", "selections"]

T = TypeVar("T")

_WORDS = (
    "all",
    "none",
    "void",
    "NoDevFiles",
    "-1",
    "",
    " ",
    "0-2",
    "2-0",
    "1:1",
    "0.0",
    "*",
    "00",
    "+1",
    "9" * 5000,
    "x",
)
_VALUES = ("0", "1", "2", "", "x", "0/1", "-1", "PCI_BUS_ID", "FASTEST_FIRST", "FLAT", "COMPOSITE", "COMBINED")
_TEXT = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=4)


def for_all(examples: int, strategy: st.SearchStrategy[T], check: Callable[[T], Any]) -> int:
    """Hold a law against drawn values and give how many of them it had something to say about.

    Draws are the same in every run, so that two runs of the kit agree; what is shown of a failure is the smallest found.
    """
    exercised = 0

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        report_multiple_bugs=False,
        phases=(Phase.explicit, Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def run(value: T) -> None:
        nonlocal exercised
        exercised += check(value) is not False

    run()
    return exercised


def masks(view: FamilyView, number_space: str | None) -> st.SearchStrategy[str]:
    """Draw entries of a mask: numbers of its space and beyond, names whole and cut, words, and what nobody should write."""
    numbers = _numbers(view, number_space)
    names = [name for device in view.devices for name in (device.uuid, device.id) if name]
    cut = [name[:length] for name in names for length in (8, 12)]
    return st.one_of(
        *([st.sampled_from(numbers)] * 3 if numbers else []),
        *([st.sampled_from(names + cut)] if names else []),
        st.integers(0, len(view.devices) + 2).map(str),
        st.sampled_from(_WORDS),
        _TEXT,
    )


def _numbers(view: FamilyView, space: str | None) -> list[str]:
    found = [device.numbers.get(space) for device in view.devices] if space else []
    return [str(number) for number in found if number is not None]


def mask_values(view: FamilyView, variable: MaskVariable) -> st.SearchStrategy[str]:
    """Draw the value of one variable."""
    if variable.number_space is None:
        return st.one_of(st.sampled_from(_VALUES), _TEXT)
    entries = masks(view, variable.number_space)
    separators = st.sampled_from((",", ",", ",", ", ", ";"))
    return st.builds(lambda parts, separator: separator.join(parts), st.lists(entries, max_size=5), separators)


def environs(
    view: FamilyView, declaration: Declaration, base: Mapping[str, str], *, with_grants: bool = True
) -> st.SearchStrategy[dict[str, str]]:
    """Draw environments that people start programs with, on top of one.

    Args: with_grants: draw also what only a container runtime reads.
    """
    values = {
        variable.name: mask_values(view, variable)
        for variable in declaration.variables
        if with_grants or variable.scope is not VariableScope.CONTAINER
    }
    return st.fixed_dictionaries({}, optional=values).map(lambda drawn: {**base, **drawn})


def plain_environs(view: FamilyView, declaration: Declaration, base: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Give environments with one variable that a process reads, set to each of the usual values; chance may miss one."""
    for variable in declaration.variables:
        if variable.scope is not VariableScope.CONTAINER:
            numbers = _numbers(view, variable.number_space)
            lists = (",".join(reversed(numbers)), numbers[0]) if numbers else ()
            for value in (*(_VALUES if variable.number_space is None else _WORDS), *lists):
                yield {**base, variable.name: value}


def selections(ids: Sequence[str]) -> st.SearchStrategy[tuple[str, ...]]:
    """Draw device ids in any order, each at most once; none when there are none."""
    if not ids:
        return st.just(())
    return st.lists(st.sampled_from(ids), min_size=1, max_size=6, unique=True).map(tuple)
