"""Descriptions of imaginary machines from strangers: each wrong value is one sentence with its table and key."""

from __future__ import annotations

import math
import time

import pytest

from anyaccel.descriptions import parse_description
from anyaccel.errors import AccelError, RecordingError
from anyaccel.registry import Registry
from anyaccel.simulation import simulate

BASE = {
    "host": {
        "numa_cpus": ["0-3"],
        "numa_memory_gib": [16],
        "boundary": "host",
        "kernel": "6.8",
        "user": {"uid": 7, "groups": ["render"]},
    },
    "bridge": [{"address": "0000:10:00.0", "parent": "pci0000:10", "numa_node": 0}],
    "card": [{"plugin": "toy", "model": "one", "address": "0000:11:00.0", "parent": "0000:10:00.0", "numa_node": 0}],
    "link": [{"a": "0000:11:00.0", "b": "0000:12:00.0", "kind": "x", "count": 1}],
    "nic": [{"name": "mlx5_0", "address": "0000:13:00.0", "kind": "infiniband", "parent": "0000:10:00.0"}],
    "fault": [{"kind": "file-vanishes", "path": "/sys/x"}],
    "environment": {"A": "b"},
}
WRONG = {
    "true": True,
    "negative": -1,
    "huge": 10**30,
    "inf": math.inf,
    "nan": math.nan,
    "text": "x",
    "list": [],
    "list of lists": [[1]],
    "list of texts": ["x" * 50],
    "table": {"a": 1},
    "long text": "x" * 100_000,
}
SIMULATING = """
from anyaccel.machine_description import SimulatedFamily, SimulatedFunction

@hookimpl
def accel_simulate(description):
    cards = description.cards_of("toy")
    return SimulatedFamily(tuple(SimulatedFunction(c.address, 0x1DE8, 1, "120000", c.parent, c.numa_node) for c in cards))
"""


def _toml(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _text(document):
    return 'schema = "anyaccel-machine/1"\n' + "".join(f"{key} = {_toml(value)}\n" for key, value in document.items())


def _places():
    for table, value in BASE.items():
        yield (table,)
        row = value[0] if isinstance(value, list) else value
        yield from ((table, key) for key in row)
    yield from (("host", "user", "uid"), ("host", "user", "groups"))


def _with(place, wrong):
    if len(place) == 1:
        return {**BASE, place[0]: wrong}
    table, *keys = place
    old = BASE[table]
    row = dict(old[0] if isinstance(old, list) else old)
    if len(keys) == 2:
        row[keys[0]] = {**row[keys[0]], keys[1]: wrong}
    else:
        row[keys[0]] = wrong
    return {**BASE, table: [row] if isinstance(old, list) else row}


@pytest.fixture
def registry(write_toy):
    registry = Registry.of(write_toy(SIMULATING))
    assert registry.failures == ()
    return registry


def test_the_base_is_right(registry):
    """What the wrong values are put into is a machine."""
    assert simulate(parse_description(_text(BASE)), registry).is_simulated


@pytest.mark.parametrize("place", list(_places()), ids=".".join)
@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_value_is_one_sentence_in_no_time(place, wrong, registry):
    """Every key with every kind of wrong value either makes a machine or is refused in one line."""
    started = time.monotonic()
    refusal = None

    try:
        simulate(parse_description(_text(_with(place, WRONG[wrong]))), registry)
    except AccelError as error:
        refusal = error

    assert time.monotonic() - started < 5
    assert refusal is None or type(refusal) is RecordingError
    assert refusal is None or ("\n" not in refusal.message and len(refusal.message) < 500)


@pytest.mark.parametrize(
    ("table", "row", "told"),
    [
        ("card", BASE["card"][0], "5000 tables 'card', more than 4096"),
        ("link", BASE["link"][0], "5000 tables 'link', more than 4096"),
    ],
)
def test_too_many_rows_are_refused(table, row, told):
    """Numbers that no machine has are refused before anything is made of them."""
    with pytest.raises(RecordingError, match=told):
        parse_description(_text({**BASE, table: [row] * 5000}))


def test_bridges_that_hang_below_each_other_are_refused(registry):
    """A bridge hangs below one that was named before it, so there is no circle."""
    bridges = [
        {"address": "0000:10:00.0", "parent": "0000:11:00.0"},
        {"address": "0000:11:00.0", "parent": "0000:10:00.0"},
    ]

    with pytest.raises(RecordingError, match="hangs below"):
        simulate(parse_description(_text({"bridge": bridges})), registry)


@pytest.mark.parametrize(
    ("place", "wrong", "told"),
    [
        (("host", "numa_memory_gib"), "x", "'numa_memory_gib' of table 'host' must be a list of at most 1024 sizes in GiB, not 'x'"),  # noqa: E501
        (("card", "plugin"), 5, "'plugin' of table 'card' must be a text of at most 200 characters, not 5"),
        (("host", "user", "uid"), math.inf, "'uid' of table 'host.user' must be a whole number from 0 to 2147483648, not inf"),
        (("card",), 3, "'card' is no array of tables: write [[card]]"),
        (("fault", "path"), 3, "fault 'file-vanishes' needs the path of a file, from / on"),
    ],
)  # fmt: skip
def test_the_sentence_names_table_and_key(place, wrong, told, registry):
    """Subject, what is wrong, what was seen."""
    with pytest.raises(RecordingError) as error:
        simulate(parse_description(_text(_with(place, wrong))), registry)

    assert error.value.message.removeprefix("key ") == told
