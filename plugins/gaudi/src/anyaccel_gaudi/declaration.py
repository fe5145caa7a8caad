"""Everything static about the Gaudi family."""

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
from anyaccel_gaudi.models import VENDOR_ID

__all__ = ["CONTAINER", "DECLARATION", "DRIVER", "DYNAMIC", "FAMILY", "MATCHES", "MODULES", "ONE_MODULE", "RESOURCES"]

FAMILY = "gaudi"
DRIVER = "habanalabs"

MODULES = "HABANA_VISIBLE_MODULES"
ONE_MODULE = "HLS_MODULE_ID"
CONTAINER = "HABANA_VISIBLE_DEVICES"
DYNAMIC = "HL_VISIBLE_DEVICES"

MATCHES = (
    MatchRule(vendor_id=VENDOR_ID, class_prefixes=("12",)),
    MatchRule(vendor_id=VENDOR_ID, drivers=(DRIVER,)),
)

RESOURCES = (ResourceName("hpu", Level.DEVICE, kubernetes="habana.ai/gaudi", ray="HPU"),)

_READ, _WRITTEN, _CLEARED = VariableUse.READS, VariableUse.WRITES, VariableUse.CLEARS

DECLARATION = Declaration(
    key=FAMILY,
    title="Intel Gaudi accelerators",
    matches=MATCHES,
    resources=RESOURCES,
    variables=(
        MaskVariable(MODULES, VariableScope.BOTH, "module", uses=(_READ, _WRITTEN)),
        MaskVariable(ONE_MODULE, number_space="module", uses=(_READ, _WRITTEN, _CLEARED)),
        MaskVariable(CONTAINER, VariableScope.CONTAINER, "index", uses=(_READ,)),
        MaskVariable(DYNAMIC, uses=(_READ,)),
    ),
    hide_all=((MODULES, ""),),
    frameworks=(Framework("torch", "hpu", backend="hccl", versions="with the package habana-torch-plugin"),),
    partitioning=Partitioning.NONE,
    capabilities=FrozenMap(
        {
            Capability.INSPECT.value: supported(),
            Capability.LINKS.value: supported(),
            Capability.VISIBILITY.value: supported(),
            Capability.HIDE_ALL.value: supported(),
            Capability.PARTITIONS.value: unsupported("a Gaudi is never divided"),
            Capability.FRACTIONS.value: unsupported("one process opens a card at a time"),
            Capability.LEGAL_SETS.value: supported(),
            Capability.METRICS.value: supported(),
            Capability.DIAGNOSE.value: not_implemented("planned with the doctor command"),
            Capability.OBSERVE_RUNTIME.value: unsupported(
                "asking the runtime takes the card for the process that asks"
            ),
            Capability.SIMULATE.value: supported(),
        }
    ),
    summary="Gaudi to Gaudi3: module ids, scale-up Ethernet, module groups",
)
