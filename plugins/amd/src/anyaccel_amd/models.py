"""Parts that an imaginary machine can hold, with what their files would say.

Sizes of memory are the marketing sizes, a driver reports a little less. Bandwidths are those KFD writes (MB/s): PCIe 32000
and 64000 for generations 4 and 5 with 16 lanes, 819200 inside an MI300X, 50000 for an xGMI link of an MI210, 64000 for one
of an MI300X (AMD's data sheet: 128 GB/s both ways together).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from anyaccel.errors import RecordingError

__all__ = ["MODELS", "Model", "find_model"]

_GIB = 1 << 30


@dataclass(frozen=True)
class Model:
    """One part.

    Args: target_version: as KFD writes it. vram_bytes: own memory, or the carve-out of an integrated part. simds_per_die,
        simds_per_unit: SIMD units. dies: compute dies that can be partitions, 1 = indivisible. xgmi_mbs: one link, each way.
        inside_mbs: between partitions of the package. product_name: what the board's FRU says, empty on consumer cards.
        ras_blocks: blocks with error counters. is_integrated: shares memory with the host; it then has no unique id.
    """

    device_id: int
    class_code: str
    target_version: int
    vram_bytes: int
    simds_per_die: int
    simds_per_unit: int = 4
    dies: int = 1
    speed_gts: float = 16.0
    width: int = 16
    xgmi_mbs: int = 0
    inside_mbs: int = 0
    product_name: str = ""
    market_name: str = ""
    ras_blocks: tuple[str, ...] = ()
    is_integrated: bool = False
    wave_front_size: int = 64

    @property
    def pcie_mbs(self) -> int:
        """Bandwidth of its slot as KFD writes it."""
        return int(self.speed_gts * self.width / 8) * 1000


_INSTINCT_BLOCKS = ("umc", "sdma", "gfx", "mmhub", "pcie_bif", "xgmi_wafl")

MODELS: Mapping[str, Model] = {
    "mi210": Model(
        *(0x740F, "038000", 90010, 64 * _GIB, 416),
        xgmi_mbs=50_000,
        product_name="AMD Instinct MI210",
        market_name="AMD Instinct MI210",
        ras_blocks=_INSTINCT_BLOCKS,
    ),
    "mi250x": Model(
        *(0x7408, "038000", 90010, 64 * _GIB, 440),
        xgmi_mbs=50_000,
        product_name="AMD Instinct MI250X",
        market_name="AMD Instinct MI250X",
        ras_blocks=_INSTINCT_BLOCKS,
    ),
    "mi300a": Model(
        *(0x74A0, "120000", 90402, 128 * _GIB, 152),
        dies=6,
        speed_gts=32.0,
        xgmi_mbs=128_000,
        inside_mbs=819_200,
        market_name="AMD Instinct MI300A",
        ras_blocks=_INSTINCT_BLOCKS,
        is_integrated=True,
    ),
    "mi300x": Model(
        *(0x74A1, "120000", 90402, 192 * _GIB, 152),
        dies=8,
        speed_gts=32.0,
        xgmi_mbs=64_000,
        inside_mbs=819_200,
        product_name="AMD Instinct MI300X OAM",
        market_name="AMD Instinct MI300X",
        ras_blocks=_INSTINCT_BLOCKS,
    ),
    "mi355x": Model(
        *(0x75A3, "120000", 90500, 288 * _GIB, 128),
        dies=8,
        speed_gts=32.0,
        xgmi_mbs=76_800,
        inside_mbs=819_200,
        product_name="AMD Instinct MI355X OAM",
        market_name="AMD Instinct MI355X",
        ras_blocks=_INSTINCT_BLOCKS,
    ),
    "rx7900xtx": Model(
        *(0x744C, "030000", 110000, 24 * _GIB, 192),
        simds_per_unit=2,
        market_name="Radeon RX 7900 XTX",
        wave_front_size=32,
    ),
    "rx9070xt": Model(
        *(0x7550, "030000", 120001, 16 * _GIB, 128),
        simds_per_unit=2,
        speed_gts=32.0,
        market_name="AMD Radeon RX 9070 XT",
        wave_front_size=32,
    ),
    "rx580": Model(0x67DF, "030000", 80003, 8 * _GIB, 144, speed_gts=8.0, market_name="Radeon RX 580 Series"),
    "raphael": Model(
        *(0x164E, "030000", 100306, _GIB // 2, 4),
        simds_per_unit=2,
        market_name="AMD Radeon Graphics",
        is_integrated=True,
        wave_front_size=32,
    ),
    "strix": Model(
        *(0x150E, "038000", 110500, _GIB // 2, 24),
        simds_per_unit=2,
        market_name="AMD Radeon 890M",
        is_integrated=True,
        wave_front_size=32,
    ),
    "strix-halo": Model(
        *(0x1586, "038000", 110501, _GIB // 2, 80),
        simds_per_unit=2,
        market_name="Radeon 8060S Graphics",
        is_integrated=True,
        wave_front_size=32,
    ),
}


def find_model(name: str) -> Model:
    """Give a part by name. Raises: RecordingError listing the known names."""
    model = MODELS.get(name)
    if model is None:
        raise RecordingError(f"amd knows no model {name!r} (known: {', '.join(sorted(MODELS))})")
    return model
