"""OBS: the vendor's own runtime is asked what it sees, in a process of its own for every selection."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import pytest

from anyaccel.errors import AccelError, UnavailableError
from anyaccel.visibility import Selection, apply_change
from anyaccel_conformance.effect import observe
from anyaccel_conformance.laws import granted_selection
from anyaccel_conformance.laws.breach import need, shown
from anyaccel_conformance.policy import NOT_RUN, held
from anyaccel_conformance.subjects import Subject

__all__ = ["test_runtime_sees_what_the_resolver_says"]

EXAMPLES_PER_DEVICE = 8
"""A process takes as long as many drawn values, so there is one device, and half a pair, for so many of them."""


@pytest.mark.requirement("OBS-001")
def test_runtime_sees_what_the_resolver_says(kit_subject: Subject, kit_examples: int) -> None:
    """No device, single ones, pairs and all: the runtime shows what the resolver says, in its order."""
    plugin, view = kit_subject.plugin, kit_subject.view
    exercised = 0
    for environ in _environs(kit_subject, max(2, kit_examples // EXAMPLES_PER_DEVICE)):
        expected = plugin.call("accel_resolve_visibility", view=view, environ=environ)
        names = [_stable_names(kit_subject, device_id) for device_id in expected.device_ids]
        if not expected.is_complete or not all(names):
            continue
        try:
            seen = observe(plugin, kit_subject.machine, environ)
        except UnavailableError as error:
            pytest.skip(f"{NOT_RUN}hardware only: {error.message}")
        told = {name: environ[name] for name in environ if name not in kit_subject.environ}
        is_same = len(seen) == len(names) and all(one in known for one, known in zip(seen, names, strict=True))
        need(
            is_same, "OBS-001", f"with {shown(told)} the runtime shows {seen}, the resolver says {expected.device_ids}"
        )
        exercised += 1
    held(exercised)


def _stable_names(subject: Subject, device_id: str | None) -> set[str]:
    if device_id is None:
        return set()
    device = subject.view.device(device_id)
    return {device.uuid, *device.pci_addresses} - {None}  # type: ignore[return-value]


def _environs(subject: Subject, count: int) -> Iterator[dict[str, str]]:
    """Give the clean environment and those of some selections, spread over the machine."""
    yield subject.environ
    leaves = [
        i for i in granted_selection(subject.plugin, subject.view, subject.environ) if subject.view.leaves(i) == (i,)
    ]
    some = leaves[:: max(1, len(leaves) // count)][:count]
    pairs = list(combinations(reversed(some), 2))[: count // 2]
    for ids in [(), *((one,) for one in some), *pairs]:
        arguments = {"view": subject.view, "selection": Selection(ids), "environ": subject.environ, "gang": None}
        try:
            change = subject.plugin.call("accel_visibility_environment", **arguments)
        except AccelError:
            continue
        yield apply_change(subject.environ, change)
