"""Error counters and amdsmi: what they mean, when they are asked, and what is said when they cannot be."""

from __future__ import annotations

import pytest

from anyaccel.device import Blocks, DeviceState
from anyaccel.machine import MachineKind
from anyaccel_amd.conditions import ErrorCounts, error_conditions
from anyaccel_amd.inspection import with_smi_answer

PCI = "/sys/bus/pci/devices/0000:23:00.0"


def fault(kind, address="0000:23:00.0", **options):
    more = "".join(f"{name} = {value}\n" for name, value in options.items())
    return f'[[fault]]\nplugin = "amd"\nkind = "{kind}"\ncard = "{address}"\n{more}'


def only(inventory):
    (device,) = inventory.devices
    return device


def test_uncorrected_errors_make_a_gpu_unusable(shipped, view_of):
    """One card of eight lost data in memory: it is unusable with block and count, the others are ready."""
    devices = view_of(shipped("amd-mi300x8-uncorrected")).devices
    bad = [device for device in devices if device.state is DeviceState.UNUSABLE]

    assert [device.id for device in bad] == ["amd:0000:3d:00.0"]
    assert bad[0].reason == "uncorrected errors since the driver was loaded: umc 2"
    assert bad[0].attributes["uncorrected_errors"] == 2


def test_corrected_errors_are_told_and_harm_nothing(shipped, view_of):
    """A counter of corrected errors is a fact, not a fault."""
    device = view_of(shipped("amd-mi300x8-uncorrected")).device("amd:0000:4e:00.0")

    assert device.state is DeviceState.READY
    assert device.attributes["corrected_errors"] == 5
    assert device.conditions[0].reason.endswith("sdma 5")


@pytest.mark.parametrize("block", ["xgmi_wafl", "pcie_bif"])
def test_link_errors_spoil_links_only(block):
    """An uncorrected error of a link leaves computing alone."""
    (found,) = error_conditions({block: ErrorCounts(uncorrected=3)})

    assert (found.code, found.state, found.blocks) == ("uncorrected-link-errors", None, Blocks.LINKS)


def test_blocks_are_listed_in_order():
    """Several blocks are told in one clause, sorted."""
    (found,) = error_conditions({"umc": ErrorCounts(1), "gfx": ErrorCounts(2)})

    assert found.reason.endswith("gfx 2, umc 1")


def test_no_errors_are_no_conditions():
    """Counters at zero say nothing."""
    assert error_conditions({"umc": ErrorCounts(), "gfx": ErrorCounts()}) == ()


def test_errors_reach_every_partition(described, inventory_of, card):
    """Memory errors of a divided GPU hit all of its partitions."""
    text = card("mi300x", compute_partition='"CPX"') + fault("uncorrected-errors", count=1)

    devices = inventory_of(described(text)).devices

    assert {device.state for device in devices} == {DeviceState.UNUSABLE}


def test_counters_in_reset_are_unknown(described, inventory_of, card):
    """While a GPU is reset its counters answer with words; no zero is made of them."""
    device = only(inventory_of(described(card() + fault("errors-unreadable"))))

    assert "uncorrected_errors" not in device.attributes
    assert "in reset" in device.why_unknown("attributes.uncorrected_errors")


def test_a_card_without_counters_says_so(described, inventory_of, card):
    """Consumer cards keep none."""
    device = only(inventory_of(described(card("rx7900xtx"))))

    assert device.why_unknown("attributes.uncorrected_errors") == "the driver keeps no error counters for it"


@pytest.mark.parametrize("reason", ["library-missing", "symbol-missing", "library-version", "driver-not-loaded"])
def test_an_amdsmi_that_fails_is_told_once(reason, described, inventory_of, card):
    """The devices stay, one note says what is wrong, and the reason code is a fact of the family."""
    text = f'[amd]\nsmi = "{reason}"\n' + card() + card(address="0000:26:00.0")

    inventory = inventory_of(described(text))

    assert len(inventory.devices) == 2
    assert {device.state for device in inventory.devices} == {DeviceState.READY}
    assert [note.startswith("amdsmi could not be asked: ") for note in inventory.notes] == [True]


def test_an_amdsmi_that_is_not_installed_is_no_news(described, inventory_of, card):
    """It is an extra: its absence is a fact in the details and no message."""
    text = '[amd]\nsmi = "binding-missing"\n' + card()

    assert inventory_of(described(text)).notes == ()


def test_a_copied_tree_answers_nothing_and_says_nothing(described, inventory_of, card, changed):
    """No question can be asked of files; that is no news either."""
    inventory = inventory_of(changed(described(card()), kind=MachineKind.ROOT))

    assert inventory.notes == ()
    assert only(inventory).state is DeviceState.READY


def test_amdsmi_adds_what_files_do_not_tell(described, inventory_of, card):
    """Numbers of HIP and HSA, the market name and the number of processes come from it."""
    device = only(inventory_of(described(card())))

    assert (device.numbers["hip"], device.numbers["hsa"]) == (0, 1)
    assert device.attributes["market_name"] == "AMD Instinct MI210"
    assert device.attributes["process_count"] == 0


def test_amdsmi_fills_unknown_memory_and_model(described, inventory_of, card, changed):
    """What files left unknown is taken from amdsmi, and its reason goes away."""
    bank = "/sys/class/kfd/kfd/topology/nodes/1/mem_banks/0/properties"
    machine = changed(described(card()), gone=(f"{PCI}/mem_info_vram_total", bank))

    device = only(inventory_of(machine))

    assert device.memory_bytes == 64 << 30
    assert device.why_unknown("memory_bytes") is None


ROW = {"address": "0000:23:00.0", "kfd_node": 1, "hip_id": 0, "hip_uuid": None}


def _answered(view, **changes):
    answer = {"library_version": "26.0.2", "binding_version": "7.0.2", "processors": [{**ROW, **changes}]}
    return with_smi_answer(view.devices, answer)


@pytest.fixture(scope="module")
def bare(described, view_of, card):
    """One MI210 without error counters, seen without amdsmi."""
    return view_of(described('[amd]\nsmi = "binding-missing"\n' + card("rx7900xtx", unique_id='"ab"')))


def test_another_number_of_hip_is_noted(bare):
    """Where amdsmi counts otherwise than KFD the numbers of both are told, and which one masks count."""
    (note,) = _answered(bare, hip_id=3).notes

    assert "number 0 in the KFD order and HIP number 3 in amdsmi" in note


def test_another_uuid_is_noted(bare):
    """Two unique ids of one GPU are told, and the files' is kept."""
    inspection = _answered(bare, hip_uuid="GPU-00000000000000ac")

    assert "in amdsmi; the files' is used" in inspection.notes[0]
    assert inspection.devices[0].uuid == "GPU-00000000000000ab"


def test_the_same_uuid_in_other_letters_is_no_clash(bare):
    """Case is no difference."""
    assert _answered(bare, hip_uuid="GPU-00000000000000AB").notes == ()


def test_totals_of_amdsmi_count_where_the_driver_s_cannot_be_read(bare):
    """Without readable counters in files, amdsmi's uncorrected errors make the GPU unusable."""
    inspection = _answered(bare, errors_counted={"corrected": 0, "uncorrected": 4})

    assert inspection.devices[0].state is DeviceState.UNUSABLE


def test_an_answer_about_other_gpus_changes_nothing(bare):
    """A row for another address is not taken."""
    inspection = _answered(bare, address="0000:99:00.0", kfd_node=9)

    assert inspection.devices == bare.devices


def test_refused_values_keep_the_library_s_word(bare):
    """A value amdsmi refused is unknown with its status."""
    inspection = _answered(bare, hip_id=None, problems={"hip_id": "AMDSMI_STATUS_NOT_SUPPORTED"})

    assert inspection.devices[0].why_unknown("numbers.hip") == "AMDSMI_STATUS_NOT_SUPPORTED"
