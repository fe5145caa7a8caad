"""Models for imaginary machines: what a driver would say of each.

Figures: memory as drivers report it, cores and clocks from NVIDIA's data sheets and architecture white papers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["MIB", "MODELS", "SWITCH_MODELS", "SimulatedModel", "SimulatedSwitch"]

MIB = 1 << 20


@dataclass(frozen=True)
class SimulatedModel:
    """One model.

    Args: memory_bytes: None = the driver answers "not supported". nvlink_version: as nvml.h counts, None = no NVLink.
        has_ecc, has_mig: what the hardware can do. speed_gts, max_width: PCIe.
    """

    name: str
    device_id: int
    subsystem_id: int
    class_code: str
    memory_bytes: int | None
    cores: int
    sm_clock_mhz: int
    compute_capability: tuple[int, int]
    nvlink_version: int | None = None
    nvlink_count: int = 0
    nvlink_mbps: int = 0
    has_ecc: bool = True
    has_mig: bool = False
    has_fabric: bool = False
    multiprocessors: int = 0
    speed_gts: float = 16.0
    max_width: int = 16

    @property
    def is_on_pci(self) -> bool:
        """Whether the GPU is a PCI function; on some boards it sits in the processor package."""
        return self.device_id != 0


@dataclass(frozen=True)
class SimulatedSwitch:
    """A switch of the NVLink fabric."""

    device_id: int
    subsystem_id: int


SWITCH_MODELS: Mapping[str, SimulatedSwitch] = {
    "nvswitch-a100": SimulatedSwitch(0x1AF1, 0x1468),
    "nvswitch-h100": SimulatedSwitch(0x22A3, 0x1796),
}

MODELS: Mapping[str, SimulatedModel] = {
    "h100-sxm5-80gb": SimulatedModel(
        "NVIDIA H100 80GB HBM3",
        0x2330,
        0x16C1,
        "030200",
        81559 * MIB,
        16896,
        1980,
        (9, 0),
        nvlink_version=6,
        nvlink_count=18,
        nvlink_mbps=26562,
        has_mig=True,
        has_fabric=True,
        multiprocessors=132,
        speed_gts=32.0,
    ),
    "a100-sxm4-40gb": SimulatedModel(
        "NVIDIA A100-SXM4-40GB",
        0x20B0,
        0x134F,
        "030200",
        40960 * MIB,
        6912,
        1410,
        (8, 0),
        nvlink_version=4,
        nvlink_count=12,
        nvlink_mbps=25781,
        has_mig=True,
        multiprocessors=108,
    ),
    "t4": SimulatedModel("Tesla T4", 0x1EB8, 0x12A2, "030200", 15360 * MIB, 2560, 1590, (7, 5), speed_gts=8.0),
    "l4": SimulatedModel("NVIDIA L4", 0x27B8, 0x16CA, "030200", 23034 * MIB, 7424, 2040, (8, 9)),
    "rtx-a6000": SimulatedModel(
        "NVIDIA RTX A6000",
        0x2230,
        0x1459,
        "030000",
        49140 * MIB,
        10752,
        2100,
        (8, 6),
        nvlink_version=5,
        nvlink_count=4,
        nvlink_mbps=14062,
    ),
    "rtx-3090": SimulatedModel(
        "NVIDIA GeForce RTX 3090",
        0x2204,
        0x1454,
        "030000",
        24576 * MIB,
        10496,
        2100,
        (8, 6),
        nvlink_version=5,
        nvlink_count=4,
        nvlink_mbps=14062,
        has_ecc=False,
    ),
    "gtx-1660-super": SimulatedModel(
        "NVIDIA GeForce GTX 1660 SUPER",
        0x21C4,
        0x1160,
        "030000",
        6144 * MIB,
        1408,
        2100,
        (7, 5),
        has_ecc=False,
        speed_gts=8.0,
    ),
    "dgx-display": SimulatedModel(
        "NVIDIA DGX Display", 0x1FB0, 0x1454, "030000", 3911 * MIB, 896, 2100, (7, 5), has_ecc=False, speed_gts=8.0
    ),
    "gb10": SimulatedModel(
        "NVIDIA GB10", 0x2E12, 0x21EC, "030000", None, 6144, 3003, (12, 1), has_ecc=False, speed_gts=2.5, max_width=1
    ),
    "orin": SimulatedModel("Orin (nvgpu)", 0, 0, "", None, 2048, 1300, (8, 7), has_ecc=False),
}
