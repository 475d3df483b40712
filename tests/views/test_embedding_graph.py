"""Kernels of the embedding graph against the plain gear, and subset search two ways."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.documents.patterns import PatternNode, TreePattern
from penstock.lab.workloads import xmark
from penstock.views import embedding_graph as graphs
from penstock.views.embedding_graph import EmbeddingGraph, embedding_graph, tree_embedding_graph
from penstock.views.label_sets import LabelBuckets, SetTrie
from penstock.views.packed_patterns import pack_patterns
from penstock.views.tree_language import TreeLanguage
from tests.documents.strategies import patterns


def edges_of(graph: EmbeddingGraph) -> dict[tuple[int, int], tuple[int, bool]]:
    pairs = zip(graph.feeders.tolist(), graph.queries().tolist(), strict=True)
    masks = zip(graph.coverage.tolist(), graph.is_mutual.tolist(), strict=True)
    return dict(zip(pairs, masks, strict=True))


def assert_same(views: list[TreePattern], navigation: bool) -> EmbeddingGraph:
    language = TreeLanguage(navigation=navigation)
    plain = embedding_graph(views, language)
    fast = tree_embedding_graph(pack_patterns(views), navigation=navigation)
    assert edges_of(fast) == edges_of(plain)
    assert fast.demands.tolist() == plain.demands.tolist()
    return fast


@given(st.lists(patterns(most=7), max_size=12), st.booleans())
def test_both_gears_give_the_same_graph(views: list[TreePattern], navigation: bool) -> None:
    assert_same(views, navigation)


def test_both_gears_over_auctions() -> None:
    graph = assert_same(xmark.unique_views(300, seed=5), navigation=False)
    assert graph.edges > 300


def test_chunks_and_threads_do_not_matter(monkeypatch: object) -> None:
    views = xmark.unique_views(200, seed=5)
    whole = tree_embedding_graph(pack_patterns(views), threads=1)
    monkeypatch.setattr(graphs, "CHUNK_QUERIES", 7)  # type: ignore[attr-defined]
    assert edges_of(tree_embedding_graph(pack_patterns(views), threads=3)) == edges_of(whole)


def test_labels_that_share_a_bit_are_still_different() -> None:
    views = [TreePattern((PatternNode(f"l{number}", -1),)) for number in range(300)]
    assert tree_embedding_graph(pack_patterns(views)).edges == 0


@given(st.lists(st.frozensets(st.sampled_from("abcdef")), max_size=30))
def test_both_indexes_find_all_subsets(sets: list[frozenset[str]]) -> None:
    for index in (LabelBuckets(sets), SetTrie(sets)):
        for query in sets:
            expected = [number for number, one in enumerate(sets) if one <= query]
            assert sorted(index.subsets_of(query)) == expected
