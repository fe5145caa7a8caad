"""Recording a machine to a folder or archive and reading one back. An archive is untrusted input.

Form: `machine.json` (format, environment, user, rights of device files), `root/` (files, with links as links), and
`answers/<plugin>.json` (one document a topic).
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import posixpath
import re
import tarfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

from anyaccel._scrub import scrubbed
from anyaccel.discovery import discover
from anyaccel.errors import RecordingError
from anyaccel.files import FILE_LIMIT, FolderTree, MemoryTree, NodeFact
from anyaccel.frozen import FrozenMap
from anyaccel.inventory import Inventory
from anyaccel.machine import Machine, MachineKind, NoAnswers, Recorder, StoredAnswers, UserFacts
from anyaccel.registry import Registry

__all__ = ["FORMAT", "open_recording", "open_root", "pack_machine", "record", "write_recording"]

FORMAT = "anyaccel-recording/1"
MAX_ENTRIES = 200_000
MAX_TOTAL_BYTES = 256 * 1024 * 1024
MAX_PATH = 1024
MAX_DEPTH = 64
_META = "machine.json"


def open_root(folder: Path | str, environ: Mapping[str, str] | None = None) -> Machine:
    """Give the machine whose files lie below a folder; no question is answered and nothing of this host is read.

    Raises: RecordingError when it is no readable folder.
    """
    path = Path(folder)
    if not path.is_dir() or not os.access(path, os.R_OK | os.X_OK):
        raise RecordingError(f"root {str(folder)!r} is no readable folder")
    nodes: Mapping[str, NodeFact] = {}
    user, kind = UserFacts(), MachineKind.ROOT
    if (path / _META).is_file() and (path / "root").is_dir():
        recorded = _recorded(path)
        nodes, user = recorded.tree.nodes, recorded.user  # type: ignore[attr-defined]
        kind = MachineKind.SIMULATED if recorded.is_simulated else kind
        path = path / "root"
    return Machine(
        FolderTree(path, nodes),
        environ=environ or {},
        kind=kind,
        answers={"*": NoAnswers("no live questions under --root")},
        user=user,
        name=str(folder),
    )


def _recorded(folder: Path) -> Machine:
    """Give what stands in the folder of a recording beside its files: rights, user, whether it is simulated."""
    content = _Content(files={_META: (folder / _META).read_bytes()[:FILE_LIMIT]})
    return content.machine(str(folder))


def open_recording(path: Path | str) -> Machine:
    """Give the machine of a recording, folder or archive (`.tar`, `.tar.gz`, `.tar.bz2`, `.tar.xz`).

    Raises: RecordingError in one sentence for anything malformed, too large or unsafe; nothing is unpacked to disk.
    """
    source = Path(path)
    content = _from_folder(source) if source.is_dir() else _from_archive(source)
    return content.machine(str(path))


@dataclass
class _Content:
    """What a recording holds, in memory."""

    files: dict[str, bytes] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    total: int = 0
    count: int = 0

    def take(self, name: str, size: int) -> None:
        self.count += 1
        self.total += size
        if self.count > MAX_ENTRIES or self.total > MAX_TOTAL_BYTES or size > FILE_LIMIT:
            raise RecordingError(
                f"recording is too large at {name!r} (limits: {MAX_ENTRIES} entries, {FILE_LIMIT >> 20} MiB a file, "
                f"{MAX_TOTAL_BYTES >> 20} MiB together)"
            )

    def machine(self, name: str) -> Machine:
        meta = self._json(_META)
        if not isinstance(meta, dict) or meta.get("format") != FORMAT:
            found = meta.get("format") if isinstance(meta, dict) else None
            raise RecordingError(f"recording {name!r} has format {found!r}, not {FORMAT!r}")
        try:
            return self._machine(meta, name)
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise RecordingError(f"recording {name!r} has a malformed {_META}: {error}") from error

    def _machine(self, meta: Mapping[str, Any], name: str) -> Machine:
        is_simulated = meta.get("is_simulated", False) is True
        user = meta.get("user", {})
        return Machine(
            self._tree(meta.get("nodes", {})),
            environ={str(k): str(v) for k, v in meta.get("environ", {}).items()},
            kind=MachineKind.SIMULATED if is_simulated else MachineKind.REPLAY,
            answers={"*": StoredAnswers(), **self._answers()},
            user=UserFacts(_int_or_none(user.get("uid")), tuple(map(str, user.get("groups", ())))),
            name=str(meta.get("name") or name),
        )

    def _tree(self, nodes: Mapping[str, Mapping[str, Any]]) -> MemoryTree:
        below = {k.removeprefix("root"): v for k, v in self.files.items() if k.startswith("root/")}
        links = {k.removeprefix("root"): v for k, v in self.links.items() if k.startswith("root/")}
        folders = tuple(k.removeprefix("root") for k in sorted(self.folders) if k.startswith("root/"))
        facts = {_safe_path(path): _node_from(row) for path, row in nodes.items()}
        return MemoryTree({p: c for p, c in below.items() if p not in facts}, links, facts, folders)

    def _answers(self) -> dict[str, StoredAnswers]:
        answers = {}
        for name in sorted(self.files):
            match = re.fullmatch(r"answers/([a-z0-9_-]+)\.json", name)
            if match is not None:
                document = self._json(name)
                if not isinstance(document, dict):
                    raise RecordingError(f"{name} of the recording holds no topics")
                answers[match.group(1)] = StoredAnswers(FrozenMap(document))
        return answers

    def _json(self, name: str) -> Any:
        if name not in self.files:
            raise RecordingError(f"recording holds no {name}")
        try:
            return json.loads(self.files[name])
        except (ValueError, RecursionError) as error:
            raise RecordingError(f"{name} of the recording is not JSON: {error}") from error


def _is_unsafe(path: str) -> bool:
    parts = path.split("/")
    return ".." in parts or "\0" in path or len(path) > MAX_PATH or len(parts) > MAX_DEPTH


def _safe_path(path: str) -> str:
    if not path.startswith("/") or _is_unsafe(path):
        raise RecordingError(f"recording names the unsafe path {path[:80]!r}")
    return posixpath.normpath(path)


def _node_from(row: Mapping[str, Any]) -> NodeFact:
    mode = row.get("mode")
    can_open = row.get("can_open")
    return NodeFact(
        mode=None if mode is None else int(str(mode), 8),
        owner=_text_or_none(row.get("owner")),
        group=_text_or_none(row.get("group")),
        major=_int_or_none(row.get("major")),
        minor=_int_or_none(row.get("minor")),
        can_open=None if can_open is None else bool(can_open),
    )


def _text_or_none(value: Any) -> str | None:
    return None if value is None else str(value)


def _int_or_none(value: Any) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise ValueError(f"{str(value)[:40]!r} is no whole number")
    return value


def _from_folder(folder: Path) -> _Content:
    content = _Content()
    for here, folders, names in os.walk(folder, followlinks=False):
        relative = Path(here).relative_to(folder)
        for name in (*names, *folders):
            path = Path(here) / name
            key = (relative / name).as_posix()
            if path.is_symlink():
                content.take(key, 0)
                content.links[key] = str(path.readlink())
            elif path.is_dir():
                content.folders.add(key)
            elif path.is_file():
                content.take(key, path.stat().st_size)
                content.files[key] = path.read_bytes()
    return content


def _from_archive(path: Path) -> _Content:
    try:
        with path.open("rb") as file:
            return _read_archive(file)
    except OSError as error:
        raise RecordingError(f"recording {str(path)!r} cannot be read: {error.strerror or error}") from error
    except (tarfile.TarError, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:
        why = " ".join(str(error).split())[:200]
        raise RecordingError(f"recording {str(path)!r} is no archive: {why}") from error


class _Limited:
    """A stream that ends in an error once more was read of it than a recording may hold, headers included."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._left = MAX_TOTAL_BYTES + 1024 * MAX_ENTRIES

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise RecordingError(f"recording is too large (limit: {MAX_TOTAL_BYTES >> 20} MiB together)")
        return data


def _uncompressed(file: BinaryIO) -> BinaryIO:
    """Give the tar stream inside a compressed file, told by its first bytes."""
    start = file.read(6)
    file.seek(0)
    if start.startswith(b"\x1f\x8b"):
        return cast(BinaryIO, gzip.GzipFile(fileobj=file))
    if start.startswith(b"BZh"):
        return cast(BinaryIO, bz2.BZ2File(file))
    return cast(BinaryIO, lzma.LZMAFile(file)) if start.startswith(b"\xfd7zXZ") else file


def _read_archive(file: BinaryIO) -> _Content:
    content = _Content()
    with tarfile.open(fileobj=cast(BinaryIO, _Limited(_uncompressed(file))), mode="r|") as archive:
        for member in archive:
            name = _member_name(member.name)
            content.take(member.name, member.size if member.isreg() else 0)
            if member.isreg():
                reader = archive.extractfile(member)
                content.files[name] = b"" if reader is None else reader.read(FILE_LIMIT)
            elif member.issym() and len(member.linkname) <= MAX_PATH:
                content.links[name] = member.linkname
            elif member.isdir():
                content.folders.add(name)
            else:
                raise RecordingError(
                    f"recording holds {member.name!r}, which is neither file, folder nor symbolic link"
                )
    return content


def _member_name(name: str) -> str:
    if name.startswith("/") or _is_unsafe(name):
        raise RecordingError(f"recording holds the unsafe path {name[:80]!r}")
    return posixpath.normpath(name)


def record(
    machine: Machine, registry: Registry, *, is_scrubbed: bool = True, timeout_seconds: float = 30.0
) -> tuple[Inventory, MemoryTree]:
    """Look at a machine and keep everything that was looked at.

    Args: is_scrubbed: replace stable names by pseudonyms and leave serial numbers, host and user names out.
    Returns: the inventory, and the content of a recording for `write_recording`.
    """
    recorder = Recorder()
    inventory = discover(machine, registry, timeout_seconds=timeout_seconds, recorder=recorder)
    journal = recorder.journal
    folders = tuple(sorted(journal.folders - set(journal.files) - set(journal.links)))
    tree = MemoryTree(journal.files, journal.links, journal.nodes, folders)
    content = _packed(machine.with_environ(_mask_environ(machine, registry)), tree, recorder.documents)
    return inventory, scrubbed(content) if is_scrubbed else content


def _mask_environ(machine: Machine, registry: Registry) -> dict[str, str]:
    """Keep the variables that plugins declare, and the names that tell a container."""
    names = {variable.name for plugin in registry.plugins for variable in plugin.declaration.variables}
    environ = {name: value for name, value in machine.environ.items() if name in names}
    markers = {name: "set" for name in ("KUBERNETES_SERVICE_HOST", "container") if machine.environ.get(name)}
    return {**environ, **markers}


def pack_machine(machine: Machine) -> MemoryTree:
    """Give the whole of a machine held in memory, such as a simulated one, as the content of a recording.

    Raises: RecordingError for a machine that is not held in memory.
    """
    if not isinstance(machine.tree, MemoryTree):
        raise RecordingError(f"machine {machine.name!r} is not held in memory")
    documents = {
        key: dict(answers.documents)
        for key, answers in machine.answers.items()
        if isinstance(answers, StoredAnswers) and key != "*"
    }
    return _packed(machine, machine.tree, documents)


def _packed(machine: Machine, tree: MemoryTree, documents: Mapping[str, Mapping[str, Any]]) -> MemoryTree:
    meta = {
        "format": FORMAT,
        "name": posixpath.basename(machine.name.rstrip("/")),
        "is_simulated": machine.is_simulated,
        "environ": dict(sorted(machine.environ.items())),
        "user": {"uid": machine.user.uid, "groups": list(machine.user.groups)},
        "nodes": {path: _node_row(fact) for path, fact in sorted(tree.nodes.items())},
    }
    files = {f"/root{path}": b"" for path in tree.nodes}
    files |= {f"/root{path}": content for path, content in tree.files.items()}
    files[f"/{_META}"] = _json_bytes(meta)
    for plugin, topics in documents.items():
        files[f"/answers/{plugin}.json"] = _json_bytes(topics)
    links = {f"/root{path}": _relative(path, target) for path, target in tree.links.items()}
    folders = tuple(f"/root{path}" for path in tree.folders if f"/root{path}" not in files)
    return MemoryTree(files, links, {}, folders)


def _relative(path: str, target: str) -> str:
    """Write a link so that it stays inside the recording when somebody unpacks it."""
    return posixpath.relpath(target, posixpath.dirname(path)) if target.startswith("/") else target


def _json_bytes(document: Any) -> bytes:
    return (json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False, default=_plain) + "\n").encode()


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} cannot be stored")


def _node_row(fact: NodeFact) -> dict[str, Any]:
    return {
        "mode": None if fact.mode is None else f"{fact.mode:04o}",
        "owner": fact.owner,
        "group": fact.group,
        "major": fact.major,
        "minor": fact.minor,
        "can_open": fact.can_open,
    }


def write_recording(content: MemoryTree, target: Path | str) -> None:
    """Write the content of a recording to an archive (`.tar.gz`) or a new folder, whole or not at all.

    Raises: RecordingError when the target exists as a folder with content or cannot be written.
    """
    path = Path(target)
    try:
        if path.name.endswith((".tar.gz", ".tgz")):
            _write_archive(content, path)
        else:
            _write_folder(content, path)
    except OSError as error:
        raise RecordingError(f"recording {str(path)!r} cannot be written: {error.strerror or error}") from error


def _write_archive(content: MemoryTree, path: Path) -> None:
    unfinished = path.with_name(f".{path.name}.part")
    try:
        with tarfile.open(unfinished, "w:gz") as archive:
            for name in sorted({*content.files, *content.links, *content.folders}):
                archive.addfile(*_member(content, name))
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _member(content: MemoryTree, name: str) -> tuple[tarfile.TarInfo, io.BytesIO | None]:
    info = tarfile.TarInfo(name.lstrip("/"))
    info.mode = 0o644
    if name in content.links:
        info.type, info.linkname = tarfile.SYMTYPE, content.links[name]
        return info, None
    if name in content.files:
        info.size = len(content.files[name])
        return info, io.BytesIO(content.files[name])
    info.type, info.mode = tarfile.DIRTYPE, 0o755
    return info, None


def _write_folder(content: MemoryTree, path: Path) -> None:
    if path.exists() and any(path.iterdir()):
        raise RecordingError(f"folder {str(path)!r} exists and is not empty")
    for name in sorted(content.folders):
        (path / name.lstrip("/")).mkdir(parents=True, exist_ok=True)
    for name, data in sorted(content.files.items()):
        file = path / name.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    for name, link in sorted(content.links.items()):
        place = path / name.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(link)
