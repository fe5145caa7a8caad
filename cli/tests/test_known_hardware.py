"""Hardware whose plugin is not there, named from the table that is made of all plugins."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from anyaccel.registry import Registry
from anyaccel_cli.known_hardware import known_families

Invoke = Callable[..., Result]
MI300X = ("0000:0c:00.0", 0x1002, 0x74A1, 0x120000, "amdgpu")
GENERATOR = Path(__file__).parent.parent / "generate_known_hardware.py"


def test_the_table_is_what_the_plugins_say() -> None:
    """A new product or plugin must be made known: run `python cli/generate_known_hardware.py`."""
    if not (GENERATOR.parent.parent / "plugins").is_dir():
        pytest.skip("the plugins' sources are not beside these tests")
    result = subprocess.run(
        [sys.executable, GENERATOR, "--check"], capture_output=True, check=False, timeout=20, text=True
    )

    assert (result.returncode, result.stderr) == (0, "")


def test_every_family_can_be_recognised() -> None:
    """Each has rules that name a vendor or driver, and a distribution to install."""
    families = known_families()

    assert [f.key for f in families] == sorted(f.key for f in families)
    assert all(f.distribution and any(rule.is_specific for rule in f.matches) for f in families)


def test_hardware_of_a_missing_plugin_is_named(
    invoke: Invoke, toy_registry: Registry, make_root: Callable[..., Path]
) -> None:
    """Vendor, product, place, and the command that helps; nothing usable was found."""
    result = invoke("discover", "--root", make_root(MI300X), registry=toy_registry)
    line = result.stdout.splitlines()[-1]

    assert (result.exit_code, line.startswith("amd "), "MI300X" in line) == (3, True, True)
    assert line.endswith("0000:0c:00.0 plugin not installed · pip install anyaccel-amd")


def test_it_is_named_beside_devices_that_were_found(
    invoke: Invoke, toy_registry: Registry, make_root: Callable[..., Path]
) -> None:
    """Between the table and its summary."""
    root = make_root(MI300X, ("0000:01:00.0", 0x1234, 1, 0x120000, "toy"))
    result = invoke("discover", "--root", root, registry=toy_registry)

    assert (result.exit_code, "pip install anyaccel-amd" in result.stdout.splitlines()[-2]) == (0, True)


def test_the_vendor_of_a_missing_plugin_gets_the_command(invoke: Invoke, toy_registry: Registry) -> None:
    """`--vendor amd` without the plugin is wrong usage, and the hint repairs it."""
    result = invoke("discover", "--vendor", "amd", registry=toy_registry)

    assert (result.exit_code, result.stderr.splitlines()[-1]) == (2, "hint: pip install anyaccel-amd")


def test_an_unclaimed_accelerator_is_listed(
    invoke: Invoke, toy_registry: Registry, make_root: Callable[..., Path]
) -> None:
    """An accelerator of a vendor nobody knows has a line of its own."""
    result = invoke("discover", "--root", make_root(("0000:05:00.0", 0x9999, 7, 0x120000, None)), registry=toy_registry)

    assert result.stdout.splitlines()[-1] == "0000:05:00.0 accelerator 9999:0007 (class 120000) that no plugin knows"
