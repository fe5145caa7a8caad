"""Reading the description of an imaginary machine, which may come from anybody: every value is looked at before it is used.

Limits: 4,096 cards, bridges, network cards, links and faults each, 1,024 NUMA nodes, 65,536 CPUs.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from anyaccel.errors import RecordingError
from anyaccel.frozen import FrozenMap
from anyaccel.machine import UserFacts
from anyaccel.machine_description import (
    CardDescription,
    FaultDescription,
    HostDescription,
    LinkDescription,
    MachineDescription,
    NicDescription,
)
from anyaccel.pci import normal_address

__all__ = ["TABLES", "load_description", "parse_description"]

SCHEMA = "anyaccel-machine/1"
TABLES = frozenset({"schema", "name", "title", "host", "environment", "bridge", "card", "link", "nic", "fault"})
_HOST_KEYS = frozenset({"numa_cpus", "numa_memory_gib", "boundary", "kernel", "user"})
_BRIDGE_KEYS = frozenset({"address", "parent", "numa_node"})
_NIC_KEYS = frozenset({"name", "address", "kind", "parent", "numa_node"})
_MOST_ROWS = 4096
"""Cards, bridges, network cards, links or faults of one machine."""
_MOST_NODES = 1024
_LONGEST_TEXT = 200
_MOST_GIB = 1 << 20


def load_description(path: Path | str) -> MachineDescription:
    """Read a machine description from a file. Raises: RecordingError saying what is wrong with it."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise RecordingError(f"machine description {str(path)!r} cannot be read: {why}") from error
    return parse_description(text, name=Path(path).stem)


def parse_description(text: str, *, name: str = "machine") -> MachineDescription:
    """Read a machine description.

    Args: text: TOML, see docs/simulation.md. name: used when the text gives none.
    Raises: RecordingError naming the table and key.
    """
    document = _toml(text)
    if document.get("schema") != SCHEMA:
        raise RecordingError(f"machine description {name!r} has schema {document.get('schema')!r}, not {SCHEMA!r}")
    try:
        return _description(document, name)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RecordingError(
            f"machine description {name!r} is malformed: {type(error).__name__} at {error}",
            hint="compare it with docs/simulation.md",
        ) from error


def _toml(text: str) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        document: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RecordingError(f"machine description is not TOML: {error}") from error
    return document


def _description(document: Mapping[str, Any], name: str) -> MachineDescription:
    stray = [key for key, value in document.items() if key not in TABLES and not isinstance(value, dict)]
    if stray:
        raise RecordingError(f"machine description {name!r} has the unknown key {stray[0]!r} outside any table")
    head = _Table("machine description", document)
    return MachineDescription(
        name=head.text("name", name),
        title=head.text("title", ""),
        host=_host(_Table("host", document.get("host", {}), _HOST_KEYS)),
        bridges=tuple(_bridge_row(row) for row in _rows(document, "bridge", _BRIDGE_KEYS)),
        cards=tuple(_card(row) for row in _rows(document, "card")),
        links=tuple(_link(row) for row in _rows(document, "link")),
        nics=tuple(_nic(row) for row in _rows(document, "nic", _NIC_KEYS)),
        faults=tuple(_fault(row) for row in _rows(document, "fault")),
        environ=FrozenMap({str(k): str(v) for k, v in _Table("environment", document.get("environment", {})).items()}),
        families=FrozenMap({k: _frozen(v) for k, v in document.items() if k not in TABLES}),
    )


class _Table:
    """One table of a description, whose values are looked at before they are used; every error names table and key."""

    def __init__(self, name: str, row: Any, known: frozenset[str] | None = None) -> None:
        if not isinstance(row, dict):
            raise RecordingError(f"table {name!r} is no table but {_shown(row)}")
        unknown = [] if known is None else sorted(set(row) - known)
        if unknown:
            listed = ", ".join(sorted(known or ()))
            raise RecordingError(f"table {name!r} has the unknown key {unknown[0]!r} (known: {listed})")
        self.name = name
        self._row = row

    def items(self) -> Iterable[tuple[str, Any]]:
        """Give every key with its value."""
        return self._row.items()

    def _wrong(self, key: str, wanted: str, value: Any) -> RecordingError:
        return RecordingError(
            f"key {key!r} of table {self.name!r} must be {wanted}, not {_shown(value)}",
            hint="compare it with docs/simulation.md",
        )

    def optional_text(self, key: str) -> str | None:
        """Give a text, None when the key is not there."""
        value = self._row.get(key)
        if value is not None and (not isinstance(value, str) or len(value) > _LONGEST_TEXT):
            raise self._wrong(key, f"a text of at most {_LONGEST_TEXT} characters", value)
        return value

    def text(self, key: str, default: str | None = None) -> str:
        """Give a text that has to be there, unless there is a default."""
        value = self.optional_text(key)
        if value is None and default is None:
            raise RecordingError(f"table {self.name!r} has no key {key!r}", hint="compare it with docs/simulation.md")
        return value if value is not None else default or ""

    def optional_number(self, key: str, most: int = 1 << 31) -> int | None:
        """Give a whole number that is not negative, None when the key is not there."""
        value = self._row.get(key)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most):
            raise self._wrong(key, f"a whole number from 0 to {most}", value)
        return value

    def many(self, key: str, kinds: tuple[type, ...], wanted: str, most: int = _MOST_NODES) -> tuple[Any, ...] | None:
        """Give a list of values of these kinds, None when the key is not there."""
        value = self._row.get(key)
        if value is None:
            return None
        is_fine = isinstance(value, list) and len(value) <= most
        if not is_fine or not all(isinstance(v, kinds) and not isinstance(v, bool) for v in value):
            raise self._wrong(key, f"a list of at most {most} {wanted}", value)
        return tuple(value)

    def address(self, key: str) -> str:
        """Give a PCI address as sysfs writes it."""
        return _address(self.text(key))

    def rest(self, *taken: str) -> FrozenMap[Any]:
        """Give everything else, for the plugin."""
        return _frozen({key: value for key, value in self._row.items() if key not in taken})


def _shown(value: Any) -> str:
    """Give a value as a person would write it, cut where it is long."""
    text = repr(value) if not isinstance(value, (dict, list)) or len(str(value)[:100]) < 60 else type(value).__name__
    return text if len(text) <= 60 else f"{text[:57]}..."


def _rows(document: Mapping[str, Any], name: str, known: frozenset[str] | None = None) -> list[_Table]:
    rows = document.get(name, [])
    if not isinstance(rows, list):
        raise RecordingError(f"{name!r} is no array of tables: write [[{name}]]")
    if len(rows) > _MOST_ROWS:
        raise RecordingError(f"{len(rows)} tables {name!r}, more than {_MOST_ROWS}")
    return [_Table(name, row, known) for row in rows]


def _bridge_row(row: _Table) -> tuple[str, str, int | None]:
    return (row.address("address"), _parent(row.text("parent")) or "", row.optional_number("numa_node"))


def _frozen(table: Mapping[str, Any]) -> FrozenMap[Any]:
    return FrozenMap({key: _frozen_value(value) for key, value in table.items()})


def _frozen_value(value: Any) -> Any:
    if isinstance(value, dict):
        return _frozen(value)
    return tuple(_frozen_value(v) for v in value) if isinstance(value, list) else value


def _address(text: str) -> str:
    address = normal_address(text)
    if address is None:
        raise RecordingError(f"{_shown(text)} is no PCI address")
    return address


def _parent(text: str | None) -> str | None:
    if text is None or re.fullmatch(r"pci[0-9a-f]{4,8}:[0-9a-f]{2}", text):
        return text
    return _address(text)


def _host(row: _Table) -> HostDescription:
    default = HostDescription()
    user = _Table("host.user", dict(row.items()).get("user", {}))
    uid = user.optional_number("uid")
    memory = row.many("numa_memory_gib", (int, float), "sizes in GiB")
    if memory is not None and not all(0 <= gib <= _MOST_GIB for gib in memory):
        raise RecordingError(f"key 'numa_memory_gib' of table 'host' has a size that is not from 0 to {_MOST_GIB} GiB")
    return HostDescription(
        numa_cpus=row.many("numa_cpus", (str,), "CPU lists") or default.numa_cpus,
        numa_memory_bytes=tuple(int(gib * 2**30) for gib in ((64,) if memory is None else memory)),
        boundary=row.text("boundary", default.boundary),
        kernel=row.text("kernel", default.kernel),
        user=UserFacts(1000 if uid is None else uid, user.many("groups", (str,), "names") or default.user.groups),
    )


def _card(row: _Table) -> CardDescription:
    driver = row.text("driver", "default")
    return CardDescription(
        plugin=row.text("plugin"),
        model=row.text("model"),
        address=None if row.optional_text("address") is None else row.address("address"),
        parent=_parent(row.optional_text("parent")),
        numa_node=row.optional_number("numa_node"),
        driver=driver or None,
        options=row.rest("plugin", "model", "address", "parent", "numa_node", "driver"),
    )


def _link(row: _Table) -> LinkDescription:
    count = row.optional_number("count", most=4096)
    ends = (row.text("a"), row.text("b"), row.text("kind"))
    return LinkDescription(*ends, 1 if count is None else count, row.rest("a", "b", "kind", "count"))


def _nic(row: _Table) -> NicDescription:
    kind = row.text("kind", "infiniband")
    parent = _parent(row.optional_text("parent"))
    return NicDescription(row.text("name"), row.address("address"), kind, parent, row.optional_number("numa_node"))


def _fault(row: _Table) -> FaultDescription:
    options = row.rest("kind", "card", "plugin")
    return FaultDescription(row.text("kind"), row.optional_text("card"), row.optional_text("plugin"), options)
