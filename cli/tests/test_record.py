"""`accel-cli record`, and looking at what it wrote."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from anyaccel.registry import Registry

Invoke = Callable[..., Result]


@pytest.mark.parametrize("name", ["machine.tar.gz", "machine"])
def test_a_recording_shows_the_same_devices(
    invoke: Invoke, toy_registry: Registry, toy_root: Path, tmp_path: Path, name: str
) -> None:
    """What was recorded, replayed, is what was there."""
    target = tmp_path / name
    invoke("record", "--root", toy_root, "-o", target, registry=toy_registry)
    documents = [
        json.loads(invoke("discover", *machine, "--json", registry=toy_registry).stdout)
        for machine in (("--root", toy_root), ("--replay", target))
    ]

    assert documents[0]["devices"] == documents[1]["devices"]


def test_the_result_says_what_was_kept(invoke: Invoke, toy_registry: Registry, toy_root: Path, tmp_path: Path) -> None:
    """One line on stdout, the next command as a hint."""
    target = tmp_path / "machine.tar.gz"
    result = invoke("record", "--root", toy_root, "-o", target, registry=toy_registry)

    assert (result.exit_code, result.stdout, result.stderr) == (
        0,
        f"recorded 2 devices: 1 ready, 1 unusable to {target} (scrubbed)\n",
        f"hint: accel-cli discover --replay {target}\n",
    )


def test_a_replay_says_so(invoke: Invoke, toy_registry: Registry, toy_root: Path, tmp_path: Path) -> None:
    """The first line of a replay names the file."""
    target = tmp_path / "machine.tar.gz"
    invoke("record", "--root", toy_root, "-o", target, registry=toy_registry)
    result = invoke("discover", "--replay", target, registry=toy_registry)

    assert result.stdout.splitlines()[0] == f"replay of {target}"


@pytest.mark.parametrize("name", ["me.zip", "me.tar", "me.tar.bz2", "me.tar.xz", "ME.7Z"])
def test_another_kind_of_archive_is_refused(
    invoke: Invoke, toy_registry: Registry, toy_root: Path, tmp_path: Path, name: str
) -> None:
    """Nobody gets a folder that is called like an archive."""
    result = invoke("record", "--root", toy_root, "-o", tmp_path / name, registry=toy_registry)

    assert (result.exit_code, (tmp_path / name).exists(), ".tar.gz" in result.stderr) == (2, False, True)


@pytest.mark.parametrize(("options", "code", "is_kept"), [((), 1, True), (("--force",), 0, False)])
def test_a_file_is_replaced_only_on_request(
    invoke: Invoke,
    toy_registry: Registry,
    toy_root: Path,
    tmp_path: Path,
    options: tuple[str, ...],
    code: int,
    is_kept: bool,
) -> None:
    """Without --force the file stays, and the hint names both ways out."""
    target = tmp_path / "me.tar.gz"
    target.write_text("mine")
    result = invoke("record", "--root", toy_root, "-o", target, *options, registry=toy_registry)

    assert (result.exit_code, target.read_bytes() == b"mine") == (code, is_kept)
    assert ("hint: take another name, or --force to replace it" in result.stderr) is is_kept


def test_a_file_is_never_made_a_folder(invoke: Invoke, toy_registry: Registry, toy_root: Path, tmp_path: Path) -> None:
    """A name without ending means a folder; a file of that name stays, even with --force."""
    target = tmp_path / "me"
    target.write_text("mine")
    result = invoke("record", "--root", toy_root, "-o", target, "--force", registry=toy_registry)

    assert (result.exit_code, target.read_text(), "is a file, not a folder" in result.stderr) == (1, "mine", True)


def test_a_folder_with_content_is_not_overwritten(
    invoke: Invoke, toy_registry: Registry, toy_root: Path, tmp_path: Path
) -> None:
    """Nobody loses files to a recording."""
    target = tmp_path / "full"
    target.mkdir()
    (target / "mine.txt").write_text("x")
    result = invoke("record", "--root", toy_root, "-o", target, registry=toy_registry)

    assert (result.exit_code, [p.name for p in target.iterdir()]) == (1, ["mine.txt"])
