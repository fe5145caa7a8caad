"""`accel-cli metrics`: values with their reasons, ticks, and what Prometheus is served."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator

import pytest
from click.testing import Result

from anyaccel.registry import Registry
from anyaccel_cli.exporter import parse_address
from anyaccel_cli.failures import WrongUsageError

Invoke = Callable[..., Result]
PROGRAM = (sys.executable, "-m", "anyaccel_cli", "metrics")


@pytest.fixture
def metrics(invoke: Invoke) -> Callable[..., Result]:
    """Run `metrics` on an imaginary machine of NVIDIA's or AMD's."""
    for package in ("anyaccel_amd", "anyaccel_nvidia"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    registry = Registry.of("anyaccel_amd.plugin", "anyaccel_nvidia.plugin")
    return lambda machine, *more: invoke("metrics", "--simulate", machine, *more, registry=registry)


def test_one_row_a_card_with_what_the_driver_tells(metrics: Callable[..., Result]) -> None:
    """A lost card is unknown throughout, never 0."""
    lines = metrics("nvidia-h100x8-one-lost").stdout.splitlines()

    assert re.split(r"  +", lines[2].strip())[2:] == [
        "NVIDIA H100 80GB HBM3",
        "34 °C",
        "0 %",
        "551 MiB",
        "79.6 GiB",
        "68 W",
    ]
    assert re.split(r"  +", lines[5].strip())[3:] == ["unknown"] * 5
    assert len(lines) == 10


def test_every_missing_value_has_its_reason(metrics: Callable[..., Result]) -> None:
    """In the document a value is a number or null with a reason."""
    document = json.loads(metrics("nvidia-a100x4-mig", "--json").stdout)
    readings = [reading for device in document["devices"] for reading in device["readings"]]

    assert {(reading["value"] is None, reading["reason"] is None) for reading in readings} == {
        (False, True),
        (True, False),
    }
    assert {r["reason"] for r in readings if r["name"] == "utilization_ratio" and r["value"] is None} == {
        "not supported by this device"
    }


def test_more_memory_used_than_there_is_is_unknown(metrics: Callable[..., Result], tmp_path) -> None:
    """A container's odd answer is kept in the reason, as a raw number, and nowhere else."""
    from anyaccel.asking import Asked
    from anyaccel.device import Device, FamilyView
    from anyaccel.frozen import FrozenMap
    from anyaccel.inventory import Inventory
    from anyaccel.metrics import Reading, ReadingKind
    from anyaccel.readings import take_sample

    class Answering:
        def ask(self, hook, **_):
            reading = Reading("gpu:0", "memory_used_bytes", ReadingKind.GAUGE, 18446744073707737660.0)
            return (Asked("gpu", (reading,)),)

    device = Device(id="gpu:0", family="gpu", memory_bytes=24146608128, numbers=FrozenMap())
    sample = take_sample(Answering(), Inventory((FamilyView("gpu", (device,)),)))  # type: ignore[arg-type]
    (reading,) = sample.readings

    assert reading.value is None
    assert re.fullmatch(r"the driver tells 184467440737\d+ bytes used of 24146608128", reading.reason or "")


def test_a_family_that_tells_nothing_says_why(metrics: Callable[..., Result]) -> None:
    """No driver is a reason with a hint, and no broken plugin."""
    result = metrics("nvidia-driver-mismatch")

    assert result.exit_code == 0
    assert "nvidia: no readings: " in result.stdout
    assert "hint: " in result.stderr


def test_a_driver_that_hangs_is_named_and_costs_its_own_values(metrics: Callable[..., Result]) -> None:
    """Its rows stay, unknown; the plugin is broken, exit 4."""
    result = metrics("nvidia-library-hangs", "--timeout", "2")

    assert result.exit_code == 4
    assert "unknown" in result.stdout
    assert "the probe hung" in result.stderr or "no time was left" in result.stderr


def test_nothing_to_read_is_said(invoke: Invoke, tmp_path) -> None:
    """Without a device: why, and exit 3; as a document too."""
    assert invoke("metrics", "--root", tmp_path).exit_code == 3
    assert json.loads(invoke("metrics", "--root", tmp_path, "--json").stdout)["devices"] == []


def test_watching_gives_one_document_a_line(metrics: Callable[..., Result]) -> None:
    """Each tick is one whole document, in order of time."""
    lines = metrics("nvidia-rtx-pair", "--watch", "0.2", "--count", "3", "--json").stdout.splitlines()
    times = [json.loads(line)["taken_at_seconds"] for line in lines]

    assert len(lines) == 3
    assert times == sorted(times)
    assert times[2] - times[0] > 0.3


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--count", "2"), "--count says how often to --watch"),
        (("--watch", "0"), "invalid value for '--watch'"),
        (("--watch", "1", "--output", "file"), "--output takes one result"),
        (("--serve", "0.0.0.0:9400"), "would be open to other machines"),
        (("--serve", "10.0.0.1:9400"), "would be open to other machines"),
        (("--serve", "9400"), "is not HOST:PORT"),
        (("--serve", "127.0.0.1:99999"), "is not HOST:PORT"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    metrics: Callable[..., Result], arguments: tuple[str, ...], error: str
) -> None:
    """Wrong usage is one sentence, before anything is asked or opened."""
    result = metrics("nvidia-rtx-pair", *arguments)

    assert (result.exit_code, result.stdout) == (2, "")
    assert error in result.stderr.lower() or error in result.stderr


@pytest.mark.parametrize(
    ("text", "address"),
    [("127.0.0.1:9400", ("127.0.0.1", 9400)), ("[::1]:1", ("::1", 1)), ("localhost:0", ("localhost", 0))],
)
def test_loopback_addresses_are_taken(text: str, address: tuple[str, int]) -> None:
    """IPv4, IPv6 and the name."""
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["", ":", ":1", "127.0.0.1:", "127.0.0.1:-1", "127.0.0.1:٣", "evil.example:1"])
def test_other_addresses_are_not(text: str) -> None:
    """Nothing is guessed, nothing is open to others."""
    with pytest.raises(WrongUsageError):
        parse_address(text)


@pytest.fixture
def serving() -> Iterator[Callable[[str], str]]:
    """Serve an imaginary machine in a process of its own; gives the text of a scrape."""
    pytest.importorskip("anyaccel_nvidia", reason="anyaccel_nvidia is not installed")
    pytest.importorskip("prometheus_client", reason="prometheus-client is not installed")
    started: list[subprocess.Popen[str]] = []

    def serve(machine: str) -> str:
        command = [*PROGRAM, "--simulate", machine, "--serve", "127.0.0.1:0"]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ}
        )
        started.append(process)
        assert process.stderr is not None
        line = process.stderr.readline()
        match = re.search(r"http://127\.0\.0\.1:\d+/metrics", line)
        assert match is not None, line
        deadline = time.monotonic() + 15
        while time.monotonic() < deadline:
            with urllib.request.urlopen(match[0], timeout=5) as answer:
                text: str = answer.read().decode()
            if "accel_device_power_watts{" in text:
                return text
            time.sleep(0.05)
        raise AssertionError("no readings were served")

    yield serve
    for process in started:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=15)
        assert process.returncode == 130


def test_what_is_served_is_read_by_prometheus_own_parser(serving: Callable[[str], str]) -> None:
    """Base units, one set of names, unknown left out, and the lost card is not healthy."""
    from prometheus_client.parser import text_string_to_metric_families

    families = {family.name: family for family in text_string_to_metric_families(serving("nvidia-h100x8-one-lost"))}
    power = {s.labels["device_id"]: s.value for s in families["accel_device_power_watts"].samples}
    healthy = {s.labels["device_id"]: s.value for s in families["accel_device_healthy"].samples}

    assert len(families["accel_device_info"].samples) == 8
    assert power["nvidia:0000:1b:00.0"] == 68.0
    assert "nvidia:0000:61:00.0" not in power
    assert healthy["nvidia:0000:61:00.0"] == 0.0
    assert families["accel_device_temperature_celsius"].samples[0].labels["sensor"] == "device"
    assert families["accel_device_memory_used_bytes"].samples[0].value == 551 << 20
    assert set(families["accel_device_power_watts"].samples[0].labels) == {
        "vendor",
        "device_id",
        "model",
        "partition",
        "node",
    }


def test_watching_ends_at_once_when_interrupted() -> None:
    """Ctrl-C between two ticks: 130, no traceback, what was shown stays."""
    pytest.importorskip("anyaccel_nvidia", reason="anyaccel_nvidia is not installed")
    command = [*PROGRAM, "--simulate", "nvidia-rtx-pair", "--watch", "30", "--json"]

    def heed() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)

    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed,  # noqa: PLW1509 - no threads run in this process when it starts the child
    )
    assert process.stdout is not None
    first = process.stdout.readline()
    process.send_signal(signal.SIGINT)
    started = time.monotonic()
    rest, errors = process.communicate(timeout=15)

    assert json.loads(first)["schema"]["name"] == "accel-metrics"
    assert (process.returncode, rest, errors) == (130, "", "")
    assert time.monotonic() - started < 5
