"""Documents: what is refused, how nodes are numbered, and what the canonical form keeps."""

from __future__ import annotations

import pytest
from hypothesis import given

from penstock.documents.document import Document, parse_document
from penstock.errors import DocumentError, ExtraError
from penstock.xml_text import DocumentLimits
from tests.documents.strategies import documents

BOMB = (
    '<!DOCTYPE a [<!ENTITY x "ha"><!ENTITY y "&x;&x;&x;&x;"><!ENTITY z "&y;&y;&y;&y;">]><a>&z;</a>'
)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (BOMB, "document type declaration"),
        ('<!DOCTYPE a SYSTEM "http://example.org/a.dtd"><a/>', "document type declaration"),
        ('<?xml version="1.0"?>\n<!-- > --> <!doctype a><a/>', "document type declaration"),
        (b"\xef\xbb\xbf<!DOCTYPE a><a/>", "document type declaration"),
        ("<a>" * 10_000 + "</a>" * 10_000, "nested too deeply"),
        ("<a>" * 201 + "</a>" * 201, "nested too deeply"),
        (b"<a>" + b"x" * (100 << 20) + b"</a>", "too large"),
        ("<a>" + "<b/>" * 200_001 + "</a>", "too many tags"),
        ("<r>" + '<a b="" c=""/>' * 99_000 + "</r>", "too many nodes"),
        (f"<a {' '.join(f'a{i}=' + repr('') for i in range(101))}/>", "too many attributes"),
        (f"<a {' '.join(f'a{i}=' + repr('') for i in range(200_000))}/>", "too many attributes"),
        (b"<a>\xff</a>", "not valid UTF-8"),
        ("<a>\ud800</a>", "UTF-8 cannot express"),
        ('<?xml version="1.0" encoding="latin1"?><a/>', "declares the encoding 'latin1'"),
        ("<a><b></a>", "not well-formed"),
        ("<a>&nbsp;</a>", "not well-formed"),
        ("", "not well-formed"),
        ("plain", "not well-formed"),
        ("<a/><b/>", "not well-formed"),
    ],
)
def test_unsafe_and_broken_documents_are_refused_by_name(data: bytes | str, reason: str) -> None:
    with pytest.raises(DocumentError, match=reason):
        parse_document(data)


def test_limits_are_inclusive() -> None:
    limits = DocumentLimits(bytes=100, levels=2, nodes=3)
    assert len(parse_document('<a x="1"><b/></a>', limits)) == 3
    with pytest.raises(DocumentError, match="too many nodes"):
        parse_document('<a x="1"><b/><b/></a>', limits)
    with pytest.raises(DocumentError, match="nested too deeply"):
        parse_document("<a><b><c/></b></a>", limits)


def test_nodes_are_numbered_in_document_order_attributes_first_and_sorted() -> None:
    document = parse_document('<a z="1" b="2">x<c>y</c>z<d><c/></d></a>')
    assert list(document.labels) == ["a", "@b", "@z", "c", "d", "c"]
    assert list(document.parents) == [-1, 0, 0, 0, 0, 4]
    assert list(document.ends) == [5, 1, 2, 3, 5, 5]
    assert list(document.levels) == [0, 1, 1, 1, 1, 2]
    assert [document.value(node) for node in range(6)] == ["xyz", "2", "1", "y", "", ""]
    assert document.content(4) == b"<d><c></c></d>"


def test_what_does_not_matter_leaves_no_trace() -> None:
    plain = parse_document("<a b='1' c='2'>x&lt;y<d/></a>")
    odd = parse_document(
        "<?xml version='1.0'?><!-- a --><a  c='2'\n b='1'>x<!-- b --><?p?><![CDATA[<]]>y<d></d></a>"
    )
    assert odd.canonical == plain.canonical
    assert odd.text == plain.text


def test_namespaces_are_part_of_labels_and_contents() -> None:
    document = parse_document("<a xmlns='urn:a' xmlns:b='urn:b'><b:c b:d='1'/></a>")
    assert list(document.labels) == ["{urn:a}a", "{urn:b}c", "@{urn:b}d"]
    assert document.content(1) == b'<b:c xmlns:b="urn:b" b:d="1"></b:c>'


@given(documents())
def test_ids_tell_parents_and_ancestors(document: Document) -> None:
    for node in range(len(document)):
        above = set()
        at = document.parents[node]
        while at >= 0:
            above.add(at)
            at = document.parents[at]
        for other in range(len(document)):
            one, two = document.node_id(other), document.node_id(node)
            assert one.is_ancestor_of(two) == (other in above)
            assert one.is_parent_of(two) == (other == document.parents[node])


@given(documents())
def test_values_are_those_of_xpath_and_the_canonical_form_is_stable(document: Document) -> None:
    again = parse_document(document.canonical)
    assert again.canonical == document.canonical
    assert list(again.labels) == list(document.labels)
    for node, label in enumerate(document.labels):
        if not label.startswith("@"):
            assert document.value(node) == document.elements[node].xpath("string()")


@given(documents())
def test_a_subtree_is_numbered_like_the_document(document: Document) -> None:
    for node, label in enumerate(document.labels):
        if not label.startswith("@"):
            part = parse_document(document.content(node))
            assert list(part.labels) == list(document.labels[node : document.ends[node] + 1])


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_name: str) -> None:
        raise ImportError

    monkeypatch.setattr("penstock.xml_text.importlib.import_module", fail)
    with pytest.raises(ExtraError, match="lxml") as caught:
        parse_document("<a/>")
    assert caught.value.hint == "pip install 'penstock[views]'"
