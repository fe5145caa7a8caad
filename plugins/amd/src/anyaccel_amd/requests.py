"""Which sets of AMD GPUs a request may get: any, as long as there are enough of the asked kind."""

from __future__ import annotations

from anyaccel.device import Device, FamilyView, Level
from anyaccel.resources import AnySet, Refusal, RequestAnswer, ResourceRequest, all_sets

__all__ = ["validate_request"]

_WHOLE = ("gpu", "amd.com/gpu", "GPU")
_PARTITION = "gpu-partition"


def validate_request(view: FamilyView, request: ResourceRequest) -> RequestAnswer:
    """Answer a request over the whole family, free or not."""
    if request.key in _WHOLE:
        return _whole_gpus(view, request)
    if request.key == _PARTITION or request.key.startswith("amd.com/"):
        return _partitions(view, request)
    known = ", ".join((*_WHOLE, _PARTITION, "amd.com/<profile>"))
    return Refusal(f"amd knows no resource {request.key!r} (known: {known})")


def _whole_gpus(view: FamilyView, request: ResourceRequest) -> RequestAnswer:
    roots = [device for device in view.roots if device.is_counted]
    whole = [device for device in roots if not view.children(device.id)]
    if request.count <= len(whole):
        return AnySet()
    divided = len(roots) - len(whole)
    if divided:
        names = ", ".join(_profiles(view)) or "unknown"
        return Refusal(
            f"{request.count} whole GPUs asked for, {len(whole)} there; {divided} are divided into partitions ({names})"
        )
    integrated = sum(1 for device in view.roots if device.is_integrated and not device.is_counted)
    more = f", and {integrated} integrated that are not counted" if integrated else ""
    return Refusal(f"{request.count} GPUs asked for, {len(whole)} counted here{more}")


def _partitions(view: FamilyView, request: ResourceRequest) -> RequestAnswer:
    profile = None if request.key == _PARTITION else request.key.removeprefix("amd.com/")
    partitions = [device for device in view.devices if _is_partition(device)]
    fitting = [device for device in partitions if profile in (None, _profile(device))]
    if request.count <= len(fitting):
        is_any = len(fitting) == len(partitions)
        return (
            AnySet() if is_any else all_sets([device.id for device in fitting], request.count, f"{profile} partitions")
        )
    kinds = ", ".join(_profiles(view)) or "none"
    what = "partitions" if profile is None else f"{profile} partitions"
    return Refusal(f"{request.count} {what} asked for, {len(fitting)} there (kinds: {kinds})")


def _is_partition(device: Device) -> bool:
    return device.level is Level.PARTITION and device.is_counted


def _profile(device: Device) -> str | None:
    profile = device.attributes.get("partition_profile")
    return profile if isinstance(profile, str) else None


def _profiles(view: FamilyView) -> tuple[str, ...]:
    found = {_profile(device) for device in view.devices if _is_partition(device)}
    return tuple(sorted(profile for profile in found if profile is not None))
