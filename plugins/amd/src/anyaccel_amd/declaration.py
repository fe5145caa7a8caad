"""Everything static about the AMD family."""

from __future__ import annotations

from anyaccel.capabilities import (
    Capability,
    Declaration,
    Framework,
    MaskVariable,
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
from anyaccel_amd.joining import MATCHES
from anyaccel_amd.variables import CONTAINER, CUDA, HIP, OPENCL, ROCR
from anyaccel_amd.visibility import HIDE_ALL

__all__ = ["DECLARATION"]

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
            Capability.METRICS.value: not_implemented("planned with the metrics command"),
            Capability.DIAGNOSE.value: not_implemented("planned with the doctor command"),
            Capability.OBSERVE_RUNTIME.value: not_implemented("needs a machine with an AMD GPU to be written on"),
            Capability.SIMULATE.value: supported(),
        }
    ),
    summary="Instinct, Radeon and integrated GPUs under amdgpu: KFD, xGMI hives, compute partitions, RAS",
)
