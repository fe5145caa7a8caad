from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from anyaccel._exact import why_not_exact
from anyaccel.device import Device, Discovery, Level
from anyaccel.frozen import FrozenMap
from anyaccel.resources import AnySet, LegalSets


class _Text(str):
    __slots__ = ()

    def __hash__(self) -> int:
        raise RuntimeError("hashed")


class _Endless(tuple):
    __slots__ = ()

    def __iter__(self):
        while True:
            yield 1


class _Pretender:
    @property
    def __class__(self):
        raise RuntimeError("asked for its class")


DEVICE = Device(id="toy:0", family="toy")


@pytest.mark.parametrize(
    ("value", "hint", "told"),
    [
        (1, int, None),
        (1, float, None),
        (True, int, "x is a bool, not int"),
        (None, int | None, None),
        ("1", int | None, "x is a str, not int or None"),
        ((1, "2"), tuple[int, ...], "x[1] is a str, not int"),
        ((("a", "b"),), tuple[tuple[str, str], ...], None),
        ((("a",),), tuple[tuple[str, str], ...], "x[0] has 1 entries, not 2"),
        ([1], tuple[int, ...], "x is a list, not tuple"),
        ({"a": "b"}, Mapping[str, str], None),
        ({1: "b"}, Mapping[str, str], "x has a key that is a int, not str"),
        ({"a": 1}, FrozenMap[int], "x is a dict, not FrozenMap"),
        (FrozenMap({"a": None}), FrozenMap[int | str | None], None),
        (FrozenMap({"a": 1.5}), FrozenMap[int | str | None], "x['a'] is a float, not int or str or None"),
        (Level.CORE, Level, None),
        ("core", Level, "x is a str, not Level"),
        (AnySet(), AnySet | LegalSets, None),
        (LegalSets((1,)), AnySet | LegalSets, "x.sets[0] is a int, not LegalSet"),
        ({"a": [1, {"b": None}]}, Any, None),
        ({"a": {1, 2}}, Any, "x['a'] is a set, not plain data"),
    ],
)
def test_only_exact_types_pass(value, hint, told):
    """Subclasses, lookalikes and wrong entries are named with their place; nothing of their own code runs."""
    assert why_not_exact(value, hint, "x") == told


def test_lookalikes_are_named_and_none_of_their_code_runs():
    """A text that raises when hashed, a tuple without an end, an object that lies about its class."""
    assert why_not_exact(_Text("a"), str, "x") == "x is a _Text, not str"
    assert why_not_exact(_Endless(), tuple[int, ...], "x") == "x is a _Endless, not tuple"
    assert why_not_exact(_Pretender(), Device, "x") == "x is a _Pretender, not Device"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"memory_bytes": "1"}, "devices[0].memory_bytes is a str, not int or None"),
        ({"pci_addresses": None}, "devices[0].pci_addresses is a NoneType, not tuple"),
        ({"pci_addresses": (5,)}, "devices[0].pci_addresses[0] is a int, not str"),
        ({"conditions": 5}, "devices[0].conditions is a int, not tuple"),
        ({"numbers": {"index": 1}}, "devices[0].numbers is a dict, not FrozenMap"),
        ({"model": lambda: 1}, "devices[0].model is a function, not str or None"),
        ({"level": "device"}, "devices[0].level is a str, not Level"),
    ],
)
def test_every_field_of_a_device_is_looked_at(change, told):
    """One wrong field of one device is named."""
    assert why_not_exact(Discovery((DEVICE, DEVICE)), Discovery) is None
    assert why_not_exact(Discovery((replace(DEVICE, **change),)), Discovery) == told


def test_data_without_an_end_is_not_plain():
    """Nesting is bounded, so that looking at it is."""
    value: Any = None
    for _ in range(5000):
        value = [value]

    assert "nested more than 100 deep" in (why_not_exact(value, Any, "x") or "")
