"""The kit held against plugins of which it is known what is wrong with them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

BROKEN = tomllib.loads((Path(__file__).parent / "data" / "broken_plugins.toml").read_text(encoding="utf-8"))


GROUPS = [sorted(BROKEN)[first : first + 5] for first in range(0, len(BROKEN), 5)]


def failing(rows):
    return {name: row["status"] for name, row in rows.items() if row["status"] in ("fail", "error")}


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: f"{group[0]} to {group[-1]}")
def test_broken_plugins_fail_exactly_their_requirement(group, write_plugin, run_kit):
    """Whoever breaks one rule is told that rule and no other. Several run together to save starts."""
    modules = {i: write_plugin(BROKEN[i]["text"], f"broken_{i.replace('-', '_').lower()}") for i in group}
    arguments = [word for module in modules.values() for word in ("--accel-plugin", module)]

    run = run_kit(*arguments, "--accel-machine", "example-small")

    found = {name: failing(run["plugins"].get(module, {})) for name, module in modules.items()}
    assert found == {name: {name: "fail"} for name in group}, run["output"]


def test_every_requirement_has_a_plugin_that_breaks_it():
    """No check can rot unnoticed."""
    from anyaccel_conformance.requirements import load_requirements

    assert set(BROKEN) == set(load_requirements())
