"""Everything static about the AMD family."""

from __future__ import annotations

from anyaccel.capabilities import (
    Capability,
    Declaration,
    Framework,
    MaskVariable,
    MatchRule,
    Partitioning,
    ResourceName,
    VariableScope,
    VariableUse,
    not_implemented,
    supported,
    unsupported,
)
from anyaccel.device import Level
from anyaccel.frozen import FrozenMap

__all__ = ["CONTAINER", "CUDA", "DECLARATION", "HIDE_ALL", "HIP", "MATCHES", "OPENCL", "ROCR"]

ROCR = "ROCR_VISIBLE_DEVICES"
HIP = "HIP_VISIBLE_DEVICES"
CUDA = "CUDA_VISIBLE_DEVICES"
OPENCL = "GPU_DEVICE_ORDINAL"
CONTAINER = "AMD_VISIBLE_DEVICES"

HIDE_ALL = ((HIP, "-1"), (ROCR, ""))
"""HIP shows nothing for -1, and wins over a CUDA_VISIBLE_DEVICES meant for another family; ROCR shows nothing for an empty
list (case A1 in `amd_filter_device.h`), which covers programs that use HSA or OpenCL without HIP."""

_VENDOR = 0x1002

MATCHES = (
    MatchRule(vendor_id=_VENDOR, drivers=("amdgpu",)),
    MatchRule(vendor_id=_VENDOR, class_prefixes=("03", "12")),
)
"""A GPU is a function of this vendor with its driver, or with a display or accelerator class; never its sound or USB function."""

_READ = VariableUse.READS
_WRITTEN = VariableUse.WRITES
_CLEARED = VariableUse.CLEARS

DECLARATION = Declaration(
    key="amd",
    title="AMD GPUs",
    matches=MATCHES,
    resources=(
        ResourceName("gpu", Level.DEVICE, kubernetes="amd.com/gpu", ray="GPU"),
        ResourceName("gpu-partition", Level.PARTITION, kubernetes="amd.com/{profile}"),
    ),
    variables=(
        MaskVariable(ROCR, number_space="index", uses=(_READ, _WRITTEN, _CLEARED)),
        MaskVariable(HIP, number_space="index", uses=(_READ, _WRITTEN)),
        MaskVariable(CUDA, number_space="index", uses=(_READ, _CLEARED)),
        MaskVariable(OPENCL, number_space="index", uses=(_READ, _CLEARED)),
        MaskVariable(CONTAINER, VariableScope.CONTAINER, uses=(_READ,)),
    ),
    hide_all=HIDE_ALL,
    frameworks=(
        Framework("torch", "cuda", backend="nccl", versions="builds for ROCm, which call RCCL nccl"),
        Framework("jax", "rocm", backend=None, versions="with the ROCm plugin"),
    ),
    partitioning=Partitioning.PERSISTENT,
    capabilities=FrozenMap(
        {
            Capability.INSPECT.value: supported(),
            Capability.LINKS.value: supported(),
            Capability.VISIBILITY.value: supported(),
            Capability.HIDE_ALL.value: supported(),
            Capability.PARTITIONS.value: supported(),
            Capability.FRACTIONS.value: supported(),
            Capability.LEGAL_SETS.value: unsupported("any set of AMD GPUs may work together"),
            Capability.METRICS.value: supported(),
            Capability.DIAGNOSE.value: not_implemented("planned with the doctor command"),
            Capability.OBSERVE_RUNTIME.value: not_implemented("needs a machine with an AMD GPU to be written on"),
            Capability.SIMULATE.value: supported(),
        }
    ),
    summary="Instinct, Radeon and integrated GPUs under amdgpu: KFD, xGMI hives, compute partitions, RAS",
)
