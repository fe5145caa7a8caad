"""How near two imaginary cards are on PCIe, in the words of NVML."""

from __future__ import annotations

from anyaccel.machine_description import CardDescription, MachineDescription

__all__ = ["common_ancestor"]

_ONE_SWITCH, _SEVERAL_SWITCHES, _HOST_BRIDGE, _NODE, _SYSTEM = 10, 20, 30, 40, 50


def common_ancestor(description: MachineDescription, a: CardDescription, b: CardDescription) -> int:
    """Give nvmlGpuTopologyLevel_t of two cards of a described machine."""
    chain_a, chain_b = _chain(description, a), _chain(description, b)
    if chain_a[0] == chain_b[0]:
        shared = sum(1 for _ in _common_prefix(chain_a, chain_b))
        if shared == 1:
            return _HOST_BRIDGE
        return _ONE_SWITCH if max(len(chain_a), len(chain_b)) - shared <= 1 else _SEVERAL_SWITCHES
    return _NODE if a.numa_node == b.numa_node else _SYSTEM


def _common_prefix(a: list[str], b: list[str]) -> list[str]:
    prefix = []
    for left, right in zip(a, b, strict=False):
        if left != right:
            break
        prefix.append(left)
    return prefix


def _chain(description: MachineDescription, card: CardDescription) -> list[str]:
    """Give the bridges above a card, the root first."""
    parents = {address: parent for address, parent, _ in description.bridges}
    address = card.address or ""
    above = card.parent or f"pci{address[:7]}"
    chain = [above]
    while above in parents:
        above = parents[above]
        chain.append(above)
    return chain[::-1]
