"""The laws of masks, over random machines, selections and starting environments."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anyaccel.errors import NotGrantedError, SelectionNotExpressibleError
from anyaccel.visibility import EnvironmentChange, Order, Selection, apply_change, merge_changes
from anyaccel_amd.declaration import HIDE_ALL
from anyaccel_amd.visibility import resolve_visibility, visibility_environment

ROCR, HIP, CUDA, OPENCL = "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"
SETTINGS = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])

KINDS = {
    "whole": ("mi210", {}),
    "no-id": ("mi210", {"unique_id": '"0"'}),
    "cpx": ("mi300x", {"compute_partition": '"CPX"'}),
    "dpx-lacks-one": ("mi300x", {"compute_partition": '"DPX"', "missing_partitions": "[0]"}),
    "integrated": ("raphael", {}),
    "no-driver": ("mi210", {"driver": '""'}),
    "no-kfd-node": ("rx580", {"has_kfd_node": "false"}),
    "asleep": ("rx7900xtx", {"suspended": "true"}),
}


@pytest.fixture(scope="module")
def build(described, inventory_of, card):
    """Give the family of cards of these kinds, in a machine with or without KFD."""
    known = {}

    def make(machine):
        if machine not in known:
            kinds, has_kfd = machine
            text = f'[amd]\nsmi = "binding-missing"\nkfd = {str(has_kfd).lower()}\n'
            for number, kind in enumerate(kinds):
                model, options = KINDS[kind]
                unique = {} if "unique_id" in options else {"unique_id": f'"{number + 1:04x}{number:012x}"'}
                text += card(model, f"0000:{number + 16:02x}:00.0", **options, **unique)
            known[machine] = inventory_of(described(text)).view("amd")
        return known[machine]

    return make


MACHINES = st.tuples(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=4).map(tuple), st.booleans())
TOKENS = st.one_of(
    st.integers(-1, 12).map(str),
    st.integers(0, 4).map(lambda n: f"GPU-{n + 1:04x}"),
    st.integers(0, 4).map(lambda n: f"GPU-{n + 1:04x}{n:012X}"),
    st.sampled_from(("", " ", "all", "none", "NoDevFiles", " 1", "+2", "010", "0x1", "GPU-", "GPU-XX", "1x", '"0"')),
    st.text(max_size=6).filter(lambda text: "\0" not in text),
)
MASKS = st.lists(TOKENS, max_size=5).map(",".join)
NAMES = (ROCR, HIP, CUDA, OPENCL, "AMD_VISIBLE_DEVICES")
ENVIRONS = st.fixed_dictionaries({}, optional=dict.fromkeys(NAMES, MASKS))


def _selection(data, leaves):
    chosen = data.draw(st.permutations(sorted(leaves)))
    return tuple(chosen[: data.draw(st.integers(0, len(chosen)))])


def _can_be_named(view, leaf):
    device = view.device(leaf)
    return device.numbers["index"] is not None or device.uuid is not None


@SETTINGS
@given(machine=MACHINES, environ=ENVIRONS, data=st.data())
def test_what_is_written_is_what_is_seen(machine, environ, data, build):
    """leaves(resolve(environment(S))) == leaves(S), in the order listed, counted from 0."""
    view = build(machine)
    chosen = _selection(data, resolve_visibility(view, environ).leaves)

    try:
        change = visibility_environment(view, Selection(chosen), environ)
    except SelectionNotExpressibleError:
        assert not all(_can_be_named(view, leaf) for leaf in chosen)
        return
    after = resolve_visibility(view, apply_change(environ, change))

    assert after.device_ids == chosen
    assert after.leaves == frozenset(chosen)
    assert [unit.ordinal for unit in after.units] == list(range(len(chosen)))
    assert after.is_complete
    assert change.order is Order.AS_LISTED


@SETTINGS
@given(machine=MACHINES, environ=ENVIRONS)
def test_singletons_are_expressible(machine, environ, build):
    """Every leaf that is granted and can be named can be shown alone."""
    view = build(machine)

    for leaf in resolve_visibility(view, environ).leaves:
        if _can_be_named(view, leaf):
            assert visibility_environment(view, Selection((leaf,)), environ).device_ids == (leaf,)


@SETTINGS
@given(machine=MACHINES, environ=ENVIRONS)
def test_a_mask_never_widens(machine, environ, build):
    """Every device outside what the environment grants is refused."""
    view = build(machine)
    granted = resolve_visibility(view, environ).leaves

    for device in view.devices:
        if not set(view.leaves(device.id)) <= granted:
            with pytest.raises((NotGrantedError, SelectionNotExpressibleError)):
                visibility_environment(view, Selection((device.id,)), environ)


@SETTINGS
@given(machine=MACHINES, environ=ENVIRONS)
def test_hiding_all_leaves_nothing(machine, environ, build):
    """The empty selection leaves no device, whatever was set before."""
    view = build(machine)
    change = visibility_environment(view, Selection(()), environ)

    after = resolve_visibility(view, apply_change(environ, change))

    assert after.units == ()
    assert after.is_complete
    assert change.set == HIDE_ALL


@SETTINGS
@given(machine=MACHINES, first=ENVIRONS, second=ENVIRONS, data=st.data())
def test_the_change_is_independent_of_what_is_inherited(machine, first, second, data, build):
    """Two environments that grant the selection get the same change."""
    view = build(machine)
    granted = resolve_visibility(view, first).leaves & resolve_visibility(view, second).leaves
    chosen = Selection(_selection(data, {leaf for leaf in granted if _can_be_named(view, leaf)}))

    assert visibility_environment(view, chosen, first) == visibility_environment(view, chosen, second)


@SETTINGS
@given(machine=MACHINES, foreign=MASKS, data=st.data())
def test_a_foreign_mask_does_not_move_it(machine, foreign, data, build):
    """Another family's CUDA_VISIBLE_DEVICES beside ours changes nothing of what HIP sees."""
    view = build(machine)
    leaves = {leaf for leaf in resolve_visibility(view, {}).leaves if _can_be_named(view, leaf)}
    chosen = _selection(data, leaves)
    change = visibility_environment(view, Selection(chosen), {})

    merged = merge_changes({"amd": change, "other": EnvironmentChange(set=((CUDA, foreign),))})

    assert resolve_visibility(view, apply_change({}, merged)).device_ids == chosen


@SETTINGS
@given(machine=MACHINES, environ=ENVIRONS)
def test_resolution_is_consistent(machine, environ, build):
    """Numbers are unique, nothing is visible and hidden at once, and unknown units have a reason."""
    view = build(machine)

    resolution = resolve_visibility(view, environ)

    ordinals = [unit.ordinal for unit in resolution.units if unit.ordinal is not None]
    assert ordinals == list(range(len(ordinals)))
    assert len(resolution.leaves) == sum(len(unit.leaves) for unit in resolution.units)
    assert not resolution.leaves & set(resolution.hidden_by)
    assert all(unit.reason for unit in resolution.units if unit.device_id is None or unit.ordinal is None)
    assert {variable.variable for variable in resolution.variables} == set(environ)


@SETTINGS
@given(value=st.text(max_size=20), machine=MACHINES)
def test_any_text_is_a_result(value, machine, build):
    """No text in any variable raises, and every token reported is of a variable that is set."""
    view = build(machine)

    for name in NAMES:
        assert all(token.variable == name for token in resolve_visibility(view, {name: value}).tokens)
