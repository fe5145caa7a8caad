"""Whole outputs, word for word: a laptop with nothing, and a server with a lost card under two masks.

ANYACCEL_UPDATE_GOLDEN=1 writes the files anew; read the difference before you commit it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from anyaccel.registry import Registry

Invoke = Callable[..., Result]
GOLDEN = Path(__file__).parent / "golden"
SERVER = ("--simulate", "nvidia-h100x8-one-lost")
CASES = {
    "laptop": ("--simulate", str(GOLDEN / "laptop.toml")),
    "server-uuid-mask": (*SERVER, "--env", "CUDA_VISIBLE_DEVICES=FIVE-UUIDS"),
    "server-number-mask": (*SERVER, "--env", "CUDA_VISIBLE_DEVICES=0,1,2,4,5"),
}


@pytest.fixture(scope="module")
def registry() -> Registry:
    """The two real families."""
    for package in ("anyaccel_amd", "anyaccel_nvidia"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    return Registry.of("anyaccel_amd.plugin", "anyaccel_nvidia.plugin")


@pytest.fixture
def arguments(invoke: Invoke, registry: Registry) -> Callable[[str], list[str]]:
    """Give the arguments of a case; the mask of five names cards 5, 0, 1, 2 and 4 by uuid."""

    def give(name: str) -> list[str]:
        wanted = ("5", "0", "1", "2", "4")
        listed = invoke("discover", *SERVER, "--format", "csv", "--columns", "number,uuid", registry=registry).stdout
        uuids = dict(line.split(",") for line in listed.splitlines())
        return [text.replace("FIVE-UUIDS", ",".join(uuids[number] for number in wanted)) for text in CASES[name]]

    return give


def _check(path: Path, text: str) -> None:
    if os.environ.get("ANYACCEL_UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")

    assert text == path.read_text(encoding="utf-8")


def _transcript(result: Result) -> str:
    errors = "".join(f"[stderr] {line}\n" for line in result.stderr.splitlines())
    return f"{result.stdout}{errors}[exit {int(result.exit_code)}]\n"


@pytest.mark.parametrize("name", CASES)
def test_the_text_is_the_golden_one(
    invoke: Invoke, registry: Registry, arguments: Callable[[str], list[str]], name: str
) -> None:
    """Table, summary, notes, hints and exit code."""
    _check(GOLDEN / f"{name}.txt", _transcript(invoke("discover", *arguments(name), registry=registry)))


@pytest.mark.parametrize("name", CASES)
def test_the_document_is_the_golden_one(
    invoke: Invoke, registry: Registry, arguments: Callable[[str], list[str]], name: str
) -> None:
    """Every key and value."""
    _check(GOLDEN / f"{name}.json", invoke("discover", *arguments(name), "--json", registry=registry).stdout)


def test_the_uuid_mask_leaves_five(registry: Registry, invoke: Invoke, arguments: Callable[[str], list[str]]) -> None:
    """What the golden table shows is what a program reads: the ordinals follow the mask, not the cards."""
    text = invoke("discover", *arguments("server-uuid-mask"), "--json", registry=registry).stdout
    ordinals = {device["number"]: device["visible_ordinal"] for device in json.loads(text)["devices"]}

    assert ordinals == {0: 1, 1: 2, 2: 3, 3: None, 4: 4, 5: 0, 6: None, 7: None}
