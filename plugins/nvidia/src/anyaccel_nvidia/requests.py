"""Which sets of devices a request may get."""

from __future__ import annotations

from anyaccel.device import FamilyView, Level
from anyaccel.resources import AnySet, Refusal, RequestAnswer, ResourceRequest, all_sets
from anyaccel_nvidia.partitions import is_divided

__all__ = ["validate_request"]

_GPU_KEYS = frozenset({"gpu", "nvidia.com/gpu", "GPU"})
_PROFILE_PREFIXES = ("nvidia.com/mig-", "mig-")


def validate_request(view: FamilyView, request: ResourceRequest) -> RequestAnswer:
    """Say which sets may serve a request: any of the whole GPUs, or a single MIG instance.

    Example: validate_request(view, ResourceRequest("mig-1g.10gb", 2)) == Refusal("one process can use one MIG instance, not 2")
    """
    if request.key in _GPU_KEYS:
        return _whole_gpus(view, request)
    if request.key == "mig":
        return _instances(view, request, None)
    profile = next((request.key.removeprefix(p) for p in _PROFILE_PREFIXES if request.key.startswith(p)), None)
    if profile is None:
        return Refusal(
            f"NVIDIA's plugin has no resource {request.key!r} (known: gpu, nvidia.com/gpu, mig, nvidia.com/mig-PROFILE)"
        )
    return _instances(view, request, profile)


def _whole_gpus(view: FamilyView, request: ResourceRequest) -> RequestAnswer:
    devices = [device for device in view.devices if device.level is Level.DEVICE]
    whole = [device for device in devices if device.is_counted and not is_divided(device)]
    if request.count > len(whole):
        divided = sum(is_divided(device) for device in devices)
        rest = f", {divided} more in MIG mode" if divided else ""
        return Refusal(f"{request.count} whole GPUs asked for, {len(whole)} here{rest}")
    if len(whole) == len(devices):
        return AnySet()
    return all_sets(
        [device.id for device in whole], request.count, "GPUs in MIG mode and cards for the screen are left out"
    )


def _instances(view: FamilyView, request: ResourceRequest, profile: str | None) -> RequestAnswer:
    instances = [device for device in view.devices if device.level is Level.PARTITION and device.is_counted]
    fitting = [d for d in instances if profile is None or d.attributes.get("profile") == profile]
    if request.count > 1:
        return Refusal(f"one process can use one MIG instance, not {request.count}")
    if request.count and not fitting:
        known = sorted({str(device.attributes.get("profile")) for device in instances})
        wanted = "MIG instance" if profile is None else f"MIG instance of profile {profile}"
        return Refusal(f"no {wanted} is here (present: {', '.join(known) or 'none'})")
    return all_sets([device.id for device in fitting], request.count, "one process can use one MIG instance")
