"""Whether a value from a plugin is exactly what its type says, all the way down.

A plugin is not trusted: a subclass of str may raise when it is hashed, a tuple may never end, a number may be a text. Core
computes with what passes here only, so that nothing of a plugin's own code runs outside the guard afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any, get_args, get_origin, get_type_hints

from anyaccel.frozen import FrozenMap

__all__ = ["why_not_exact"]

_DEEPEST = 100
_PLAIN = (str, int)


def why_not_exact(value: Any, hint: Any, where: str = "") -> str | None:
    """Say what in a value is not what a type says, None when all of it is.

    Args: hint: a class, a frozen dataclass, an enum, a tuple, a `FrozenMap`, a union of these, or Any for plain JSON data.
    Example: why_not_exact((1, "2"), tuple[int, ...], "numbers") == "numbers[1] is a str, not int"
    """
    origin = get_origin(hint)
    if hint is Any:
        return _why_not_json(value, where, 0)
    if origin is None:
        return _why_not_class(value, hint, where)
    if origin is tuple:
        return _why_not_tuple(value, get_args(hint), where)
    if origin in (FrozenMap, Mapping):
        return _why_not_map(value, get_args(hint), where, origin)
    return _why_none_fits(value, get_args(hint), where)


def _why_not_class(value: Any, hint: Any, where: str) -> str | None:
    cls = type(value)
    if cls is not hint and not (hint is float and cls is int):
        return f"{where} is a {cls.__name__}, not {getattr(hint, '__name__', hint)}"
    return _why_not_fields(value, hint, where) if is_dataclass(hint) else None


def _why_none_fits(value: Any, hints: tuple[Any, ...], where: str) -> str | None:
    if value is None and type(None) in hints:
        return None
    told = [why_not_exact(value, hint, where) for hint in hints if hint is not type(None)]
    if None in told:
        return None
    inner = [reason for reason, hint in zip(told, hints, strict=False) if type(value) is (get_origin(hint) or hint)]
    return inner[0] if inner else f"{where} is a {type(value).__name__}, not {' or '.join(map(_name, hints))}"


def _name(hint: Any) -> str:
    return "None" if hint is type(None) else str(getattr(hint, "__name__", hint))


def _why_not_tuple(value: Any, hints: tuple[Any, ...], where: str) -> str | None:
    if type(value) is not tuple:
        return f"{where} is a {type(value).__name__}, not tuple"
    if len(hints) == 2 and hints[1] is Ellipsis:
        if hints[0] in _PLAIN and all(type(entry) is hints[0] for entry in value):
            return None
        hints = (hints[0],) * len(value)
    if len(hints) != len(value):
        return f"{where} has {len(value)} entries, not {len(hints)}"
    told = (why_not_exact(v, hint, f"{where}[{n}]") for n, (v, hint) in enumerate(zip(value, hints, strict=True)))
    return next((reason for reason in told if reason is not None), None)


def _why_not_map(value: Any, hints: tuple[Any, ...], where: str, origin: Any) -> str | None:
    if type(value) is not FrozenMap and not (origin is Mapping and type(value) is dict):
        return f"{where} is a {type(value).__name__}, not {origin.__name__}"
    for key, entry in value.items():
        if type(key) is not str:
            return f"{where} has a key that is a {type(key).__name__}, not str"
        reason = why_not_exact(entry, hints[-1], f"{where}[{key!r}]")
        if reason is not None:
            return reason
    return None


@lru_cache(maxsize=256)
def _fields(cls: type) -> tuple[tuple[str, Any], ...]:
    hints = get_type_hints(cls)
    return tuple((field.name, hints[field.name]) for field in fields(cls))


def _why_not_fields(value: Any, cls: type, where: str) -> str | None:
    before = f"{where}." if where else ""
    told = (why_not_exact(getattr(value, name), hint, f"{before}{name}") for name, hint in _fields(cls))
    return next((reason for reason in told if reason is not None), None)


def _why_not_json(value: Any, where: str, depth: int) -> str | None:
    if depth > _DEEPEST:
        return f"{where} is nested more than {_DEEPEST} deep"
    cls = type(value)
    if value is None or cls in (bool, int, float, str):
        return None
    if cls in (list, tuple):
        told = (_why_not_json(entry, f"{where}[{n}]", depth + 1) for n, entry in enumerate(value))
    elif cls in (dict, FrozenMap) and all(type(key) is str for key in value):
        told = (_why_not_json(entry, f"{where}[{key!r}]", depth + 1) for key, entry in value.items())
    else:
        return f"{where} is a {cls.__name__}, not plain data"
    return next((reason for reason in told if reason is not None), None)
