"""Readings for Prometheus: one set of names for every vendor, served on this machine only.

A scrape gives what was read last and asks no driver, so that many or slow scrapes disturb no work. Names and their reading
rules for older dashboards: docs/metrics.md.
"""

from __future__ import annotations

import platform
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from anyaccel.device import Device, DeviceState
from anyaccel.inventory import Inventory
from anyaccel.metrics import STANDARD_READINGS, Reading, ReadingKind
from anyaccel.readings import Sample
from anyaccel_cli.failures import WrongUsageError

if TYPE_CHECKING:
    from prometheus_client.core import Metric

__all__ = ["Exporter", "parse_address"]

_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_LABELS = ("vendor", "device_id", "model", "partition", "node")
_HEALTH: Mapping[DeviceState, float] = {
    DeviceState.LOST: 0.0,
    DeviceState.UNUSABLE: 0.0,
    DeviceState.READY: 1.0,
    DeviceState.BUSY: 1.0,
    DeviceState.HIDDEN: 1.0,
    DeviceState.PARTITIONED: 1.0,
    DeviceState.ASLEEP: 1.0,
}
"""Whether a device in this state is sound; of a state that is not here nobody knows."""


def parse_address(text: str) -> tuple[str, int]:
    """Read `127.0.0.1:9400` or `[::1]:9400`.

    Raises: WrongUsageError for an address that others could reach, or for no port.
    """
    host, _, port = text.rpartition(":")
    host = host.strip("[]")
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= 65535) or not host:
        raise WrongUsageError(f"--serve {text!r} is not HOST:PORT", hint="--serve 127.0.0.1:9400")
    if host not in _LOOPBACK:
        raise WrongUsageError(
            f"--serve {text!r} would be open to other machines",
            hint="serve on 127.0.0.1 and let a proxy or agent with access control fetch it",
        )
    return host, int(port)


class Exporter:
    """Holds the last sample and gives it to whoever scrapes."""

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self._lock = threading.Lock()
        self._sample = Sample()
        self._node = platform.node() if not inventory.is_simulated else inventory.name

    def put(self, sample: Sample) -> None:
        """Replace what scrapes give."""
        with self._lock:
            self._sample = sample

    def serve(self, host: str, port: int) -> Any:
        """Start to answer scrapes in threads of their own; gives the server, whose `server_port` is the port.

        Raises: WrongUsageError when prometheus-client is not installed; OSError when the port is taken.
        """
        try:
            from prometheus_client import CollectorRegistry, start_http_server
        except ImportError as error:
            raise WrongUsageError(
                "--serve needs prometheus-client", hint="pip install 'anyaccel-cli[metrics]'"
            ) from error
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        server, _ = start_http_server(port, addr=host, registry=registry)
        return server

    def collect(self) -> Iterator[Metric]:
        """Give every metric family, for prometheus-client."""
        from prometheus_client.core import GaugeMetricFamily

        with self._lock:
            sample = self._sample
        yield self._info()
        yield from self._readings(sample)
        healthy = GaugeMetricFamily("accel_device_healthy", "Whether the device works.", labels=_LABELS)
        for device in self._inventory.devices:
            if device.state in _HEALTH:
                healthy.add_metric(self._labels(device), _HEALTH[device.state])
        yield healthy
        age = GaugeMetricFamily("accel_sample_age_seconds", "How long ago the drivers were asked.")
        if sample.taken_at_seconds:
            age.add_metric((), max(0.0, time.time() - sample.taken_at_seconds))
        yield age

    def _info(self) -> Metric:
        from prometheus_client.core import GaugeMetricFamily

        info = GaugeMetricFamily(
            "accel_device_info", "One device and its names.", labels=(*_LABELS, "uuid", "pci_address", "state")
        )
        for device in self._inventory.devices:
            names = (device.uuid or "", ",".join(device.pci_addresses), device.state.value)
            info.add_metric((*self._labels(device), *names), 1.0)
        return info

    def _labels(self, device: Device) -> tuple[str, ...]:
        is_part = device.parent is not None
        return (device.family, device.id, device.model or "", device.label if is_part else "", self._node)

    def _readings(self, sample: Sample) -> Iterable[Metric]:
        """Give the readings by name; what is unknown is left out, never 0."""
        devices = {device.id: device for device in self._inventory.devices}
        families: dict[str, Any] = {}
        for reading in sample.readings:
            if reading.value is None:
                continue
            name = _metric_name(reading, devices[reading.device_id].family)
            if name not in families:
                families[name] = _family(name, reading)
            labels = (*self._labels(devices[reading.device_id]), *reading.labels.values())
            families[name].add_metric(labels, reading.value)
        return families.values()


def _metric_name(reading: Reading, family: str) -> str:
    if reading.name.startswith("link_"):
        return f"accel_{reading.name}"
    return f"accel_device_{reading.name}" if reading.name in STANDARD_READINGS else f"accel_{family}_{reading.name}"


def _family(name: str, reading: Reading) -> Any:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    standard = STANDARD_READINGS.get(reading.name)
    text = standard.help if standard is not None else "A reading of this vendor only."
    labels = (*_LABELS, *reading.labels)
    if reading.kind is ReadingKind.COUNTER:
        return CounterMetricFamily(name, text, labels=labels)
    return GaugeMetricFamily(name, text, labels=labels)
