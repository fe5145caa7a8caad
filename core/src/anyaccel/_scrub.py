"""Taking stable names, serial numbers, host and user names out of a recording, so that it can be shown to anybody.

A name is replaced by a pseudonym of the same form, the same one wherever it stands, so that masks still name what they named.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import posixpath
import re
import secrets
from collections.abc import Iterable
from typing import Any

from anyaccel.files import MemoryTree

__all__ = ["scrubbed"]

_UUID = re.compile(r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b")
_LONG_HEX = re.compile(r"\b[0-9a-f]{64}\b")
_PREFIX = re.compile(r"\b(GPU|MIG)-([0-9a-fA-F]{4,})\b")
_SERIAL_KEYS = re.compile(r"serial|board_id|part_number|asset|(^|_)sn$", re.IGNORECASE)
_ID_FILES = frozenset({"unique_id", "xgmi_device_id", "xgmi_hive_id"})
_HEX_SERIAL = re.compile(r"^[0-9a-f]{16}\s*$")
"""A serial number by which a family tells its devices apart: it gets a pseudonym, others are struck out."""
_ID_PROPERTY = re.compile(r"^(unique_id|hive_id) ([0-9]{6,})$", re.MULTILINE)
_LOG_LINE = re.compile(r"NVRM: Xid|Linux version ")
"""What is kept of a kernel log, from here to the line's end: error events, and where the last boot began."""
_SCRUBBED = "scrubbed"


def scrubbed(content: MemoryTree, salt: bytes | None = None) -> MemoryTree:
    """Give the content of a recording without names that lead back to a machine or person.

    Args: salt: makes the pseudonyms; None = random, so that two recordings cannot be joined.
    """
    names = _Names(salt or secrets.token_bytes(16))
    texts = {path: data.decode("utf-8", "surrogateescape") for path, data in content.files.items()}
    for path, text in texts.items():
        names.learn(path, text)
    clean = {path: _clean_file(path, text, names).encode("utf-8", "surrogateescape") for path, text in texts.items()}
    return MemoryTree(clean, content.links, content.nodes, content.folders)


class _Names:
    """The stable names seen in one recording and their pseudonyms."""

    def __init__(self, salt: bytes) -> None:
        self._salt = salt
        self._uuids: dict[str, str] = {}
        self._ids: dict[str, str] = {}
        self._people = tuple(_people())

    def learn(self, path: str, text: str) -> None:
        """Collect the names in one file."""
        for uuid in _UUID.findall(text):
            self._uuids.setdefault(uuid.lower(), self._fake_uuid(uuid.lower()))
        if posixpath.basename(path) in _ID_FILES or _is_id_serial(path, text):
            self._learn_id(text.strip(), 16)
        for _, number in _ID_PROPERTY.findall(text):
            self._learn_id(number, 10)

    def _learn_id(self, text: str, base: int) -> None:
        try:
            number = int(text, base)
        except ValueError:
            return
        if number:
            fake = int.from_bytes(self._digest(str(number))[:8], "big") | 1 << 63
            self._ids.setdefault(f"{number:016x}", f"{fake:016x}")
            self._ids.setdefault(str(number), str(fake))

    def replace(self, text: str) -> str:
        """Put the pseudonyms in."""
        text = _UUID.sub(lambda match: self._uuids.get(match.group(0).lower(), match.group(0)), text)
        text = _PREFIX.sub(self._replace_prefix, text)
        for real, fake in self._ids.items():
            text = re.sub(rf"(?<![0-9a-fA-F]){real}(?![0-9a-fA-F])", fake, text, flags=re.IGNORECASE)
        text = _LONG_HEX.sub("0" * 64, text)
        for person, stand_in in self._people:
            text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(person)}(?![A-Za-z0-9])", stand_in, text)
        return text

    def _replace_prefix(self, match: re.Match[str]) -> str:
        known = {**self._uuids, **self._ids}
        if match.group(2).lower() in known.values():
            return match.group(0)
        fakes = {fake[: len(match.group(2))] for real, fake in known.items() if real.startswith(match.group(2).lower())}
        return f"{match.group(1)}-{fakes.pop()}" if len(fakes) == 1 else match.group(0)

    def _digest(self, text: str) -> bytes:
        return hashlib.sha256(self._salt + text.encode()).digest()

    def _fake_uuid(self, uuid: str) -> str:
        head, tail = self._digest(uuid[:8]).hex()[:8], self._digest(uuid).hex()
        return f"{head}-{tail[:4]}-{tail[4:8]}-{tail[8:12]}-{tail[12:24]}"


def _people() -> Iterable[tuple[str, str]]:
    host = platform.node()
    if len(host) > 2 and host != "localhost":
        yield host, "host"
    user = os.environ.get("USER") or os.environ.get("LOGNAME") or ""
    if len(user) > 2 and user != "root":
        yield user, "user"


def _clean_file(path: str, text: str, names: _Names) -> str:
    if _SERIAL_KEYS.search(posixpath.basename(path)) and not _is_id_serial(path, text):
        return _SCRUBBED + "\n"
    if path.startswith("/root/var/log/"):
        return "".join(f"{line[match.start() :]}\n" for line in text.splitlines() if (match := _LOG_LINE.search(line)))
    if path.endswith("/proc/self/status"):
        return "".join(f"{line}\n" for line in text.splitlines() if line.startswith("Cpus_allowed_list:"))
    if path.endswith(".json"):
        document = _without_serials(json.loads(text))
        return names.replace(json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    return names.replace(text)


def _is_id_serial(path: str, text: str) -> bool:
    return posixpath.basename(path) == "serial_number" and _HEX_SERIAL.match(text) is not None


def _without_serials(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _SCRUBBED if _is_serial(k, v) else _without_serials(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_without_serials(entry) for entry in value]
    return value


def _is_serial(key: str, value: Any) -> bool:
    return isinstance(value, str) and bool(value) and _SERIAL_KEYS.search(key) is not None
