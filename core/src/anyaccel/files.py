"""File trees a plugin may look at: this host, a folder that stands for a root, or files held in memory."""

from __future__ import annotations

import os
import posixpath
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from anyaccel.frozen import FrozenMap

__all__ = ["FILE_LIMIT", "FileTree", "FolderTree", "HostTree", "MemoryTree", "NodeFact"]

FILE_LIMIT = 4 * 1024 * 1024
"""Most bytes read of one file; what plugins look at is far smaller."""

_MAX_LINKS = 40
_READ_ONLY = os.O_RDONLY
for _flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):
    _READ_ONLY |= getattr(os, _flag, 0)
"""Never follow a link, wait for a pipe, or leave the file open in a child, where the system has words for that."""


@dataclass(frozen=True)
class NodeFact:
    """What is known of one file's rights.

    Args: mode: permission bits. owner, group: names or numbers as text. major, minor: device numbers, None = no device
        file or unknown. can_open: whether this user may read and write it, None = not known; reason: why not.
    """

    mode: int | None = None
    owner: str | None = None
    group: str | None = None
    major: int | None = None
    minor: int | None = None
    can_open: bool | None = None
    reason: str | None = None


class FileTree(Protocol):
    """Reading files below a root. Paths are absolute, with `/` as separator; errors are those of the system."""

    def read_bytes(self, path: str) -> bytes:
        """Give at most FILE_LIMIT bytes of a file."""

    def list_folder(self, path: str) -> tuple[str, ...]:
        """Give the names in a folder, sorted."""

    def resolve(self, path: str) -> str:
        """Give the path with every symbolic link followed, inside the root."""

    def exists(self, path: str) -> bool:
        """Whether the path, links followed, is there."""

    def node(self, path: str) -> NodeFact:
        """Give what is known of the file's rights, or raise FileNotFoundError."""


class HostTree:
    """The files of this host."""

    def read_bytes(self, path: str) -> bytes:
        with open(path, "rb", buffering=0) as file:
            return _read_limited(file.fileno())

    def list_folder(self, path: str) -> tuple[str, ...]:
        return tuple(sorted(os.listdir(path)))

    def resolve(self, path: str) -> str:
        return os.path.realpath(path, strict=True)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def node(self, path: str) -> NodeFact:
        """Look without opening: opening a device file may wake the device."""
        status = os.stat(path)
        can_open = os.access(path, os.R_OK | os.W_OK)
        return _node_fact(status, can_open=can_open)


class FolderTree:
    """A folder that stands for a machine's root; links never lead outside it.

    Args: root: the folder. nodes: rights of device files, which a folder of a normal user cannot hold itself.
    """

    def __init__(self, root: Path, nodes: Mapping[str, NodeFact] | None = None) -> None:
        self._root = str(root)
        self._nodes = FrozenMap(nodes or {})
        self._folders: dict[str, str] = {"/": "/"}

    def read_bytes(self, path: str) -> bytes:
        file = os.open(self._host_path(path), _READ_ONLY)
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise IsADirectoryError(path)
            return _read_limited(file)
        finally:
            os.close(file)

    def list_folder(self, path: str) -> tuple[str, ...]:
        return tuple(sorted(os.listdir(self._host_path(path))))

    def resolve(self, path: str) -> str:
        folder, name = posixpath.split(posixpath.normpath(path))
        start = self._folders.get(folder) or self._resolve_folder(folder)
        return _follow(name, start, self._link_target)

    def exists(self, path: str) -> bool:
        try:
            self.resolve(path)
        except OSError:
            return False
        return True

    def node(self, path: str) -> NodeFact:
        known = self._nodes.get(path)
        if known is not None:
            return known
        status = os.lstat(self._host_path(path))
        return _node_fact(status, can_open=None)

    def _host_path(self, path: str) -> str:
        return self._root + self.resolve(path)

    def _resolve_folder(self, folder: str) -> str:
        """Resolve a folder from the nearest one above it that is known, and remember those between."""
        known, names = folder, []
        while known not in self._folders:
            known, name = posixpath.split(known)
            names.append(name)
        here = self._folders[known]
        for name in reversed(names):
            known = posixpath.join(known, name)
            here = self._folders[known] = _follow(name, here, self._link_target)
        return here

    def _link_target(self, here: str) -> str | None:
        status = os.lstat(self._root + here)
        return os.readlink(self._root + here) if stat.S_ISLNK(status.st_mode) else None


@dataclass(frozen=True)
class MemoryTree:
    """Files held in memory: a recording, or an imaginary machine.

    Args: files: content by absolute path. links: symbolic links by absolute path. nodes: rights by path; a path that is
        only here exists as an empty device file, or with mode 0 as a file that nobody may read. folders: empty folders.
    """

    files: Mapping[str, bytes] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    nodes: Mapping[str, NodeFact] = field(default_factory=dict)
    folders: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names: dict[str, set[str]] = {"/": set()}
        for path in (*self.files, *self.links, *self.nodes, *(f"{f}/." for f in self.folders)):
            _enter(names, path)
        object.__setattr__(self, "_names", names)

    def read_bytes(self, path: str) -> bytes:
        real = self.resolve(path)
        if real in self.files:
            return self.files[real][:FILE_LIMIT]
        if real in self.nodes:
            if self.nodes[real].mode == 0:
                raise PermissionError(1, "operation not permitted", path)
            return b""
        raise IsADirectoryError(path)

    def list_folder(self, path: str) -> tuple[str, ...]:
        real = self.resolve(path)
        names: dict[str, set[str]] = self.__dict__["_names"]
        if real not in names:
            raise NotADirectoryError(path)
        return tuple(sorted(names[real]))

    def resolve(self, path: str) -> str:
        return _follow(path, "/", self._link_target)

    def exists(self, path: str) -> bool:
        try:
            self.resolve(path)
        except OSError:
            return False
        return True

    def node(self, path: str) -> NodeFact:
        return self.nodes.get(self.resolve(path), NodeFact())

    def _link_target(self, here: str) -> str | None:
        if here in self.links:
            return self.links[here]
        names: dict[str, set[str]] = self.__dict__["_names"]
        if here in self.files or here in self.nodes or here in names:
            return None
        raise FileNotFoundError(2, "no such file", here)


def _enter(names: dict[str, set[str]], path: str) -> None:
    folder, name = posixpath.split(path)
    while name:
        known = names.setdefault(folder, set())
        if name == ".":
            folder, name = posixpath.split(folder)
            continue
        if name in known:
            return
        known.add(name)
        folder, name = posixpath.split(folder)


def _follow(path: str, start: str, link_target: Callable[[str], str | None]) -> str:
    """Walk a path as the kernel does: at most 40 links in all, `..` above the root stays at the root.

    Args: start: the real folder to begin in. link_target: where a link leads, None for what is no link; raises when nothing is
        there.
    """
    here, pending, links_left = start, path.split("/")[::-1], _MAX_LINKS
    while pending:
        name = pending.pop()
        if name in ("", "."):
            continue
        if name == "..":
            here = posixpath.dirname(here)
            continue
        place = posixpath.join(here, name)
        target = link_target(place)
        if target is None:
            here = place
            continue
        if links_left == 0:
            raise OSError(40, "too many levels of symbolic links", path)
        links_left -= 1
        here = "/" if target.startswith("/") else here
        pending += target.split("/")[::-1]
    return here


def _read_limited(file: int) -> bytes:
    parts: list[bytes] = []
    left = FILE_LIMIT
    while left > 0:
        part = os.read(file, min(left, 65536))
        if not part:
            break
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _node_fact(status: os.stat_result, *, can_open: bool | None) -> NodeFact:
    is_device = stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode)
    return NodeFact(
        mode=stat.S_IMODE(status.st_mode),
        owner=str(status.st_uid),
        group=str(status.st_gid),
        major=os.major(status.st_rdev) if is_device else None,
        minor=os.minor(status.st_rdev) if is_device else None,
        can_open=can_open,
    )
