"""XML as text: parsed safely within limits, and written canonically.

Nothing here fetches or expands anything: a document with a document type declaration is refused
before it is parsed, so entities, external DTDs and network access cannot occur.
"""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass
from typing import Any

from penstock.errors import DocumentError, ExtraError

ATTRIBUTE = "@"
"""The prefix of labels of attributes."""
_PROLOG = re.compile(rb"(?:\s+|<\?.*?\?>|<!--.*?-->)*", re.DOTALL)
_DECLARED_ENCODING = re.compile(rb"\A<\?xml[^>]*?encoding\s*=\s*[\"']([^\"']*)[\"']")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class DocumentLimits:
    """Maximum sizes of a document. All are checked before or during parsing."""

    bytes: int = 2 << 20
    """Together with the other limits it bounds the time until a refusal to about 100 ms."""
    levels: int = 200
    """Below the 256 of libxml2, so that our error, which names the limit, comes first."""
    tags: int = 200_000
    """Start and end tags."""
    nodes: int = 250_000
    """Elements and attributes."""
    attributes: int = 100
    """Per element. lxml lists them in quadratic time: 20,000 take a second."""


LIMITS = DocumentLimits()


def load_lxml() -> Any:
    """lxml.etree, which parses and serialises documents."""
    try:
        return importlib.import_module("lxml.etree")
    except ImportError as error:
        raise ExtraError("A document", "lxml", "views") from error


def parse_tree(data: bytes | str, limits: DocumentLimits = LIMITS) -> Any:
    """The root of a document that is within all limits, or a DocumentError that says what is wrong
    with it."""
    if isinstance(data, str):
        data = _encode(data)
    check_source(data, limits)
    root = _parse(data, limits)
    _check_tree(root, limits)
    return root


def parse_canonical(text: str) -> Any:
    """The root of a document that was checked before."""
    return _parse(text.encode(), LIMITS)


def canonical_text(data: str) -> str:
    """The stored form of a document; DocumentError if it is refused."""
    return canonical_bytes(parse_tree(data)).decode()


def canonical_bytes(element: Any) -> bytes:
    """Exclusive canonical XML: a subtree has the same bytes wherever it occurs."""
    etree = load_lxml()
    serialised: bytes = etree.tostring(element, method="c14n", exclusive=True, with_tail=False)
    return serialised


def check_source(data: bytes, limits: DocumentLimits = LIMITS) -> None:
    """Refuse what should not reach a parser."""
    if len(data) > limits.bytes:
        raise DocumentError(
            "The document is too large",
            detail=f"it has {len(data):,} bytes; at most {limits.bytes:,} are accepted",
            hint="publish it in parts",
        )
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DocumentError(
            "The document is not valid UTF-8", detail=f"at byte {error.start:,}: {error.reason}"
        ) from error
    declared = _DECLARED_ENCODING.match(data.removeprefix(_BOM))
    if declared and declared[1].decode().upper() not in ("UTF-8", "UTF8", "US-ASCII", "ASCII"):
        raise DocumentError(
            f"The document declares the encoding {declared[1].decode()!r}",
            hint="documents are UTF-8",
        )
    prolog = _PROLOG.match(data.removeprefix(_BOM))
    if data.removeprefix(_BOM)[prolog.end() if prolog else 0 :][:9].upper() == b"<!DOCTYPE":
        raise DocumentError(
            "The document has a document type declaration",
            detail="DTDs and entities are not read: they can name files, hosts and bombs",
            hint="leave out <!DOCTYPE ...>, and write characters instead of entities",
        )
    tags = data.count(b"<")
    if tags > limits.tags:
        raise DocumentError(
            "The document has too many tags",
            detail=f"it has about {tags:,}; at most {limits.tags:,} are accepted",
        )


def _encode(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise DocumentError(
            "The document has characters that UTF-8 cannot express", detail=str(error)
        ) from error


def _parse(data: bytes, limits: DocumentLimits) -> Any:
    etree = load_lxml()
    parser = etree.XMLParser(
        encoding="utf-8",
        resolve_entities=False,
        load_dtd=False,
        dtd_validation=False,
        no_network=True,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
        strip_cdata=True,
    )
    try:
        return etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        if "xcessive depth" in str(error):
            raise _too_deep(limits) from error
        raise DocumentError("The document is not well-formed XML", detail=str(error)) from error


def _check_tree(root: Any, limits: DocumentLimits) -> None:
    """Check counts computed by libxml2, before Python visits the nodes."""
    if root.xpath("count(//*) + count(//@*)") > limits.nodes:
        raise DocumentError(
            "The document has too many nodes",
            detail=f"at most {limits.nodes:,} elements and attributes are accepted",
        )
    if root.xpath(f"boolean(//*[@*[{limits.attributes + 1}]])"):
        raise DocumentError(
            "An element has too many attributes",
            detail=f"at most {limits.attributes} are accepted",
        )
    if root.xpath(f"boolean({'/*' * (limits.levels + 1)})"):
        raise _too_deep(limits)


def _too_deep(limits: DocumentLimits) -> DocumentError:
    return DocumentError(
        "The document is nested too deeply",
        detail=f"at most {limits.levels} levels are accepted",
    )
