"""One contract for all languages of views, and what is particular to each."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.catalog import IntegerType
from penstock.catalog.relations import Column, Relation
from penstock.documents.document import Document, parse_document
from penstock.documents.patterns import Axis, Operator, PatternNode, Predicate, TreePattern
from penstock.documents.reference import all_matches
from penstock.errors import SqlError
from penstock.predicates import boxes
from penstock.predicates.intervals import Interval, above, below
from penstock.views.box_language import BoxLanguage, BoxView, join_views, select_events
from penstock.views.embedding_graph import (
    EmbeddingGraph,
    embedding_graph,
    feedback_edges,
    mutual_edges,
    remove_cycles,
)
from penstock.views.language import covers
from penstock.views.statistics import DocumentStatistics
from penstock.views.tree_language import TreeLanguage, embedding_with, images
from tests.documents.strategies import documents, patterns

WHOLE = IntegerType()
RELATION = Relation("news", tuple(Column(name, WHOLE) for name in "abcd"), (0,))
ROWS = list(product((1, 2), (1, 2, 3), (1, 2, None), (1, 2)))


@st.composite
def box_views(draw: st.DrawFn) -> BoxView:
    limits = {}
    for column in draw(st.sets(st.integers(1, 3), max_size=3)):
        low, high = sorted(draw(st.tuples(st.integers(1, 3), st.integers(1, 3))))
        limits[column] = Interval(below(low), above(high))
    columns = draw(st.sets(st.integers(0, 3), max_size=3))
    return BoxView(boxes.box(limits), tuple(sorted(columns)))


LANGUAGES = [
    pytest.param(TreeLanguage(), patterns(most=5), id="trees"),
    pytest.param(TreeLanguage(navigation=False), patterns(most=5), id="published trees"),
    pytest.param(BoxLanguage(RELATION, ROWS), box_views(), id="boxes"),
]


@pytest.mark.parametrize(("language", "views"), LANGUAGES)
class TestContract:
    @given(data=st.data())
    def test_a_view_embeds_in_itself_and_covers_itself(
        self, language: Any, views: Any, data: st.DataObject
    ) -> None:
        view = data.draw(views)
        assert covers([language.embeds(view, view)], language.demands(view))

    @given(data=st.data())
    def test_labels_of_an_embedded_view_are_among_the_query_s(
        self, language: Any, views: Any, data: st.DataObject
    ) -> None:
        view, query = data.draw(views), data.draw(views)
        mask = language.embeds(view, query)
        assert mask & ~language.demands(query) == 0
        if mask:
            assert language.labels(view) <= language.labels(query)

    @given(data=st.data())
    def test_embedding_is_transitive(self, language: Any, views: Any, data: st.DataObject) -> None:
        one, two, three = (data.draw(views) for _ in range(3))
        if language.embeds(one, two) and language.embeds(two, three):
            assert language.embeds(one, three)

    @given(data=st.data())
    def test_cost_is_positive(self, language: Any, views: Any, data: st.DataObject) -> None:
        volume = language.cost(data.draw(views))
        assert volume.rows > 0
        assert volume.bytes > 0

    @given(data=st.data())
    def test_the_graph_has_exactly_the_pairs_that_embed(
        self, language: Any, views: Any, data: st.DataObject
    ) -> None:
        some = data.draw(st.lists(views, max_size=8))
        graph = embedding_graph(some, language)
        expected = {
            (one, two): language.embeds(some[one], some[two])
            for one, two in product(range(len(some)), repeat=2)
            if one != two and language.embeds(some[one], some[two])
        }
        edges = list(zip(graph.feeders.tolist(), graph.queries().tolist(), strict=True))
        assert dict(zip(edges, graph.coverage.tolist(), strict=True)) == expected
        assert graph.is_mutual.tolist() == [(two, one) in expected for one, two in edges]

    @given(data=st.data())
    def test_cycles_are_removed_and_no_more_than_needed(
        self, language: Any, views: Any, data: st.DataObject
    ) -> None:
        some = data.draw(st.lists(views, max_size=8))
        graph = embedding_graph(some + some[:3], language)
        plain = remove_cycles(graph)
        assert is_acyclic(plain)
        assert graph.edges - plain.edges == int(graph.is_mutual.sum()) // 2
        published = feedback_edges(graph)
        assert is_acyclic(graph.without(published))
        assert int(published.sum()) >= graph.edges - plain.edges


def is_acyclic(graph: EmbeddingGraph) -> bool:
    left = set(range(graph.views))
    feeders = [
        set(graph.feeders[graph.starts[q] : graph.starts[q + 1]].tolist())
        for q in range(graph.views)
    ]
    while left:
        free = {query for query in left if not feeders[query] & left}
        if not free:
            return False
        left -= free
    return True


def test_the_richer_of_equivalent_views_feeds() -> None:
    node = PatternNode("a", -1)
    poor, rich = TreePattern((node,)), TreePattern((PatternNode("a", -1, val=True),))
    graph = embedding_graph([poor, rich], TreeLanguage())
    removed = mutual_edges(graph, np.array([1, 2]))
    assert graph.feeders[~removed].tolist() == [1]


@given(patterns(most=4), patterns(most=5))
def test_images_are_those_of_all_embeddings(view: TreePattern, query: TreePattern) -> None:
    """Against every mapping of nodes to nodes, tried one by one."""
    found = [
        mapping
        for mapping in product(range(len(query)), repeat=len(view))
        if all(fits(view, query, mapping, node) for node in range(len(view)))
    ]
    expected = None
    if found:
        expected = [sum(1 << p for p in {m[node] for m in found}) for node in range(len(view))]
    assert images(view, query) == expected
    for node, place in product(range(len(view)), range(len(query))):
        chosen = embedding_with(view, query, node, place)
        assert (chosen in found) == any(mapping[node] == place for mapping in found)
        assert chosen is None or chosen[node] == place


def fits(view: TreePattern, query: TreePattern, mapping: tuple[int, ...], node: int) -> bool:
    own, other = view.nodes[node], query.nodes[mapping[node]]
    if own.label != other.label or own.predicate not in (None, other.predicate):
        return False
    if own.parent < 0:
        return own.axis is Axis.DESCENDANT or (mapping[node] == 0 and other.axis is Axis.CHILD)
    if own.axis is Axis.CHILD:
        return other.axis is Axis.CHILD and other.parent == mapping[own.parent]
    while other.parent >= 0:
        if other.parent == mapping[own.parent]:
            return True
        other = query.nodes[other.parent]
    return False


@given(patterns(most=3), patterns(most=4), documents(depth=3))
def test_every_match_of_a_query_contains_one_of_an_embedded_view(
    view: TreePattern, query: TreePattern, document: Document
) -> None:
    if TreeLanguage().embeds(view, query) and all_matches(query, document):
        assert all_matches(view, document)


def test_a_predicate_that_the_query_lacks_does_not_embed() -> None:
    """The published wording allows it, and would lose matches."""
    one = Predicate(Operator.EQ, "1")
    strict = TreePattern((PatternNode("a", -1), PatternNode("b", 0, predicate=one)))
    loose = TreePattern((PatternNode("a", -1), PatternNode("b", 0)))
    assert not TreeLanguage().embeds(strict, loose)
    assert TreeLanguage().embeds(loose, strict)
    assert not covers([TreeLanguage().embeds(loose, strict)], TreeLanguage().demands(strict))


def test_a_content_covers_what_is_below_it_by_navigation_only() -> None:
    content = TreePattern((PatternNode("a", -1, cont=True),))
    query = TreePattern((PatternNode("a", -1), PatternNode("b", 0, val=True)))
    navigating, published = TreeLanguage(), TreeLanguage(navigation=False)
    assert covers([navigating.embeds(content, query)], navigating.demands(query))
    assert not covers([published.embeds(content, query)], published.demands(query))


@given(st.lists(box_views(), min_size=1, max_size=4), box_views())
def test_joined_boxes_equal_direct_selection(views: list[BoxView], query: BoxView) -> None:
    language = BoxLanguage(RELATION)
    events = dict(enumerate(ROWS))
    used = [view for view in views if language.embeds(view, query)]
    if used and covers([language.embeds(v, query) for v in used], language.demands(query)):
        inputs = [(view, select_events(view, RELATION, events)) for view in used]
        expected = select_events(query, RELATION, events)
        assert join_views(query, RELATION, inputs) == expected


def test_boxes_have_a_limit() -> None:
    with pytest.raises(SqlError, match="too many columns"):
        BoxView((), tuple(range(64)))


def test_volumes_are_measured() -> None:
    document = parse_document("<a><b>12</b><b>3</b><c><b/></c></a>")
    statistics = DocumentStatistics.of([document])
    child = TreePattern((PatternNode("a", -1), PatternNode("b", 0)))
    deep = TreePattern((PatternNode("a", -1), PatternNode("b", 0, Axis.DESCENDANT, val=True)))
    assert statistics.volume(child) == (2.0, 32.0)
    assert statistics.volume(deep) == (3.0, 51.0)
    share = statistics.share("b", Predicate(Operator.EQ, "3"))
    assert share == 1.5 / 4
