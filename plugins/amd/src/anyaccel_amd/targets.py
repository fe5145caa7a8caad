"""Graphics targets: how KFD writes them, which are integrated, and which integrated ones AMD supports for compute."""

from __future__ import annotations

__all__ = ["COMPUTE_INTEGRATED", "INTEGRATED_TARGETS", "target_name"]

INTEGRATED_TARGETS: frozenset[str] = frozenset(
    {
        "gfx902",
        "gfx909",
        "gfx90c",
        "gfx1033",
        "gfx1035",
        "gfx1036",
        "gfx1103",
        "gfx1150",
        "gfx1151",
        "gfx1152",
        "gfx1153",
    }
)
"""Targets that LLVM's AMDGPU usage page marks as APU; gfx942 is both and told apart by its PCI id."""

COMPUTE_INTEGRATED: frozenset[str] = frozenset({"gfx942", "gfx1151"})
"""Integrated targets counted for compute: MI300A in every ROCm 6 and 7, Strix Halo since ROCm 7 (AMD's support pages)."""


def target_name(version: int | None) -> str | None:
    """Give the name of a `gfx_target_version`: decimal, two digits each for minor version and stepping.

    Example: target_name(90402) == "gfx942"; target_name(90010) == "gfx90a"
    """
    if not version or version < 0:
        return None
    major, minor, stepping = version // 10_000, version // 100 % 100, version % 100
    return f"gfx{major}{minor:x}{stepping:x}"
