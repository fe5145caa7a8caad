"""The laws of masks, over random machines, selections and starting environments."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anyaccel.device import Condition, DeviceState
from anyaccel.errors import NotGrantedError, SelectionNotExpressibleError
from anyaccel.visibility import Order, Selection, apply_change
from anyaccel_nvidia.environment import visibility_environment
from anyaccel_nvidia.visibility import resolve_visibility

KINDS = (
    "whole",
    "whole",
    "whole",
    "other-model",
    "lost",
    "blocked",
    "denied",
    "prohibited",
    "mig",
    "nameless",
    "no-index",
)
CONDITIONS = {
    "lost": Condition("pci-dead", "gone", DeviceState.LOST),
    "blocked": Condition("node-not-granted", "not here", DeviceState.BLOCKED),
    "denied": Condition("permission-denied", "not you", DeviceState.DENIED),
    "prohibited": Condition("compute-prohibited", "no process", DeviceState.UNUSABLE),
}
SETTINGS = settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def build(kinds, partitions, boundary, card, divided, view_of):
    """Make a family of cards of these kinds."""
    devices = []
    for number, (kind, count) in enumerate(zip(kinds, partitions, strict=True)):
        device = card(
            number,
            uuid=None if kind == "nameless" else f"GPU-{number:04x}0000-0000-0000-0000-000000000000",
            model="another" if kind == "other-model" else "NVIDIA H100 80GB HBM3",
            conditions=(CONDITIONS[kind],) if kind in CONDITIONS else (),
        )
        if kind in ("no-index", "blocked"):
            device = card(number, conditions=device.conditions, numbers=device.numbers.with_items({"index": None}))
        devices += divided(device, *range(1, count + 1)) if kind == "mig" else [device]
    return view_of(devices, boundary)


def machines():
    sizes = st.integers(0, 6)
    return sizes.flatmap(
        lambda size: st.tuples(
            st.lists(st.sampled_from(KINDS), min_size=size, max_size=size),
            st.lists(st.integers(0, 3), min_size=size, max_size=size),
            st.sampled_from(("host", "container")),
        )
    )


TOKENS = st.one_of(
    st.integers(-1, 7).map(str),
    st.integers(0, 6).map(lambda n: f"GPU-{n:04x}"),
    st.integers(0, 6).map(lambda n: f"GPU-{n:04x}0000-0000-0000-0000-000000000000"),
    st.tuples(st.integers(1, 3), st.integers(0, 6)).map(lambda p: f"MIG-{p[0]:04x}0000-{p[1]:04x}"),
    st.sampled_from(
        ("", "all", "none", "NoDevFiles", " 1", "+2", "010", "0x1", "GPU-", "MIG-", "1,1", "MIG-GPU-0001/1/0")
    ),
    st.text(max_size=6).filter(lambda text: "\0" not in text),
)
MASKS = st.lists(TOKENS, max_size=5).map(",".join)
ENVIRONS = st.fixed_dictionaries(
    {},
    optional={
        "CUDA_VISIBLE_DEVICES": MASKS,
        "CUDA_DEVICE_ORDER": st.sampled_from(("PCI_BUS_ID", "FASTEST_FIRST", "odd", "")),
        "CUDA_MPS_PIPE_DIRECTORY": st.just("/tmp/nvidia-mps"),
        "NVIDIA_VISIBLE_DEVICES": MASKS,
        "SLURM_JOB_GPUS": st.lists(st.integers(0, 7), max_size=4).map(lambda numbers: ",".join(map(str, numbers))),
    },
)


def expressible(view, leaves):
    """Whether CUDA can show these together at all."""
    return len(leaves) <= 1 or not any("gpu_instance" in view.device(leaf).numbers for leaf in leaves)


@SETTINGS
@given(machine=machines(), environ=ENVIRONS, data=st.data())
def test_what_is_written_is_what_is_seen(machine, environ, data, card, divided, view_of):
    """leaves(resolve(environment(S))) == leaves(S), in the order listed, with numbers from 0, for every S accepted."""
    view = build(*machine, card, divided, view_of)
    granted = sorted(resolve_visibility(view, environ).leaves)
    chosen = data.draw(st.permutations(granted).flatmap(lambda p: st.integers(0, len(p)).map(lambda n: tuple(p[:n]))))

    try:
        change = visibility_environment(view, Selection(chosen), environ)
    except SelectionNotExpressibleError:
        nameless = any(view.device(leaf).uuid is None for leaf in chosen)
        assert nameless or not expressible(view, chosen)
        return
    after = resolve_visibility(view, apply_change(environ, change))

    assert after.device_ids == chosen
    assert after.leaves == frozenset(chosen)
    assert [unit.ordinal for unit in after.units] == list(range(len(chosen)))
    assert after.is_complete
    assert change.order is Order.AS_LISTED


@SETTINGS
@given(machine=machines(), environ=ENVIRONS)
def test_singletons_with_an_id_are_expressible(machine, environ, card, divided, view_of):
    """Every single leaf that is granted and has an id can be shown alone."""
    view = build(*machine, card, divided, view_of)

    for leaf in resolve_visibility(view, environ).leaves:
        if view.device(leaf).uuid is not None:
            assert visibility_environment(view, Selection((leaf,)), environ).device_ids == (leaf,)


@SETTINGS
@given(machine=machines(), environ=ENVIRONS)
def test_a_mask_never_widens(machine, environ, card, divided, view_of):
    """Every leaf outside what the environment surely grants is refused."""
    view = build(*machine, card, divided, view_of)
    granted = resolve_visibility(view, environ).leaves

    for device in view.devices:
        if not set(view.leaves(device.id)) <= granted:
            with pytest.raises(NotGrantedError):
                visibility_environment(view, Selection((device.id,)), environ)


@SETTINGS
@given(machine=machines(), environ=ENVIRONS)
def test_hiding_all_leaves_nothing(machine, environ, card, divided, view_of):
    """The empty selection leaves no device, whatever was set before."""
    view = build(*machine, card, divided, view_of)
    change = visibility_environment(view, Selection(()), environ)

    after = resolve_visibility(view, apply_change(environ, change))

    assert after.units == ()
    assert after.is_complete
    assert change.set == (("CUDA_VISIBLE_DEVICES", ""),)


@SETTINGS
@given(machine=machines(), environ=ENVIRONS)
def test_resolution_is_consistent(machine, environ, card, divided, view_of):
    """Numbers are unique, nothing is visible and hidden at once, and a second call gives the same."""
    view = build(*machine, card, divided, view_of)

    resolution = resolve_visibility(view, environ)

    ordinals = [unit.ordinal for unit in resolution.units if unit.ordinal is not None]
    assert len(set(ordinals)) == len(ordinals)
    assert not resolution.leaves & set(resolution.hidden_by)
    assert all(unit.reason for unit in resolution.units if unit.device_id is None or unit.ordinal is None)
    assert resolve_visibility(view, environ) == resolution


@SETTINGS
@given(machine=machines(), environ=ENVIRONS)
def test_no_number_reaches_a_doubtful_card(machine, environ, card, divided, view_of):
    """A number never resolves to a card that is lost, not accessible, or whose number is unknown."""
    view = build(*machine, card, divided, view_of)

    for token in resolve_visibility(view, environ).tokens:
        if token.variable == "CUDA_VISIBLE_DEVICES" and token.text.strip().isdigit():
            for device_id in token.device_ids:
                device = view.device(device_id)
                assert device.numbers["index"] is not None
                assert device.state not in (DeviceState.LOST, DeviceState.BLOCKED, DeviceState.DENIED)


@SETTINGS
@given(value=st.text(max_size=20), machine=machines())
def test_any_text_is_a_result(value, machine, card, divided, view_of):
    """No text in any variable raises."""
    view = build(*machine, card, divided, view_of)
    names = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES", "SLURM_JOB_GPUS", "SLURM_STEP_GPUS")

    for name in names:
        resolution = resolve_visibility(view, {name: value})

        assert all(token.variable == name for token in resolution.tokens)
