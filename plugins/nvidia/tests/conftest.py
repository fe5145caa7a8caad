"""Machines, families and the stub library that the tests of this plugin share."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from anyaccel.device import Condition, Device, DeviceState, FamilyView, Level
from anyaccel.frozen import FrozenMap
from anyaccel.machine import Machine
from anyaccel.machine_description import MachineDescription
from anyaccel.registry import Plugin, Registry
from anyaccel.simulation import find_machine, parse_description, simulate
from anyaccel.topology import Boundary

HERE = Path(__file__).parent
_COLLECT = "import json; from anyaccel.machine import LiveAnswers; from anyaccel_nvidia import _driver; "
"""Asking as the probe child does, so that a refusal comes back in the form in which it is kept."""


@pytest.fixture(scope="session")
def registry() -> Registry:
    """A registry that holds this plugin only."""
    registry = Registry.of("anyaccel_nvidia.plugin")
    assert not registry.failures
    return registry


@pytest.fixture(scope="session")
def plugin(registry: Registry) -> Plugin:
    return registry.plugin("nvidia")


@pytest.fixture(scope="session")
def shipped(registry: Registry) -> Callable[[str], MachineDescription]:
    """Give the description of a machine this plugin ships."""
    return lambda name: find_machine(name, registry)


@pytest.fixture
def machine_of(registry: Registry) -> Callable[[MachineDescription | str], Machine]:
    """Make a machine of a description or of TOML text, with this plugin's questions open."""

    def make(description: MachineDescription | str) -> Machine:
        if isinstance(description, str):
            description = parse_description('schema = "anyaccel-machine/1"\n' + description)
        return simulate(description, registry).for_plugin("nvidia")

    return make


# Families made by hand, for the pure hooks.


def _card(number: int, **more: Any) -> Device:
    address = f"0000:{16 * (number + 1):02x}:00.0"
    attributes = {"pci_id": "10de:2330", "index_source": "driver", **more.pop("attributes", {})}
    default = Device(
        id=f"nvidia:{address}",
        family="nvidia",
        label="GPU",
        model="NVIDIA H100 80GB HBM3",
        uuid=f"GPU-{number:04x}0000-0000-0000-0000-000000000000",
        pci_addresses=(address,),
        numbers=FrozenMap({"index": number, "minor": number}),
        attributes=FrozenMap(attributes),
    )
    return replace(default, **more)


def _instance(parent: Device, gi: int, ci: int = 0, profile: str = "1g.10gb", **more: Any) -> Device:
    default = Device(
        id=f"{parent.id}/gi{gi}/ci{ci}",
        family="nvidia",
        level=Level.PARTITION,
        label="MIG instance",
        parent=parent.id,
        uuid=f"MIG-{gi:04x}{ci:04x}-{(parent.uuid or 'GPU-00000000')[4:8]}-0000-0000-000000000000",
        numbers=FrozenMap({"gpu_instance": gi, "compute_instance": ci}),
        max_per_process=1,
        attributes=FrozenMap({"profile": profile}),
    )
    return replace(default, **more)


def _divided(card: Device, *gis: int) -> list[Device]:
    code = "mig-divided" if gis else "mig-empty"
    condition = Condition(code, "MIG mode is on", DeviceState.PARTITIONED)
    parent = replace(card, conditions=(*card.conditions, condition), is_counted=False)
    return [parent, *(_instance(parent, gi) for gi in gis)]


def _view(devices: Iterable[Device], boundary: str = "host") -> FamilyView:
    is_container = boundary == "container"
    return FamilyView("nvidia", tuple(devices), boundary=Boundary(boundary, is_container, False, "a test"))


@pytest.fixture(scope="session")
def card() -> Callable[..., Device]:
    """Make one card: `card(2, uuid=None)`."""
    return _card


@pytest.fixture(scope="session")
def instance() -> Callable[..., Device]:
    """Make one MIG instance: `instance(parent, gi=3)`."""
    return _instance


@pytest.fixture(scope="session")
def divided() -> Callable[..., list[Device]]:
    """Make a card in MIG mode with instances: `divided(card(1), 3, 4)`."""
    return _divided


@pytest.fixture(scope="session")
def view_of() -> Callable[..., FamilyView]:
    """Make a family: `view_of(devices, "container")`."""
    return _view


# The stub library.


@pytest.fixture(scope="session")
def build_stub(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Compile the stub and give the folder that holds it: `build_stub("-DSTUB_OLD")`."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler (cc) to build the stub library with")
    built: dict[tuple[str, ...], Path] = {}

    def build(*flags: str) -> Path:
        if flags not in built:
            folder = tmp_path_factory.mktemp("stub")
            command = [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", *flags]
            command += ["-Wl,-soname,libnvidia-ml.so.1", "-o", str(folder / "libnvidia-ml.so.1")]
            subprocess.run([*command, str(HERE / "stub" / "nvml_stub.c")], check=True)
            built[flags] = folder
        return built[flags]

    return build


@pytest.fixture
def ask_stub(build_stub: Callable[..., Path], tmp_path: Path) -> Callable[..., Any]:
    """Run a collecting function in a child against the stub: `ask_stub(text)` gives what it would store as the answer."""

    def ask(
        text: str,
        *flags: str,
        call: str = "_driver.collect_nvml(())",
        timeout_seconds: float = 15,
        environ: Mapping[str, str] | None = None,
    ) -> Any:
        file = tmp_path / "stub.txt"
        file.write_text(text)
        code = _COLLECT + f"print(json.dumps(LiveAnswers()._collect(lambda: {call})))"
        child = subprocess.run(
            [sys.executable, "-c", code],
            env={
                **os.environ,
                "NVML_STUB_FILE": str(file),
                "LD_LIBRARY_PATH": str(build_stub(*flags)),
                **(environ or {}),
            },
            capture_output=True,
            text=True,
            timeout=timeout_seconds,
            check=False,
        )
        assert child.returncode == 0, child.stderr
        assert child.stderr == ""
        return json.loads(child.stdout)

    return ask


@pytest.fixture(scope="session")
def stub_text() -> Callable[..., str]:
    """Write the stub's file from the answers of an imaginary machine."""

    def write(nvml: Mapping[str, Any], metrics: Mapping[str, Any] | None = None) -> str:
        return "".join(f"{key}={value}\n" for key, value in _stub_lines(nvml, metrics or {"devices": []}))

    return write


def _stub_lines(nvml: Mapping[str, Any], metrics: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    if "unavailable" in nvml:
        yield from _refused_start(nvml)
        return
    yield "nvml_version", nvml["library"]["version"]
    yield "driver_version", nvml["driver_version"]
    yield "cuda_version", nvml["cuda_version"]
    yield "count", len(nvml["devices"])
    for device in nvml["devices"]:
        for key, value in _device_lines(device):
            yield f"d{device['index']}.{key}", value
    for index, device in enumerate(metrics["devices"]):
        for key, name in (("power", "power_milliwatts"), ("temperature", "temperature_celsius")):
            yield f"d{index}.{key}", _value(device, name)
        yield f"d{index}.utilization", _value(device, "utilization_percent")
        yield f"d{index}.memory_used", _value(device, "memory_used_bytes")
    for pair in nvml["pairs"]:
        yield f"p{pair['a']}.{pair['b']}.peer0", _value(pair, "peer_read")


def _refused_start(answer: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    yield "init", {"driver-mismatch": 18, "driver-not-loaded": 9}[answer["reason_code"]]
    if answer["reason_code"] == "driver-mismatch":
        yield "nvml_version", "12." + answer["unavailable"].rpartition(" ")[2]


def _value(values: Mapping[str, Any], name: str) -> Any:
    """Write a value, or `!code` for a refused one."""
    if name in values.get("codes", {}):
        return f"!{values['codes'][name]}"
    value = values.get(name)
    return " ".join(str(part) for part in value) if isinstance(value, list) else value


def _device_lines(device: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    if "code" in device:
        yield "handle", f"!{device['code']}"
        return
    yield "handle", "yes"
    yield from _plain_lines(device)
    yield from _pci_lines(device)
    yield "nodes", _node_words(device)
    slots = [partition["index"] for partition in device["partitions"]]
    yield "mig_count", max(slots) + 1 if slots else 0
    for partition in device["partitions"]:
        for key, name in _PARTITION_KEYS.items():
            yield f"m{partition['index']}.{key}", _value(partition, name)
    for link in device["nvlinks"]:
        yield from _link_lines(link)
    fabric = device["fabric"]
    codes = fabric.get("codes", {})
    words = (fabric.get(name) for name in ("status", "clique", "state", "health_mask"))
    yield "fabric", f"!{codes['read']}" if codes else fabric["cluster"] + " " + " ".join(str(word) for word in words)


def _node_words(device: Mapping[str, Any]) -> Any:
    """NUMA nodes are a mask of as many 64-bit words as were asked for."""
    if "numa_nodes" not in device:
        return _value(device, "numa_nodes")
    mask = sum(1 << node for node in device["numa_nodes"])
    return " ".join(str(mask >> 64 * word & (1 << 64) - 1) for word in range(4))


_PLAIN_KEYS = {
    "name": "name",
    "uuid": "uuid",
    "minor": "minor",
    "memory_total": "memory_bytes",
    "memory_reserved": "memory_reserved_bytes",
    "numa": "memory_numa_node",
    "cc": "compute_capability",
    "cores": "cores",
    "sm_clock": "sm_clock_mhz",
    "compute_mode": "compute_mode",
    "display": "display_active",
    "mig_mode": "mig_mode",
    "ecc_mode": "ecc_mode",
    "ecc_volatile": "ecc_uncorrected",
    "ecc_aggregate": "ecc_uncorrected_lifetime",
    "rows": "remapped_rows",
    "pages": "retired_pages",
    "pages_pending": "retired_pages_pending",
    "pids": "processes",
}
_PARTITION_KEYS = {
    "name": "name",
    "uuid": "uuid",
    "gi": "gpu_instance",
    "ci": "compute_instance",
    "memory_total": "memory_bytes",
    "multiprocessors": "multiprocessors",
    "gpu_slices": "gpu_slices",
    "compute_slices": "compute_slices",
}


def _plain_lines(device: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, name in _PLAIN_KEYS.items():
        yield key, _value(device, name)


def _pci_lines(device: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The library prints an eight-digit domain in upper case and packs device and vendor id into one number."""
    yield "pci", _bus_id(device, "pci_address")
    vendor, _, product = device.get("pci_id", "0:0").partition(":")
    yield "pci_device", f"0x{int(product, 16) << 16 | int(vendor, 16):x}"


def _bus_id(values: Mapping[str, Any], name: str) -> Any:
    address = values.get(name)
    if address is None:
        return _value(values, name)
    domain, _, rest = address.partition(":")
    return f"{int(domain, 16):08X}:{rest.upper()}"


def _link_lines(link: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    prefix = f"l{link['link']}"
    for name in ("state", "version", "remote_type"):
        yield f"{prefix}.{name}", _value(link, name)
    yield f"{prefix}.pci", _bus_id(link, "remote_address")
    yield f"{prefix}.speed", "!3" if link["speed_mbps"] is None else link["speed_mbps"]


@pytest.fixture(scope="session")
def shipped_names() -> Sequence[str]:
    """The names of all machines this plugin ships."""
    folder = HERE.parent / "src" / "anyaccel_nvidia" / "machines"
    return sorted(path.stem for path in folder.glob("*.toml"))
