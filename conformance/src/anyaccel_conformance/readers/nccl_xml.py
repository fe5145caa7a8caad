"""The topology XML that NCCL and RCCL write and read: CPUs, PCI bridges, GPUs with their links, network cards.

Element and attribute names as in both libraries' `graph/xml` sources; whoever wrote a file left attributes out freely.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

from anyaccel.frozen import FrozenMap
from anyaccel.pci import normal_address
from anyaccel_conformance.readers.foreign import ForeignFormatError, parse_xml

__all__ = ["NcclCpu", "NcclGpu", "NcclLink", "NcclNic", "NcclPci", "NcclSystem", "parse_nccl_xml", "write_nccl_xml"]

_LINK_KINDS = ("nvlink", "xgmi", "c2c", "pcilink")


@dataclass(frozen=True)
class NcclLink:
    """One link of a GPU. Args: kind: `nvlink`, `xgmi`, `c2c`. target: PCI address; attributes: all others, as written."""

    kind: str
    target: str | None
    count: int | None
    attributes: FrozenMap[str] = field(default_factory=FrozenMap)


@dataclass(frozen=True)
class NcclGpu:
    """A GPU. Args: number: the library's `dev`, which need not follow the bus."""

    number: int | None
    links: tuple[NcclLink, ...] = ()
    attributes: FrozenMap[str] = field(default_factory=FrozenMap)


@dataclass(frozen=True)
class NcclNic:
    """A network card with its ports. Args: nets: attributes of each `net`. attributes: of the `nic`."""

    nets: tuple[FrozenMap[str], ...] = ()
    attributes: FrozenMap[str] = field(default_factory=FrozenMap)


@dataclass(frozen=True)
class NcclPci:
    """A PCI function or bridge.

    Args: address: normal form. class_code: six hex digits, None = not written. attributes: all others, as written.
    """

    address: str
    class_code: str | None = None
    attributes: FrozenMap[str] = field(default_factory=FrozenMap)
    gpu: NcclGpu | None = None
    nics: tuple[NcclNic, ...] = ()
    children: tuple[NcclPci, ...] = ()

    def walk(self, above: tuple[str, ...] = ()) -> Iterator[tuple[NcclPci, tuple[str, ...]]]:
        """Give this function and everything below, each with the addresses above it from the root down."""
        yield self, above
        for child in self.children:
            yield from child.walk((*above, self.address))


@dataclass(frozen=True)
class NcclCpu:
    """A NUMA node. Args: number: `numaid`, None for -1. cpus: its CPU numbers. nics: cards that hang on no PCI element."""

    number: int | None
    cpus: tuple[int, ...] = ()
    attributes: FrozenMap[str] = field(default_factory=FrozenMap)
    children: tuple[NcclPci, ...] = ()
    nics: tuple[NcclNic, ...] = ()

    def walk(self) -> Iterator[tuple[NcclPci, tuple[str, ...]]]:
        """Give every PCI element below, each with the addresses above it."""
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True)
class NcclSystem:
    """A whole document."""

    version: str
    cpus: tuple[NcclCpu, ...]
    attributes: FrozenMap[str] = field(default_factory=FrozenMap)


def parse_nccl_xml(document: bytes | str) -> NcclSystem:
    """Read a topology file of NCCL or RCCL. Raises: ForeignFormatError."""
    top = parse_xml(document)
    if top.tag != "system":
        raise ForeignFormatError(f"XML document holds <{top.tag}>, not <system>")
    try:
        cpus = tuple(_cpu(element) for element in top if element.tag == "cpu")
    except ValueError as error:
        raise ForeignFormatError(f"NCCL document holds a malformed value: {error}") from error
    return NcclSystem(top.get("version", ""), cpus, _others(top, "version"))


def _others(element: ElementTree.Element, *taken: str) -> FrozenMap[str]:
    return FrozenMap({name: value for name, value in element.attrib.items() if name not in taken})


def _cpu(element: ElementTree.Element) -> NcclCpu:
    number = int(element.get("numaid", "-1"))
    return NcclCpu(
        None if number < 0 else number,
        _affinity(element.get("affinity", "")),
        _others(element, "numaid"),
        tuple(_pci(e) for e in element if e.tag == "pci"),
        tuple(_nic(e) for e in element if e.tag == "nic"),
    )


def _affinity(text: str) -> tuple[int, ...]:
    """Read the kernel's mask: words of 32 bits, the highest first."""
    mask = int("".join(word.strip().zfill(8) for word in text.split(",")) or "0", 16)
    return tuple(cpu for cpu in range(mask.bit_length()) if mask >> cpu & 1)


def _pci(element: ElementTree.Element) -> NcclPci:
    address = normal_address(element.get("busid", ""))
    if address is None:
        raise ValueError(f"bus id {element.get('busid')!r}")
    class_text = element.get("class")
    gpus = [e for e in element if e.tag == "gpu"]
    return NcclPci(
        address,
        None if class_text is None else f"{int(class_text, 16):06x}",
        _others(element, "busid", "class"),
        _gpu(gpus[0]) if gpus else None,
        tuple(_nic(e) for e in element if e.tag == "nic"),
        tuple(_pci(e) for e in element if e.tag == "pci"),
    )


def _gpu(element: ElementTree.Element) -> NcclGpu:
    number = element.get("dev")
    links = tuple(_link(e) for e in element if e.tag in _LINK_KINDS)
    return NcclGpu(None if number is None else int(number), links, _others(element, "dev"))


def _link(element: ElementTree.Element) -> NcclLink:
    count = element.get("count")
    target = normal_address(element.get("target", ""))
    return NcclLink(element.tag, target, None if count is None else int(count), _others(element, "count", "target"))


def _nic(element: ElementTree.Element) -> NcclNic:
    return NcclNic(tuple(FrozenMap(e.attrib) for e in element if e.tag == "net"), FrozenMap(element.attrib))


def write_nccl_xml(system: NcclSystem) -> str:
    """Write a topology file; what `parse_nccl_xml` reads of the result equals what was given."""
    lines = [f"<system{_written({'version': system.version or None, **system.attributes})}>"]
    for cpu in system.cpus:
        number = "-1" if cpu.number is None else str(cpu.number)
        body = [line for child in cpu.children for line in _pci_lines(child, 2)]
        body += [line for nic in cpu.nics for line in _nic_lines(nic, 2)]
        lines += _element("cpu", {"numaid": number, **cpu.attributes}, body, 1)
    return "\n".join([*lines, "</system>"]) + "\n"


def _pci_lines(pci: NcclPci, depth: int) -> list[str]:
    settings = {"busid": pci.address, "class": None if pci.class_code is None else f"0x{pci.class_code}"}
    body = [] if pci.gpu is None else _gpu_lines(pci.gpu, depth + 1)
    body += [line for nic in pci.nics for line in _nic_lines(nic, depth + 1)]
    body += [line for child in pci.children for line in _pci_lines(child, depth + 1)]
    return _element("pci", {**settings, **pci.attributes}, body, depth)


def _gpu_lines(gpu: NcclGpu, depth: int) -> list[str]:
    body = [line for link in gpu.links for line in _element(link.kind, _link_settings(link), [], depth + 1)]
    return _element("gpu", {"dev": None if gpu.number is None else str(gpu.number), **gpu.attributes}, body, depth)


def _link_settings(link: NcclLink) -> dict[str, str | None]:
    count = None if link.count is None else str(link.count)
    return {"target": link.target, "count": count, **link.attributes}


def _nic_lines(nic: NcclNic, depth: int) -> list[str]:
    body = [line for net in nic.nets for line in _element("net", dict(net), [], depth + 1)]
    return _element("nic", dict(nic.attributes), body, depth)


def _element(tag: str, settings: dict[str, str | None] | dict[str, str], body: list[str], depth: int) -> list[str]:
    indent = "  " * depth
    if not body:
        return [f"{indent}<{tag}{_written(settings)}/>"]
    return [f"{indent}<{tag}{_written(settings)}>", *body, f"{indent}</{tag}>"]


def _written(settings: dict[str, str | None] | dict[str, str]) -> str:
    items: Iterable[tuple[str, str | None]] = settings.items()
    return "".join(f" {name}={quoteattr(value)}" for name, value in items if value is not None)
