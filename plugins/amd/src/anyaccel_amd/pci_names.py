"""Product names, graphics targets and dies by PCI device id. Facts from the public PCI id database and AMD's product pages."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["DIES", "INTEGRATED_IDS", "NAMES", "TARGETS", "product_name"]

NAMES: Mapping[int, str] = {
    0x1506: "Radeon 610M (Mendocino)",
    0x150E: "Radeon 880M / 890M (Strix)",
    0x1586: "Radeon 8050S / 8060S (Strix Halo)",
    0x15BF: "Radeon 740M / 760M / 780M (Phoenix)",
    0x15C8: "Radeon 740M (Phoenix 2)",
    0x15D8: "Radeon Vega (Picasso / Raven 2)",
    0x15DD: "Radeon Vega (Raven Ridge)",
    0x15E7: "Radeon Graphics (Barcelo)",
    0x1636: "Radeon Graphics (Renoir)",
    0x1638: "Radeon Graphics (Cezanne)",
    0x163F: "Custom GPU 0405 (VanGogh)",
    0x164C: "Radeon Graphics (Lucienne)",
    0x164D: "Radeon Graphics (Rembrandt)",
    0x164E: "Radeon Graphics (Raphael)",
    0x164F: "Radeon Graphics (Phoenix)",
    0x1681: "Radeon 680M (Rembrandt)",
    0x66A0: "Instinct MI60",
    0x66A1: "Radeon Pro VII / Instinct MI50",
    0x66A3: "Radeon Pro Vega II",
    0x66A7: "Radeon Pro Vega 20",
    0x66AF: "Radeon VII",
    0x67C4: "Radeon Pro WX 7100",
    0x67C7: "Radeon Pro WX 5100",
    0x67DF: "Radeon RX 470 / 480 / 570 / 580 / 590",
    0x67EF: "Radeon RX 460 / 560",
    0x67FF: "Radeon RX 550 / 560",
    0x6860: "Instinct MI25 / V340 / V320",
    0x6861: "Radeon Pro WX 9100",
    0x6862: "Radeon Pro SSG",
    0x6863: "Radeon Vega Frontier Edition",
    0x6864: "Radeon Pro V340 / Instinct MI25x2",
    0x6868: "Radeon Pro WX 8100 / 8200",
    0x686C: "Instinct MI25 / V340 virtual function",
    0x687F: "Radeon RX Vega 56 / 64",
    0x699F: "Radeon RX 540 / 550",
    0x69AF: "Radeon Pro Vega 20",
    0x6FDF: "Radeon RX 580 2048SP",
    0x7300: "Radeon R9 Fury / Nano",
    0x7312: "Radeon Pro W5700",
    0x731F: "Radeon RX 5600 / 5700",
    0x7340: "Radeon RX 5500",
    0x7341: "Radeon Pro W5500",
    0x7360: "Radeon Pro 5600M / V520",
    0x7362: "Radeon Pro V520 / V540",
    0x7388: "Instinct MI100",
    0x738C: "Instinct MI100",
    0x738E: "Instinct MI100",
    0x73A1: "Radeon Pro V620",
    0x73A3: "Radeon Pro W6800",
    0x73A5: "Radeon RX 6950 XT",
    0x73AE: "Radeon Pro V620 virtual function",
    0x73AF: "Radeon RX 6900 XT",
    0x73BF: "Radeon RX 6800 / 6900 XT",
    0x73DF: "Radeon RX 6700 / 6750",
    0x73E3: "Radeon Pro W6600",
    0x73EF: "Radeon RX 6650 XT",
    0x73FF: "Radeon RX 6600",
    0x7408: "Instinct MI250X",
    0x740C: "Instinct MI250X / MI250",
    0x740F: "Instinct MI210",
    0x7422: "Radeon Pro W6400",
    0x743F: "Radeon RX 6400 / 6500 XT",
    0x7448: "Radeon Pro W7900",
    0x7449: "Radeon Pro W7800 48GB",
    0x744A: "Radeon Pro W7900 Dual Slot",
    0x744B: "Radeon Pro W7900D",
    0x744C: "Radeon RX 7900 XT / XTX / GRE",
    0x745E: "Radeon Pro W7800",
    0x7460: "Radeon Pro V710",
    0x7461: "Radeon Pro V710",
    0x7470: "Radeon Pro W7700",
    0x747E: "Radeon RX 7700 XT / 7800 XT",
    0x7480: "Radeon RX 7600",
    0x7483: "Radeon RX 7600M",
    0x74A0: "Instinct MI300A",
    0x74A1: "Instinct MI300X",
    0x74A2: "Instinct MI308X",
    0x74A5: "Instinct MI325X",
    0x74A9: "Instinct MI300X HF",
    0x74B5: "Instinct MI300X virtual function",
    0x74B9: "Instinct MI325X virtual function",
    0x74BD: "Instinct MI300X HF virtual function",
    0x7550: "Radeon RX 9070 / 9070 XT / 9070 GRE",
    0x7551: "Radeon AI PRO R9700",
    0x7590: "Radeon RX 9060 XT",
    0x75A0: "Instinct MI350X",
    0x75A3: "Instinct MI355X",
    0x75A8: "Instinct MI350P",
}

TARGETS: Mapping[int, str] = {
    **dict.fromkeys((0x6860, 0x6861, 0x6862, 0x6863, 0x6864, 0x6868, 0x686C, 0x687F), "gfx900"),
    **dict.fromkeys((0x66A0, 0x66A1, 0x66A3, 0x66A7, 0x66AF), "gfx906"),
    **dict.fromkeys((0x7388, 0x738C, 0x738E), "gfx908"),
    **dict.fromkeys((0x7408, 0x740C, 0x740F), "gfx90a"),
    **dict.fromkeys((0x74A0, 0x74A1, 0x74A2, 0x74A5, 0x74A9, 0x74B5, 0x74B9, 0x74BD), "gfx942"),
    **dict.fromkeys((0x75A0, 0x75A3, 0x75A8), "gfx950"),
    **dict.fromkeys((0x7448, 0x7449, 0x744A, 0x744B, 0x744C, 0x745E), "gfx1100"),
    **dict.fromkeys((0x7550, 0x7551), "gfx1201"),
    0x1586: "gfx1151",
    0x150E: "gfx1150",
    0x15BF: "gfx1103",
    0x164E: "gfx1036",
}
"""The graphics target of parts whose KFD node does not tell it, as LLVM's AMDGPU usage page names them."""

INTEGRATED_IDS: frozenset[int] = frozenset(
    {
        *(0x1506, 0x150E, 0x1586, 0x15BF, 0x15C8, 0x15D8, 0x15DD, 0x15E7, 0x1636, 0x1638),
        *(0x163F, 0x164C, 0x164D, 0x164E, 0x164F, 0x1681, 0x74A0),
    }
)
"""Parts that share package and memory with the host's CPU."""

DIES: Mapping[int, int] = {0x74A0: 6, 0x74A1: 8, 0x74A5: 8, 0x74A9: 8, 0x75A0: 8, 0x75A3: 8}
"""Compute dies (XCDs) of the parts that can be divided, from AMD's CDNA 3 and CDNA 4 white papers."""


def product_name(device_id: int | None) -> str | None:
    """Give the product name of a PCI device id, None when it is unknown.

    Example: product_name(0x740F) == "Instinct MI210"
    """
    return None if device_id is None else NAMES.get(device_id)
