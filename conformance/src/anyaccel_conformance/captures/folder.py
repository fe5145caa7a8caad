"""Finding the machines in a folder of captures: every file is known by its content, and files of one machine go together."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from anyaccel.errors import AccelError
from anyaccel_conformance.captures.archives import Archive, CaptureError, read_archive
from anyaccel_conformance.captures.card_archives import card_vendors, compare_cards, is_card_archive
from anyaccel_conformance.captures.claims import Claim, Comparison, skipped
from anyaccel_conformance.captures.hwloc_archives import compare_with_console, compare_with_xml
from anyaccel_conformance.captures.hwloc_documents import compare_hwloc_document
from anyaccel_conformance.captures.integrity import MANIFEST, compare_manifest
from anyaccel_conformance.captures.kfd_archives import compare_kfd, is_kfd_archive
from anyaccel_conformance.captures.library_topologies import compare_library_topology
from anyaccel_conformance.captures.looking import Looker
from anyaccel_conformance.captures.matrices import compare_rocm_matrix, compare_topo_matrix
from anyaccel_conformance.captures.nvidia_tools import compare_nvidia_smi, compare_nvlink_status
from anyaccel_conformance.captures.rocm_tools import compare_rocm_json
from anyaccel_conformance.captures.texts import compare_lspci, compare_udev
from anyaccel_conformance.readers.foreign import ForeignFormatError, read_text_document

__all__ = ["REQUIRED_FAMILIES", "compare_folder"]

REQUIRED_FAMILIES = ("amd", "nvidia")
"""Plugins without which an archive cannot be judged."""

_ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
_VENDORS = {0x1002: "amd", 0x10DE: "nvidia"}
_SAMPLE = 20_000

_KINDS: Sequence[tuple[str, str]] = (
    ("hwloc", r"<topology[\s>]"),
    ("library", r"<system[\s>]"),
    ("nvidia-smi", r"<nvidia_smi_log>"),
    ("console", r"\AMachine .*\n(?:.*\n)*?\s+(?:NUMANode|Package)"),
    ("udev", r"(?m)^P: /devices/"),
    ("nvlink", r"(?m)^GPU [0-9]+: .*\(UUID: GPU-.*\n\s+Link 0:"),
    ("rocm-topo", r"Link Type between two GPUs"),
    ("lspci", r"(?m)^(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7] [A-Z]"),
    ("topo", r"(?m)^\s*GPU0\s+(?:GPU1|NIC0|mlx|CPU).*\n\s*GPU0\s+X\s"),
    ("rocm-json", r'\A\s*\{\s*"card[0-9]+"\s*:\s*\{'),
)
"""What each kind of text is known by; the first that fits stands."""

_REASONS: Sequence[tuple[str, str]] = (
    (r"(?:^|/)README\.md$", ""),
    (rf"(?:^|/){re.escape(MANIFEST)}$", ""),
    (r"(?:^|/)(?:intel|tpu|neuron|gaudi|ascend|furiosa)/", "no plugin of this family reads it yet"),
    (r"\.log$", "a log of health and events: it states no count, address, node, link or partition"),
    (r"nvml-profiles/", "a vendor's model for a simulator, not an answer of a machine"),
    (r"amdgpu_firmware_info$", "firmware versions are no part of an inventory"),
    (r"\.ids$", "a table of names, no machine"),
    (r"(?:^|/)cluster/", "it describes the nodes of a cluster; an inventory is one machine"),
)
"""Why a file is left out, by name; without words it is not even named."""


@dataclass(frozen=True)
class _File:
    """One file of the folder. Args: name: relative to the folder. kind: of `_KINDS`, `archive`, or None = not known."""

    path: Path
    name: str
    kind: str | None

    @property
    def stem(self) -> str:
        """The name of the file without its endings."""
        return re.sub(r"\.(?:tar\.\w+|tgz|tar|xml\.gz|xml|txt\.gz|txt|console|json)$", "", self.path.name)


def compare_folder(folder: Path, looker: Looker) -> Iterator[Comparison]:
    """Compare every machine below a folder, one by one.

    Archives must be compared: what keeps one from it is a failure. Everything else may be skipped with a reason.
    """
    manifest = compare_manifest(folder)
    if manifest is not None:
        yield manifest
    files = [_file(path, folder) for path in sorted(folder.rglob("*")) if path.is_file()]
    used: set[Path] = set()
    for file in files:
        if file.kind == "archive":
            beside = [other for other in files if other.path.parent == file.path.parent]
            documents = list(_documents_of(file, beside))
            used |= {file.path, *(document.path for document in documents)}
            yield _compare_archive(file, documents, looker)
    for file in files:
        if file.path not in used:
            beside = [other for other in files if other.path.parent == file.path.parent]
            yield from _compare_file(file, beside, looker)


def _file(path: Path, folder: Path) -> _File:
    name = path.relative_to(folder).as_posix()
    return _File(path, name, "archive" if path.name.endswith(_ARCHIVES) else _kind_of(path))


def _kind_of(path: Path) -> str | None:
    try:
        sample = read_text_document(path)[:_SAMPLE]
    except ForeignFormatError:
        return None
    return next((kind for kind, pattern in _KINDS if re.search(pattern, sample)), None)


def _documents_of(archive: _File, beside: Iterable[_File]) -> Iterator[_File]:
    """Give what another tool made of an archive: a document of the same name, or the only ones in a folder of its own."""
    documents = [file for file in beside if file.kind in ("hwloc", "console")]
    same = [file for file in documents if file.stem == archive.stem]
    alone = sum(file.kind == "archive" for file in beside) == 1
    named = [file for file in documents if file.stem.startswith(("expected", "hwloc"))]
    yield from same or (named if alone else ())


def _compare_archive(file: _File, documents: Sequence[_File], looker: Looker) -> Comparison:
    name = file.path.parent.name if file.stem.startswith(("sysfs", "kfd")) else file.stem
    where = f"{Path(file.name).parent.as_posix()}" if name == file.path.parent.name else file.name
    try:
        archive = read_archive(file.path)
        family = _family(archive)
        missing = [key for key in REQUIRED_FAMILIES if not looker.knows(key)]
        if missing and family != "other":
            return skipped(where, f"plugin {' and '.join(missing)} is not loaded", is_required=True)
        claims = tuple(_archive_claims(archive, where, documents, looker, family))
    except AccelError as error:
        return skipped(where, error.message, is_required=True)
    reason = "it holds no display card and no KFD topology, and no hwloc result stands beside it"
    return Comparison(where, claims, reason, is_required=True)


def _family(archive: Archive) -> str | None:
    """Give the family of an archive of display cards, `other` for one of no family here, None for other archives."""
    if not is_card_archive(archive):
        return None
    families = {_VENDORS.get(vendor, "other") for vendor in card_vendors(archive)}
    return families.pop() if len(families) == 1 else "other"


def _archive_claims(
    archive: Archive, name: str, documents: Iterable[_File], looker: Looker, family: str | None
) -> Iterator[Claim]:
    if family is not None:
        yield from compare_cards(archive, name, looker, None if family == "other" else family)
    if is_kfd_archive(archive):
        yield from compare_kfd(archive, name, looker)
    for document in documents:
        compare = compare_with_xml if document.kind == "hwloc" else compare_with_console
        yield from compare(archive, document.path, name, looker)


def _compare_file(file: _File, beside: Sequence[_File], looker: Looker) -> Iterator[Comparison]:
    compare = _comparer(file, beside, looker)
    if compare is None:
        reason = _reason(file.name)
        if reason:
            yield skipped(file.name, reason)
        return
    try:
        yield Comparison(file.name, tuple(compare()), "nothing in it can be compared")
    except ForeignFormatError as error:
        yield Comparison(file.name, (Claim("readable", "the file", "a document of its kind", error.message),))
    except CaptureError as error:
        yield skipped(file.name, error.message)


def _reason(name: str) -> str:
    known = (reason for pattern, reason in _REASONS if re.search(pattern, name))
    return next(known, "its format is none of those compared here")


def _comparer(file: _File, beside: Sequence[_File], looker: Looker) -> Callable[[], Iterable[Claim]] | None:
    """Give what compares a file, None when nothing does."""
    lspci = next((other.path for other in beside if other.kind == "lspci"), None)
    table: Mapping[str, Callable[[], Iterable[Claim]]] = {
        "hwloc": lambda: compare_hwloc_document(file.path, file.name, looker),
        "library": lambda: compare_library_topology(file.path, file.name, looker, _library_family(file.path)),
        "nvidia-smi": lambda: compare_nvidia_smi(file.path, file.name, looker),
        "udev": lambda: compare_udev(file.path, file.name, looker),
        "lspci": lambda: compare_lspci(file.path, file.name, looker),
        "rocm-json": lambda: compare_rocm_json(file.path, file.name, looker),
        "rocm-topo": lambda: compare_rocm_matrix(file.path, file.name, looker),
        "topo": lambda: compare_topo_matrix(file.path),
    }
    if file.kind == "nvlink" and lspci is not None:
        return lambda: compare_nvlink_status(file.path, lspci, file.name, looker)
    return table.get(file.kind or "")


def _library_family(path: Path) -> str:
    """Tell whose GPUs a topology file describes: AMD's library names graphics targets and vendor 0x1002."""
    text = read_text_document(path)
    return "amd" if re.search(r'gcn="|vendor="0x1002"|<xgmi', text) else "nvidia"
