"""Neuron's variables, read and written."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyaccel.device import Condition, DeviceState
from anyaccel.errors import NotGrantedError, SelectionNotExpressibleError
from anyaccel.visibility import Gang, Order, Selection, TokenEffect, apply_change
from anyaccel_neuron.visibility import change_for, resolve

CORES, COUNT = "NEURON_RT_VISIBLE_CORES", "NEURON_RT_NUM_CORES"
SIZE, SIZE_TOO = "NEURON_RT_VIRTUAL_CORE_SIZE", "NEURON_LOGICAL_NC_CONFIG"


@pytest.fixture(scope="session")
def two(described):
    """Two Trainium devices with two cores each."""
    return described(2)


def shown(view, **environ):
    """Give the ids in the order of the process, without the family."""
    return [None if i is None else i.removeprefix("neuron:") for i in resolve(view, environ).device_ids]


@pytest.mark.parametrize(
    ("value", "ids"),
    [
        ("0", ["0/0"]),
        ("0-3", ["0/0", "0/1", "1/0", "1/1"]),
        ("1,2", ["0/1", "1/0"]),
        (" 1 - 2 ", ["0/1", "1/0"]),
        ("0-1,3", ["0/0", "0/1", "1/1"]),
        ("", []),
        ("1,1", ["0/1"]),
    ],
)
def test_list_of_cores(value, ids, two):
    """Cores and ranges; an empty list shows none."""
    assert shown(two, **{CORES: value}) == ids


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("NoDevFiles", "is neither a core nor a range"),
        ("0,", "is neither a core nor a range"),
        ("-1", "is neither a core nor a range"),
        ("4", r"names a core that is not here \(have 0-3\)"),
        ("0-4", "names a core that is not here"),
        ("0-999999999", "names a core that is not here"),
        ("3-1", "the range runs backwards"),
    ],
)
def test_value_the_runtime_refuses(value, reason, two):
    """Nothing is visible, and the report says why."""
    seen = resolve(two, {CORES: value})

    assert seen.units == ()
    assert any(token.effect is TokenEffect.EMPTIES_LIST for token in seen.tokens)
    assert re.search(reason, seen.warnings[0])


def test_core_missing_inside_a_range(view_of):
    """A range over a device that is not there is refused."""
    text = '[[card]]\nplugin = "neuron"\nmodel = "trn1"\naddress = "0000:1{n}:00.0"\nindex = {n}\n'
    view = view_of(text.format(n=0) + text.format(n=2))

    (token,) = resolve(view, {CORES: "1-4"}).tokens

    assert token.reason.startswith("names core 2, which is not here")


def test_without_devices_nothing_is_there(view_of):
    """Every core is out of range on a machine without devices."""
    view = view_of('[[card]]\nplugin = "neuron"\nmodel = "trn1"\naddress = "0000:10:00.0"\ndriver = "vfio-pci"\n')

    assert "(have none)" in resolve(view, {CORES: "0"}).tokens[0].reason


def test_order_of_a_falling_list_is_unknown(two):
    """Nothing tells how cores are counted that are not listed in rising order."""
    seen = resolve(two, {CORES: "3,0"})

    assert [unit.ordinal for unit in seen.units] == [None, None]
    assert seen.device_ids == ("neuron:1/1", "neuron:0/0")


def test_number_of_cores_is_any_of_them(two):
    """Which ones is decided when the process starts; all of them is certain."""
    assert shown(two, **{COUNT: "1"}) == [None]
    assert shown(two, **{COUNT: "4"}) == ["0/0", "0/1", "1/0", "1/1"]
    assert resolve(two, {COUNT: "1"}).hidden_by == {}


@pytest.mark.parametrize("value", ["5", "x", "1-2"])
def test_number_of_cores_that_is_refused(value, two):
    """More than there are, or no number."""
    assert shown(two, **{COUNT: value}) == []


@pytest.mark.parametrize("value", ["0", ""])
def test_number_zero_means_all(value, two):
    """As documented."""
    seen = resolve(two, {COUNT: value})

    assert len(seen.units) == 4
    assert not seen.variables[0].has_effect


def test_both_variables_are_a_conflict(two):
    """The list wins, and this is said unasked."""
    seen = resolve(two, {CORES: "0", COUNT: "1"})

    assert seen.device_ids == ("neuron:0/0",)
    assert seen.warnings == (f"{COUNT}='1': {CORES} is set as well and wins",)


@pytest.mark.parametrize("variable", [SIZE, SIZE_TOO])
def test_size_of_a_core_changes_what_a_number_means(variable, server):
    """Core 3 is a pair of physical cores, or one."""
    assert shown(server, **{CORES: "3"}) == ["0/3"]
    assert shown(server, **{CORES: "3", variable: "1"}) == ["0/1/1"]
    assert shown(server, **{CORES: "3", variable: "2"}) == ["0/3"]


def test_size_is_nothing_to_a_chip_without_pairs(two):
    """Said, and without effect."""
    seen = resolve(two, {CORES: "3", SIZE: "2"})

    assert seen.device_ids == ("neuron:1/1",)
    assert [r.has_effect for r in seen.variables if r.variable == SIZE] == [False]


def test_sizes_that_differ_are_a_conflict(server):
    """The runtime's own variable comes first."""
    seen = resolve(server, {SIZE: "1", SIZE_TOO: "2"})

    assert len(seen.units) == 128
    assert [(r.has_effect, r.is_warning) for r in seen.variables] == [(True, True), (False, True)]


def test_size_that_is_none_is_warned_about(server):
    """4 is no size; the default holds."""
    seen = resolve(server, {SIZE: "4"})

    assert len(seen.units) == 64
    assert seen.warnings == (f"{SIZE}='4': is neither 1 nor 2",)


def test_device_that_does_not_open_is_not_counted(two):
    """Its numbers stay its own: the next device's do not move."""
    denied = Condition("denied", "no", DeviceState.DENIED)
    devices = tuple(replace(d, conditions=(denied,)) if d.id.startswith("neuron:0") else d for d in two.devices)
    view = replace(two, devices=devices)

    assert shown(view) == ["1/0", "1/1"]
    assert shown(view, **{CORES: "2"}) == ["1/0"]
    assert shown(view, **{CORES: "0"}) == []


def test_other_variables_are_explained(two):
    """Peers hide nothing; the container's list was read before."""
    environ = {
        "NEURON_RT_ROOT_COMM_ID": "10.0.0.1:4242",
        "NEURON_PJRT_PROCESS_INDEX": "0",
        "NEURON_PJRT_PROCESSES_NUM_DEVICES": "2",
        "AWS_NEURON_VISIBLE_DEVICES": "0",
    }

    seen = resolve(two, environ)

    assert len(seen.units) == 4
    assert {r.variable: r.has_effect for r in seen.variables} == {
        **dict.fromkeys(environ, True),
        "AWS_NEURON_VISIBLE_DEVICES": False,
    }


def test_workers_get_a_core_each(two):
    """An inherited number of cores is removed, so that two workers do not both take core 0."""
    changes = [change_for(two, Selection((f"neuron:0/{core}",)), {COUNT: "4"}, None) for core in (0, 1)]

    assert [dict(change.set)[CORES] for change in changes] == ["0", "1"]
    assert all(COUNT in change.unset for change in changes)


def test_devices_are_written_as_their_cores(server):
    """Ranges, in rising order, with the size of a core beside them."""
    change = change_for(server, Selection(("neuron:1", "neuron:0")), {}, None)

    assert dict(change.set) == {CORES: "0-7", SIZE: "2", SIZE_TOO: "2"}
    assert change.order is Order.CANONICAL
    assert change.device_ids[:2] == ("neuron:0/0", "neuron:0/1")
    assert change.notes == ()


def test_gaps_are_a_list_with_a_note(server):
    """Old runtimes take one range only."""
    change = change_for(server, Selection(("neuron:0", "neuron:3/0")), {}, None)

    assert dict(change.set)[CORES] == "0-3,12"
    assert "before 2.16.18 take one range only" in change.notes[0]


def test_a_physical_core_splits_all(server):
    """One process counts either pairs or physical cores; what was asked for stays the same."""
    change = change_for(server, Selection(("neuron:0/1/1", "neuron:0/0")), {}, None)

    assert dict(change.set) == {CORES: "0-1,3", SIZE: "1", SIZE_TOO: "1"}
    assert resolve(server, apply_change({}, change)).device_ids == change.device_ids


def test_chip_without_pairs_writes_no_size(two):
    """Only what has a meaning is written."""
    assert dict(change_for(two, Selection(("neuron:1",)), {}, None).set) == {CORES: "2-3"}


def test_nothing_hides_all(two):
    """An empty list is written, and nothing else that could show a core is left."""
    change = change_for(two, Selection(), {COUNT: "2"}, None)

    assert resolve(two, apply_change({COUNT: "2"}, change)).units == ()


def test_gang_tells_how_many_cores_each_process_has(server):
    """Rank and sizes move together; alone, both are removed."""
    members = (Selection(("neuron:0",)), Selection(("neuron:1/0", "neuron:1/1")), Selection(("neuron:2/0/0",)))

    change = change_for(server, members[1], {}, Gang(1, members))
    alone = change_for(server, members[1], {}, None)

    assert dict(change.set)["NEURON_PJRT_PROCESSES_NUM_DEVICES"] == "4,2,1"
    assert dict(change.set)["NEURON_PJRT_PROCESS_INDEX"] == "1"
    assert change.notes == ("set NEURON_RT_ROOT_COMM_ID to an address and port of the first process",)
    assert {"NEURON_PJRT_PROCESSES_NUM_DEVICES", "NEURON_PJRT_PROCESS_INDEX"} <= set(alone.unset)


def test_gang_with_an_address_needs_no_note(two):
    """The address was given from outside."""
    gang = Gang(0, (Selection(("neuron:0",)), Selection(("neuron:1",))))

    assert change_for(two, gang.members[0], {"NEURON_RT_ROOT_COMM_ID": "localhost:1"}, gang).notes == ()


def test_device_without_cores_cannot_be_named(view_of):
    """The driver does not show it."""
    view = view_of("neuron-inf2x6-faults")

    with pytest.raises(SelectionNotExpressibleError, match="no kernel driver is bound"):
        change_for(view, Selection(("neuron:0000:22:00.0",)), {}, None)


def test_mask_is_not_widened(two):
    """What the inherited list hides is not granted."""
    with pytest.raises(NotGrantedError, match="neuron:1"):
        change_for(two, Selection(("neuron:1",)), {CORES: "0"}, None)


numbers = st.integers(0, 9)
entries = st.one_of(numbers.map(str), st.tuples(numbers, numbers).map("{0[0]}-{0[1]}".format), st.text(max_size=2))


@given(value=st.lists(entries, max_size=4).map(",".join).filter(lambda text: "\0" not in text))
def test_every_value_resolves(value, two):
    """Whatever is written, a core is visible at most once."""
    seen = resolve(two, {CORES: value})

    assert len(seen.units) == len(set(seen.device_ids)) <= 4
