"""Archives of `/sys` and `/proc`, read into memory. They are untrusted: nothing is unpacked to disk, sizes are limited."""

from __future__ import annotations

import posixpath
import re
import tarfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from anyaccel.errors import AccelError
from anyaccel.files import FILE_LIMIT, MemoryTree

__all__ = ["Archive", "CaptureError", "read_archive"]

MAX_ENTRIES = 200_000
MAX_TOTAL_BYTES = 256 * 1024 * 1024
_TOPS = ("sys", "proc", "dev", "etc", "run")
_CARD = re.compile(r"^card[0-9]+/")


class CaptureError(AccelError):
    """A capture cannot be read as what it claims to be."""

    code = "capture-unreadable"


@dataclass(frozen=True)
class Archive:
    """Files and symbolic links by absolute path, as on the machine."""

    files: Mapping[str, bytes] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)

    def tree(self) -> MemoryTree:
        """Give the tree that a machine reads."""
        return MemoryTree(self.files, self.links)

    def text(self, path: str) -> str | None:
        """Give a file's text as the machine had it, None when it is not there or empty."""
        content = self.files.get(path)
        return None if content is None else content.decode("utf-8", "replace").strip() or None

    def below(self, folder: str) -> tuple[str, ...]:
        """Give the paths of all files below a folder."""
        return tuple(path for path in self.files if path.startswith(f"{folder}/"))


def read_archive(path: Path) -> Archive:
    """Read a tar archive.

    A leading folder is taken off; an archive that begins with `card0/device` is a piece of `/sys/class/drm`.
    Raises: CaptureError in one sentence for anything malformed, too large or unsafe.
    """
    try:
        with tarfile.open(path, mode="r:*") as archive:
            files, links = _members(archive, path.name)
    except OSError as error:
        raise CaptureError(f"archive {path.name!r} cannot be read: {error.strerror or error}") from error
    except (tarfile.TarError, EOFError, zlib.error, ValueError) as error:
        raise CaptureError(f"{path.name!r} is no archive: {error}") from error
    names = [*files, *links]
    prefix = _prefix(names, path.name)
    return Archive(
        {_absolute(name, prefix): content for name, content in files.items()},
        {_absolute(name, prefix): target for name, target in links.items()},
    )


def _members(archive: tarfile.TarFile, where: str) -> tuple[dict[str, bytes], dict[str, str]]:
    files: dict[str, bytes] = {}
    links: dict[str, str] = {}
    total = 0
    for count, member in enumerate(archive):
        total += member.size if member.isreg() else 0
        if count > MAX_ENTRIES or total > MAX_TOTAL_BYTES or member.size > FILE_LIMIT:
            raise CaptureError(f"archive {where!r} is too large at {member.name!r}")
        name = _safe_name(member.name, where)
        if member.isreg():
            reader = archive.extractfile(member)
            files[name] = b"" if reader is None else reader.read(FILE_LIMIT)
        elif member.issym():
            links[name] = member.linkname
        elif not member.isdir():
            raise CaptureError(
                f"archive {where!r} holds {member.name!r}, which is neither file, folder nor symbolic link"
            )
    return files, links


def _safe_name(name: str, where: str) -> str:
    if name.startswith("/") or ".." in name.split("/") or "\0" in name:
        raise CaptureError(f"archive {where!r} holds the unsafe path {name!r}")
    return posixpath.normpath(name)


def _prefix(names: Iterable[str], where: str) -> str:
    """Tell what to put before every name, or `-folder/` for what to take off."""
    tops = {name.split("/")[0] for name in names}
    if tops & set(_TOPS):
        return ""
    if all(_CARD.match(name) for name in names):
        return "sys/class/drm/"
    if len(tops) == 1:
        return f"-{tops.pop()}/"
    raise CaptureError(f"archive {where!r} holds no root of a machine (its top folders: {', '.join(sorted(tops)[:5])})")


def _absolute(name: str, prefix: str) -> str:
    if prefix.startswith("-"):
        return "/" + name.removeprefix(prefix[1:])
    return f"/{prefix}{name}"
