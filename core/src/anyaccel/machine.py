"""All that a plugin may look at: files below a root, an environment, a deadline, and questions to the driver."""

from __future__ import annotations

import errno
import os
import posixpath
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

from anyaccel import pci as _pci
from anyaccel.answers import Answers, LiveAnswers, NoAnswers, StoredAnswers
from anyaccel.errors import DeadlineExceededError, FileUnavailableError, UnavailableError
from anyaccel.files import FileTree, HostTree, NodeFact
from anyaccel.frozen import FrozenMap

if TYPE_CHECKING:
    from anyaccel.device import Condition

__all__ = [
    "Answers",
    "Deadline",
    "Journal",
    "LiveAnswers",
    "Machine",
    "MachineKind",
    "NoAnswers",
    "Recorder",
    "StoredAnswers",
    "UserFacts",
    "current_user",
    "live_machine",
]

Json = Any
Value = TypeVar("Value")


class MachineKind(str, Enum):
    """Where what a plugin sees comes from."""

    LIVE = "live"
    ROOT = "root"
    REPLAY = "replay"
    SIMULATED = "simulated"


@dataclass(frozen=True)
class UserFacts:
    """Who asks: user number and group names; None = unknown."""

    uid: int | None = None
    groups: tuple[str, ...] = ()


class Deadline:
    """A point in time that every read checks.

    Args: seconds: from now, None = no limit. clock: monotonic seconds.
    """

    def __init__(self, seconds: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._end = None if seconds is None else clock() + seconds

    def seconds_left(self) -> float | None:
        """Seconds until the deadline, None = no limit, never below 0."""
        return None if self._end is None else max(0.0, self._end - self._clock())

    def check(self) -> None:
        """Raise DeadlineExceededError when the time is over."""
        if self._end is not None and self._clock() > self._end:
            raise DeadlineExceededError("the time for looking at this machine is over")

    def __reduce__(self) -> tuple[object, ...]:
        """Travel to another process as the seconds that are left."""
        return (Deadline, (self.seconds_left(),))


class Journal:
    """Everything read through one machine, so that a recording holds exactly what was looked at."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.links: dict[str, str] = {}
        self.nodes: dict[str, NodeFact] = {}
        self.folders: set[str] = set()

    def note_path(self, path: str, tree: FileTree) -> str:
        """Note the links that lead from a path to its real one, and give that."""
        here = posixpath.normpath(path)
        real = tree.resolve(here)
        while here != "/":
            folder, name = posixpath.split(here)
            place, target = posixpath.join(tree.resolve(folder), name), tree.resolve(here)
            if place != target:
                self.links[place] = target
            here = folder
        return real

    def merge(self, other: Journal) -> None:
        """Take in what another journal of the same machine noted."""
        self.files.update(other.files)
        self.links.update(other.links)
        self.nodes.update(other.nodes)
        self.folders.update(other.folders)


@dataclass
class Recorder:
    """What a recording is made of: every read, and every answer of a driver by plugin and topic."""

    journal: Journal = field(default_factory=Journal)
    documents: dict[str, dict[str, Json]] = field(default_factory=dict)


class Machine:
    """A machine as a plugin sees it. A plugin that goes around it is broken.

    Args: tree: its files. environ: its environment. kind: live, root, replay or simulated. answers: by plugin key; the
        entry `*` serves every plugin without one. deadline: checked by every read. user: who asks. journal: notes reads.
    """

    def __init__(
        self,
        tree: FileTree,
        *,
        environ: Mapping[str, str] | None = None,
        kind: MachineKind = MachineKind.ROOT,
        answers: Mapping[str, Answers] | None = None,
        deadline: Deadline | None = None,
        user: UserFacts | None = None,
        journal: Journal | None = None,
        name: str = "",
    ) -> None:
        self.tree = tree
        self.environ: Mapping[str, str] = FrozenMap(environ or {})
        self.kind = kind
        self.deadline = deadline or Deadline(None)
        self.user = user or UserFacts()
        self.journal = journal
        self.name = name
        self.answers: dict[str, Answers] = dict(answers or {})
        self._plugin: str | None = None
        self._cache: dict[str, Any] = {}

    @property
    def is_live(self) -> bool:
        """Whether this is the machine the program runs on."""
        return self.kind is MachineKind.LIVE

    @property
    def is_simulated(self) -> bool:
        """Whether this machine is imaginary."""
        return self.kind is MachineKind.SIMULATED

    def for_plugin(self, key: str) -> Machine:
        """Give the same machine with the questions of one plugin open."""
        return self._copy(plugin=key)

    def with_answers(self, answers: Mapping[str, Answers]) -> Machine:
        """Give the same machine answering in another way."""
        copy = self._copy(plugin=self._plugin)
        copy.answers = dict(answers)
        return copy

    def with_deadline(self, deadline: Deadline) -> Machine:
        """Give the same machine with another deadline."""
        copy = self._copy(plugin=self._plugin)
        copy.deadline = deadline
        return copy

    def with_journal(self, journal: Journal) -> Machine:
        """Give the same machine noting its reads."""
        copy = self._copy(plugin=self._plugin)
        copy.journal = journal
        copy._cache = {}
        return copy

    def with_environ(self, environ: Mapping[str, str]) -> Machine:
        """Give the same machine with another environment."""
        copy = self._copy(plugin=self._plugin)
        copy.environ = FrozenMap(environ)
        return copy

    def _copy(self, plugin: str | None) -> Machine:
        copy = Machine(
            self.tree,
            environ=self.environ,
            kind=self.kind,
            answers=self.answers,
            deadline=self.deadline,
            user=self.user,
            journal=self.journal,
            name=self.name,
        )
        copy._plugin = plugin
        copy._cache = self._cache
        return copy

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_cache": {}}

    def ask(self, topic: str, collect: Callable[[], Json]) -> Json:
        """Ask the driver a question.

        Args: topic: a stable name. collect: the one function of the plugin's `_driver` that finds the answer out and
            gives it as one JSON document; it runs in the probe child of a live machine and nowhere else.
        Raises: UnavailableError when no answer can be had here, with the reason.
        """
        self.deadline.check()
        answers = self.answers.get(self._plugin or "*") or self.answers.get("*")
        if answers is None:
            raise UnavailableError("this machine answers no questions", reason_code="no-live-questions")
        return answers.answer(topic, collect)

    def read_text(self, path: str) -> str:
        """Give a file's text without the white space around it.

        Raises: FileUnavailableError saying whether it is missing or cannot be read.
        """
        return self.read_bytes(path).decode("utf-8", "replace").strip()

    def read_bytes(self, path: str) -> bytes:
        """Give a file's content, at most 4 MiB. Raises: FileUnavailableError."""
        self.deadline.check()
        try:
            content = self.tree.read_bytes(path)
        except OSError as error:
            raise _file_error(path, error) from error
        if self.journal is not None:
            self.journal.files[self.journal.note_path(path, self.tree)] = content
        return content

    def read_text_or_none(self, path: str) -> str | None:
        """Give a file's text, None when it is missing or unreadable for whatever reason."""
        try:
            return self.read_text(path)
        except FileUnavailableError:
            return None

    def list_folder(self, path: str, matching: str | None = None) -> tuple[str, ...]:
        """Give the names in a folder, sorted; none when it is missing or unreadable.

        Args: matching: a regular expression for whole names; others are neither given nor recorded.
        """
        self.deadline.check()
        try:
            names = self.tree.list_folder(path)
        except OSError:
            return ()
        if matching is not None:
            names = tuple(name for name in names if re.fullmatch(matching, name))
        if self.journal is not None:
            self._note_names(path, names)
        return names

    def _note_names(self, path: str, names: tuple[str, ...]) -> None:
        assert self.journal is not None
        real = self.journal.note_path(path, self.tree)
        self.journal.folders.add(real)
        for name in names:
            self.journal.folders.add(posixpath.join(real, name))

    def exists(self, path: str) -> bool:
        """Whether a path, links followed, is there."""
        self.deadline.check()
        is_there = self.tree.exists(path)
        if is_there and self.journal is not None:
            self.journal.folders.add(self.journal.note_path(path, self.tree))
        return is_there

    def resolve(self, path: str) -> str | None:
        """Give the path with links followed, None when it leads nowhere."""
        self.deadline.check()
        try:
            if self.journal is not None:
                real = self.journal.note_path(path, self.tree)
                self.journal.folders.add(real)
                return real
            return self.tree.resolve(path)
        except OSError:
            return None

    def node(self, path: str) -> NodeFact | None:
        """Give the rights of a device file without opening it, None when it is missing."""
        self.deadline.check()
        try:
            fact = self.tree.node(path)
        except OSError as error:
            if error.errno == errno.EACCES:
                return NodeFact(can_open=False, reason="its folder cannot be searched")
            return None
        fact = _with_access(fact, self.user)
        if self.journal is not None:
            self.journal.nodes[self.journal.note_path(path, self.tree)] = fact
        return fact

    def pci_functions(self) -> tuple[_pci.PciFunction, ...]:
        """Give every PCI function in numeric order of address, read once a machine."""
        return self.cached("pci", lambda: _pci.read_functions(self))

    def pci_driver(self, function: _pci.PciFunction) -> str | None:
        """Give the kernel driver bound to one function, None when none is, read once a machine."""
        return self.cached(f"driver:{function.address}", lambda: _pci.read_driver(self, function))

    def pci_detail(self, function: _pci.PciFunction) -> _pci.PciDetail:
        """Give what the kernel says of one function beyond its ids, read once a machine."""
        return self.cached(f"pci:{function.address}", lambda: _pci.read_detail(self, function))

    def node_condition(self, path: str, *, is_container: bool | None) -> Condition | None:
        """Say what is wrong with a device file a process must open, None when nothing is known to be."""
        return _pci.node_condition(self, path, is_container=is_container)

    def cached(self, key: str, make: Callable[[], Value]) -> Value:
        """Give what was made under a key for this machine, making it the first time."""
        if key not in self._cache:
            self._cache[key] = make()
        value: Value = self._cache[key]
        return value


def _file_error(path: str, error: OSError) -> FileUnavailableError:
    is_missing = isinstance(error, (FileNotFoundError, NotADirectoryError))
    what = "is missing" if is_missing else f"cannot be read ({error.strerror or type(error).__name__})"
    return FileUnavailableError(f"file {path!r} {what}", path=path, is_missing=is_missing)


def _with_access(fact: NodeFact, user: UserFacts) -> NodeFact:
    """Work the access of an imaginary or recorded user out from the mode; what was observed stands."""
    if fact.can_open is not None or fact.mode is None or user.uid is None:
        return fact
    if user.uid == 0 or fact.owner in (str(user.uid),):
        can_open = user.uid == 0 or fact.mode & 0o600 == 0o600
    elif fact.group in user.groups:
        can_open = fact.mode & 0o060 == 0o060
    else:
        can_open = fact.mode & 0o006 == 0o006
    return NodeFact(fact.mode, fact.owner, fact.group, fact.major, fact.minor, can_open, fact.reason)


def current_user() -> UserFacts:
    """Give the number and the group names of the user of this process."""
    if not hasattr(os, "getuid"):
        return UserFacts()
    import grp

    names = []
    for number in os.getgroups():
        try:
            names.append(grp.getgrgid(number).gr_name)
        except KeyError:
            names.append(str(number))
    return UserFacts(uid=os.getuid(), groups=tuple(sorted(names)))


def live_machine(*, timeout_seconds: float | None = 10.0) -> Machine:
    """Give the machine this process runs on.

    Questions are answered by probe children only; asking in this process says so.
    """
    return Machine(
        HostTree(),
        environ=dict(os.environ),
        kind=MachineKind.LIVE,
        answers={"*": NoAnswers("drivers are asked in the probe child only")},
        deadline=Deadline(timeout_seconds),
        user=current_user(),
    )
