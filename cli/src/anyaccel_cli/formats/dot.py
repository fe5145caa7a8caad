"""Topology as a Graphviz graph: `accel-cli topology --format dot | dot -Tsvg`. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from anyaccel.device import Device
from anyaccel.inventory import Inventory
from anyaccel.topology import Link, LinkState
from anyaccel_cli.formats.places import Bridge, Function, NumaPlace, Root, places_of
from anyaccel_cli.formats.words import cpus_text, device_names, link_word, speed_text
from anyaccel_cli.text import escape

__all__ = ["dot_text"]

_DEVICE = 'shape=box, style="rounded,filled", fillcolor="#dbeafe"'
_PART = "shape=box, style=rounded"
_NIC = 'shape=box, style=filled, fillcolor="#fef3c7"'
_FABRIC = 'shape=hexagon, style=filled, fillcolor="#dcfce7"'
_BRIDGE = "shape=point, width=0.12, xlabel={label}"
_PCIE_EDGE = 'color="#6b7280"'
_UP_EDGE = 'color="#15803d", penwidth=2'
_DOWN_EDGE = 'color="#b91c1c", style=dashed'
_UNKNOWN_EDGE = 'color="#15803d", style=dashed'


def dot_text(inventory: Inventory, devices: Sequence[Device] | None = None) -> str:
    """Give the graph: memory nodes as boxes around what hangs on them, PCIe in grey, vendors' links in green.

    A link whose state is unknown is dashed, one that is down is red.
    Args: devices: None = every device, parts included.
    """
    shown = inventory.devices if devices is None else tuple(devices)
    names = device_names(inventory, shown)
    lines = ["graph topology {", "  node [fontsize=10];", "  edge [fontsize=8];"]
    if inventory.name:
        lines.append(f"  label={_quoted(inventory.name + (' (simulated)' if inventory.is_simulated else ''))};")
    for number, place in enumerate(places_of(inventory, shown)):
        lines += _cluster(inventory, number, place, names)
    lines += _link_lines(inventory, names)
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    safe = escape(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{safe}"'


def _cluster(inventory: Inventory, number: int, place: NumaPlace, names: dict[str, str]) -> Iterator[str]:
    yield f"  subgraph cluster_{number} {{"
    yield f"    label={_quoted(_numa_label(inventory, place.number))};"
    if not place.roots and not place.unplaced:
        yield f'    "numa{number}" [shape=none, label=""];'
    for root in place.roots:
        yield from (f"    {line}" for line in _root_lines(root, number, names))
    for function in place.unplaced:
        yield from (f"    {line}" for line in _function_lines(function, None, names))
    yield "  }"


def _numa_label(inventory: Inventory, number: int | None) -> str:
    if number is None:
        return "NUMA node unknown"
    known = next((node for node in inventory.host.numa_nodes if node.number == number), None)
    return f"NUMA node {number}" + (f", CPUs {cpus_text(known.cpus)}" if known and known.cpus else "")


def _root_lines(root: Root, number: int, names: dict[str, str]) -> Iterator[str]:
    if root.name is None:
        for function in root.functions:
            yield from _function_lines(function, None, names)
        return
    here = _quoted(f"{root.name}/{number}")
    yield f"{here} [shape=box, label={_quoted(root.name)}];"
    yield from _below(root, here, names)


def _below(place: Bridge | Root, here: str, names: dict[str, str]) -> Iterator[str]:
    for bridge in place.bridges:
        yield f"{_quoted(bridge.address)} [{_BRIDGE.format(label=_quoted(bridge.address))}];"
        yield f"{here} -- {_quoted(bridge.address)} [{_PCIE_EDGE}];"
        yield from _below(bridge, _quoted(bridge.address), names)
    for function in place.functions:
        yield from _function_lines(function, here, names)


def _function_lines(function: Function, above: str | None, names: dict[str, str]) -> Iterator[str]:
    for node, line in _nodes(function, names):
        yield line
        if above is not None:
            yield f"{above} -- {node} [{_PCIE_EDGE}];"
    ids = {device.id for device in function.devices}
    for device in function.devices:
        if device.parent in ids:
            yield f"{_quoted(device.id)} [{_PART}, label={_quoted(_device_label(device, names))}];"
            yield f"{_quoted(device.parent or '')} -- {_quoted(device.id)} [style=dotted];"


def _nodes(function: Function, names: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Give what hangs on the bridge directly: each node's quoted name and its line."""
    if function.nic is not None:
        node = _quoted(function.nic.id)
        yield node, f"{node} [{_NIC}, label={_quoted(function.nic.id)}];"
    if function.fabric is not None:
        node = _quoted(function.fabric.id)
        yield node, f"{node} [{_FABRIC}, label={_quoted(function.fabric.label)}];"
    if function.also_of is not None:
        node = _quoted(f"{function.address}")
        yield node, f"{node} [{_PART}, label={_quoted(f'also {names[function.also_of.id]}')}];"
    ids = {device.id for device in function.devices}
    for device in function.devices:
        if device.parent not in ids:
            node = _quoted(device.id)
            yield node, f"{node} [{_DEVICE}, label={_quoted(_device_label(device, names))}];"


def _device_label(device: Device, names: dict[str, str]) -> str:
    return f"{names[device.id]} {device.model or device.label}, {device.state.value}"


def _link_lines(inventory: Inventory, names: dict[str, str]) -> Iterable[str]:
    known = set(names) | {node.id for node in inventory.fabric}
    for link in inventory.links:
        if link.a in known and link.b in known:
            label = f"{link_word(link)}, {speed_text(link.bytes_per_second_each_way)}"
            yield f"  {_quoted(link.a)} -- {_quoted(link.b)} [{_edge(link)}, constraint=false, label={_quoted(label)}];"


def _edge(link: Link) -> str:
    if link.state is LinkState.UP:
        return _UP_EDGE
    return _DOWN_EDGE if link.state is LinkState.DOWN else _UNKNOWN_EDGE
