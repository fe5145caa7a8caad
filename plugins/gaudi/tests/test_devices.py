"""Cards from files, and what the library adds."""

from __future__ import annotations

import pytest

from anyaccel.errors import UnavailableError
from anyaccel.files import MemoryTree
from anyaccel.machine import Machine, MachineKind, NoAnswers
from anyaccel_gaudi.devices import discover_devices
from anyaccel_gaudi.inspection import inspect_devices

ADDRESS = "0000:10:00.0"
FOLDER = f"/sys/devices/pci0000:10/{ADDRESS}"


def card_files(device_id="0x1020", **files):
    base = {"vendor": "0x1da3", "device": device_id, "class": "0x120000", **files}
    return {f"{FOLDER}/{name}": f"{text}\n".encode() for name, text in base.items()}


BOUND = {f"{FOLDER}/driver": "/sys/bus/pci/drivers/habanalabs"}


def found(files, links=None):
    files = {**files, "/sys/bus/pci/drivers/habanalabs/bind": b""}
    tree = MemoryTree(files, {f"/sys/bus/pci/devices/{ADDRESS}": FOLDER, **(links or {})})
    return discover_devices(Machine(tree, kind=MachineKind.SIMULATED))


def test_four_numbers_of_one_card(box):
    """Index, module id and minor number are three orders, and the bus is a fourth."""
    assert [tuple(d.numbers[space] for space in ("index", "module", "minor")) for d in box.roots[:3]] == [
        (0, 0, 7),
        (1, 4, 6),
        (2, 1, 5),
    ]
    assert box.roots[0].nodes == ("/dev/accel/accel7", "/dev/accel/accel_controlD7")


def test_files_alone_tell_modules(machine_of):
    """Without the library ids, models and module ids are the same; memory, uuid and index are unknown with a reason."""
    machine = machine_of("gaudi2-box").with_answers({"*": NoAnswers("nobody is here")})

    device = discover_devices(machine).devices[1]

    assert (device.id, device.model, device.numbers["module"]) == ("gaudi:0000:1a:00.0", "Gaudi2", 4)
    assert (device.memory_bytes, device.uuid, device.numbers["index"]) == (None, None, None)
    assert device.why_unknown("memory_bytes") == "only the library libhlml tells, and it was not heard"


@pytest.mark.parametrize("entries", ["accel", "hl", "virtual"])
def test_every_generation_of_the_driver_is_read(entries, described):
    """New and old class folders, and cards registered apart from their PCI function."""
    card = described((3,), family=f'entries = "{entries}"').roots[0]

    assert (card.numbers["module"], card.numbers["minor"]) == (3, 0)
    assert card.nodes[0] == ("/dev/hl0" if entries == "hl" else "/dev/accel/accel0")


def test_virtual_entries_are_claimed(inventory_of):
    """A device file that a card names is nobody else's."""
    assert inventory_of("gaudi3-pcie-islands").unclaimed == ()


@pytest.mark.parametrize(
    ("device_id", "model"),
    [("0x1000", "Gaudi"), ("0x1011", "Gaudi"), ("0x1062", "Gaudi3"), ("0x1063", "Gaudi3 PCIe"), ("0x1030", None)],
)
def test_model_by_id(device_id, model):
    """An id on which the sources disagree has no name."""
    assert found(card_files(device_id)).devices[0].model == model


def test_card_without_an_entry_has_reasons():
    """The PCI function alone tells no number."""
    (card,) = found(card_files()).devices

    assert dict(card.numbers) == {"index": None, "module": None, "minor": None}
    assert card.why_unknown("numbers.module") == "the kernel driver shows no entry for the card"


@pytest.mark.parametrize("module", ["-1", "x", "99"])
def test_odd_module_id_is_unknown(module):
    """A PCIe card may have none: -1 is no module."""
    links = {"/sys/class/accel/accel0/device": FOLDER}

    (card,) = found({**card_files(module_id=module), "/sys/class/accel/accel0/dev": b"261:0\n"}, links).devices

    assert card.numbers["module"] is None
    assert card.why_unknown("numbers.module") == "the driver's files do not tell"


def test_another_vendors_node_is_no_gaudi():
    """The class folder belongs to many; only the PCI vendor decides."""
    files = {key: value.replace(b"0x1da3", b"0x1022") for key, value in card_files().items()}

    none = found({**files, "/sys/class/accel/accel0/dev": b"261:0\n"}, {"/sys/class/accel/accel0/device": FOLDER})

    assert none.devices == ()
    assert "1da3" in none.reason


def test_entry_of_no_card_is_passed_over():
    """An entry that leads to no PCI address belongs to nobody here."""
    assert found({**card_files(), "/sys/class/accel/accel0/dev": b"261:0\n"}).devices[0].numbers["minor"] is None


def test_state_is_what_the_driver_says(view_of):
    """Every word but one is a card that cannot be used; a card that works says nothing."""
    view = view_of("gaudi-faults")

    assert [(d.state.value, d.reason) for d in view.roots] == [
        ("ready", None),
        ("unusable", "the driver says 'Malfunction'"),
        ("unusable", "the driver says 'In reset'"),
        ("ready", None),
        ("denied", "permission denied: /dev/hl4 belongs to group root, this user is in render, video"),
        ("unusable", "no kernel driver is bound"),
    ]


def test_memory_the_library_refuses_is_unknown(view_of):
    """With its words."""
    assert view_of("gaudi-faults").roots[3].why_unknown("memory_bytes") == "the card does not support it"


def test_card_the_library_leaves_out_stays(described):
    """It is named in a note."""
    fault = f'[[fault]]\nkind = "not-listed"\nplugin = "gaudi"\ncard = "{ADDRESS}"\n'
    card = described((0, 1), more=fault).roots[0]

    assert (card.memory_bytes, card.numbers["module"]) == (None, 0)


def test_library_fills_what_files_leave_open():
    """Module and minor number come from the library where no file tells; a file's word is kept."""
    (card,) = found(card_files(), BOUND).devices
    row = {"bus_id": ADDRESS, "index": 5, "module": 2, "minor": 3, "memory": {"total": 0}}

    told = inspect_devices((card,), lambda: {"devices": [row]}).devices[0]

    assert dict(told.numbers) == {"index": 5, "module": 2, "minor": 3}
    assert told.memory_bytes is None


def test_cards_without_the_driver_are_not_asked_about(machine_of):
    """The library knows only what the driver shows."""
    text = f'[[card]]\nplugin = "gaudi"\nmodel = "gaudi2"\naddress = "{ADDRESS}"\ndriver = "vfio-pci"\n'
    devices = discover_devices(machine_of(text)).devices

    assert inspect_devices(devices, lambda: pytest.fail("asked")).devices == devices


@pytest.mark.parametrize("answer", [None, [], {}, {"devices": None}, {"devices": [None]}])
def test_answer_of_another_shape(answer):
    """It is an answer that never came."""
    (card,) = found(card_files(), BOUND).devices

    with pytest.raises(UnavailableError):
        inspect_devices((card,), lambda: answer)


def test_cards_without_a_handle_are_counted():
    """What the library cannot open has no address, so it is told by number."""
    (card,) = found(card_files(), BOUND).devices
    lost = {"index": 0, "problems": {"handle": "the card is lost"}}

    notes = inspect_devices((card,), lambda: {"devices": [lost, lost]}).notes

    assert notes == (
        f"libhlml does not list gaudi:{ADDRESS}",
        "libhlml gives no handle of 2 cards: the card is lost",
    )
