"""The XML of hwloc, versions 1 to 3, read and written: objects, and matrices beside them.

Formats: hwloc's own manual, "Importing and exporting topologies from/to XML files"; attribute names changed with 2.0 and the
numbers of OS device types with 3.0 (a bit mask since).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

from anyaccel.frozen import FrozenMap
from anyaccel.pci import normal_address
from anyaccel_conformance.readers.foreign import ForeignFormatError, parse_xml

__all__ = [
    "HwlocMatrix",
    "HwlocNuma",
    "HwlocObject",
    "HwlocPci",
    "HwlocTopology",
    "hwloc_numa_nodes",
    "hwloc_pci_devices",
    "parse_hwloc_xml",
    "write_hwloc_xml",
]

_PCI_TYPE = re.compile(r"^([0-9a-f]{4}) \[([0-9a-f]{4}):([0-9a-f]{4})\]", re.IGNORECASE)
_IO_KINDS = ("Bridge", "PCIDev", "OSDev")
_OLD_TYPES = ("block", "gpu", "network", "openfabrics", "dma", "coproc", "memory")
_NEW_TYPES = ("block", "memory", "gpu", "coproc", "network", "openfabrics", "dma")


@dataclass(frozen=True)
class HwlocObject:
    """One object of the tree.

    Args: kind: hwloc's type word. attributes: all but the type, as written. infos: name and value pairs in order.
    """

    kind: str
    attributes: FrozenMap[str] = field(default_factory=FrozenMap)
    infos: tuple[tuple[str, str], ...] = ()
    children: tuple[HwlocObject, ...] = ()

    @property
    def os_index(self) -> int | None:
        """The operating system's number, None when it has none."""
        text = self.attributes.get("os_index")
        return None if text is None else int(text)

    @property
    def cpus(self) -> tuple[int, ...] | None:
        """CPU numbers of the object, None when unknown or without end."""
        text = self.attributes.get("cpuset")
        return None if text is None else read_bitmap(text)

    def walk(self) -> Iterator[HwlocObject]:
        """Give this object and everything below, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True)
class HwlocMatrix:
    """A matrix over objects.

    Args: name: `NVLinkBandwidth`, `NUMALatency`, "" in version 1. kind: hwloc's bit mask, as written. type_name: type of
        all ends, None where they differ. indexing: `os` or `gp`. ends: `OSDev:802` or plain numbers. values: row by row.
    """

    name: str
    kind: str
    type_name: str | None
    indexing: str | None
    ends: tuple[str, ...]
    values: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class HwlocTopology:
    """A whole document. Args: version: `1`, `2.0`, `3.0`. What stands beside tree and matrices is left out (support bits,
    memory tiers), and so are the matrices that version 1 wrote inside objects.
    """

    version: str
    root: HwlocObject
    matrices: tuple[HwlocMatrix, ...] = ()

    def matrix(self, name: str) -> HwlocMatrix | None:
        """Give the matrix of one name, None when there is none."""
        return next((matrix for matrix in self.matrices if matrix.name == name), None)


@dataclass(frozen=True)
class HwlocNuma:
    """A memory node. Args: cpus, memory_bytes: None = not said. subtype: `GPUMemory` for memory of a card."""

    number: int
    cpus: tuple[int, ...] | None
    memory_bytes: int | None
    subtype: str | None = None


@dataclass(frozen=True)
class HwlocPci:
    """A PCI function that is no bridge.

    Args: class_code: four hex digits. bridges: addresses from the root down. link_gigabytes: speed as printed, GB/s each
        way. cpus: of the object it hangs on. os_devices: kernel or library name and type words. gp_index: hwloc's own number.
    """

    address: str
    class_code: str
    vendor_id: int
    device_id: int
    bridges: tuple[str, ...] = ()
    subtype: str | None = None
    link_gigabytes: float | None = None
    cpus: tuple[int, ...] | None = None
    os_devices: tuple[tuple[str, tuple[str, ...]], ...] = ()
    gp_index: str | None = None


def read_bitmap(text: str) -> tuple[int, ...] | None:
    """Read hwloc's bitmap text, None for a set without end.

    Example: read_bitmap("0x00000001,0x00000003") == (0, 1, 32)
    """
    if "0xf...f" in text:
        return None
    words = [int(word, 16) if word else 0 for word in text.split(",")]
    bits = sum(word << (32 * place) for place, word in enumerate(reversed(words)))
    return tuple(bit for bit in range(bits.bit_length()) if bits >> bit & 1)


def parse_hwloc_xml(document: bytes | str) -> HwlocTopology:
    """Read hwloc XML. Raises: ForeignFormatError."""
    top = parse_xml(document)
    if top.tag != "topology":
        raise ForeignFormatError(f"XML document holds <{top.tag}>, not <topology>")
    first = top.find("object")
    if first is None:
        raise ForeignFormatError("hwloc document holds no object")
    matrices = tuple(_matrix(element) for element in top if element.tag in ("distances2", "distances2hetero"))
    version = top.get("version", "1")
    try:
        return HwlocTopology(version, _object(first), matrices)
    except ValueError as error:
        raise ForeignFormatError(f"hwloc document holds a malformed number: {error}") from error


def _object(element: ElementTree.Element) -> HwlocObject:
    attributes = {name: value for name, value in element.attrib.items() if name != "type"}
    infos = tuple((e.get("name", ""), e.get("value", "")) for e in element if e.tag == "info")
    children = tuple(_object(e) for e in element if e.tag == "object")
    return HwlocObject(element.get("type", ""), FrozenMap(attributes), infos, children)


def _matrix(element: ElementTree.Element) -> HwlocMatrix:
    ends = tuple(word for e in element if e.tag == "indexes" for word in (e.text or "").split())
    numbers = tuple(int(word) for e in element if e.tag == "u64values" for word in (e.text or "").split())
    size = int(element.get("nbobjs", "0"))
    if len(ends) != size or len(numbers) != size * size:
        raise ForeignFormatError(
            f"hwloc matrix {element.get('name')!r} has {len(ends)} ends and {len(numbers)} values for {size} objects"
        )
    rows = tuple(numbers[row * size : (row + 1) * size] for row in range(size))
    name, kind = element.get("name", ""), element.get("kind", "")
    return HwlocMatrix(name, kind, element.get("type"), element.get("indexing"), ends, rows)


def hwloc_numa_nodes(topology: HwlocTopology) -> tuple[HwlocNuma, ...]:
    """Give the memory nodes in order of number."""
    nodes = (found for found in topology.root.walk() if found.kind == "NUMANode")
    return tuple(sorted((_numa(node) for node in nodes), key=lambda node: node.number))


def _numa(node: HwlocObject) -> HwlocNuma:
    memory = node.attributes.get("local_memory")
    return HwlocNuma(
        node.os_index or 0, node.cpus, None if memory is None else int(memory), node.attributes.get("subtype")
    )


def hwloc_pci_devices(topology: HwlocTopology) -> tuple[HwlocPci, ...]:
    """Give the PCI functions that are no bridges, in the order of the document."""
    return tuple(_pci_below(topology.root, (), None, topology.version))


def _pci_below(
    node: HwlocObject, bridges: tuple[str, ...], cpus: tuple[int, ...] | None, version: str
) -> Iterable[HwlocPci]:
    if node.kind == "PCIDev":
        yield _pci(node, bridges, cpus, version)
    here = normal_address(node.attributes.get("pci_busid", "")) if node.kind == "Bridge" else None
    below = bridges if here is None else (*bridges, here)
    near = node.cpus if node.kind not in _IO_KINDS and node.cpus is not None else cpus
    for child in node.children:
        yield from _pci_below(child, below, near, version)


def _pci(node: HwlocObject, bridges: tuple[str, ...], cpus: tuple[int, ...] | None, version: str) -> HwlocPci:
    busid, type_text = node.attributes.get("pci_busid", ""), node.attributes.get("pci_type", "")
    address, match = normal_address(busid), _PCI_TYPE.match(type_text)
    if address is None or match is None:
        raise ForeignFormatError(f"hwloc document holds a PCI device at {busid!r} of type {type_text!r}")
    speed = float(node.attributes.get("pci_link_speed", "0"))
    return HwlocPci(
        address=address,
        class_code=match.group(1).lower(),
        vendor_id=int(match.group(2), 16),
        device_id=int(match.group(3), 16),
        bridges=bridges,
        subtype=node.attributes.get("subtype"),
        link_gigabytes=speed or None,
        cpus=cpus,
        os_devices=tuple(
            (child.attributes.get("name", ""), os_device_types(child, version))
            for child in node.children
            if child.kind == "OSDev"
        ),
        gp_index=node.attributes.get("gp_index"),
    )


def os_device_types(node: HwlocObject, version: str) -> tuple[str, ...]:
    """Give the type words of an OS device; since version 3 it may have several."""
    number = int(node.attributes.get("osdev_type", "-1"))
    if version.startswith("3"):
        return tuple(word for place, word in enumerate(_NEW_TYPES) if number >> place & 1)
    return (_OLD_TYPES[number],) if 0 <= number < len(_OLD_TYPES) else ()


def write_hwloc_xml(topology: HwlocTopology) -> str:
    """Write a topology; what `parse_hwloc_xml` reads of the result equals what was given."""
    is_old = topology.version == "1"
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<!DOCTYPE topology SYSTEM "{"hwloc" if is_old else "hwloc2"}.dtd">',
        "<topology>" if is_old else f"<topology version={quoteattr(topology.version)}>",
        *_object_lines(topology.root, 1),
        *(line for matrix in topology.matrices for line in _matrix_lines(matrix)),
        "</topology>",
    ]
    return "\n".join(lines) + "\n"


def _object_lines(node: HwlocObject, depth: int) -> Iterable[str]:
    indent = "  " * depth
    attributes = "".join(f" {name}={_quoted(value)}" for name, value in node.attributes.items())
    start = f"{indent}<object type={quoteattr(node.kind)}{attributes}"
    if not node.infos and not node.children:
        yield start + "/>"
        return
    yield start + ">"
    yield from (f"{indent}  <info name={_quoted(name)} value={_quoted(value)}/>" for name, value in node.infos)
    for child in node.children:
        yield from _object_lines(child, depth + 1)
    yield f"{indent}</object>"


def _quoted(value: str) -> str:
    return quoteattr(value, {"\n": "&#10;", "\t": "&#9;", "\r": "&#13;"})


def _matrix_lines(matrix: HwlocMatrix) -> Iterable[str]:
    tag = "distances2hetero" if matrix.type_name is None else "distances2"
    settings = {
        "type": matrix.type_name,
        "nbobjs": str(len(matrix.ends)),
        "kind": matrix.kind,
        "name": matrix.name or None,
        "indexing": matrix.indexing,
    }
    written = "".join(f" {name}={quoteattr(value)}" for name, value in settings.items() if value is not None)
    yield f"  <{tag}{written}>"
    yield _number_line("indexes", matrix.ends)
    for row in matrix.values:
        yield _number_line("u64values", [str(value) for value in row])
    yield f"  </{tag}>"


def _number_line(tag: str, words: Iterable[str]) -> str:
    text = "".join(f"{word} " for word in words)
    return f'    <{tag} length="{len(text)}">{text}</{tag}>'
