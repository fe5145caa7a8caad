"""A first look: is there any sign of an AMD GPU? Most machines have none and pay for nothing more."""

from __future__ import annotations

from anyaccel.host import read_boundary
from anyaccel.machine import Machine
from anyaccel.pci import match_functions
from anyaccel_amd.declaration import MATCHES

__all__ = ["has_any_sign", "why_none"]

_KFD_NODES = "/sys/class/kfd/kfd/topology/nodes"
_DRM = "/sys/class/drm"


def has_any_sign(machine: Machine) -> bool:
    """Whether PCI, KFD or, where PCI shows nothing at all, DRM may know of an AMD GPU."""
    if match_functions(machine, MATCHES) or machine.list_folder(_KFD_NODES):
        return True
    return not machine.pci_functions() and bool(machine.list_folder(_DRM))


def why_none(machine: Machine, denied_count: int = 0) -> str:
    """Say why there is no AMD GPU.

    Args: denied_count: KFD nodes that the kernel refuses to this container.
    """
    if read_boundary(machine).kind == "wsl":
        return "no AMD GPU on PCI; inside WSL AMD GPUs show in no file and are not supported here"
    if denied_count:
        return f"no AMD GPU on PCI, and the kernel refuses {denied_count} KFD nodes to this container"
    return "no PCI function of vendor 1002 with a display or accelerator class, and no GPU in the KFD topology"
