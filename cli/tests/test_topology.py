"""`accel-cli topology` on small machines; the formats have tests of their own."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from anyaccel.device import Device
from anyaccel.frozen import FrozenMap
from anyaccel.inventory import Inventory
from anyaccel.registry import Registry
from anyaccel.topology import HostParts, PciPath
from anyaccel_cli.topology_document import topology_document

Invoke = Callable[..., Result]


def test_the_matrix_has_a_header_and_a_legend(invoke: Invoke, toy_registry: Registry, toy_root: Path) -> None:
    """Where it comes from first, what the words mean last."""
    lines = invoke("topology", "--root", toy_root, registry=toy_registry).stdout.splitlines()

    assert (lines[0], lines[-1]) == (
        f"root {toy_root}",
        "unknown  this machine does not show how near they are",
    )


def test_json_has_every_pair(invoke: Invoke, toy_registry: Registry, toy_root: Path) -> None:
    """Each two devices once, with the level as a word."""
    document = json.loads(invoke("topology", "--root", toy_root, "--json", registry=toy_registry).stdout)

    assert [(pair["a"], pair["b"], pair["pcie_level"]) for pair in document["pairs"]] == [
        ("toy:0000:01:00.0", "toy:0000:02:00.0", "unknown")
    ]


def test_select_narrows_the_matrix(invoke: Invoke, toy_registry: Registry, toy_root: Path) -> None:
    """The same expressions as in discover."""
    result = invoke("topology", "--root", toy_root, "--select", "state=ready", "--json", registry=toy_registry)

    assert [device["id"] for device in json.loads(result.stdout)["devices"]] == ["toy:0000:01:00.0"]


def test_nothing_is_exit_3_with_the_reasons(
    invoke: Invoke, toy_registry: Registry, make_root: Callable[..., Path]
) -> None:
    """An empty machine says the same as discover."""
    result = invoke("topology", "--root", make_root(), registry=toy_registry)

    assert (result.exit_code, "no toy card on PCI" in result.stdout) == (3, True)


@pytest.mark.parametrize("format_", ["tree", "dot", "hwloc-xml"])
def test_every_format_names_both_devices(invoke: Invoke, toy_registry: Registry, toy_root: Path, format_: str) -> None:
    """Each form shows the same devices."""
    text = invoke("topology", "--root", toy_root, "--format", format_, registry=toy_registry).stdout

    assert ["0000:01:00.0" in text, "0000:02:00.0" in text] == [True, True]


@pytest.mark.parametrize(("format_", "start"), [("dot", "graph"), ("hwloc-xml", "<?xml")])
def test_a_document_is_one_even_when_there_is_nothing(
    invoke: Invoke, toy_registry: Registry, make_root: Callable[..., Path], format_: str, start: str
) -> None:
    """A program that reads dot or XML never gets sentences instead."""
    result = invoke("topology", "--root", make_root(), "--format", format_, registry=toy_registry)

    assert (result.exit_code, result.stdout.startswith(start)) == (3, True)


@pytest.fixture
def nvidia() -> Registry:
    """The plugin whose machines have network cards."""
    pytest.importorskip("anyaccel_nvidia", reason="anyaccel_nvidia is not installed")
    return Registry.of("anyaccel_nvidia.plugin")


@pytest.mark.parametrize(
    ("options", "nics"),
    [
        ((), [f"mlx5_{n}" for n in range(8)]),
        (("--select", "nvidia:0", "--select", "nvidia:4"), ["mlx5_0", "mlx5_4"]),
        (("--select", "nvidia:0", "--nics"), [f"mlx5_{n}" for n in range(8)]),
        (("--select", "nvidia:0", "--no-nics"), []),
        (("--no-nics",), []),
    ],
)
def test_a_selection_keeps_the_nearest_network_cards(
    invoke: Invoke, nvidia: Registry, options: tuple[str, ...], nics: list[str]
) -> None:
    """Who asks for some devices gets their nearest network cards, all or none on request."""
    result = invoke("topology", "--simulate", "nvidia-h100x8", *options, "--json", registry=nvidia)

    assert [nic["id"] for nic in json.loads(result.stdout)["nics"]] == nics


def test_a_matrix_of_too_many_devices_is_refused(
    invoke: Invoke, toy_registry: Registry, make_root: Callable[..., Path]
) -> None:
    """Nobody reads 4,225 cells; the hint says what to do, and JSON has them all."""
    root = make_root(*((f"{n:04x}:01:00.0", 0x1234, 1, 0x120000, "toy") for n in range(65)))
    matrix, document = (
        invoke("topology", "--root", root, "--format", format_, registry=toy_registry) for format_ in ("matrix", "json")
    )

    assert (matrix.exit_code, "--select" in matrix.stderr, len(json.loads(document.stdout)["pairs"])) == (
        2,
        True,
        65 * 64 // 2,
    )


def test_a_thousand_devices_take_seconds(
    make_gpu: Callable[..., Device], make_inventory: Callable[..., Inventory]
) -> None:
    """Half a million pairs are worked out in less time than one waits."""
    addresses = [f"{n:04x}:01:00.0" for n in range(1000)]
    devices = [make_gpu(n, id=f"gpu:{a}", pci_addresses=(a,)) for n, a in enumerate(addresses)]
    paths = FrozenMap({a: PciPath(a, f"pci{a[:7]}", (f"{a[:4]}:00:01.0",), 0) for a in addresses})
    inventory = make_inventory(*devices, host=HostParts(paths=paths))
    started = time.process_time()
    document = topology_document(inventory, devices)

    assert (len(document["pairs"]), time.process_time() - started < 10) == (499_500, True)
