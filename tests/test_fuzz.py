"""Long tests: random damage to recordings, answers and masks. Nothing of it may end in anything but a sentence."""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from anyaccel.discovery import discover
from anyaccel.errors import RecordingError
from anyaccel.files import MemoryTree
from anyaccel.inventory import OutcomeStatus
from anyaccel.recording import open_recording, pack_machine, write_recording
from anyaccel.registry import Registry
from anyaccel.simulation import find_machine, list_machines, simulate

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

PLUGINS = sorted(p.parent.name for p in Path(__file__).parents[1].glob("plugins/*/pyproject.toml"))
MODULES = tuple(f"anyaccel_{name}.plugin" for name in PLUGINS)
REGISTRY = Registry.of(*MODULES)
SAFE = [name for name in list_machines(REGISTRY) if not name.endswith(("hangs", "crashes"))]
WORDS = (
    "",
    "-1",
    "0",
    "1",
    "7",
    "99",
    "all",
    "none",
    "void",
    "NoDevFiles",
    "GPU-",
    "MIG-",
    "0-3",
    "0x1",
    " ",
    "\t",
    "é",
    "9" * 40,
)
NASTY = (None, True, -1, 1 << 70, 0.5, "", "[N/A]", "x" * 5000, [], [None], {}, {"a": None})


@pytest.fixture(scope="module")
def packed():
    """The content of a recording of each shipped machine that answers."""
    return {name: pack_machine(simulate(find_machine(name, REGISTRY), REGISTRY)) for name in SAFE}


def check(inventory):
    """What holds whatever was read: no device twice, no ordinal twice, memory within its card, and no silent breakage."""
    ids = [device.id for device in inventory.devices]
    assert len(ids) == len(set(ids))
    for resolution in inventory.resolutions.values():
        ordinals = [unit.ordinal for unit in resolution.units if unit.ordinal is not None]
        assert len(ordinals) == len(set(ordinals))
    for outcome in inventory.outcomes:
        assert outcome.status is not OutcomeStatus.BROKEN or outcome.reason
        assert "raised" not in (outcome.reason or ""), outcome.reason


def test_damaged_archives_end_in_a_sentence(packed, tmp_path):
    """Flipped bytes, cut ends and doubled parts of an archive are refused or read; nothing else happens."""
    chance = random.Random(1)
    path = tmp_path / "machine.tar.gz"
    write_recording(packed["nvidia-a100x4-mig"], path)
    plain = gzip.decompress(path.read_bytes())
    told = []
    for _ in range(400):
        data = bytearray(plain)
        for _ in range(chance.randint(1, 20)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        cut = chance.randrange(len(data)) if chance.random() < 0.3 else len(data)
        path.write_bytes(gzip.compress(bytes(data[:cut]), 1))
        try:
            machine = open_recording(path)
        except RecordingError as error:
            told.append(error.message)
        else:
            discover(machine, REGISTRY, timeout_seconds=60)

    assert told
    assert not [message for message in told if "\n" in message]


@pytest.mark.parametrize("name", SAFE)
def test_damaged_answers_cost_what_they_would_have_told(name, packed, tmp_path):
    """Any JSON value in any place of a driver's answer leaves the devices that files tell of, without a raise."""
    chance = random.Random(name)
    content = packed[name]
    before = [
        d.id
        for d in discover(simulate(find_machine(name, REGISTRY), REGISTRY), REGISTRY).view(name.split("-")[0]).roots
    ]
    for number in range(60):
        files = dict(content.files)
        for path in [p for p in files if p.startswith("/answers/")]:
            files[path] = json.dumps(damaged(json.loads(files[path]), chance)).encode()
        target = tmp_path / str(number)
        write_recording(MemoryTree(files, content.links, {}, content.folders), target)
        try:
            machine = open_recording(target)
        except RecordingError:
            continue
        inventory = discover(machine, REGISTRY, timeout_seconds=60)
        check(inventory)
        assert [d.id for d in inventory.view(name.split("-")[0]).roots] == before


def damaged(value, chance):
    """Give a copy in which a few places hold something else."""
    if chance.random() < 0.02:
        return chance.choice(NASTY)
    if isinstance(value, dict):
        return {k: damaged(v, chance) for k, v in value.items() if chance.random() > 0.01}
    if isinstance(value, list):
        return [damaged(v, chance) for v in value]
    return value


@pytest.mark.parametrize("name", SAFE)
def test_random_masks_are_explained(name):
    """Whatever stands in the masks, each family resolves, and no ordinal is given twice."""
    chance = random.Random(name)
    machine = simulate(find_machine(name, REGISTRY), REGISTRY)
    variables = sorted({v.name for plugin in REGISTRY.plugins for v in plugin.declaration.variables})
    inventory = discover(machine, REGISTRY)
    words = [*WORDS, *(d.uuid or "" for d in inventory.devices), *(str(d.uuid)[:9] for d in inventory.devices)]
    for _ in range(300):
        environ = {
            variable: chance.choice((",", ", ", ";", ":")).join(chance.choices(words, k=chance.randint(0, 6)))
            for variable in chance.sample(variables, k=chance.randint(1, 4))
        }
        masked = discover(machine.with_environ(environ), REGISTRY)
        check(masked)
        for device in masked.devices:
            ordinal = masked.visible_ordinal(device)
            hidden = masked.resolutions[device.family].hidden_by.get(device.id)
            assert ordinal is None or hidden is None, (device.id, environ)


@pytest.mark.parametrize("plugin", PLUGINS)
def test_the_kit_holds_with_ten_times_the_examples(plugin):
    """More drawn masks, selections and environments find nothing new."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--pyargs",
        "anyaccel_conformance.checks",
    ]
    command += ["--accel-plugin", plugin, "--accel-examples", "400"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=800, check=False)

    assert done.returncode == 0, done.stdout[-3000:]
