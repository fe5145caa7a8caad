"""What `neuron-ls` wrote, whatever its version: a list of devices, or an object that holds one."""

from __future__ import annotations

from typing import Any

from anyaccel.errors import UnavailableError
from anyaccel.replies import Reply

__all__ = ["devices_told", "peers"]

_SOURCE = "neuron-ls"


def devices_told(document: Any) -> dict[int, Reply]:
    """Give what was told of each device, by its number; what names no device is left out.

    Older versions write a list; newer ones wrap it in an object beside facts of the instance.
    Raises: UnavailableError with the code `malformed-answer` when there is no list at all.
    """
    rows = document
    if isinstance(document, dict):
        rows = next((value for value in document.values() if isinstance(value, list)), None)
    if not isinstance(rows, list):
        raise UnavailableError(
            "neuron-ls wrote another document than a list of devices", reason_code="malformed-answer"
        )
    replies = (Reply(row, _SOURCE) for row in rows)
    return {number: reply for reply in replies if (number := reply.number("neuron_device")) is not None}


def peers(reply: Reply) -> tuple[int, ...] | None:
    """Give the numbers of the devices that one is connected to, None when nothing was told (the program writes null)."""
    if not reply.has("connected_to"):
        return None
    return tuple(number for number in reply.numbers("connected_to") if number is not None)
