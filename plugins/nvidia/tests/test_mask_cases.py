"""Masks against a table whose expected results come from documents and runtime output, each row with its source."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from anyaccel.device import Condition, DeviceState
from anyaccel.frozen import FrozenMap
from anyaccel_nvidia.visibility import resolve_visibility

CASES = json.loads((Path(__file__).parent / "data" / "mask_cases.json").read_text())
IDS = ("GPU-aaaa0000", "GPU-aaaa1111", "GPU-bbbb2222", "GPU-cccc3333")
REST = "-0000-0000-0000-000000000000"
MODELS = {
    "1660": {"cuda_cores": 1408, "sm_clock_max_mhz": 2100, "compute_capability": "7.5", "pci_id": "10de:21c4"},
    "3090": {"cuda_cores": 10496, "sm_clock_max_mhz": 2100, "compute_capability": "8.6", "pci_id": "10de:2204"},
    "T4": {"cuda_cores": 2560, "sm_clock_max_mhz": 1590, "compute_capability": "7.5", "pci_id": "10de:1eb8"},
    "A100": {"cuda_cores": 6912, "sm_clock_max_mhz": 1410, "compute_capability": "8.0", "pci_id": "10de:20b0"},
    "display": {"cuda_cores": 896, "sm_clock_max_mhz": 2100, "compute_capability": "7.5", "pci_id": "10de:1fb0"},
}


@pytest.fixture(scope="module")
def families(card, instance, divided, view_of):
    """The machines that the cases name."""

    def models(*names):
        return [card(number, model=name, attributes=MODELS[name]) for number, name in enumerate(names)]

    equal = [card(number, uuid=f"{start}{REST}") for number, start in enumerate(IDS)]
    eight = [card(number) for number in range(8)]
    gone = Condition("pci-dead", "not responding", DeviceState.LOST)
    kept = Condition("node-not-granted", "not in this container", DeviceState.BLOCKED)
    parent = divided(card(1, uuid=f"GPU-bbbb2222{REST}"))[0]
    first = instance(parent, 1, 1, uuid=f"MIG-1111{REST}")
    second = instance(parent, 1, 2, uuid=f"MIG-2222{REST}")
    hidden = [card(n, conditions=(kept,), numbers=d.numbers.with_items({"index": None})) for n, d in enumerate(eight)]
    only = card(3, numbers=eight[3].numbers.with_items({"index": 0}))
    unasked = [card(n, model=m, attributes={"pci_id": MODELS[m]["pci_id"]}) for n, m in enumerate(("1660", "3090"))]
    return {
        "2-equal": view_of(equal[:2]),
        "4-equal": view_of(equal),
        "4-equal-files": view_of([card(n, attributes={"index_source": "files"}) for n in range(4)]),
        "swapped-minors": view_of([card(n, numbers=FrozenMap({"index": n, "minor": (1, 0, 2)[n]})) for n in range(3)]),
        "8-equal": view_of(eight),
        "16-equal": view_of([card(number) for number in range(16)]),
        "guide": view_of([card(0, uuid="GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"), *equal[1:]]),
        "8-one-lost": view_of([card(3, conditions=(gone,)) if n == 3 else d for n, d in enumerate(eight)]),
        "one-of-8-container": view_of([only if n == 3 else d for n, d in enumerate(hidden)], "container"),
        "mig-and-whole": view_of([equal[0], parent, first, second]),
        "1660-then-3090": view_of(models("1660", "3090")),
        "1660-then-3090-unasked": view_of(unasked),
        "three-models": view_of(models("1660", "3090", "T4")),
        "dgx-station": view_of(models("A100", "A100", "A100", "display", "A100")),
    }


def _labels(view):
    """Name cards by position and instances as card/instance, as the cases do."""
    labels = {}
    for number, root in enumerate(view.roots):
        labels[str(number)] = root.id
        for position, child in enumerate(view.children(root.id)):
            labels[f"{number}/{position}"] = child.id
    return labels


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_mask(case, families):
    """The mask leaves what its source says, in its order, and says so."""
    view = families[case["machine"]]
    labels = _labels(view)

    resolution = resolve_visibility(view, case["environ"])

    assert [unit.device_id for unit in resolution.units] == [labels.get(label) for label in case["visible"]]
    assert resolution.is_complete is case.get("is_complete", True)
    _check_extras(case, resolution, labels)


def _check_extras(case, resolution, labels):
    if "ordinals" in case:
        assert [unit.ordinal for unit in resolution.units] == case["ordinals"]
    if "effects" in case:
        mask = [token for token in resolution.tokens if token.variable == "CUDA_VISIBLE_DEVICES"]
        assert [token.effect.value for token in mask] == case["effects"]
    if "says" in case:
        said = [report.reason for report in resolution.variables] + [token.reason for token in resolution.tokens]
        assert any(case["says"] in text for text in said), said
    if "hint" in case:
        hints = [token.hint for token in resolution.tokens if token.hint]
        assert any(case["hint"] in hint for hint in hints), hints
    if case.get("is_unusual"):
        assert any("unusual" in report.reason for report in resolution.variables if report.is_warning)
    if "hidden" in case:
        assert sorted(resolution.hidden_by) == sorted(labels[label] for label in case["hidden"])
    if "leaves" in case:
        assert resolution.leaves == {labels[label] for label in case["leaves"]}


def test_every_case_names_its_source():
    """No row of the table may rest on our own resolver."""
    assert all(case["source"] for case in CASES)
    assert len({case["id"] for case in CASES}) == len(CASES)
