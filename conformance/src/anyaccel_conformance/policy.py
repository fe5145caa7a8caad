"""How a check becomes results: what is not run, what was declared, and which requirement is to blame."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import pytest

from anyaccel.capabilities import SupportState
from anyaccel.errors import AccelError
from anyaccel.inventory import OutcomeStatus
from anyaccel.registry import Plugin
from anyaccel_conformance.requirements import load_requirements
from anyaccel_conformance.results import Result, Status
from anyaccel_conformance.subjects import KitPlugin, Subject

__all__ = ["LOADING_CHECK", "NOT_RUN", "held", "results_of", "why_skipped"]

NOT_RUN = "not-run: "
LOADING_CHECK = "test_plugin_loads"
"""The one check that a plugin gets which could not be loaded."""

_requirements = cache(load_requirements)
_STATUS_OF = {SupportState.UNSUPPORTED: Status.UNSUPPORTED, SupportState.NOT_IMPLEMENTED: Status.NOT_IMPLEMENTED}


def held(exercised: object) -> None:
    """End a check as not-run when there was nothing to hold its law against."""
    if not exercised:
        pytest.skip(f"{NOT_RUN}nothing on this machine to hold it against")


def why_skipped(item: pytest.Item) -> str | None:
    """Give the reason why a check does not run on its plugin and machine, None when it does."""
    plugin = _plugin(item)
    if plugin is None:
        is_loading = getattr(item, "originalname", None) == LOADING_CHECK
        return None if is_loading else f"{NOT_RUN}the plugin could not be loaded"
    declared = _declared_otherwise(plugin, _ids(item))
    return declared or _why_no_rows(item)


def _declared_otherwise(plugin: Plugin, ids: Iterable[str]) -> str | None:
    for name in ids:
        capability = _requirements()[name].capability
        support = None if capability is None else plugin.declaration.capabilities.get(capability)
        if support is not None and support.state is not SupportState.SUPPORTED:
            return f"{support.state.value}: {support.reason}"
    return None


def _why_no_rows(item: pytest.Item) -> str | None:
    """Say that rows were withheld, except to the checks that find out why."""
    subject = _parameter(item, "kit_subject")
    if not isinstance(subject, Subject) or any(name.startswith("DISC-") for name in _ids(item)):
        return None
    outcome = subject.outcome
    is_withheld = outcome.status is OutcomeStatus.BROKEN and not subject.view.devices
    return f"{NOT_RUN}the plugin is broken on this machine: {outcome.reason}" if is_withheld else None


def results_of(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> list[Result]:
    """Give what one phase of a check says about requirements."""
    name, ids = _name(item), _ids(item)
    if report.skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        reason = reason.removeprefix("Skipped: ")
        is_not_run = reason.startswith(NOT_RUN)
        return [Result(name, i, Status.NOT_RUN, reason.removeprefix(NOT_RUN)) for i in ids if is_not_run]
    if report.failed:
        return _blame(name, ids, None if call.excinfo is None else call.excinfo.value)
    if report.when != "call":
        return []
    is_counter = item.get_closest_marker("counter_check") is not None
    passed = [Result(name, i, Status.PASS) for i in ids]
    return [*passed, *(_refused(name, _plugin(item)) if is_counter else ())]


def _blame(name: str, ids: tuple[str, ...], error: BaseException | None) -> list[Result]:
    """Blame the requirement that the error names, else those of the check; a bug of the kit is nobody's fault."""
    named = getattr(error, "requirement", None)
    message = str(error)
    if named is not None:
        others = [Result(name, i, Status.NOT_RUN, f"{named} is broken") for i in ids if i != named]
        return [Result(name, named, Status.FAIL, message), *others]
    is_plugins = isinstance(error, AssertionError | AccelError)
    return [Result(name, i, Status.FAIL if is_plugins else Status.ERROR, message) for i in ids]


def _refused(name: str, plugin: Plugin | None) -> Iterable[Result]:
    """Say for every requirement of a capability that was refused that it does not apply, and why."""
    declared = {} if plugin is None else plugin.declaration.capabilities
    for requirement in _requirements().values():
        support = declared.get(requirement.capability or "")
        if support is not None and support.state is not SupportState.SUPPORTED:
            yield Result(name, requirement.id, _STATUS_OF[support.state], support.reason or "")


def _ids(item: pytest.Item) -> tuple[str, ...]:
    marker = item.get_closest_marker("requirement")
    return () if marker is None else marker.args


def _parameter(item: pytest.Item, name: str) -> Any:
    specification = getattr(item, "callspec", None)
    return None if specification is None else specification.params.get(name)


def _plugin(item: pytest.Item) -> Plugin | None:
    subject, kit = _parameter(item, "kit_subject"), _parameter(item, "kit_plugin")
    if isinstance(subject, Subject):
        return subject.plugin
    return kit.plugin if isinstance(kit, KitPlugin) else None


def _name(item: pytest.Item) -> str:
    """Give the plugin as it was asked for; two may have one key."""
    subject, kit = _parameter(item, "kit_subject"), _parameter(item, "kit_plugin")
    if isinstance(subject, Subject):
        return subject.kit_name
    return kit.name if isinstance(kit, KitPlugin) else "unknown"
