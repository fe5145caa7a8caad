"""Which GPUs a plain request may take: integrated ones only where AMD supports them for compute, or when told to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from anyaccel.device import Device
from anyaccel_amd.joining import Gpu
from anyaccel_amd.pci_names import INTEGRATED_IDS, NAMES
from anyaccel_amd.targets import COMPUTE_INTEGRATED, INTEGRATED_TARGETS

__all__ = ["COUNT_INTEGRATED", "CountRule", "count_rule", "is_integrated"]

COUNT_INTEGRATED = "ANYACCEL_COUNT_INTEGRATED"
"""The switch: `1` counts every integrated GPU that the runtime shows."""


@dataclass(frozen=True)
class CountRule:
    """Whether a device is counted, and the rule that decided when it is not obvious."""

    is_counted: bool
    reason: str | None = None


def is_integrated(gpu: Gpu, target: str | None) -> bool | None:
    """Tell whether a GPU shares package and memory with the host's CPU; None = nothing tells."""
    if gpu.device_id in INTEGRATED_IDS or target in INTEGRATED_TARGETS:
        return True
    if any(node.properties.get("cpu_cores_count", 0) > 0 for node in gpu.nodes):
        return True
    return None if gpu.device_id not in NAMES and target is None else False


def count_rule(base: Device, target: str | None, integrated: bool | None, environ: Mapping[str, str]) -> CountRule:
    """Decide whether a plain request may take a GPU.

    Args: base: with what plain PCI decided already, such as for a virtual function.
    """
    if not base.is_counted or not integrated:
        return CountRule(base.is_counted, base.count_reason)
    supported = ", ".join(sorted(COMPUTE_INTEGRATED))
    if target in COMPUTE_INTEGRATED:
        return CountRule(True, f"integrated, and counted because AMD supports {target} for compute")
    if environ.get(COUNT_INTEGRATED) == "1":
        return CountRule(True, f"integrated, and counted because {COUNT_INTEGRATED}=1")
    what = f"{target} is not" if target else "its target is unknown and not known to be"
    return CountRule(
        False,
        f"integrated with the CPU; {what} among the integrated targets AMD supports for compute ({supported}); "
        f"{COUNT_INTEGRATED}=1 counts it",
    )
