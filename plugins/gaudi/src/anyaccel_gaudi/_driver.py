"""The one module that loads the vendor's library; nothing else in this package starts or opens anything.

The functions are called by a table of our own: the vendor's binding (`habana-pyhlml`) has the library's path built in, prints to
stdout, and raises AttributeError where the library is missing. Structures and constants are those of its generated types, and a
test holds them against it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from anyaccel.driver_calls import load_library, silenced
from anyaccel.errors import UnavailableError

__all__ = ["LIBRARIES", "Memory", "PciInfo", "Utilization", "collect"]

LIBRARIES = ("libhlml.so", "/usr/lib/habanalabs/libhlml.so")
_FIELD = 32
_UUID = 128
_MOST_DEVICES = 64
_MOST_PORTS = 24
_ON_CHIP, _BOARD = 0, 1
_UNCORRECTED, _CORRECTED, _AGGREGATE = 1, 0, 1
_ERRORS = {
    1: "not initialised",
    2: "invalid argument",
    3: "the card does not support it",
    6: "not found",
    7: "insufficient size",
    9: "driver not loaded",
    10: "timeout",
    15: "the card is lost",
    20: "out of memory",
    21: "no data",
}


class PciCap(ctypes.Structure):
    """`hlml_pci_cap_t`, 40 bytes."""

    _fields_ = tuple((name, ctypes.c_char * 10) for name in ("speed", "width", "max_speed", "max_width"))


class PciInfo(ctypes.Structure):
    """`hlml_pci_info_t`, 84 bytes."""

    _fields_ = (
        ("bus", ctypes.c_uint),
        ("bus_id", ctypes.c_char * 19),
        ("device", ctypes.c_uint),
        ("domain", ctypes.c_uint),
        ("pci_device_id", ctypes.c_uint),
        ("caps", PciCap),
        ("pci_rev", ctypes.c_uint),
        ("pci_subsys_id", ctypes.c_uint),
    )


class Memory(ctypes.Structure):
    """`hlml_memory_t`, 24 bytes; the order is another than NVML's."""

    _fields_ = tuple((name, ctypes.c_ulonglong) for name in ("free", "total", "used"))


class Utilization(ctypes.Structure):
    """`hlml_utilization_t`, 8 bytes, percent."""

    _fields_ = (("aip", ctypes.c_uint), ("memory", ctypes.c_uint))


class _RefusedError(Exception):
    """The library answered with an error."""


class _Library:
    """The functions by name; every one returns an error code."""

    def __init__(self) -> None:
        self._library = load_library(
            LIBRARIES, hint="install the package habanalabs-firmware-tools or habanalabs-graph"
        )

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function, raise _RefusedError when it is missing or refuses."""
        try:
            function = getattr(self._library, f"hlml_{name}")
        except AttributeError:
            raise _RefusedError("this version of the library has no such function") from None
        code = function(*arguments)
        if code != 0:
            raise _RefusedError(_ERRORS.get(code, f"error {code}"))


def collect() -> Any:
    """Ask the library for everything it tells of every card, as plain JSON.

    Raises: UnavailableError when it is not installed or cannot be initialised.
    """
    with silenced():
        library = _Library()
        try:
            library.call("init")
            count = _number(library, "device_get_count")
        except _RefusedError as error:
            raise UnavailableError(f"libhlml: {error}", reason_code="library-failed") from None
        try:
            devices = [_device(library, index) for index in range(min(count, _MOST_DEVICES))]
        finally:
            library._library.hlml_shutdown()
    return {"devices": devices}


def _device(library: _Library, index: int) -> dict[str, Any]:
    """Give one card; what was refused stands under `problems` in the library's words."""
    row: dict[str, Any] = {"index": index, "problems": {}}
    handle = ctypes.c_void_p()
    try:
        library.call("device_get_handle_by_index", index, ctypes.byref(handle))
    except _RefusedError as error:
        row["problems"]["handle"] = str(error)
        return row
    asked: dict[str, Callable[[], Any]] = {
        "bus_id": lambda: _pci(library, handle),
        "name": lambda: _text(library, "device_get_name", handle, _FIELD),
        "uuid": lambda: _text(library, "device_get_uuid", handle, _UUID),
        "module": lambda: _number(library, "device_get_module_id", handle),
        "minor": lambda: _number(library, "device_get_minor_number", handle),
        "memory": lambda: _memory(library, handle),
        "utilization_percent": lambda: _utilization(library, handle),
        "power_milliwatts": lambda: _number(library, "device_get_power_usage", handle),
        "temperature_celsius": lambda: _number(library, "device_get_temperature", handle, _ON_CHIP),
        "board_temperature_celsius": lambda: _number(library, "device_get_temperature", handle, _BOARD),
        "corrected_errors": lambda: _errors(library, handle, _CORRECTED),
        "uncorrected_errors": lambda: _errors(library, handle, _UNCORRECTED),
        "ports_up": lambda: _ports(library, handle),
    }
    for name, ask in asked.items():
        try:
            row[name] = ask()
        except _RefusedError as error:
            row["problems"][name] = str(error)
    return row


def _number(library: _Library, name: str, *arguments: Any) -> int:
    value = ctypes.c_uint()
    library.call(name, *arguments, ctypes.byref(value))
    return value.value


def _text(library: _Library, name: str, handle: ctypes.c_void_p, length: int) -> str:
    buffer = ctypes.create_string_buffer(length)
    library.call(name, handle, buffer, ctypes.c_uint(length))
    return buffer.value.decode("utf-8", "replace")


def _pci(library: _Library, handle: ctypes.c_void_p) -> str:
    info = PciInfo()
    library.call("device_get_pci_info", handle, ctypes.byref(info))
    return bytes(info.bus_id).decode("ascii", "replace")


def _memory(library: _Library, handle: ctypes.c_void_p) -> dict[str, int]:
    memory = Memory()
    library.call("device_get_memory_info", handle, ctypes.byref(memory))
    return {"total": memory.total, "used": memory.used}


def _utilization(library: _Library, handle: ctypes.c_void_p) -> int:
    rates = Utilization()
    library.call("device_get_utilization_rates", handle, ctypes.byref(rates))
    return int(rates.aip)


def _errors(library: _Library, handle: ctypes.c_void_p, kind: int) -> int:
    value = ctypes.c_longlong()
    library.call("device_get_total_ecc_errors", handle, kind, _AGGREGATE, ctypes.byref(value))
    return value.value


def _ports(library: _Library, handle: ctypes.c_void_p) -> list[bool]:
    """Give whether each port has a link, up to the first that the card does not have."""
    ports: list[bool] = []
    for port in range(_MOST_PORTS):
        is_up = ctypes.c_bool()
        try:
            library.call("nic_get_link", handle, ctypes.c_uint32(port), ctypes.byref(is_up))
        except _RefusedError:
            if not ports:
                raise
            break
        ports.append(is_up.value)
    return ports
