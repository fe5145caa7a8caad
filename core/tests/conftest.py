"""Fixtures: plugins written as text into a folder of their own, and small machines held in memory."""

from __future__ import annotations

import itertools
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from anyaccel.files import MemoryTree, NodeFact
from anyaccel.machine import Machine, MachineKind, StoredAnswers

TOY = """
from anyaccel.capabilities import Capability, Declaration, MaskVariable, MatchRule, supported
from anyaccel.device import Condition, Device, DeviceState, Discovery, Inspection
from anyaccel.frozen import FrozenMap
from anyaccel.hookspec import hookimpl
from anyaccel.topology import Link, TopologyReport
from anyaccel.visibility import EnvironmentChange, Resolution, VisibleUnit

KEY = "{key}"
VARIABLE = "{variable}"

@hookimpl
def accel_declare():
    return Declaration(
        key=KEY, title="Toy", matches=(MatchRule(vendor_id={vendor}),),
        variables=(MaskVariable(VARIABLE),),
        capabilities=FrozenMap({{"hide-all": supported()}}),
    )

@hookimpl
def accel_discover_devices(machine):
    found = [f for f in machine.pci_functions() if f.vendor_id == {vendor}]
    if not found:
        return Discovery(reason="no toy card on PCI")
    return Discovery(tuple(
        Device(id=f"{{KEY}}:{{f.address}}", family=KEY, pci_addresses=(f.address,), is_simulated=machine.is_simulated)
        for f in found))

@hookimpl
def accel_resolve_visibility(view, environ):
    value = environ.get(VARIABLE)
    roots = view.roots
    if value is None:
        return Resolution(units=tuple(VisibleUnit(n, d.id, (d.id,)) for n, d in enumerate(roots)))
    wanted = [roots[int(t)] for t in value.split(",") if t]
    return Resolution(
        units=tuple(VisibleUnit(n, d.id, (d.id,), VARIABLE) for n, d in enumerate(wanted)),
        hidden_by=FrozenMap({{d.id: VARIABLE for d in roots if d not in wanted}}), is_masked=True)

@hookimpl
def accel_visibility_environment(view, selection, environ, gang):
    roots = [d.id for d in view.roots]
    text = ",".join(str(roots.index(i)) for i in selection.device_ids)
    return EnvironmentChange(set=((VARIABLE, text),), device_ids=selection.device_ids)
"""

_numbers = itertools.count()


@pytest.fixture
def write_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], str]]:
    """Write a module that can be imported here and in probe children; gives its name."""
    folder = tmp_path / "modules"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    written: list[str] = []

    def write(source: str) -> str:
        name = f"planted_{next(_numbers)}"
        (folder / f"{name}.py").write_text(textwrap.dedent(source), encoding="utf-8")
        written.append(name)
        return name

    yield write
    for name in written:
        sys.modules.pop(name, None)


@pytest.fixture
def write_toy(write_module: Callable[[str], str]) -> Callable[..., str]:
    """Write the toy plugin, with more source behind it; gives the module's name."""

    def write(
        more: str = "", *, key: str = "toy", vendor: str = "0x1de8", variable: str = "TOY_VISIBLE", replace: str = ""
    ) -> str:
        source = TOY.format(key=key, vendor=vendor, variable=variable)
        return write_module(replace + source + textwrap.dedent(more))

    return write


@pytest.fixture
def pci_machine() -> Callable[..., Machine]:
    """Make a machine of PCI functions: rows of (address, vendor, class)."""

    def make(
        *rows: tuple[str, int, str],
        environ: dict[str, str] | None = None,
        nodes: dict[str, NodeFact] | None = None,
        answers: dict[str, StoredAnswers] | None = None,
        files: dict[str, str] | None = None,
    ) -> Machine:
        content: dict[str, bytes] = {}
        links: dict[str, str] = {}
        for address, vendor, class_code in rows:
            folder = f"/sys/devices/pci{address[:-5]}/{address}"
            links[f"/sys/bus/pci/devices/{address}"] = folder
            content[f"{folder}/vendor"] = f"0x{vendor:04x}\n".encode()
            content[f"{folder}/device"] = b"0x0001\n"
            content[f"{folder}/class"] = f"0x{class_code}\n".encode()
        content.update({path: text.encode() for path, text in (files or {}).items()})
        tree = MemoryTree(content, links, nodes or {})
        return Machine(tree, environ=environ, kind=MachineKind.SIMULATED, answers=answers or {"*": StoredAnswers()})

    return make
