"""Rewritings: both gears find the same, and every one of them gives exactly the view's result."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.documents.document import Document, parse_document
from penstock.documents.evaluation import evaluate
from penstock.documents.patterns import Axis, Operator, PatternNode, Predicate, TreePattern
from penstock.documents.reference import all_matches
from penstock.errors import PlanError
from penstock.lab.workloads import xmark
from penstock.views.embedding_graph import EmbeddingGraph, remove_cycles, tree_embedding_graph
from penstock.views.language import covers
from penstock.views.packed_patterns import pack_patterns
from penstock.views.rewriting_kernel import CoverLimits
from penstock.views.rewriting_plan import rewriting_plan
from penstock.views.rewriting_steps import Navigate, StructuralJoin
from penstock.views.rewritings import (
    TREE_NODE_BITS,
    RewritabilityGraph,
    covers_of,
    published_limits,
    rewritability_graph,
    spreading_limits,
)
from penstock.views.tree_language import TreeLanguage
from tests.documents.strategies import documents, patterns
from tests.documents.xpath_twin import plain_rows, xpath_rows
from tests.examples import examples


def built(views: list[TreePattern], navigation: bool = True) -> EmbeddingGraph:
    return remove_cycles(tree_embedding_graph(pack_patterns(views), navigation=navigation))


def rewritings_of(graph: RewritabilityGraph, view: int) -> list[tuple[int, ...]]:
    return [graph.inputs_of(r) for r in range(graph.starts[view], graph.starts[view + 1])]


def candidates_of(graph: EmbeddingGraph, view: int) -> list[tuple[int, int]]:
    edges = slice(graph.starts[view], graph.starts[view + 1])
    return list(zip(graph.feeders[edges].tolist(), graph.coverage[edges].tolist(), strict=True))


LIMITS = [
    published_limits(30),
    CoverLimits(5, 2, 50, False, TREE_NODE_BITS),
    CoverLimits(1000, 1000, 20, False, TREE_NODE_BITS),
]


@pytest.mark.parametrize("limits", LIMITS)
def test_both_gears_find_the_same_in_the_same_order(limits: CoverLimits) -> None:
    graph = built(xmark.unique_views(400, seed=2))
    fast = rewritability_graph(graph, limits)
    assert fast.rewritings > 100
    for view in range(graph.views):
        plain = list(covers_of(candidates_of(graph, view), int(graph.demands[view]), limits))
        if not any(True for _ in candidates_of(graph, view)):
            assert plain == []
        order = {feeder: place for place, (feeder, _) in enumerate(candidates_of(graph, view))}
        found = [tuple(sorted(one, key=order.__getitem__)) for one in rewritings_of(fast, view)]
        assert found == plain


@pytest.mark.parametrize("limits", [published_limits(10), spreading_limits(10)])
def test_rewritings_are_minimal_different_and_cover(limits: CoverLimits) -> None:
    graph = built(xmark.unique_views(400, seed=2))
    found = rewritability_graph(graph, limits)
    assert int(found.is_rewritable.sum()) > 100
    for view in range(graph.views):
        masks = dict(candidates_of(graph, view))
        demands = int(graph.demands[view])
        own = [frozenset(one) for one in rewritings_of(found, view)]
        assert len(own) == len(set(own)) <= limits.rewritings
        for one in own:
            assert covers([masks[feeder] for feeder in one], demands)
            for left_out in one if len(one) > 1 else ():
                assert not covers([masks[f] for f in one if f != left_out], demands)
        coverable = covers(masks.values(), demands) and bool(masks)
        assert bool(own) == coverable


def test_spreading_uses_more_feeders() -> None:
    graph = built(xmark.unique_views(1000, seed=2))
    published = rewritability_graph(graph, published_limits(3))
    spread = rewritability_graph(graph, spreading_limits(3))
    assert len(set(spread.inputs.tolist())) > len(set(published.inputs.tolist()))


def test_interest_is_what_a_view_adds() -> None:
    """The example of section 4.3: //a{cont}/b{cont} by views that cover three attributes each."""
    a, b = PatternNode("a", -1, Axis.DESCENDANT), PatternNode("b", 0)
    query = TreePattern((replace(a, cont=True), replace(b, cont=True)))
    u1, u2 = TreePattern((a, replace(b, cont=True))), TreePattern((replace(a, cont=True), b))
    language = TreeLanguage(navigation=False)
    first, second = (language.embeds(one, query) for one in (u1, u2))
    assert (first.bit_count(), (second & ~first).bit_count()) == (3, 1)
    candidates = [(0, language.embeds(TreePattern((a,)), query)), (1, first), (2, second)]
    assert next(covers_of(candidates, language.demands(query), published_limits())) == (1, 2)


def test_ties_go_to_the_view_that_covers_more_nodes() -> None:
    """As published: two attributes of two nodes before two of one; then the first."""
    one_node, two_nodes, other = 0b1 | 0b1 << 16, 0b11, 0b10 | 0b10 << 16
    demands = 0b11 | 0b11 << 16
    candidates = [(7, one_node), (8, two_nodes), (9, other), (6, 0b11 << 16)]
    assert next(covers_of(candidates, demands, published_limits())) == (8, 6)


def test_rewritings_come_on_demand() -> None:
    candidates = [(number, 1 << (number % 40)) for number in range(80)]
    (first,) = islice(covers_of([(7, 3), *candidates], 3, published_limits()), 1)
    assert first == (7,)


@settings(max_examples=examples(400))
@given(
    st.lists(patterns(most=4), max_size=4),
    patterns(most=5, odds=2),
    documents(depth=3),
    st.booleans(),
)
def test_every_rewriting_equals_the_view(
    views: list[TreePattern], query: TreePattern, document: Document, by_value: bool
) -> None:
    language = TreeLanguage()
    parts = [*views, *_parts_of(query, by_value=by_value)]
    candidates = [(n, language.embeds(one, query)) for n, one in enumerate(parts)]
    candidates = [(number, mask) for number, mask in candidates if mask]
    expected = evaluate(query, document)
    for cover in covers_of(candidates, language.demands(query), published_limits(8)):
        used = [parts[number] for number in cover]
        plan = rewriting_plan(query, used)
        assert plan.run([evaluate(view, document) for view in used]) == expected
    brute_force = sorted(all_matches(query, document))
    assert [tuple(cell.id.pre for cell in row) for row in expected] == brute_force


def _parts_of(query: TreePattern, *, by_value: bool) -> list[TreePattern]:
    """Paths from the root to each node, with what the node returns: they always cover a query.

    A node's predicate is in its path, or can be tested there on the value.
    """
    found = []
    for node, own in enumerate(query.nodes):
        path = [node]
        while query.nodes[path[0]].parent >= 0:
            path.insert(0, query.nodes[path[0]].parent)
        nodes = [
            PatternNode(query.nodes[old].label, place - 1, query.nodes[old].axis)
            for place, old in enumerate(path)
        ]
        nodes[-1] = replace(
            nodes[-1],
            predicate=None if by_value else own.predicate,
            val=own.val or (by_value and own.predicate is not None),
            cont=own.cont,
        )
        found.append(TreePattern(tuple(nodes)))
    return found


@pytest.mark.parametrize("navigation", [False, True])
def test_rewritings_over_auctions_equal_the_views(navigation: bool) -> None:
    views = xmark.unique_views(500, seed=6)
    found = rewritability_graph(built(views, navigation), spreading_limits(4))
    texts = xmark.documents(2, seed=8, parameters=xmark.DocumentParameters(repeats=1.2))
    checked = 0
    for text in texts:
        document = parse_document(text)
        for view in range(0, len(views), 4):
            expected = evaluate(views[view], document)
            for inputs in rewritings_of(found, view):
                plan = rewriting_plan(views[view], [views[one] for one in inputs])
                assert plan.run([evaluate(views[one], document) for one in inputs]) == expected
                checked += bool(expected)
    assert checked > 10


@pytest.mark.slow
@settings(max_examples=examples(15))
@given(st.integers(0, 10**6), st.booleans(), st.booleans())
def test_every_rewriting_over_random_auctions_equals_xpath(
    seed: int, navigation: bool, published: bool
) -> None:
    """Views of a part of the site, dense enough to rewrite each other, over drawn documents."""
    views = xmark.unique_views(120, seed, xmark.ViewParameters(predicate=0.3, within=("people",)))
    limits = published_limits(4) if published else spreading_limits(4)
    found = rewritability_graph(built(views, navigation), limits)
    assert found.rewritings > 50
    parameters = xmark.DocumentParameters(repeats=1.5)
    document = parse_document(next(xmark.documents(1, seed, parameters)))
    for view in range(0, len(views), 3):
        expected = xpath_rows(views[view], document)
        for inputs in rewritings_of(found, view):
            used = [views[one] for one in inputs]
            rows = rewriting_plan(views[view], used).run([evaluate(one, document) for one in used])
            assert plain_rows(rows) == expected


def test_predicates_are_tested_on_values_and_contents() -> None:
    document = parse_document("<a><b>1</b><b>2</b></a>")
    one = Predicate(Operator.EQ, "1")
    query = TreePattern((PatternNode("a", -1), PatternNode("b", 0, predicate=one)))
    for known in (PatternNode("b", 0, val=True), PatternNode("b", 0, cont=True)):
        view = TreePattern((PatternNode("a", -1), known))
        plan = rewriting_plan(query, [view])
        assert len(plan.run([evaluate(view, document)])) == 1
        assert plan.explain()[-1] == "select b#1 by its value"


def test_plans_join_by_structure_and_navigate() -> None:
    a, b = PatternNode("a", -1, Axis.DESCENDANT), PatternNode("b", -1, Axis.DESCENDANT, val=True)
    query = TreePattern((a, PatternNode("b", 0, Axis.DESCENDANT, val=True)))
    plan = rewriting_plan(query, [TreePattern((a,)), TreePattern((b,))])
    assert any(isinstance(step, StructuralJoin) for step in plan.steps)
    assert plan.explain()[1] == "join //b{val} where b#1 is below a#0"
    content = TreePattern((PatternNode("a", -1, Axis.DESCENDANT, cont=True),))
    plan = rewriting_plan(query, [content])
    assert [type(step) for step in plan.steps][-2:] == [Navigate, type(plan.steps[-1])]
    assert plan.explain()[-2] == "navigate below a#0"


def test_views_that_do_not_cover_are_refused() -> None:
    query = TreePattern((PatternNode("a", -1, val=True),))
    with pytest.raises(PlanError, match="do not cover"):
        rewriting_plan(query, [TreePattern((PatternNode("a", -1),))])
    with pytest.raises(PlanError, match="does not embed"):
        rewriting_plan(query, [TreePattern((PatternNode("b", -1),))])
