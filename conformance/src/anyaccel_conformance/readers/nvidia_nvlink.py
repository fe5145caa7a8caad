"""The text of `nvidia-smi nvlink --status`: the links of each GPU with their speed."""

from __future__ import annotations

import re
from dataclasses import dataclass

from anyaccel_conformance.readers.foreign import ForeignFormatError

__all__ = ["NvlinkGpu", "parse_nvlink_status"]

_GPU = re.compile(r"^GPU ([0-9]+): (.*?) \(UUID: (\S+)\)$")
_LINK = re.compile(r"^Link ([0-9]+): (?:([0-9.]+) GB/s|(.*))$")


@dataclass(frozen=True)
class NvlinkGpu:
    """One GPU. Args: number: of the tool. links: link number and bytes per second each way, None = inactive."""

    number: int
    name: str
    uuid: str
    links: tuple[tuple[int, int | None], ...] = ()


def parse_nvlink_status(text: str) -> tuple[NvlinkGpu, ...]:
    """Read the output of `nvidia-smi nvlink --status`. Raises: ForeignFormatError when no GPU is found."""
    heads: list[tuple[int, str, str]] = []
    links: list[list[tuple[int, int | None]]] = []
    for line in text.splitlines():
        head, link = _GPU.match(line.strip()), _LINK.match(line.strip())
        if head is not None:
            heads.append((int(head.group(1)), head.group(2), head.group(3)))
            links.append([])
        elif link is not None and links:
            speed = round(float(link.group(2)) * 1e9) if link.group(2) else None
            links[-1].append((int(link.group(1)), speed))
    if not heads:
        raise ForeignFormatError("text holds no GPU of nvidia-smi nvlink --status")
    return tuple(NvlinkGpu(*head, tuple(found)) for head, found in zip(heads, links, strict=True))
