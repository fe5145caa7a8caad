"""What an environment leaves, which variable hid what, and the environment that is written for a selection."""

from __future__ import annotations

import pytest

from anyaccel.device import Level
from anyaccel.environment import environment_for, resolve_all
from anyaccel.errors import DeviceNotFoundError, NotGrantedError, SelectionNotExpressibleError
from anyaccel.visibility import Effect, EnvironmentChange, Order, Selection, apply_change, merge_changes
from anyaccel_amd.declaration import HIDE_ALL

ROCR, HIP, CUDA, OPENCL = "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"


@pytest.fixture(scope="module")
def one(described, view_of, card):
    """A machine with one GPU."""
    return view_of(described(card()))


@pytest.fixture(scope="module")
def four(shipped, view_of):
    """Four GPUs."""
    return view_of(shipped("amd-mi210x4"))


@pytest.fixture(scope="module")
def divided(described, view_of, card):
    """A GPU of eight partitions and a whole one."""
    return view_of(described(card("mi300x", compute_partition='"CPX"') + card("mi300x", "0000:26:00.0")))


@pytest.fixture(scope="module")
def orderless(described, inventory_of, card, changed):
    """Two GPUs of a tree without KFD."""
    machine = described('[amd]\nkfd = false\nsmi = "binding-missing"\n' + card() + card(address="0000:26:00.0"))
    return inventory_of(machine).view("amd")


@pytest.fixture(scope="module")
def resolve(plugin):
    return lambda view, **environ: plugin.call("accel_resolve_visibility", view=view, environ=environ)


@pytest.fixture(scope="module")
def environment(plugin):
    return lambda view, *ids, **environ: plugin.call(
        "accel_visibility_environment", view=view, selection=Selection(ids), environ=environ, gang=None
    )


def indexes(view, resolution):
    return [view.device(unit.device_id).numbers["index"] for unit in resolution.units]


def report(resolution, name):
    return next(found for found in resolution.variables if found.variable == name)


def ids(view, *places):
    return tuple(view.devices[place].id for place in places)


def test_nothing_set_shows_all(four, resolve):
    """Without a variable every GPU counts, in KFD order, and nothing is masked."""
    resolution = resolve(four)

    assert indexes(four, resolution) == [0, 1, 2, 3]
    assert not resolution.is_masked
    assert resolution.variables == ()


def test_cuda_s_variable_hides_and_is_named(one, resolve):
    """-1 meant for another vendor hides the GPU, and the reason names the variable and the remedy."""
    resolution = resolve(one, **{CUDA: "-1"})

    assert dict(resolution.hidden_by) == {one.devices[0].id: CUDA}
    assert report(resolution, CUDA).is_warning
    assert HIP in report(resolution, CUDA).hint
    assert "HIP honours it" in report(resolution, CUDA).reason


def test_two_variables_that_differ_are_a_warning(four, resolve):
    """HIP's own variable wins, and the disagreement is told."""
    resolution = resolve(four, **{CUDA: "0,1,2,3", HIP: "0"})

    assert indexes(four, resolution) == [0]
    assert report(resolution, CUDA).is_warning
    assert not report(resolution, CUDA).has_effect


def test_two_variables_that_agree_are_none(four, resolve):
    """The same value in both makes no warning."""
    assert resolve(four, **{CUDA: "0", HIP: "0"}).warnings == ()


def test_rocr_alone_is_honoured_and_bounds_what_may_be_asked(four, resolve, environment):
    """A site's ROCR mask leaves two; children stay inside them."""
    assert indexes(four, resolve(four, **{ROCR: "0,1"})) == [0, 1]
    with pytest.raises(NotGrantedError, match=four.devices[2].id):
        environment(four, four.devices[2].id, **{ROCR: "0,1"})
    assert environment(four, four.devices[1].id, **{ROCR: "0,1"}).set == ((HIP, "1"),)


def test_four_workers_see_four_different_gpus(four, resolve, environment):
    """One device each, from whatever they inherit: exactly one variable carries a number."""
    inherited = {ROCR: "0,1,2,3", CUDA: "0,1,2,3", OPENCL: "0"}
    seen = []
    for device in four.devices:
        after = apply_change(inherited, environment(four, device.id, **inherited))
        assert set(after) == {HIP}
        seen.append(resolve(four, **after).device_ids)

    assert seen == [(device.id,) for device in four.devices]


def test_empty_hip_variable_hides_everything(four, resolve):
    """Set and empty is none, whatever ROCR leaves (M31)."""
    resolution = resolve(four, **{ROCR: "0,1", HIP: ""})

    assert resolution.units == ()
    assert set(resolution.hidden_by.values()) == {ROCR, HIP}


def test_cuda_s_variable_alone_counts(four, resolve):
    """CUDA_VISIBLE_DEVICES without HIP's own is HIP's mask (M32)."""
    assert indexes(four, resolve(four, **{CUDA: "2"})) == [2]


def test_layers_are_counted_through(four, resolve):
    """HIP counts what ROCR left, and the report says so."""
    resolution = resolve(four, **{ROCR: "2,3", HIP: "1"})

    assert indexes(four, resolution) == [3]
    assert "its numbers count the 2 GPUs that ROCR_VISIBLE_DEVICES left" in report(resolution, HIP).reason


def test_a_number_beyond_the_first_layer_is_a_warning(four, resolve):
    """The same number in both layers is the classic mistake; the reason and the remedy are told."""
    resolution = resolve(four, **{ROCR: "1", HIP: "1"})

    assert resolution.units == ()
    assert report(resolution, HIP).is_warning
    assert "set one of the two" in report(resolution, HIP).hint


def test_each_hidden_gpu_names_the_layer_that_hid_it(four, resolve):
    """ROCR hid two, HIP one."""
    hidden = resolve(four, **{ROCR: "0,1", HIP: "0"}).hidden_by

    assert [hidden.get(device.id) for device in four.devices] == [None, HIP, ROCR, ROCR]


def test_a_gpu_is_hidden_when_all_its_partitions_are(divided, resolve):
    """The whole GPU is hidden with its partitions, and not with some of them."""
    root = divided.roots[0]

    assert resolve(divided, **{HIP: "8"}).hidden_by[root.id] == HIP
    assert root.id not in resolve(divided, **{HIP: "3"}).hidden_by


def test_the_opencl_variable_has_no_effect_on_hip(four, resolve):
    """GPU_DEVICE_ORDINAL is told as without effect, with the contradiction between page and source."""
    resolution = resolve(four, **{OPENCL: "0"})

    assert len(resolution.units) == 4
    assert not report(resolution, OPENCL).has_effect
    assert report(resolution, OPENCL).is_warning


def test_the_container_variable_has_no_effect_here(four, resolve):
    """AMD_VISIBLE_DEVICES speaks to the container runtime."""
    found = report(resolve(four, AMD_VISIBLE_DEVICES="0"), "AMD_VISIBLE_DEVICES")

    assert not found.has_effect
    assert "container" in found.reason


def test_variables_of_a_machine_without_gpus_hide_nothing(described, plugin, inventory_of):
    """No GPU: no warning about CUDA's variable."""
    from anyaccel.device import FamilyView

    resolution = plugin.call("accel_resolve_visibility", view=FamilyView("amd", ()), environ={CUDA: "-1"})

    assert resolution.warnings == ()
    assert resolution.units == ()


def test_numbers_mean_nothing_without_kfd(orderless, resolve):
    """Where the order is unknown a number names an unknown unit, with the reason; a unique id names its GPU."""
    by_number = resolve(orderless, **{HIP: "0"})
    by_uuid = resolve(orderless, **{HIP: orderless.devices[1].uuid})

    assert by_number.device_ids == (None,)
    assert not by_number.is_complete
    assert by_uuid.device_ids == (orderless.devices[1].id,)


def test_unmasked_units_without_kfd_have_no_ordinal(orderless, resolve):
    """All are visible, in an order nobody knows."""
    units = resolve(orderless).units

    assert [unit.ordinal for unit in units] == [None, None]
    assert all("order" in unit.reason for unit in units)


def test_without_kfd_a_selection_is_written_as_unique_ids(orderless, environment):
    """Where numbers are unknown the unique id still names the GPU."""
    change = environment(orderless, *ids(orderless, 1))

    assert change.set == ((HIP, orderless.devices[1].uuid),)


def test_without_number_and_id_a_selection_is_refused(described, inventory_of, card, environment):
    """Nothing names it: refused with the reason, never guessed."""
    text = '[amd]\nkfd = false\nsmi = "binding-missing"\n' + card(unique_id='"0"')
    view = inventory_of(described(text)).view("amd")

    with pytest.raises(SelectionNotExpressibleError, match="cannot be named in a mask"):
        environment(view, view.devices[0].id)


def test_a_gpu_the_runtime_does_not_count_is_refused(described, view_of, card, environment):
    """No KFD node: no mask can show it."""
    view = view_of(described(card() + card("rx580", "0000:26:00.0", has_kfd_node="false")))

    with pytest.raises(SelectionNotExpressibleError):
        environment(view, "amd:0000:26:00.0")


def test_an_unknown_device_is_refused(four, environment):
    """A wrong id is an error that names it."""
    with pytest.raises(DeviceNotFoundError):
        environment(four, "amd:0000:99:00.0")


def test_the_change_is_one_list_of_numbers(four, environment):
    """HIP_VISIBLE_DEVICES in the order listed; every other layer is removed; the limits are told."""
    change = environment(four, *ids(four, 3, 1))

    assert change.set == ((HIP, "3,1"),)
    assert change.unset == (CUDA, OPENCL, ROCR)
    assert (change.order, change.effect) == (Order.AS_LISTED, Effect.ASSUMED)
    assert any("rocminfo" in note for note in change.notes)


def test_a_divided_gpu_selects_all_its_partitions(divided, environment):
    """Selecting the GPU shows its partitions in order."""
    root = divided.roots[0]

    change = environment(divided, root.id)

    assert change.set == ((HIP, "0,1,2,3,4,5,6,7"),)
    assert change.device_ids == tuple(child.id for child in divided.children(root.id))


def test_partitions_are_written_by_number(divided, environment):
    """Partitions share a unique id, so numbers name them."""
    parts = [device.id for device in divided.devices if device.level is Level.PARTITION]

    assert environment(divided, parts[5], parts[2]).set == ((HIP, "5,2"),)


def test_a_gpu_and_its_partition_cannot_both_be_selected(divided, environment):
    """One unit twice is refused."""
    root = divided.roots[0]

    with pytest.raises(SelectionNotExpressibleError):
        environment(divided, root.id, divided.children(root.id)[0].id)


def test_hiding_all_is_declared_and_done(four, environment, resolve, registry):
    """The empty selection sets what the declaration says, for HIP and for HSA programs."""
    change = environment(four)

    assert change.set == HIDE_ALL == registry.plugin("amd").declaration.hide_all
    assert resolve(four, **dict(change.set)).units == ()


@pytest.mark.parametrize("setting", HIDE_ALL, ids=str)
def test_each_part_of_hiding_hides_by_itself(setting, four, resolve):
    """HIP's variable hides from HIP programs, ROCR's from all others."""
    assert resolve(four, **dict([setting])).units == ()


def test_hiding_all_leaves_the_other_family_s_variable(four, environment, resolve):
    """CUDA_VISIBLE_DEVICES is not touched when hiding: it may show NVIDIA devices, and HIP's own wins."""
    after = apply_change({CUDA: "0"}, environment(four, **{CUDA: "0"}))

    assert after[CUDA] == "0"
    assert resolve(four, **after).units == ()


@pytest.mark.parametrize("foreign", ["", "-1", "0", "GPU-11111111-2222-3333-4444-555555555555"])
def test_a_foreign_cuda_mask_changes_nothing(foreign, four, environment, resolve):
    """Merged with a family that sets CUDA_VISIBLE_DEVICES for itself, the selection stands."""
    other = EnvironmentChange(set=((CUDA, foreign),))
    change = environment(four, *ids(four, 2, 0))

    merged = merge_changes({"amd": change, "nvidia": other})

    assert dict(merged.set)[CUDA] == foreign
    assert resolve(four, **dict(merged.set)).device_ids == ids(four, 2, 0)


def test_widening_replaces_the_mask_on_purpose(shipped, inventory_of, registry):
    """With widen the inherited mask is dropped and any GPU can be shown."""
    inventory = inventory_of(shipped("amd-mi210x4"))
    device = inventory.devices[3].id
    environ = {ROCR: "0", HIP: "0"}

    change = environment_for(inventory, registry, [device], environ, widen=True)

    after = apply_change(environ, change)
    assert resolve_all(inventory, registry, after)["amd"].device_ids == (device,)


def test_a_blocked_gpu_of_a_container_cannot_be_shown(shipped, view_of, environment):
    """What the container was not given is refused; what it was given counts from 0."""
    view = view_of(shipped("amd-container-2-of-8"))

    with pytest.raises(SelectionNotExpressibleError):
        environment(view, "amd:0000:1b:00.0")
    assert environment(view, "amd:0000:b0:00.0").set == ((HIP, "1"),)


def test_described_environment_hides_in_the_inventory(described, inventory_of, card):
    """A mask of the imaginary environment makes devices hidden there, with the variable named."""
    text = f'[environment]\n{HIP} = "1"\n' + card() + card(address="0000:26:00.0")

    first, second = inventory_of(described(text)).devices

    assert (first.state.value, second.state.value) == ("hidden", "ready")
    assert HIP in first.reason
