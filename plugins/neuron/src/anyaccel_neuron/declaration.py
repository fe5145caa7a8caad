"""Everything static about the Neuron family."""

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
from anyaccel_neuron.chips import CHIPS, VENDOR_ID

__all__ = [
    "CONTAINER",
    "CORES",
    "CORE_COUNT",
    "CORE_SIZES",
    "DECLARATION",
    "DRIVER",
    "FAMILY",
    "MATCHES",
    "PROCESS_CORES",
    "PROCESS_RANK",
    "RESOURCES",
    "ROOT",
]

FAMILY = "neuron"
DRIVER = "neuron"

CORES = "NEURON_RT_VISIBLE_CORES"
CORE_COUNT = "NEURON_RT_NUM_CORES"
CORE_SIZES = ("NEURON_RT_VIRTUAL_CORE_SIZE", "NEURON_LOGICAL_NC_CONFIG")
"""The runtime's name and the name that frameworks use; either says how many physical cores make one."""
CONTAINER = "AWS_NEURON_VISIBLE_DEVICES"
ROOT = "NEURON_RT_ROOT_COMM_ID"
PROCESS_CORES = "NEURON_PJRT_PROCESSES_NUM_DEVICES"
PROCESS_RANK = "NEURON_PJRT_PROCESS_INDEX"

MATCHES = (
    MatchRule(vendor_id=VENDOR_ID, drivers=(DRIVER,)),
    MatchRule(vendor_id=VENDOR_ID, device_ids=tuple(i for chip in CHIPS for i in chip.device_ids)),
)

RESOURCES = (
    ResourceName("neuron", Level.DEVICE, kubernetes="aws.amazon.com/neuron"),
    ResourceName("neuroncore", Level.PARTITION, kubernetes="aws.amazon.com/neuroncore", ray="neuron_cores"),
)

_READ, _WRITTEN, _CLEARED = VariableUse.READS, VariableUse.WRITES, VariableUse.CLEARS

DECLARATION = Declaration(
    key=FAMILY,
    title="AWS Neuron devices",
    matches=MATCHES,
    resources=RESOURCES,
    variables=(
        MaskVariable(CORES, number_space="core", uses=(_READ, _WRITTEN)),
        MaskVariable(CORE_COUNT, uses=(_READ, _CLEARED)),
        *(MaskVariable(name, uses=(_READ, _WRITTEN)) for name in CORE_SIZES),
        MaskVariable(PROCESS_CORES, uses=(_READ, _WRITTEN, _CLEARED)),
        MaskVariable(PROCESS_RANK, uses=(_READ, _WRITTEN, _CLEARED)),
        MaskVariable(ROOT, uses=(_READ,)),
        MaskVariable(CONTAINER, VariableScope.CONTAINER, "index", uses=(_READ,)),
    ),
    hide_all=((CORES, ""),),
    frameworks=(
        Framework("torch", "xla", backend="xla", versions="torch-neuronx up to 2.8; `neuron` in the native backend"),
        Framework("jax", "neuron", versions="with libneuronxla"),
    ),
    partitioning=Partitioning.PER_PROCESS,
    capabilities=FrozenMap(
        {
            Capability.INSPECT.value: supported(),
            Capability.LINKS.value: supported(),
            Capability.VISIBILITY.value: supported(),
            Capability.HIDE_ALL.value: supported(),
            Capability.PARTITIONS.value: supported(),
            Capability.FRACTIONS.value: unsupported("a NeuronCore belongs to one process at a time"),
            Capability.LEGAL_SETS.value: supported(),
            Capability.METRICS.value: supported(),
            Capability.DIAGNOSE.value: not_implemented("planned with the doctor command"),
            Capability.OBSERVE_RUNTIME.value: unsupported("the runtime takes the cores that it is asked about"),
            Capability.SIMULATE.value: supported(),
        }
    ),
    summary="Inferentia and Trainium: NeuronCores, logical cores, NeuronLink rings and tori",
)
