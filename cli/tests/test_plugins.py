"""`accel-cli plugins`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from anyaccel.errors import PluginConflictError
from anyaccel.inventory import OutcomeStatus, PluginOutcome
from anyaccel.registry import Registry
from anyaccel_cli.levels import known_levels, level_of

Invoke = Callable[..., Result]
Write = Callable[[str, str], str]


def test_a_loaded_plugin_has_a_row(invoke: Invoke, toy_registry: Registry) -> None:
    """Key, contract, state and level; unknown where it was not installed."""
    result = invoke("plugins", registry=toy_registry)

    assert (result.exit_code, result.stdout.splitlines()) == (
        0,
        [
            "plugin  distribution  version  contract  state   level",
            "toy     unknown       unknown  1.0       loaded  unverified",
            "1 plugin: 1 loaded",
        ],
    )


def test_a_plugin_that_fails_to_load_is_exit_4_with_its_reason(invoke: Invoke, write_module: Write) -> None:
    """The state is a word, the reason stands below the row, the error is on stderr."""
    registry = Registry.of(write_module("unloadable_plugin_d", "raise ImportError('libfoo.so is missing')"))
    result = invoke("plugins", registry=registry)

    assert (result.exit_code, "failed to load" in result.stdout, "libfoo.so is missing" in result.stderr) == (
        4,
        True,
        True,
    )


def test_a_plugin_of_another_contract_is_incompatible(
    invoke: Invoke, write_module: Write, toy_source: Callable[..., str]
) -> None:
    """Written for another major version: refused, and called by its own word."""
    source = toy_source().replace('title="Toy"', 'title="Toy", contract_version="2.0"')
    result = invoke("plugins", "--json", registry=Registry.of(write_module("future_plugin", source)))

    assert (result.exit_code, json.loads(result.stdout)["plugins"][0]["state"]) == (4, "incompatible contract")


def test_devices_are_counted_on_request(invoke: Invoke, toy_registry: Registry, toy_root: Path) -> None:
    """Listing plugins looks at no machine unless asked to."""
    result = invoke("plugins", "--devices", "--root", toy_root, "--json", registry=toy_registry)

    assert json.loads(result.stdout)["plugins"][0]["device_count"] == 2


def test_a_machine_without_devices_option_is_wrong_usage(
    invoke: Invoke, toy_registry: Registry, toy_root: Path
) -> None:
    """An option that would change nothing is refused."""
    assert invoke("plugins", "--root", toy_root, registry=toy_registry).exit_code == 2


def test_no_plugin_is_exit_3(invoke: Invoke) -> None:
    """Nothing to list."""
    result = invoke("plugins")

    assert (result.exit_code, result.stdout) == (3, "no plugin is installed\n")


@pytest.mark.parametrize(
    ("format_", "text"),
    [
        ("ids", "toy\n"),
        ("csv", "plugin,distribution,version,contract,state,level\ntoy,unknown,unknown,1.0,loaded,unverified\n"),
    ],
)
def test_programs_get_plain_forms(invoke: Invoke, toy_registry: Registry, format_: str, text: str) -> None:
    """Keys for shell loops, CSV with a head."""
    assert invoke("plugins", "--format", format_, registry=toy_registry).stdout == text


@pytest.mark.parametrize(
    ("failure", "state", "code"),
    [
        (PluginOutcome("x", OutcomeStatus.DISABLED, reason="disabled by ANYACCEL_DISABLE_PLUGINS='x'"), "disabled", 0),
        (
            PluginOutcome("x", OutcomeStatus.BROKEN, reason="claimed twice", code=PluginConflictError.code),
            "conflict",
            4,
        ),
    ],
)
def test_what_is_not_loaded_has_its_own_word(invoke: Invoke, failure: PluginOutcome, state: str, code: int) -> None:
    """Left out on purpose is no failure; two distributions of one key are."""
    result = invoke("plugins", "--json", registry=Registry((), (failure,)))

    assert (result.exit_code, json.loads(result.stdout)["plugins"][0]["state"]) == (code, state)


def test_devices_stand_in_the_table_when_counted(invoke: Invoke, toy_registry: Registry, toy_root: Path) -> None:
    """One more column."""
    lines = invoke("plugins", "--devices", "--root", toy_root, registry=toy_registry).stdout.splitlines()

    assert (lines[0].split()[-1], lines[1].split()[-1]) == ("devices", "2")


@pytest.mark.parametrize(
    ("distribution", "version", "level"),
    [
        ("anyaccel-nvidia", "0.1.0", "experimental"),
        ("anyaccel-nvidia", "0.1.1", "unverified"),
        ("anyaccel-stranger", "0.1.0", "unverified"),
        (None, None, "unverified"),
    ],
)
def test_a_level_is_of_one_release(distribution: str | None, version: str | None, level: str) -> None:
    """Evidence counts for the distribution and version it was made with, and for no other."""
    levels = {"anyaccel-nvidia": {"0.1.0": "experimental"}}

    assert level_of(distribution, version, levels) == level


def test_the_table_of_levels_is_in_the_package() -> None:
    """Every release in it has a word."""
    assert {type(level) for releases in known_levels().values() for level in releases.values()} == {str}
