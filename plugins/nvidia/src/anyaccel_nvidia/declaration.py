"""Everything static about NVIDIA GPUs."""

from __future__ import annotations

from anyaccel.capabilities import (
    Capability,
    Declaration,
    Framework,
    MaskVariable,
    MatchRule,
    Partitioning,
    ResourceName,
    Support,
    VariableScope,
    VariableUse,
    not_implemented,
    supported,
)
from anyaccel.device import Level
from anyaccel.frozen import FrozenMap
from anyaccel_nvidia.pci_names import SWITCH_IDS

__all__ = [
    "BATCH_VARIABLES",
    "CONTAINER_MASK",
    "DECLARATION",
    "DRIVER",
    "FAMILY",
    "MASK",
    "MATCHES",
    "ORDER",
    "ORDER_BY_BUS",
    "ORDER_BY_SPEED",
    "SHARED_DAEMON",
    "VENDOR_ID",
]

FAMILY = "nvidia"
DRIVER = "nvidia"
VENDOR_ID = 0x10DE

MASK = "CUDA_VISIBLE_DEVICES"
ORDER = "CUDA_DEVICE_ORDER"
ORDER_BY_BUS = "PCI_BUS_ID"
ORDER_BY_SPEED = "FASTEST_FIRST"
CONTAINER_MASK = "NVIDIA_VISIBLE_DEVICES"
SHARED_DAEMON = "CUDA_MPS_PIPE_DIRECTORY"
BATCH_VARIABLES = ("SLURM_STEP_GPUS", "SLURM_JOB_GPUS")
"""What a batch system granted, innermost first."""

MATCHES = (
    MatchRule(vendor_id=VENDOR_ID, device_ids=tuple(SWITCH_IDS), is_accelerator=False),
    MatchRule(vendor_id=VENDOR_ID, class_prefixes=("03",)),
    MatchRule(drivers=(DRIVER,)),
    MatchRule(drivers=("nvidia-nvswitch",), is_accelerator=False),
)

_READ, _WRITTEN = (VariableUse.READS,), (VariableUse.READS, VariableUse.WRITES)

_CAPABILITIES: dict[Capability, Support] = {
    Capability.INSPECT: supported(),
    Capability.LINKS: supported(),
    Capability.VISIBILITY: supported(),
    Capability.HIDE_ALL: supported(),
    Capability.PARTITIONS: supported(),
    Capability.FRACTIONS: supported(),
    Capability.LEGAL_SETS: supported(),
    Capability.METRICS: supported(),
    Capability.DIAGNOSE: not_implemented("findings arrive with the doctor command"),
    Capability.OBSERVE_RUNTIME: not_implemented("needs a machine with the CUDA runtime to be written against"),
    Capability.SIMULATE: supported(),
}

DECLARATION = Declaration(
    key=FAMILY,
    title="NVIDIA GPUs",
    matches=MATCHES,
    resources=(
        ResourceName("gpu", Level.DEVICE, "nvidia.com/gpu", "GPU"),
        ResourceName("mig", Level.PARTITION, "nvidia.com/mig-{profile}"),
    ),
    variables=(
        MaskVariable(MASK, VariableScope.PROCESS, "index", _WRITTEN),
        MaskVariable(ORDER, VariableScope.PROCESS, None, _WRITTEN),
        MaskVariable(CONTAINER_MASK, VariableScope.CONTAINER, "index", _READ),
        MaskVariable("SLURM_STEP_GPUS", VariableScope.PROCESS, "minor", _READ),
        MaskVariable("SLURM_JOB_GPUS", VariableScope.PROCESS, "minor", _READ),
    ),
    hide_all=((MASK, ""),),
    frameworks=(Framework("torch", "cuda", "nccl"), Framework("jax", "cuda")),
    partitioning=Partitioning.PERSISTENT,
    capabilities=FrozenMap({capability.value: support for capability, support in _CAPABILITIES.items()}),
    summary="GPUs by PCI, /proc/driver/nvidia and NVML: MIG, NVLink, health, CUDA masks",
)
