"""Environments: ids where they are known, numbers only with their order, and refusals rather than a nearest set."""

from __future__ import annotations

import pytest

from anyaccel.errors import NotGrantedError, SelectionNotExpressibleError
from anyaccel.visibility import Effect, Selection
from anyaccel_nvidia.environment import visibility_environment

ORDER = ("CUDA_DEVICE_ORDER", "PCI_BUS_ID")


@pytest.fixture
def equal(card, view_of):
    return view_of([card(number) for number in range(4)])


def ids(view, *positions):
    return Selection(tuple(view.roots[position].id for position in positions))


def test_ids_are_written_in_the_order_listed(equal):
    """Ids in the order of the selection, with the order pinned, so that nothing inherited changes their meaning."""
    change = visibility_environment(equal, ids(equal, 2, 0), {"CUDA_DEVICE_ORDER": "FASTEST_FIRST"})

    assert change.set == (ORDER, ("CUDA_VISIBLE_DEVICES", f"{equal.roots[2].uuid},{equal.roots[0].uuid}"))
    assert change.unset == ()
    assert change.effect is Effect.ASSUMED


def test_container_variable_is_never_written(equal):
    """The container runtime's variable belongs to nobody inside; it stays as it is."""
    change = visibility_environment(equal, ids(equal, 1), {"NVIDIA_VISIBLE_DEVICES": "none"})

    assert "NVIDIA_VISIBLE_DEVICES" not in {*dict(change.set), *change.unset}


def test_nothing_selected_hides_all(equal):
    """No device: an empty value, not an unset variable."""
    assert visibility_environment(equal, Selection(()), {}).set == (("CUDA_VISIBLE_DEVICES", ""),)


def test_numbers_where_ids_are_unknown(card, view_of):
    """Without ids certain numbers serve, together with the order that gives them meaning."""
    view = view_of([card(0, uuid=None), card(1, uuid=None)])

    change = visibility_environment(view, ids(view, 1), {})

    assert change.set == (ORDER, ("CUDA_VISIBLE_DEVICES", "1"))


def test_ids_and_numbers_are_never_mixed(card, view_of):
    """One unknown id among the selected makes all of them numbers."""
    view = view_of([card(0), card(1, uuid=None), card(2)])

    change = visibility_environment(view, ids(view, 2, 1), {})

    assert dict(change.set)["CUDA_VISIBLE_DEVICES"] == "2,1"


def test_mps_client_gets_an_id(equal):
    """Beside an MPS server the worker's mask is an id, whatever numbers the server was started with."""
    change = visibility_environment(equal, ids(equal, 2), {"CUDA_MPS_PIPE_DIRECTORY": "/tmp/nvidia-mps"})

    assert dict(change.set)["CUDA_VISIBLE_DEVICES"] == equal.roots[2].uuid


def test_mps_without_ids_is_not_expressible(card, view_of):
    """Numbers mean something else behind an MPS server, so without an id there is no honest mask."""
    view = view_of([card(0, uuid=None), card(1, uuid=None)])

    with pytest.raises(SelectionNotExpressibleError, match=r"no known id .* MPS server"):
        visibility_environment(view, ids(view, 1), {"CUDA_MPS_PIPE_DIRECTORY": "/tmp/nvidia-mps"})


def test_one_instance_is_written_by_its_id(card, divided, view_of):
    """A MIG instance, alone or as the only leaf of its card, is its MIG id."""
    view = view_of(divided(card(0), 3))
    parent, child = view.devices

    for selected in (parent, child):
        change = visibility_environment(view, Selection((selected.id,)), {})

        assert dict(change.set)["CUDA_VISIBLE_DEVICES"] == child.uuid


@pytest.mark.parametrize("selected", [(1, 2), (0, 1)], ids=["two instances", "instance and card"])
def test_what_cuda_cannot_show_together(selected, card, divided, view_of):
    """Two MIG instances, or one beside a whole GPU, are refused with the reason."""
    view = view_of([card(0), *divided(card(1), 3, 4)])
    leaves = [leaf for root in view.roots for leaf in view.leaves(root.id)]

    with pytest.raises(SelectionNotExpressibleError, match="one process can use one MIG instance") as error:
        visibility_environment(view, Selection(tuple(leaves[position] for position in selected)), {})

    assert "one process for each" in error.value.hint


def test_second_listed_instance_is_granted_to_another_worker(card, divided, view_of):
    """A mask that names two instances grants both, each to a process of its own."""
    view = view_of(divided(card(0), 3, 4))
    _, first, second = view.devices
    environ = {"CUDA_VISIBLE_DEVICES": f"{first.uuid},{second.uuid}"}

    change = visibility_environment(view, Selection((second.id,)), environ)

    assert dict(change.set)["CUDA_VISIBLE_DEVICES"] == second.uuid


def test_outside_the_mask_is_refused(equal):
    """A mask never widens."""
    with pytest.raises(NotGrantedError, match=r"0000:20:00\.0"):
        visibility_environment(equal, ids(equal, 1), {"CUDA_VISIBLE_DEVICES": "0,2"})


def test_outside_the_batch_grant_is_refused(equal):
    """Without any mask the batch system's grant still bounds what is written."""
    environ = {"SLURM_JOB_GPUS": "1,3"}

    assert visibility_environment(equal, ids(equal, 3), environ).device_ids == (equal.roots[3].id,)
    with pytest.raises(NotGrantedError):
        visibility_environment(equal, ids(equal, 0), environ)


def test_unmapped_number_grants_nothing(card, view_of, equal):
    """What an entry cannot be mapped to is not granted: behind an MPS server `2` proves nothing."""
    environ = {"CUDA_VISIBLE_DEVICES": "2", "CUDA_MPS_PIPE_DIRECTORY": "/tmp/nvidia-mps"}

    with pytest.raises(NotGrantedError):
        visibility_environment(equal, ids(equal, 2), environ)


def test_board_in_the_processor_is_a_number(registry, shipped):
    """A GPU that is not on PCI is named by the only number there is."""
    from anyaccel.discovery import discover
    from anyaccel.simulation import simulate

    view = discover(simulate(shipped("nvidia-jetson-orin"), registry), registry).view("nvidia")

    change = visibility_environment(view, Selection((view.roots[0].id,)), {})

    assert dict(change.set)["CUDA_VISIBLE_DEVICES"] == "0"


def test_two_cards_of_one_id_cannot_be_told_apart(card, view_of):
    """Where a driver gives one id twice no mask shows exactly one of the cards, so none is written."""
    view = view_of([card(0, uuid="GPU-same"), card(1, uuid="GPU-same")])

    with pytest.raises(SelectionNotExpressibleError, match="no environment is known to show exactly"):
        visibility_environment(view, ids(view, 1), {})
