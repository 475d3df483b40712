"""What views return of a document: all combinations of returned nodes, found together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.documents import extraction
from penstock.documents.document import Document, parse_document
from penstock.documents.extraction import Extraction, SharedSubtrees, TooManyRowsError
from penstock.documents.patterns import TreePattern
from penstock.documents.reference import all_matches
from penstock.documents.xmltable import ColumnPath, table_view
from penstock.errors import SqlError
from tests.documents.strategies import documents, patterns


@given(st.lists(patterns(), min_size=1, max_size=8), documents(depth=3))
def test_many_views_at_once_equal_brute_force(views: list[TreePattern], document: Document) -> None:
    """Also those that share subtrees: with other nodes returned, the same ones are others."""
    shared, together = SharedSubtrees(), Extraction(document)
    for view in views:
        found = together.rows(shared.of(view))
        matches = all_matches(view, document)
        assert found == sorted({tuple(one[i] for i in view.returned) for one in matches})


@given(patterns(), documents())
def test_ids_values_and_contents_of_returned_nodes(view: TreePattern, document: Document) -> None:
    """The number of a node finds it in the tree that lxml made."""
    together = Extraction(document)
    order = [
        node
        for element in document.root.iter()
        for node in [element, *((element, name) for name in sorted(element.attrib))]
    ]
    for nodes in together.rows(SharedSubtrees().of(view)):
        for position, number in zip(view.returned, nodes, strict=True):
            node, label = order[number], view.nodes[position].label
            if label.startswith("@"):
                element, name = node
                assert (name, element.get(name)) == (label[1:], document.value(number))
            else:
                assert (node.tag, node.xpath("string()")) == (label, document.value(number))
                again = parse_document(together.content(number))
                assert again.canonical.decode() == together.content(number)
                assert len(again) == document.ends[number] - number + 1


def test_equal_subtrees_are_evaluated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    accepts = Extraction._accepts

    def counting(self: Extraction, subtree: extraction.Subtree, number: int) -> bool:
        tried.append(number)
        return accepts(self, subtree, number)

    monkeypatch.setattr(Extraction, "_accepts", counting)
    shared = SharedSubtrees()
    together = Extraction(parse_document("<n>" + "<a><b>1</b></a>" * 5 + "</n>"))
    column = [ColumnPath("b", "VARCHAR", "b")]
    roots = [shared.of(table_view(path, column).pattern) for path in ("//a", "/n/a", "/n//a")]
    counts = []
    for root in roots:
        assert len(together.rows(root)) == 5
        counts.append(len(tried))
    # Five nodes a and five b for the first; then the root, and its children; then the root alone.
    assert counts == [10, 16, 17]


def test_too_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extraction, "MAX_RESULT_ROWS", 8)
    columns = [ColumnPath("a", "VARCHAR", "a"), ColumnPath("b", "VARCHAR", ".//a")]
    root = SharedSubtrees().of(table_view("//n", columns).pattern)
    with pytest.raises(TooManyRowsError):
        Extraction(parse_document("<n><a/><a/><a/></n>")).rows(root)
    assert len(Extraction(parse_document("<n><a/><a/></n>")).rows(root)) == 4


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/a" * 4_000, "too many nodes"),
        ("//a" + "[b" * 20 + "]" * 20, "nested too deeply"),
        ("//a[" + " and ".join(["b"] * 900) + "]", "too many nodes"),
        ("//" + "a" * 20_000, "too long"),
        ("//a[" + "(" * 5_000, "not expected"),
        ("//following::a", "axis 'following'"),
        ("//namespace::a", "axis 'namespace'"),
        (" " * 9_000, "path is empty"),
        ("//" + "a-" * 4_000 + "::b", "not supported"),
    ],
)
def test_hostile_paths_are_refused_by_name(path: str, reason: str) -> None:
    with pytest.raises(SqlError, match=reason):
        table_view(path, [ColumnPath("v", "VARCHAR", ".")])


def test_many_columns_are_refused_by_name() -> None:
    columns = [ColumnPath(f"c{i}", "VARCHAR", f"e{i}") for i in range(20_000)]
    with pytest.raises(SqlError, match="too many nodes"):
        table_view("//a", columns)
    with pytest.raises(SqlError, match="declared twice"):
        table_view("//a", [*columns[:3], columns[0]])
