"""Reading documents that other tools wrote. They are untrusted: sizes are limited, entities refused, errors one sentence."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from xml.etree import ElementTree
from xml.parsers import expat

from anyaccel.errors import AccelError

__all__ = ["ForeignFormatError", "parse_xml", "read_document", "read_text_document"]

MAX_BYTES = 64 * 1024 * 1024
MAX_DEPTH = 200
MAX_ELEMENTS = 500_000


class ForeignFormatError(AccelError):
    """A document of another tool is malformed, unsafe or too large."""

    code = "foreign-format"


def read_document(path: Path) -> bytes:
    """Give a document's bytes, unpacked when the name ends in `.gz`.

    Raises: ForeignFormatError when it cannot be read or is larger than 64 MiB.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
            if path.suffix == ".gz":
                content = _unpacked(content)
    except OSError as error:
        raise ForeignFormatError(f"document {path.name!r} cannot be read: {error.strerror or error}") from error
    except (EOFError, zlib.error) as error:
        raise ForeignFormatError(f"document {path.name!r} is no gzip file: {error}") from error
    if len(content) > MAX_BYTES:
        raise ForeignFormatError(f"document {path.name!r} is larger than {MAX_BYTES >> 20} MiB")
    return content


def _unpacked(content: bytes) -> bytes:
    import io

    with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
        return file.read(MAX_BYTES + 1)


def read_text_document(path: Path) -> str:
    """Give a document's text; bytes that are no UTF-8 are replaced."""
    return read_document(path).decode("utf-8", "replace")


def parse_xml(document: bytes | str) -> ElementTree.Element:
    """Parse XML into elements, refusing everything that could make a small document large or reach another file.

    The standard library's tree builder is driven by its own expat parser here, because that parser tells of entity
    declarations and an ElementTree parser does not: with none declared there is nothing to expand and nothing external to
    fetch, so a further package would add no safety. A DOCTYPE that only names a DTD stays allowed (hwloc and nvidia-smi
    write one); expat never loads it.
    Raises: ForeignFormatError.
    """
    content = document.encode() if isinstance(document, str) else document
    if len(content) > MAX_BYTES:
        raise ForeignFormatError(f"XML document is larger than {MAX_BYTES >> 20} MiB")
    builder = _LimitedBuilder()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    parser.EntityDeclHandler = _refuse_entity
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise ForeignFormatError(f"document is no well-formed XML: {error}") from error
    return builder.close()


def _refuse_entity(name: str, *_rest: object) -> None:
    raise ForeignFormatError(f"XML document declares the entity {name!r}, which is not allowed")


class _LimitedBuilder:
    """Build elements, counting them."""

    def __init__(self) -> None:
        self._builder = ElementTree.TreeBuilder()
        self._depth = 0
        self._count = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        self._count += 1
        if self._depth > MAX_DEPTH or self._count > MAX_ELEMENTS:
            raise ForeignFormatError(
                f"XML document is too large at {tag!r} (limits: depth {MAX_DEPTH}, {MAX_ELEMENTS} elements)"
            )
        self._builder.start(tag, attributes)

    def end(self, tag: str) -> None:
        self._depth -= 1
        self._builder.end(tag)

    def data(self, text: str) -> None:
        self._builder.data(text)

    def close(self) -> ElementTree.Element:
        return self._builder.close()
