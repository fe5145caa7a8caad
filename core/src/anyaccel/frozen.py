"""One small immutable mapping, so that frozen values may hold tables and still compare, hash and pickle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

__all__ = ["FrozenMap"]

V = TypeVar("V")


class FrozenMap(Mapping[str, V], Generic[V]):
    """An ordered, hashable mapping from text to immutable values.

    Args: items: any mapping; keys keep their order.
    Example: FrozenMap({"index": 0})["index"] == 0
    """

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[str, V] | None = None) -> None:
        self._items: dict[str, V] = dict(items) if items else {}

    def __getitem__(self, key: str) -> V:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return f"FrozenMap({self._items!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return (FrozenMap, (self._items,))

    def with_items(self, items: Mapping[str, V]) -> FrozenMap[V]:
        """Give a copy in which `items` replace or extend what is here."""
        return FrozenMap({**self._items, **items})
