"""The module that loads libhlml, held against a stub library in C and against the vendor's own binding."""

from __future__ import annotations

import ctypes
import warnings
from pathlib import Path

import pytest

from anyaccel_gaudi import _driver

SOURCE = Path(__file__).parent / "stub" / "hlml.c"
COLLECT = "anyaccel_gaudi._driver:collect"
CARD = "0000:19:00.0 3 7 01P0-HL2000-15 98304 768 88000 24 50 1101"


@pytest.fixture
def ask(build_stub, ask_driver, tmp_path):
    """Ask the stub about cards, one line each."""

    def make(*lines, flags=(), **environ):
        described = tmp_path / "cards"
        described.write_text("".join(f"{line}\n" for line in lines))
        folder = build_stub(SOURCE, "libhlml.so", *flags)
        return ask_driver(COLLECT, {"HLML_STUB": str(described), **environ}, libraries=folder)

    return make


def test_every_value_of_a_card(ask):
    """As the library tells it, in its units; what the library prints is swallowed."""
    (card,) = ask(CARD)["devices"]

    assert card == {
        "index": 0,
        "bus_id": "0000:19:00.0",
        "name": "HL-225",
        "uuid": "01P0-HL2000-15",
        "module": 3,
        "minor": 7,
        "memory": {"total": 98304 << 20, "used": 768 << 20},
        "utilization_percent": 50,
        "power_milliwatts": 88000,
        "temperature_celsius": 24,
        "corrected_errors": 5,
        "uncorrected_errors": 2,
        "ports_up": [True, True, False, True],
        "problems": {"board_temperature_celsius": "the card does not support it"},
    }


def test_refusals_are_kept_in_words(ask):
    """One value that is refused costs only itself."""
    (card,) = ask("0000:19:00.0 - 7 - - 0 88000 24 50 -")["devices"]

    assert set(card["problems"]) == {"module", "uuid", "memory", "ports_up", "board_temperature_celsius"}
    assert card["problems"]["module"] == "the card does not support it"
    assert card["power_milliwatts"] == 88000


def test_lost_card_keeps_its_number(ask):
    """The others are asked all the same."""
    lost, card = ask("lost 0 0 - - - - - - -", CARD)["devices"]

    assert lost == {"index": 0, "problems": {"handle": "the card is lost"}}
    assert card["index"] == 1


def test_older_library_without_a_function(ask):
    """A missing function is a refusal."""
    (card,) = ask(CARD, flags=("-DOLD",))["devices"]

    assert card["problems"]["corrected_errors"] == "this version of the library has no such function"


def test_driver_that_is_not_loaded(build_stub, ask_driver):
    """The library is there, the kernel module is not."""
    told = ask_driver(COLLECT, {"HLML_STUB": "/nowhere/cards"}, libraries=build_stub(SOURCE, "libhlml.so"))

    assert told["unavailable"] == "libhlml: driver not loaded"


def test_missing_library_has_a_hint(ask_driver):
    """Which package to install."""
    told = ask_driver(COLLECT)

    assert told["reason_code"] == "library-missing"
    assert "habanalabs" in told["hint"]


def test_structures_are_those_of_the_vendors_binding():
    """Sizes and fields of habana-pyhlml's generated types, and the codes that are told in words."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        types = pytest.importorskip("pyhlml.pyhlml_types_generated", reason="habana-pyhlml is not installed")
    pairs = [
        (_driver.PciInfo, types.c_hlml_pci_info, 84),
        (_driver.Memory, types.c_hlml_memory, 24),
        (_driver.Utilization, types.c_hlml_utilization, 8),
    ]
    for ours, theirs, size in pairs:
        assert ctypes.sizeof(ours) == ctypes.sizeof(theirs) == size
    assert [name for name, _ in _driver.Memory._fields_] == [name for name, _ in types.c_hlml_memory._fields_]
    assert types.HLML_RETURN.HLML_ERROR_AIP_IS_LOST == 15
    assert types.HLML_MEMORY_ERROR_TYPE.HLML_MEMORY_ERROR_TYPE_UNCORRECTED == 1
    assert types.HLML_ECC_COUNTER_TYPE.HLML_AGGREGATE_ECC == 1
    assert types.HLML_TEMPERATURE_SENSORS.HLML_TEMPERATURE_ON_BOARD == 1
