"""`accel-cli topology` on small machines; the formats have tests of their own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from anyaccel.registry import Registry

Invoke = Callable[..., Result]


def test_the_matrix_has_a_header_and_a_legend(invoke: Invoke, toy_registry: Registry, toy_root: Path) -> None:
    """Where it comes from first, what the words mean last."""
    lines = invoke("topology", "--root", toy_root, registry=toy_registry).stdout.splitlines()

    assert (lines[0], lines[-1]) == (
        f"root {toy_root}",
        "unknown  this machine does not show how near they are",
    )


def test_json_has_every_pair(invoke: Invoke, toy_registry: Registry, toy_root: Path) -> None:
    """Each two devices once, with the level as a word."""
    document = json.loads(invoke("topology", "--root", toy_root, "--json", registry=toy_registry).stdout)

    assert [(pair["a"], pair["b"], pair["pcie_level"]) for pair in document["pairs"]] == [
        ("toy:0000:01:00.0", "toy:0000:02:00.0", "unknown")
    ]


def test_select_narrows_the_matrix(invoke: Invoke, toy_registry: Registry, toy_root: Path) -> None:
    """The same expressions as in discover."""
    result = invoke("topology", "--root", toy_root, "--select", "state=ready", "--json", registry=toy_registry)

    assert [device["id"] for device in json.loads(result.stdout)["devices"]] == ["toy:0000:01:00.0"]


def test_nothing_is_exit_3_with_the_reasons(
    invoke: Invoke, toy_registry: Registry, make_root: Callable[..., Path]
) -> None:
    """An empty machine says the same as discover."""
    result = invoke("topology", "--root", make_root(), registry=toy_registry)

    assert (result.exit_code, "no toy card on PCI" in result.stdout) == (3, True)


@pytest.mark.parametrize("format_", ["tree", "dot", "hwloc-xml"])
def test_every_format_names_both_devices(invoke: Invoke, toy_registry: Registry, toy_root: Path, format_: str) -> None:
    """Each form shows the same devices."""
    text = invoke("topology", "--root", toy_root, "--format", format_, registry=toy_registry).stdout

    assert ["0000:01:00.0" in text, "0000:02:00.0" in text] == [True, True]


@pytest.mark.parametrize(("format_", "start"), [("dot", "graph"), ("hwloc-xml", "<?xml")])
def test_a_document_is_one_even_when_there_is_nothing(
    invoke: Invoke, toy_registry: Registry, make_root: Callable[..., Path], format_: str, start: str
) -> None:
    """A program that reads dot or XML never gets sentences instead."""
    result = invoke("topology", "--root", make_root(), "--format", format_, registry=toy_registry)

    assert (result.exit_code, result.stdout.startswith(start)) == (3, True)
