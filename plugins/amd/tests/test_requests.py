"""Which requests the family can answer."""

from __future__ import annotations

import pytest

from anyaccel.resources import AnySet, Refusal, ResourceRequest


@pytest.fixture(scope="module")
def ask(plugin):
    return lambda view, key, amount: plugin.call(
        "accel_validate_request", view=view, request=ResourceRequest(key, amount)
    )


@pytest.fixture(scope="module")
def eight(shipped, view_of):
    return view_of(shipped("amd-mi300x8"))


@pytest.fixture(scope="module")
def divided(shipped, view_of):
    return view_of(shipped("amd-mi300x8-cpx-63"))


@pytest.mark.parametrize("key", ["gpu", "GPU", "amd.com/gpu"])
@pytest.mark.parametrize("amount", [0, 0.5, 1, 8])
def test_any_set_of_enough_gpus_will_do(key, amount, eight, ask):
    """Up to eight whole GPUs, or a share of one, under each of the family's names."""
    assert ask(eight, key, amount) == AnySet()


def test_more_than_there_are_is_refused_with_the_count(eight, ask):
    """Nine of eight can never be had."""
    assert ask(eight, "gpu", 9) == Refusal("9 GPUs asked for, 8 counted here")


def test_integrated_gpus_are_not_counted(shipped, view_of, ask):
    """The workstation has one GPU to give, and says why not two."""
    view = view_of(shipped("amd-workstation-dgpu-igpu"))

    assert ask(view, "gpu", 1) == AnySet()
    assert ask(view, "gpu", 2) == Refusal("2 GPUs asked for, 1 counted here, and 1 integrated that are not counted")


def test_divided_gpus_are_no_whole_gpus(divided, ask):
    """A request for whole GPUs on a divided machine names what there is instead."""
    answer = ask(divided, "gpu", 1)

    assert isinstance(answer, Refusal)
    assert "8 are divided into partitions (cpx_nps4)" in answer.reason


@pytest.mark.parametrize("key", ["gpu-partition", "amd.com/cpx_nps4"])
def test_partitions_are_asked_by_kind_or_profile(key, divided, ask):
    """63 partitions can be had, the missing 64th cannot."""
    assert ask(divided, key, 63) == AnySet()
    assert isinstance(ask(divided, key, 64), Refusal)


def test_another_profile_is_refused_with_the_kinds(divided, ask):
    """A profile the machine does not have names those it has."""
    assert ask(divided, "amd.com/dpx_nps1", 1).reason.endswith("0 there (kinds: cpx_nps4)")


def test_an_unknown_resource_is_refused(eight, ask):
    """What the family does not know names what it knows."""
    assert "knows no resource 'tpu'" in ask(eight, "tpu", 1).reason


def test_a_profile_among_others_names_its_partitions(described, view_of, card, ask):
    """Where kinds are mixed, only partitions of the kind asked for make a set."""
    text = card("mi300x", "0000:26:00.0", compute_partition='"CPX"') + card(
        "mi300x", "0000:2f:00.0", compute_partition='"DPX"'
    )
    view = view_of(described(text))
    profiles = {d.id: d.attributes.get("partition_profile") for d in view.devices}
    wanted = next(profile for profile in profiles.values() if profile and profile.startswith("dpx"))

    answer = ask(view, f"amd.com/{wanted}", 2)

    assert [{profiles[i] for i in legal.device_ids} for legal in answer] == [{wanted}]
