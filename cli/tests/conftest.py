"""Fixtures: inventories made by hand, a small plugin, and the command line run inside this process."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from anyaccel.device import Condition, Device, DeviceState, FamilyView, Level
from anyaccel.frozen import FrozenMap
from anyaccel.inventory import Inventory, OutcomeStatus, PluginOutcome
from anyaccel.machine import MachineKind
from anyaccel.registry import Registry
from anyaccel.visibility import Resolution, VisibleUnit

TOY = """
from anyaccel.capabilities import Declaration, MaskVariable, MatchRule
from anyaccel.device import Discovery
from anyaccel.hookspec import hookimpl
from anyaccel.pci import device_from_function, match_functions

RULES = (MatchRule(vendor_id={vendor}),)

@hookimpl
def accel_declare():
    return Declaration(key="{key}", title="Toy", matches=RULES, variables=(MaskVariable("{variable}"),))

@hookimpl
def accel_discover_devices(machine):
    found = match_functions(machine, RULES)
    devices = tuple(
        device_from_function(machine, f, family="{key}", drivers=("toy",), label="toy", model="Toy 1") for f, _ in found
    )
    return Discovery(devices) if devices else Discovery(reason="no toy card on PCI", hint="plug one in")
"""


@pytest.fixture
def write_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], str]]:
    """Write a module under a name that is forgotten after the test; gives the name."""
    folder = tmp_path / "modules"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    written: list[str] = []

    def write(name: str, source: str) -> str:
        (folder / f"{name}.py").write_text(textwrap.dedent(source), encoding="utf-8")
        written.append(name)
        return name

    yield write
    for name in written:
        sys.modules.pop(name, None)


@pytest.fixture
def toy_registry(write_module: Callable[[str, str], str]) -> Registry:
    """A registry of one plugin `toy` for PCI vendor 0x1234."""
    return Registry.of(write_module("toy_plugin", TOY.format(vendor=0x1234, key="toy", variable="TOY_VISIBLE")))


@pytest.fixture
def toy_source() -> Callable[..., str]:
    """The source of the toy plugin with other names in it."""

    def source(key: str = "toy", vendor: int = 0x1234, variable: str = "TOY_VISIBLE") -> str:
        return TOY.format(key=key, vendor=vendor, variable=variable)

    return source


@pytest.fixture
def make_root(tmp_path: Path) -> Callable[..., Path]:
    """Write a root folder with PCI functions (address, vendor, device, class, driver or None)."""

    def make(*functions: tuple[str, int, int, int, str | None], name: str = "root") -> Path:
        root = tmp_path / name
        for address, vendor, device, class_code, driver in functions:
            folder = root / "sys/bus/pci/devices" / address
            folder.mkdir(parents=True)
            (folder / "vendor").write_text(f"0x{vendor:04x}\n")
            (folder / "device").write_text(f"0x{device:04x}\n")
            (folder / "class").write_text(f"0x{class_code:06x}\n")
            (folder / "numa_node").write_text("-1\n")
            if driver is not None:
                (root / "sys/bus/pci/drivers" / driver).mkdir(parents=True, exist_ok=True)
                (folder / "driver").symlink_to(f"../../drivers/{driver}")
        root.mkdir(exist_ok=True)
        return root

    return make


@pytest.fixture
def toy_root(make_root: Callable[..., Path]) -> Path:
    """A root folder with two toy cards, the second without a driver."""
    return make_root(
        ("0000:01:00.0", 0x1234, 1, 0x120000, "toy"),
        ("0000:02:00.0", 0x1234, 1, 0x120000, None),
    )


@pytest.fixture
def invoke() -> Callable[..., Result]:
    """Run the command line here; `registry` stands for what is installed."""
    from anyaccel_cli.main import cli

    def run(*arguments: str | Path, registry: Registry | None = None, env: dict[str, str] | None = None) -> Result:
        given = registry if registry is not None else Registry()
        return CliRunner(env=env).invoke(cli, [str(a) for a in arguments], obj=given, catch_exceptions=False)

    return run


@pytest.fixture
def make_gpu() -> Callable[..., Device]:
    """Make a card of the family `gpu` by number; anything else by keyword."""

    def make(number: int, **fields: object) -> Device:
        address = f"0000:{number + 0x10:02x}:00.0"
        values: dict[str, object] = {
            "id": f"gpu:{address}",
            "family": "gpu",
            "label": "GPU",
            "model": "ACME G100 80GB",
            "uuid": f"GPU-{number:x}{number:x}c0ffee-0000",
            "pci_addresses": (address,),
            "numbers": FrozenMap({"index": number, "minor": number}),
            "memory_bytes": 80 << 30,
            "numa_node": number // 4,
            "driver": "acme",
            "driver_version": "550.1",
        }
        return Device(**{**values, **fields})  # type: ignore[arg-type]

    return make


@pytest.fixture
def make_inventory() -> Callable[..., Inventory]:
    """Make an inventory of devices; resolutions by family; anything else by keyword."""

    def make(*devices: Device, resolutions: dict[str, Resolution] | None = None, **fields: object) -> Inventory:
        families = tuple(dict.fromkeys(device.family for device in devices))
        views = tuple(FamilyView(f, tuple(d for d in devices if d.family == f)) for f in families)
        outcomes = tuple(PluginOutcome(f, OutcomeStatus.FOUND, device_count=1) for f in families)
        values = {"views": views, "outcomes": outcomes, "kind": MachineKind.SIMULATED, "name": "by-hand", **fields}
        return Inventory(resolutions=FrozenMap(resolutions or {}), **values)  # type: ignore[arg-type]

    return make


def lost() -> Condition:
    """A card that has left the bus."""
    return Condition("lost", "fell off the bus", DeviceState.LOST, hint="reset the card")


def hidden_by(variable: str) -> Condition:
    """What core adds to a device that a mask leaves out."""
    return Condition("hidden", f"hidden by {variable}", DeviceState.HIDDEN)


@pytest.fixture
def masked_server(make_gpu: Callable[..., Device], make_inventory: Callable[..., Inventory]) -> Inventory:
    """Eight cards: card 3 lost, cards 6 and 7 hidden by GPU_VISIBLE."""
    changes = {3: lost(), 6: hidden_by("GPU_VISIBLE"), 7: hidden_by("GPU_VISIBLE")}
    cards = [make_gpu(n, conditions=(changes[n],) if n in changes else ()) for n in range(8)]
    shown = [cards[n] for n in (5, 0, 1, 2, 4)]
    resolution = Resolution(
        units=tuple(VisibleUnit(n, card.id, (card.id,), "GPU_VISIBLE") for n, card in enumerate(shown)),
        hidden_by=FrozenMap({cards[n].id: "GPU_VISIBLE" for n in (6, 7)}),
        is_masked=True,
    )
    return make_inventory(*cards, resolutions={"gpu": resolution})


@pytest.fixture
def partitioned_server(make_gpu: Callable[..., Device], make_inventory: Callable[..., Inventory]) -> Inventory:
    """Two cards, the first divided into two partitions."""
    divided = Condition("partitioned", "divided into partitions", DeviceState.PARTITIONED)
    first = make_gpu(0, conditions=(divided,))
    parts = [
        Device(
            id=f"{first.id}/part{n}",
            family="gpu",
            level=Level.PARTITION,
            label="slice",
            parent=first.id,
            model="1g.10gb",
            uuid=f"MIG-{n}abc",
            numbers=FrozenMap({"index": n}),
            memory_bytes=10 << 30,
        )
        for n in range(2)
    ]
    return make_inventory(first, *parts, make_gpu(1))


@pytest.fixture
def example_registry() -> Registry:
    """A registry of the example plugin, whose imaginary machines use every corner of the contract."""
    pytest.importorskip("anyaccel_example", reason="the example plugin is not installed")
    return Registry.of("anyaccel_example.plugin")
