"""Reading the document that `_driver.collect_amdsmi` gives. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from anyaccel.replies import Reply

__all__ = ["SOURCE", "expected_library_major", "library_major", "link_kind", "processor_of"]

SOURCE = "amdsmi"
"""Who answered, in reasons."""

_IO_LINK = {1: "pcie", 2: "xgmi"}
_LINK_24 = {0: "pcie", 1: "xgmi"}
_LINK_25 = {0: "internal", 1: "xgmi", 2: "pcie"}
_LINK_26 = {0: "internal", 1: "pcie", 2: "xgmi"}
"""The link enums as the wheels have them: `amdsmi_io_link_type_t` until library 25, `amdsmi_link_type_t` in 24.6 (wheel
6.2.4), in 24.7 and 25 (6.3.3, 6.4.4), and since 26 (7.0.2). `amdsmi_topo_get_link_type` answers in the first until 25 and in
the last since 26; `amdsmi_get_link_metrics` answers in the second all along. So one number means two things, and the names a
binding gives are no help: a binding of 6.4 calls 1 XGMI where that call means PCIe."""


def library_major(version: str | None) -> int | None:
    """Give the major version of a library version text.

    Example: library_major("26.0.2") == 26
    """
    match = re.match(r"([0-9]{1,9})\.", version or "")
    return int(match.group(1)) if match else None


def expected_library_major(binding: str | None) -> int | None:
    """Give the library that a binding was made for, None where it is not known.

    The structures change size between major versions, so another library would be read wrongly without a word. Wheels carry
    the ROCm version, the copy that ROCm ships carries the library's own.
    Example: expected_library_major("7.0.2") == 26
    """
    match = re.match(r"([0-9]{1,9})\.([0-9]{1,9})", binding or "")
    if match is None:
        return None
    major, minor = int(match.group(1)), int(match.group(2))
    if major >= 24:
        return major
    if major == 6:
        return 25 if minor >= 4 else 24
    return 26 if major == 7 else None


def link_kind(number: int | None, version: str | None, *, call: str) -> str | None:
    """Name the kind of a link, None where the number says nothing.

    Args: call: `topology` for amdsmi_topo_get_link_type, `metrics` for amdsmi_get_link_metrics.
    Example: link_kind(2, "26.0.2", call="topology") == "xgmi"
    """
    major = library_major(version)
    if number is None or major is None:
        return None
    if major >= 26:
        return _LINK_26.get(number)
    if call == "topology":
        return _IO_LINK.get(number)
    return (_LINK_24 if version is not None and version.startswith("24.6") else _LINK_25).get(number)


def processor_of(rows: Sequence[Reply], *, address: str | None, kfd_node: int | str | None) -> Reply | None:
    """Give the processor that stands for one device: by KFD node, which tells partitions apart, else by PCI address.

    Args: rows: the `processors` of the answer.
    """
    if kfd_node is not None:
        found = next((row for row in rows if row.number("kfd_node", bits=32) == kfd_node), None)
        if found is not None:
            return found
    same = [row for row in rows if address is not None and row.text("address") == address]
    return same[0] if len(same) == 1 else None
