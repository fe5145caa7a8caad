"""The kit as a pytest plugin: options, the marker, the plugins and machines that checks run on, and the summary.

Nothing of anyaccel is imported before a check is collected, so that having the kit installed costs other test runs nothing.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from anyaccel_conformance.results import Result
    from anyaccel_conformance.subjects import KitPlugin, Subject

__all__ = ["kit_examples", "kit_plugin", "kit_subject"]

pytest.register_assert_rewrite("anyaccel_conformance.checks")

MODULE_VARIABLE = "accel_plugin"
_PROPERTY = "accel_results"
_loaded_key = pytest.StashKey[dict[tuple[Any, ...], "KitPlugin"]]()
_results_key = pytest.StashKey[list["Result"]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the kit and its ini values."""
    group = parser.getgroup("anyaccel", "conformance of accelerator plugins")
    group.addoption(
        "--accel-plugin",
        action="append",
        default=[],
        metavar="KEY",
        help="plugin to check, by key or by module (repeatable; default: the ini value accel_plugins)",
    )
    group.addoption(
        "--accel-machine",
        action="append",
        default=[],
        metavar="NAME",
        help="check on this machine of the plugin only (repeatable; default: all it ships)",
    )
    group.addoption(
        "--accel-recording",
        action="append",
        default=[],
        metavar="PATH",
        help="check on this recorded machine too, a folder or an archive (repeatable)",
    )
    group.addoption(
        "--accel-examples",
        type=int,
        default=None,
        metavar="N",
        help="how many masks and selections to draw for each law (default: the ini value accel_examples)",
    )
    group.addoption("--accel-report", default=None, metavar="FILE", help="write the results as JSON")
    parser.addini("accel_plugins", "plugins to check when no --accel-plugin is given", type="args", default=[])
    parser.addini("accel_examples", "how many masks and selections to draw for each law", default="40")


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers."""
    config.addinivalue_line("markers", "requirement(*ids): the requirements of the contract that this check holds")
    config.addinivalue_line("markers", "counter_check: asks for the capabilities that a plugin does not support")
    config.stash[_loaded_key] = {}
    config.stash[_results_key] = []


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give every check its plugins, or its plugins on every machine."""
    names = set(metafunc.fixturenames)
    if not names & {"kit_plugin", "kit_subject"}:
        return
    plugins = _plugins_for(metafunc)
    if "kit_subject" in names:
        subjects = [subject for plugin in plugins for subject in plugin.subjects.values()]
        ids = [f"{subject.kit_name}-{Path(subject.name).name}" for subject in subjects]
        metafunc.parametrize("kit_subject", subjects, ids=ids, scope="session")
    else:
        metafunc.parametrize("kit_plugin", plugins, ids=[plugin.name for plugin in plugins], scope="session")


def _plugins_for(metafunc: pytest.Metafunc) -> list[KitPlugin]:
    config = metafunc.config
    named = getattr(metafunc.module, MODULE_VARIABLE, None)
    names = [named] if named else config.getoption("--accel-plugin") or config.getini("accel_plugins")
    if not names:
        raise pytest.UsageError("no plugin to check: give --accel-plugin KEY, or set accel_plugins in the ini file")
    return [_load(config, name) for name in names]


def _load(config: pytest.Config, name: str) -> KitPlugin:
    from anyaccel_conformance.subjects import load_kit_plugin

    machines = tuple(config.getoption("--accel-machine"))
    recordings = tuple(Path(path).resolve() for path in config.getoption("--accel-recording"))
    loaded = config.stash[_loaded_key]
    place = (name, machines, recordings)
    if place not in loaded:
        loaded[place] = load_kit_plugin(name, machines, recordings)
    return loaded[place]


@pytest.fixture(scope="session")
def kit_plugin(request: pytest.FixtureRequest) -> KitPlugin:
    """The plugin under test."""
    plugin: KitPlugin = request.param
    return plugin


@pytest.fixture(scope="session")
def kit_subject(request: pytest.FixtureRequest) -> Subject:
    """The plugin under test on one machine."""
    subject: Subject = request.param
    return subject


@pytest.fixture(scope="session")
def kit_examples(pytestconfig: pytest.Config) -> int:
    """How many values to draw for each law."""
    given = pytestconfig.getoption("--accel-examples")
    return int(pytestconfig.getini("accel_examples") if given is None else given)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what the plugin declared it cannot do, and what cannot be looked at; either is counted apart from a pass."""
    if _requirement_ids(item):
        from anyaccel_conformance.policy import why_skipped

        reason = why_skipped(item)
        if reason is not None:
            pytest.skip(reason)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note on the report what the check said about its requirements."""
    report = yield
    if _requirement_ids(item):
        from anyaccel_conformance.policy import results_of

        rows = [result.to_row() for result in results_of(item, call, report)]
        if rows:
            report.user_properties.append((_PROPERTY, rows))
    return report


def _requirement_ids(item: pytest.Item) -> tuple[str, ...]:
    marker = item.get_closest_marker("requirement")
    return () if marker is None else marker.args


class _Collector:
    """Takes the results off the reports, also off those that other processes sent."""

    def __init__(self, config: pytest.Config) -> None:
        self._results = config.stash[_results_key]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, rows in report.user_properties:
            if name == _PROPERTY and isinstance(rows, list):
                from anyaccel_conformance.results import Result

                self._results.extend(Result.from_row(row) for row in rows)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Collect results in the process that prints them."""
    session.config.pluginmanager.register(_Collector(session.config), "anyaccel-results")


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print what came of every requirement, and write the report asked for."""
    results = config.stash[_results_key]
    if not results:
        return
    from anyaccel_conformance.requirements import load_requirements
    from anyaccel_conformance.results import results_document, summary_lines, tally

    requirements = load_requirements()
    found = tally(results, requirements)
    is_full = bool(config.getoption("--accel-plugin")) or config.get_verbosity() > 0
    for plugin, rows in found.items():
        terminalreporter.section(f"conformance of {plugin} in replay")
        for line in summary_lines(rows, requirements, is_full=is_full):
            terminalreporter.write_line(line)
    target = config.getoption("--accel-report")
    if target is not None:
        Path(target).write_text(json.dumps(results_document(found), indent=1) + "\n", encoding="utf-8")
