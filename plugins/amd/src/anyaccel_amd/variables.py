"""The variables that change what a process sees of AMD GPUs, and what each does in one environment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from anyaccel.masks import MaskLayer
from anyaccel.visibility import TokenEffect, VariableReport
from anyaccel_amd.declaration import CONTAINER, CUDA, HIP, OPENCL, ROCR

__all__ = ["variable_reports"]


def variable_reports(
    environ: Mapping[str, str], rocr: MaskLayer | None, hip: MaskLayer | None, *, has_devices: bool
) -> tuple[VariableReport, ...]:
    """Say of every variable that is set what it does here, in the order in which they are read."""
    return tuple(_reports(environ, rocr, hip, has_devices=has_devices))


def _reports(
    environ: Mapping[str, str], rocr: MaskLayer | None, hip: MaskLayer | None, *, has_devices: bool
) -> Iterable[VariableReport]:
    if CONTAINER in environ:
        yield _container(environ[CONTAINER])
    if rocr is not None:
        yield VariableReport(ROCR, environ[ROCR], True, f"the HSA runtime counts {_left(rocr)}")
    if HIP in environ and hip is not None:
        yield _hip(environ, rocr, hip)
    if CUDA in environ:
        yield _cuda(environ, hip, has_devices=has_devices)
    if OPENCL in environ:
        yield _opencl(environ[OPENCL])


def _left(layer: MaskLayer) -> str:
    count = len(layer.slots)
    return "no GPU" if count == 0 else f"{count} GPU{'s' if count != 1 else ''}"


def _container(value: str) -> VariableReport:
    reason = "read by AMD's container runtime when a container starts; it has no effect on a process"
    return VariableReport(CONTAINER, value, False, reason, hint=f"use {HIP} for a process")


def _hip(environ: Mapping[str, str], rocr: MaskLayer | None, hip: MaskLayer) -> VariableReport:
    value = environ[HIP]
    if rocr is None:
        return VariableReport(HIP, value, True, f"HIP counts {_left(hip)}")
    reason = f"its numbers count the {_left(rocr)} that {ROCR} left; HIP counts {_left(hip)}"
    is_short = any(report.effect is TokenEffect.ENDS_LIST for report in hip.tokens)
    hint = f"set one of the two; {HIP} alone counts from the KFD order" if is_short else None
    return VariableReport(HIP, value, True, reason, hint=hint, is_warning=is_short)


def _cuda(environ: Mapping[str, str], hip: MaskLayer | None, *, has_devices: bool) -> VariableReport:
    value = environ[CUDA]
    if HIP in environ:
        differs = value != environ[HIP]
        more = f", and its value {environ[HIP]!r} differs" if differs else ""
        reason = f"HIP reads {HIP} instead{more}"
        hint = f"unset {CUDA}: some frameworks stop when the two differ" if differs else None
        return VariableReport(CUDA, value, False, reason, hint=hint, is_warning=differs)
    left = "no GPU" if hip is None else _left(hip)
    hides_all = has_devices and hip is not None and not hip.slots
    return VariableReport(
        CUDA,
        value,
        True,
        f"HIP honours it where {HIP} is unset; HIP counts {left}",
        hint=f"unset it, or set {HIP} for AMD GPUs" if hides_all else None,
        is_warning=hides_all,
    )


def _opencl(value: str) -> VariableReport:
    return VariableReport(
        OPENCL,
        value,
        False,
        "read by OpenCL programs only; HIP's source does not read it, although AMD's page on GPU isolation says so",
        hint=f"use {HIP} for HIP programs",
        is_warning=True,
    )
