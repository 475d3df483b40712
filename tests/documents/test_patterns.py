"""Tree patterns from XMLTABLE, and their evaluation beside two twins."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import pytest
from hypothesis import given

from penstock.documents import evaluation
from penstock.documents.document import Document, parse_document
from penstock.documents.evaluation import evaluate, matches, visible_rows
from penstock.documents.paths import parse_path
from penstock.documents.patterns import (
    Axis,
    PatternNode,
    TreePattern,
    canonical_pattern,
    number_of,
)
from penstock.documents.reference import all_matches
from penstock.documents.xmltable import ColumnPath, table_view
from penstock.errors import DocumentError, SqlError
from tests.documents.strategies import documents, patterns
from tests.documents.xpath_twin import plain_rows, xpath_rows

NEWS = parse_document(
    """<news><item lang="en"><company>ACME</company><by><author>Ada</author><author>Bob</author>
    </by><headline>On <b>top</b></headline><price>12.5</price></item>
    <item lang="fr"><company>Other</company><by><author>Eve</author></by><headline/></item>
    </news>"""
)


def rows_of(row_path: str, *columns: tuple[str, str]) -> list[tuple[str | bytes | None, ...]]:
    view = table_view(row_path, [ColumnPath(f"c{i}", t, p) for i, (t, p) in enumerate(columns)])
    return visible_rows(view.columns, evaluate(view.pattern, NEWS))


def test_columns_are_values_and_subtrees() -> None:
    rows = rows_of("//item[company = 'ACME']", ("VARCHAR", ".//author"), ("xml", "headline"))
    headline = b"<headline>On <b>top</b></headline>"
    assert rows == [("Ada", headline), ("Bob", headline)]


def test_a_branch_that_returns_nothing_only_has_to_exist() -> None:
    assert rows_of("//item[.//author]", ("VARCHAR", "company")) == [("ACME",), ("Other",)]


def test_columns_with_a_common_beginning_are_of_the_same_node() -> None:
    rows = rows_of("/news", ("VARCHAR", "item/company"), ("VARCHAR", "item/@lang"))
    assert rows == [("ACME", "en"), ("Other", "fr")]


@pytest.mark.parametrize(
    ("row_path", "expected"),
    [
        ("//item[price > 12]", ["ACME"]),
        ("//item[price >= 12.5 and by/author = 'Bob']", ["ACME"]),
        ("//item[price < 12]", []),
        ("//item[@lang != 'en']", ["Other"]),
        ("/news/item[attribute::lang = 'fr']", ["Other"]),
        ("/descendant::item[child::company[. = 'Other']]", ["Other"]),
        ("/item", []),
        ("//item[headline[. = '']]", ["Other"]),
    ],
)
def test_conditions(row_path: str, expected: list[str]) -> None:
    assert [row[0] for row in rows_of(row_path, ("VARCHAR", "company"))] == expected


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("/", "ends too early"),
        ("//", "ends too early"),
        ("//a/", "ends too early"),
        ("//*", "Wildcards"),
        ("//a/..", "parent axis"),
        ("//a | //b", "Unions"),
        ("//a[b or c]", "'or'"),
        ("//a[1]", "Positions"),
        ("//a[//b]", "begins at the document"),
        ("//ancestor::a", "The axis 'ancestor'"),
        ("//following-sibling::a", "The axis 'following-sibling'"),
        ("//teleport::a", "The axis 'teleport'"),
        ("//a[contains(b, 'x')]", r"The function contains\(\)"),
        ("//a/text()", r"The function text\(\)"),
        ("//a[not(b)]", r"The function not\(\)"),
        ("//p:a", "has a prefix"),
        ("//a[b = c]", "no constant"),
        ("//a[b < 'x']", "Texts cannot be compared"),
        ("//a[. = 1 and . = 2]", "two conditions"),
        ("//a[.]", "asks for nothing"),
        ("//a = 1", "'=' is not expected"),
        ("//a[b", "ends too early"),
        ("//a]", "']' is not expected"),
        ("//a#b", "'#' has no meaning"),
        ("//a[b=1]" * 2_000, "too long"),
        ("//a" + "[a" * 20 + "]" * 20, "nested too deeply"),
    ],
)
def test_what_a_pattern_cannot_express_is_refused_by_name(path: str, reason: str) -> None:
    with pytest.raises(SqlError, match=reason):
        parse_path(path)


@pytest.mark.parametrize(
    ("row_path", "columns", "reason"),
    [
        ("item", [("a", "TEXT", ".")], "does not begin at the document"),
        ("//item", [], "no columns"),
        ("//item", [("a", "TEXT", "//b")], "begins at the document"),
        ("//item", [("a", "TEXT", "b"), ("a", "TEXT", "c")], "declared twice"),
        ("//item", [("a", "XML", "@b")], "has no content"),
        ("//item", [("a", "TEXT", "@b/c")], "nothing below it"),
        ("//a" * 20, [("a", "TEXT", ".")], "too many nodes"),
    ],
)
def test_tables_that_are_no_view(
    row_path: str, columns: list[tuple[str, str, str]], reason: str
) -> None:
    with pytest.raises(SqlError, match=reason):
        table_view(row_path, [ColumnPath(*column) for column in columns])


def test_the_place_is_underlined() -> None:
    with pytest.raises(SqlError) as caught:
        parse_path("//item[ancestor::a]")
    assert str(caught.value).endswith("  //item[ancestor::a]\n         ^^^^^^^^")


def test_patterns_are_preorder_trees() -> None:
    node = PatternNode("a", -1)
    with pytest.raises(SqlError, match="at least one node"):
        TreePattern(())
    for parents in ([0], [-1, -1], [-1, 0, 0, 1], [-1, 2, 0]):
        with pytest.raises(ValueError, match="preorder"):
            TreePattern(tuple(PatternNode("a", parent) for parent in parents))
    assert TreePattern((node,)).labels == {"a"}


def test_equal_branches_are_merged_only_if_they_return_nothing() -> None:
    silent = table_view("//a[b/c][b/c]", [ColumnPath("x", "TEXT", ".")])
    assert str(silent.pattern) == "//a{val}[b[c]]"
    telling = TreePattern(
        (PatternNode("a", -1), PatternNode("b", 0, val=True), PatternNode("b", 0, val=True))
    )
    assert len(canonical_pattern(telling)[0]) == 3


def test_qualified_names() -> None:
    document = parse_document("<a xmlns='urn:a'><b/></a>")
    view = table_view("//Q{urn:a}a", [ColumnPath("b", "XML", "Q{urn:a}b")])
    assert len(evaluate(view.pattern, document)) == 1
    assert str(view.pattern) == "//Q{urn:a}a[Q{urn:a}b{cont}]"


@pytest.mark.parametrize(
    "text",
    ["1", " 2.5 ", "-3", ".5", "1.", "", "x", "1e3", "inf", "nan", "1_0", "+1", "0x1", "- 1"],
)
def test_numbers_are_those_of_xpath(text: str) -> None:
    expected = parse_document(f"<a>{text}</a>").root.xpath("number(.)")
    assert number_of(text) == pytest.approx(expected, nan_ok=True)


@given(patterns(), documents(depth=3))
def test_evaluation_equals_brute_force(pattern: TreePattern, document: Document) -> None:
    found = matches(pattern, document)
    assert set(found) == all_matches(pattern, document)
    assert len(found) == len(set(found))


@given(patterns(), documents())
def test_evaluation_equals_xpath(pattern: TreePattern, document: Document) -> None:
    """The nodes that the root can match are those that lxml finds."""
    path = str(pattern).replace("{val}", "").replace("{cont}", "")
    number_of_element = {
        element: number
        for number, element in reversed(list(enumerate(document.elements)))
        if not document.labels[number].startswith("@")
    }
    expected = {number_of_element[found] for found in document.root.getroottree().xpath(path)}
    assert {match[0] for match in matches(pattern, document)} == expected


@given(patterns(), documents(depth=3))
def test_rows_equal_those_of_xpath(pattern: TreePattern, document: Document) -> None:
    assert plain_rows(evaluate(pattern, document)) == xpath_rows(pattern, document)


@given(patterns(), documents(depth=3))
def test_sorting_siblings_keeps_matches(pattern: TreePattern, document: Document) -> None:
    again, places = canonical_pattern(pattern)
    assert places == tuple(range(len(pattern)))
    assert again == pattern


def test_results_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "MAX_RESULT_ROWS", 10)
    view = table_view("//a", [ColumnPath("b", "TEXT", "b"), ColumnPath("c", "TEXT", "c")])
    assert len(evaluate(view.pattern, parse_document("<a><b/><b/><c/><c/><c/><c/><c/></a>"))) == 10
    with pytest.raises(DocumentError, match="too many matches"):
        evaluate(view.pattern, parse_document("<a><b/><b/><c/><c/><c/><c/><c/><c/></a>"))


def test_axes_of_roots() -> None:
    document = parse_document("<a><a/></a>")
    assert matches(TreePattern((PatternNode("a", -1, Axis.CHILD),)), document) == [(0,)]
    assert matches(TreePattern((PatternNode("a", -1, Axis.DESCENDANT),)), document) == [(0,), (1,)]


def test_a_pattern_from_another_process_has_the_hash_of_this_one() -> None:
    made = (
        "import pickle, sys; from penstock.documents.patterns import *;"
        "sys.stdout.buffer.write(pickle.dumps(TreePattern((PatternNode('a', -1),))))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "12345"}
    sent = subprocess.run(
        [sys.executable, "-c", made], env=environment, capture_output=True, check=True
    )
    assert pickle.loads(sent.stdout) in {TreePattern((PatternNode("a", -1),))}
