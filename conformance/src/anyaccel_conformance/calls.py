"""One ordinary call of every hook on a machine, for laws that hold for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from anyaccel.resources import ResourceRequest
from anyaccel.visibility import Selection
from anyaccel_conformance.laws import granted_selection
from anyaccel_conformance.laws.requests import resource_names
from anyaccel_conformance.subjects import Subject

__all__ = ["child_processes", "hook_calls"]


def hook_calls(subject: Subject) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give every hook that the plugin has, with arguments; observing the runtime is left out, for it may do more."""
    machine, view, environ = subject.machine, subject.view, subject.environ
    granted = granted_selection(subject.plugin, view, environ)
    selection = Selection(granted[-1:])
    asked = {"machine": machine, "devices": view.devices}
    calls: list[tuple[str, dict[str, Any]]] = [
        ("accel_declare", {}),
        ("accel_discover_devices", {"machine": machine}),
        *((hook, asked) for hook in ("accel_inspect_devices", "accel_describe_topology")),
        ("accel_resolve_visibility", {"view": view, "environ": dict(machine.environ)}),
        *(("accel_visibility_environment", _environment(view, s, environ)) for s in (selection, Selection())),
        *(
            ("accel_validate_request", {"view": view, "request": ResourceRequest(name, 2)})
            for name, _ in resource_names(subject.plugin.declaration)
        ),
        *((hook, asked) for hook in ("accel_read_metrics", "accel_diagnose")),
        ("accel_filter_devices", {"devices": view.devices}),
    ]
    if subject.description is not None:
        calls.append(("accel_simulate", {"description": subject.description}))
    yield from ((hook, arguments) for hook, arguments in calls if subject.plugin.implements(hook))


def _environment(view: Any, selection: Selection, environ: dict[str, str]) -> dict[str, Any]:
    return {"view": view, "selection": selection, "environ": environ, "gang": None}


def child_processes() -> frozenset[int]:
    """Give the processes that this one started and that are still there; none where the kernel does not tell."""
    found: set[int] = set()
    for task in Path("/proc/self/task").glob("*/children"):
        try:
            found.update(int(pid) for pid in task.read_text(encoding="ascii").split())
        except OSError:
            continue
    return frozenset(found)
