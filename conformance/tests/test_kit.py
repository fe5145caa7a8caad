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


DISCOVERED = """
@hookimpl
def accel_discover_devices(machine):
    found = good.accel_discover_devices(machine)
    %s
"""

WRONG = {
    "none": (DISCOVERED.replace("%s", "return None"), {"DISC-001"}),
    "negative": (
        DISCOVERED.replace(
            "%s", "return replace(found, devices=tuple(replace(d, memory_bytes=-1) for d in found.devices))"
        ),
        {"DISC-007"},
    ),
    "environment": ("import os\nos.environ['CUDA_VISIBLE_DEVICES'] = ''", {"DEC-004", "DISC-005"}),
    "logger": ("import logging\nlogging.getLogger().setLevel(1)", {"DISC-005"}),
    "thread": (
        "import threading, time\n"
        + DISCOVERED.replace(
            "%s", "threading.Thread(target=time.sleep, args=(60,), daemon=True).start(); return found"
        ),
        {"DISC-005"},
    ),
    "process": (
        "import subprocess\n"
        + DISCOVERED.replace("%s", "found.__dict__['child'] = subprocess.Popen(['sleep', '9']); return found"),
        {"DISC-005", "DISC-008"},
    ),
}


def test_wrong_answers_and_deeds_are_blamed(write_plugin, run_kit):
    """None, a negative number, and traces left in the process or on the machine each have their requirement."""
    modules = {name: write_plugin(text, f"wrong_{name}") for name, (text, _) in WRONG.items()}
    arguments = [word for module in modules.values() for word in ("--accel-plugin", module)]

    run = run_kit(*arguments, "--accel-machine", "example-small", "-k", "discovery or load or hooks or unknown_has")

    found = {name: set(failing(run["plugins"][module])) for name, module in modules.items()}
    assert found == {name: ids for name, (_, ids) in WRONG.items()}, run["output"]


@pytest.fixture
def whole_run(run_kit):
    """The kit on all machines of the example plugin."""
    return run_kit("--accel-plugin", "example", examples=20)


def test_example_keeps_everything(whole_run):
    """The example passes every requirement but the one it declares it cannot keep."""
    rows = whole_run["plugins"]["example"]

    assert {name: row["status"] for name, row in rows.items() if row["status"] != "pass"} == {"VIS-003": "unsupported"}
    assert whole_run["code"] == 0
    assert "35 requirements: 34 pass, 1 unsupported" in whole_run["output"]


SUPPORT = """
@hookimpl
def accel_declare():
    declaration = good.accel_declare()
    return replace(declaration, capabilities=declaration.capabilities.with_items({%s}))
"""


def test_unsupported_without_a_reason_is_refused_at_loading(write_plugin, run_kit):
    """A no needs a reason; without one nothing else is looked at, and nothing counts as passed."""
    module = write_plugin(SUPPORT.replace("%s", '"partitions": unsupported("")'))

    rows = run_kit("--accel-plugin", module)["plugins"][module]

    assert failing(rows) == {"DEC-002": "fail"}
    assert {row["status"] for name, row in rows.items() if name != "DEC-002"} == {"not-run"}
    assert "declares partitions as unsupported without a reason" in rows["DEC-002"]["detail"]


def test_supported_and_not_implemented_fails(write_plugin, run_kit):
    """Who promises metrics and has no hook for them is found out by the requirement, not skipped."""
    module = write_plugin("del accel_read_metrics")

    rows = run_kit("--accel-plugin", module, "--accel-machine", "example-small")["plugins"][module]

    assert failing(rows) == {"DEC-002": "fail", "MET-001": "fail"}


@pytest.mark.parametrize(
    ("capability", "told"),
    [
        ("metrics", "declares no metrics, yet accel_read_metrics answers"),
        ("visibility", "declares no visibility, yet accel_resolve_visibility answers"),
        ("legal-sets", "declares no legal sets and lists some for 'example'"),
    ],
)
def test_refusal_is_tested_too(capability, told, write_plugin, run_kit):
    """What is declared as unsupported and answers anyway is no honest no."""
    module = write_plugin(SUPPORT.replace("%s", f'"{capability}": unsupported("we say so")'))

    rows = run_kit("--accel-plugin", module, "--accel-machine", "example-small", "-k", "refused")["plugins"][module]

    assert failing(rows) == {"DEC-002": "fail"}
    assert told in rows["DEC-002"]["detail"]


def test_refused_capability_is_counted_apart(write_plugin, run_kit):
    """A hook that raises CapabilityNotSupportedError is an honest no, shown as what was declared."""
    text = """
@hookimpl
def accel_read_metrics(machine, devices):
    raise CapabilityNotSupportedError("no sensors", plugin="example")
"""
    module = write_plugin(SUPPORT.replace("%s", '"metrics": not_implemented("next year")') + text)

    rows = run_kit("--accel-plugin", module, "--accel-machine", "example-small")["plugins"][module]

    assert failing(rows) == {}
    assert (rows["MET-001"]["status"], rows["MET-001"]["detail"]) == ("not-implemented", "next year")


def test_runtime_that_is_not_here_is_not_run(write_plugin, run_kit):
    """What replay cannot give is not passed: it says that hardware is needed."""
    text = """
@hookimpl
def accel_observe_runtime(machine):
    raise UnavailableError("the runtime is not here")
"""
    module = write_plugin(text)

    run = run_kit("--accel-plugin", module, "--accel-machine", "example-small", "-k", "runtime")

    row = run["plugins"][module]["OBS-001"]
    assert (row["status"], row["detail"]) == ("not-run", "hardware only: the runtime is not here")


def test_plugin_that_cannot_be_imported_is_named(write_plugin, run_kit):
    """The cause stands in the one failure, and nothing else counts as passed."""
    module = write_plugin("raise ImportError('libfoo.so: cannot open shared object file')")

    rows = run_kit("--accel-plugin", module)["plugins"][module]

    assert failing(rows) == {"DEC-001": "fail"}
    assert "libfoo.so" in rows["DEC-001"]["detail"]


def test_plugin_that_is_not_installed_is_named(run_kit):
    """A typing error is told, not an empty run."""
    rows = run_kit("--accel-plugin", "exmaple")["plugins"]["exmaple"]

    assert "which is not installed" in rows["DEC-001"]["detail"]


def test_run_without_a_plugin_is_a_usage_error(run_kit):
    """Nothing to check is not a pass."""
    run = run_kit()

    assert run["code"] == 2
    assert "no plugin to check: give --accel-plugin KEY" in run["output"]


def test_recorded_machine_is_checked_too(run_kit, tmp_path):
    """A recording given by path is one more machine; what needs a description is not run on it."""
    from anyaccel.recording import pack_machine, write_recording
    from anyaccel.registry import Registry
    from anyaccel.simulation import find_machine, simulate

    registry = Registry.of("anyaccel_example.plugin")
    archive = tmp_path / "recorded.tar.gz"
    write_recording(pack_machine(simulate(find_machine("example-small", registry), registry)), archive)

    run = run_kit("--accel-plugin", "example", "--accel-machine", "none", "--accel-recording", str(archive))

    rows = run["plugins"]["example"]
    assert failing(rows) == {}
    assert rows["VIS-001"]["counts"] == {"pass": 1}
    assert (rows["SIM-001"]["status"], rows["SIM-001"]["detail"]) == (
        "not-run",
        "a recorded machine has no description",
    )


def test_three_lines_run_the_kit_from_a_plugins_own_tests(tmp_path, run_kit):
    """The recipe of the README works with importlib mode, and `--accel-plugin` is not needed."""
    lines = 'from anyaccel_conformance.checks import *\n\naccel_plugin = "anyaccel_example.plugin"\n'
    (tmp_path / "test_conformance.py").write_text(lines)
    own = tmp_path / "test_conformance.py"

    run = run_kit("--accel-machine", "example-small", "-k", "inspection or declared", own=own)

    assert set(run["plugins"]) == {"anyaccel_example.plugin"}
    assert run["plugins"]["anyaccel_example.plugin"]["INSP-001"]["status"] == "pass"


def test_plugins_may_stand_in_the_ini_file(tmp_path, run_kit):
    """`accel_plugins` names what is checked when no option is given."""
    run = run_kit("--accel-machine", "example-small", "-k", "inspection", ini="accel_plugins = example")

    assert run["plugins"]["example"]["INSP-001"]["status"] == "pass"
