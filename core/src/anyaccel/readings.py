"""Readings of every family at one moment: asked, checked against each other, with a reason for each that is missing."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from anyaccel.asking import Asked, Asker
from anyaccel.device import Device
from anyaccel.frozen import FrozenMap
from anyaccel.inventory import Inventory
from anyaccel.metrics import Reading

__all__ = ["Sample", "take_sample"]

_HOOK = "accel_read_metrics"


@dataclass(frozen=True)
class Sample:
    """What every family told at one moment.

    Args: readings: in order of family, device and name. silent: by family, why it told nothing; broken: sentences about
        plugins that misbehave. taken_at_seconds: since the epoch, when the questions went out. took_seconds: until all had
        answered or run out of time.
    """

    readings: tuple[Reading, ...] = ()
    silent: FrozenMap[str] = field(default_factory=FrozenMap)
    hints: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    taken_at_seconds: float = 0.0
    took_seconds: float = 0.0

    def of(self, device_id: str) -> tuple[Reading, ...]:
        """Give the readings of one device."""
        return tuple(reading for reading in self.readings if reading.device_id == device_id)

    def value(self, device_id: str, name: str, **labels: str) -> float | None:
        """Give one value, None when it is unknown or not told; labels that are not named may be anything."""
        wanted = set(labels.items())
        found = (r for r in self.of(device_id) if r.name == name and wanted <= set(r.labels.items()))
        return next((reading.value for reading in found), None)


def take_sample(
    asker: Asker,
    inventory: Inventory,
    *,
    timeout_seconds: float = 10.0,
    on_progress: Callable[[str], None] | None = None,
    clock: Callable[[], float] = time.time,
) -> Sample:
    """Ask every family for its readings, all at once; one that fails or hangs costs its own readings only."""
    started, begun = clock(), time.monotonic()
    answers = asker.ask(_HOOK, timeout_seconds=timeout_seconds, on_progress=on_progress)
    devices = {device.id: device for device in inventory.devices}
    readings = tuple(_sane(r, devices) for asked in answers for r in asked.answer or ())
    return Sample(
        readings=tuple(reading for reading in readings if reading.device_id in devices),
        silent=FrozenMap({asked.plugin: _why_silent(asked) for asked in answers if asked.answer is None}),
        hints=tuple(dict.fromkeys(asked.hint for asked in answers if asked.answer is None and asked.hint)),
        broken=tuple(_broken(answers)),
        taken_at_seconds=started,
        took_seconds=time.monotonic() - begun,
    )


def _why_silent(asked: Asked) -> str:
    return asked.reason or "the plugin reads no sensors yet"


def _broken(answers: tuple[Asked, ...]) -> list[str]:
    sentences = [misdeed for asked in answers for misdeed in asked.misdeeds]
    return sentences + [
        f"plugin {asked.plugin!r}: {asked.reason}" for asked in answers if asked.is_broken and asked.reason is not None
    ]


def _sane(reading: Reading, devices: dict[str, Device]) -> Reading:
    """Give a reading, or unknown with the raw number for one that cannot be: more memory used than there is."""
    device = devices.get(reading.device_id)
    size = None if device is None else device.memory_bytes
    is_odd = reading.name == "memory_used_bytes" and reading.value is not None and size is not None
    if is_odd and (reading.value or 0) > (size or 0):
        return replace(reading, value=None, reason=f"the driver tells {reading.value:.0f} bytes used of {size}")
    return reading
