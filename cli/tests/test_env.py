"""`accel-cli env`: what it prints is run by real shells, and a program started there sees exactly the devices chosen."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from anyaccel.registry import Registry
from anyaccel.visibility import EnvironmentChange
from anyaccel_cli.formats.shells import bash_lines, fish_lines

Invoke = Callable[..., Result]
NASTY = EnvironmentChange(set=(("A", ""), ("B", 'it\'s a "$HOME" \\ `x`\nline')), unset=("GONE", "NEVER"))


@pytest.fixture
def env(invoke: Invoke, example_registry: Registry) -> Callable[..., Result]:
    """Run `env` on a machine of the example family."""
    return lambda *more, machine="example-grid": invoke("env", "--simulate", machine, *more, registry=example_registry)


def _lines(result: Result) -> list[str]:
    return [line for line in result.stdout.splitlines() if not line.startswith("#")]


@pytest.mark.parametrize(
    ("shell", "lines"), [("bash", bash_lines), ("dash", bash_lines), ("zsh", bash_lines), ("fish", fish_lines)]
)
def test_a_real_shell_reads_every_value(
    shell: str, lines: Callable[[EnvironmentChange], tuple[str, ...]], tmp_path: Path
) -> None:
    """Quotes, dollar signs, backslashes, line ends and empty values arrive as they are, and what is unset is gone."""
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    script = "\n".join((*lines(NASTY), "exec env -0"))
    start = {"PATH": os.environ["PATH"], "GONE": "1", "HOME": str(tmp_path)}
    done = subprocess.run([program, "-c", script], env=start, capture_output=True, text=True, timeout=15, check=True)
    seen = dict(pair.split("=", 1) for pair in done.stdout.split("\0") if pair)

    assert {name: seen[name] for name in ("A", "B")} == dict(NASTY.set)
    assert "GONE" not in seen


def test_named_devices_come_in_the_order_named(invoke: Invoke) -> None:
    """The first device named is the one a program counts as 0."""
    pytest.importorskip("anyaccel_nvidia", reason="anyaccel_nvidia is not installed")
    registry = Registry.of("anyaccel_nvidia.plugin")
    arguments = ("--simulate", "nvidia-h100x8", "--select", "nvidia:3", "--select", "nvidia:1", "--shell", "json")
    document = json.loads(invoke("env", *arguments, registry=registry).stdout)

    assert document["devices"] == ["nvidia:0000:61:00.0", "nvidia:0000:43:00.0"]
    assert document["set"]["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"


def test_a_number_of_devices_is_chosen_by_the_familys_rule(env: Callable[..., Result]) -> None:
    """Two chips are a rectangle of the grid, and every variable that moves together is written."""
    result = env("--resources", "example=2")

    assert result.exit_code == 0
    assert result.stdout.startswith("# simulated: example-grid\n")
    assert _lines(result) == [
        "export EXAMPLE_CORES_PER_UNIT=2",
        "export EXAMPLE_GANG=0/1",
        "export EXAMPLE_VISIBLE_UNITS=0,2",
    ]


def test_the_explanation_is_in_comments(env: Callable[..., Result]) -> None:
    """Why these and why not each of the others can be read, and a shell still runs the whole text."""
    result = env("--resources", "example=2", "--explain")
    comments = [line for line in result.stdout.splitlines() if line.startswith("# ")]

    assert "# chips of one job form a rectangle in the grid" in comments
    assert "# not example:0000:81:00.0/0: not needed" in comments
    assert len(_lines(result)) == 3


def test_what_cannot_be_used_is_passed_over_with_its_reason(env: Callable[..., Result]) -> None:
    """Broken chips are never chosen, and each says why."""
    document = json.loads(env("--resources", "example=1", "--shell", "json", machine="example-faults").stdout)
    (placement,) = document["placements"]

    assert placement["refused"]["example:0000:42:00.0/1"].startswith(("unusable: ", "blocked: ", "lost: "))
    assert document["devices"] == placement["device_ids"]


@pytest.mark.parametrize(
    ("arguments", "code", "error", "hint"),
    [
        ((), 2, "give either --resources or --select", "accel-cli env --resources gpu=1"),
        (("--resources", "example=1", "--select", "*"), 2, "give either --resources or --select", None),
        (
            ("--resources", "exampel=1"),
            1,
            "unknown resource 'exampel' (known: EXAMPLE, example, ",
            "did you mean 'example'?",
        ),
        (("--resources", "example=x"), 1, "amount 'x' of 'example' is no number", "write it like gpu=2"),
        (("--resources", "example=1,example=2"), 1, "names 'example' twice", None),
        (("--resources", "=2"), 1, "names no resource", "write it like gpu=2"),
        (("--resources", "example=nan"), 1, "amount nan of 'example' is neither 0, a fraction below 1", None),
        (("--resources", "example=3"), 1, "sets of 1, 2 or 4 chips, not 3", None),
        (("--resources", "example-core=99"), 1, "99 cores asked for, 16 present", None),
        (("--select", "example:77"), 3, "no device is named 'example:77'", None),
    ],
)
def test_what_cannot_be_is_one_sentence(
    env: Callable[..., Result], arguments: tuple[str, ...], code: int, error: str, hint: str | None
) -> None:
    """Nothing is printed for a shell to run, and the sentence says what was asked and what there is."""
    result = env(*arguments)

    assert (result.exit_code, result.stdout) == (code, "")
    assert error in result.stderr
    assert hint is None or f"hint: {hint}" in result.stderr


def test_two_resources_never_share_a_unit(env: Callable[..., Result]) -> None:
    """A chip and cores of the same family come from different chips; what one process cannot mix is said."""
    result = env("--resources", "example=1,example-core=2")

    assert result.exit_code == 1
    assert "one process counts either cores or whole chips, not both" in result.stderr


def test_a_mask_is_never_widened_unasked(invoke: Invoke) -> None:
    """A device outside the mask is refused with the option that replaces the mask on purpose, and then shown."""
    pytest.importorskip("anyaccel_nvidia", reason="anyaccel_nvidia is not installed")
    registry = Registry.of("anyaccel_nvidia.plugin")
    masked = ("env", "--simulate", "nvidia-h100x8", "--env", "CUDA_VISIBLE_DEVICES=0,1", "--select", "nvidia:5")
    refused = invoke(*masked, registry=registry)
    widened = invoke(*masked, "--widen", "--shell", "json", registry=registry)

    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "hint: --widen replaces the masks that are set, on purpose" in refused.stderr
    assert json.loads(widened.stdout)["devices"] == ["nvidia:0000:c3:00.0"]


def test_other_vendors_are_hidden_unless_asked(invoke: Invoke) -> None:
    """With two vendors' cards, a program that gets one sees nothing of the other."""
    for package in ("anyaccel_amd", "anyaccel_nvidia"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    registry = Registry.of("anyaccel_amd.plugin", "anyaccel_nvidia.plugin", "anyaccel_example.plugin")
    three = Path(__file__).parent / "golden" / "three-families.toml"
    arguments = ("env", "--simulate", three, "--resources", "nvidia.com/gpu=1", "--shell", "json")
    hidden = json.loads(invoke(*arguments, registry=registry).stdout)
    kept = json.loads(invoke(*arguments, "--no-hide-others", registry=registry).stdout)

    assert hidden["set"]["HIP_VISIBLE_DEVICES"] == "-1"
    assert set(kept["set"]) == {"CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES"}


def test_what_is_printed_leads_back_to_the_devices(
    env: Callable[..., Result], invoke: Invoke, example_registry: Registry
) -> None:
    """Discover in the environment printed shows exactly the devices chosen as visible."""
    document = json.loads(env("--resources", "example=4", "--shell", "json").stdout)
    pairs = [part for name, value in document["set"].items() for part in ("--env", f"{name}={value}")]
    seen = json.loads(
        invoke("discover", "--simulate", "example-grid", *pairs, "--json", registry=example_registry).stdout
    )
    visible = [d["id"] for d in seen["devices"] if d["level"] == "device" and d["visible"] == "yes"]

    assert sorted(visible) == sorted(document["devices"])
