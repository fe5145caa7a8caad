"""What a plugin declares about its family: how to recognise it, what people call it, what it can do."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from anyaccel.device import Level
from anyaccel.frozen import FrozenMap

__all__ = [
    "CONTRACT_VERSION",
    "Capability",
    "Declaration",
    "Framework",
    "MaskVariable",
    "MatchRule",
    "Partitioning",
    "ResourceName",
    "Support",
    "SupportState",
    "VariableScope",
    "VariableUse",
    "not_implemented",
    "supported",
    "unsupported",
]

CONTRACT_VERSION = "1.0"
"""Version of the hooks in this release, `MAJOR.MINOR`; a plugin of another major is refused with a sentence."""


class Capability(str, Enum):
    """An ability that a family may have or not."""

    INSPECT = "inspect"
    LINKS = "links"
    VISIBILITY = "visibility"
    HIDE_ALL = "hide-all"
    PARTITIONS = "partitions"
    FRACTIONS = "fractions"
    LEGAL_SETS = "legal-sets"
    METRICS = "metrics"
    DIAGNOSE = "diagnose"
    OBSERVE_RUNTIME = "observe-runtime"
    SIMULATE = "simulate"


class SupportState(str, Enum):
    """Whether a family has a capability. `not-implemented` means the hardware may, the plugin does not yet."""

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"
    NOT_IMPLEMENTED = "not-implemented"


@dataclass(frozen=True)
class Support:
    """A declared capability; anything but `supported` needs a reason."""

    state: SupportState
    reason: str | None = None


def supported() -> Support:
    """Declare that the capability works and its checks shall run."""
    return Support(SupportState.SUPPORTED)


def unsupported(reason: str) -> Support:
    """Declare that the hardware or its software cannot do this, and why."""
    return Support(SupportState.UNSUPPORTED, reason)


def not_implemented(reason: str) -> Support:
    """Declare that the plugin does not do this yet, and where the work is tracked."""
    return Support(SupportState.NOT_IMPLEMENTED, reason)


@dataclass(frozen=True)
class MatchRule:
    """One way to recognise this family in the machine's files; every field that is given must agree.

    A class code or a node pattern alone never matches: other vendors' devices have them too.
    Args: vendor_id, device_ids: PCI ids; no device ids = any. class_prefixes: hex digits of the PCI class (`0302`).
        drivers: kernel driver names. sysfs_class: folder of `/sys/class`. node_pattern: regular expression of a device
        file. is_accelerator: False claims a function without making it a device (a switch of the fabric).
    """

    vendor_id: int | None = None
    device_ids: tuple[int, ...] = ()
    class_prefixes: tuple[str, ...] = ()
    drivers: tuple[str, ...] = ()
    sysfs_class: str | None = None
    node_pattern: str | None = None
    is_accelerator: bool = True

    @property
    def is_specific(self) -> bool:
        """Whether the rule names a vendor, a driver or a vendor's class."""
        return self.vendor_id is not None or bool(self.drivers) or self.sysfs_class is not None


@dataclass(frozen=True)
class ResourceName:
    """One name under which people ask for this family.

    Args: kind: our own key, shared by families of one sort (`gpu`, `tpu`). level: the tree level it counts.
        kubernetes: extended resource (`nvidia.com/gpu`; `{profile}` stands for a partition profile). ray: Ray's name.
    """

    kind: str
    level: Level = Level.DEVICE
    kubernetes: str | None = None
    ray: str | None = None


class VariableScope(str, Enum):
    """Who reads a variable: the container runtime before a container starts, a process at start, or both."""

    CONTAINER = "container"
    PROCESS = "process"
    BOTH = "both"


class VariableUse(str, Enum):
    """What this plugin does with a variable."""

    READS = "reads"
    WRITES = "writes"
    CLEARS = "clears"


@dataclass(frozen=True)
class MaskVariable:
    """An environment variable that changes what a process of this family sees.

    Args: number_space: the key in `Device.numbers` that its numbers are in, None = it holds no device numbers.
        uses: what the plugin does with it.
    """

    name: str
    scope: VariableScope = VariableScope.PROCESS
    number_space: str | None = None
    uses: tuple[VariableUse, ...] = (VariableUse.READS,)


@dataclass(frozen=True)
class Framework:
    """What a framework calls this family, and since when.

    Args: name: `torch` or `jax`. device: the torch device type or JAX platform. backend: collective backend.
        versions: a version range in words, None = every version we know.
    """

    name: str
    device: str
    backend: str | None = None
    versions: str | None = None


class Partitioning(str, Enum):
    """How a device is divided: never, once for all, until changed by an administrator, or by each process."""

    NONE = "none"
    FIXED = "fixed"
    PERSISTENT = "persistent"
    PER_PROCESS = "per-process"


@dataclass(frozen=True)
class Declaration:
    """Everything static about a family, answered at load without looking at the machine.

    Args: key: the plugin's key, equal to its entry point's name. title: for people. contract_version: `MAJOR.MINOR`
        the plugin was written for. matches: how to recognise the hardware. resources: names to ask by.
        variables: every mask variable read, written or cleared. hide_all: variables and values that hide the whole family.
        frameworks: names in torch and JAX. partitioning: how devices are divided. capabilities: each with its support.
        probe_timeout_seconds: time one probe child gets. summary: one line of documentation.
    """

    key: str
    title: str
    contract_version: str = CONTRACT_VERSION
    matches: tuple[MatchRule, ...] = ()
    resources: tuple[ResourceName, ...] = ()
    variables: tuple[MaskVariable, ...] = ()
    hide_all: tuple[tuple[str, str], ...] = ()
    frameworks: tuple[Framework, ...] = ()
    partitioning: Partitioning = Partitioning.NONE
    capabilities: FrozenMap[Support] = field(default_factory=FrozenMap)
    probe_timeout_seconds: float = 10.0
    summary: str = ""

    def supports(self, capability: Capability) -> bool:
        """Whether the capability was declared as supported."""
        declared = self.capabilities.get(capability.value)
        return declared is not None and declared.state is SupportState.SUPPORTED
