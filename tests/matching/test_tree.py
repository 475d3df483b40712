"""The matching tree: each optimisation on and off, its shape, and how many nodes are visited."""

from __future__ import annotations

import json
from itertools import product
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.catalog import Column, DoubleType, IntegerType, Relation, Row, StringType
from penstock.lab.experiments.matching_tree_growth import (
    VARIANTS,
    drawn_growth,
    fitted_exponent,
    matching_tree_growth,
    proved_exponent,
    proved_visits,
    worst_case_visits,
)
from penstock.matching.matchers.naive import NaiveMatcher
from penstock.matching.matchers.tree import TreeMatcher
from penstock.matching.matchers.tree.outcomes import RangeOutcomes
from penstock.predicates.boxes import Box, box
from penstock.predicates.intervals import (
    ABOVE_NULL,
    IS_NULL,
    NOT_NULL,
    NOTHING,
    TOP,
    Interval,
    above,
    below,
    point,
    prefix,
)

NAN = float("nan")
MIXED = Relation(
    "mixed",
    (
        Column("a", IntegerType()),
        Column("b", DoubleType()),
        Column("c", StringType()),
        Column("d", IntegerType()),
    ),
    (),
    True,
)
VALUES: list[list[Any]] = [
    [None, 0, 1, 2, 3],
    [None, NAN, -0.0, 0.0, 1.5],
    [None, "", "a", "ab", "b"],
    [None, 0, 1, 2],
]
OPTIONS = [
    {"collapse": collapse, "successors": successors, "index_columns": index_columns}
    for collapse, successors, index_columns in product([False, True], [False, True], [0, 1, 2])
]


def show_options(options: dict[str, Any]) -> str:
    chosen = [name for name in ("collapse", "successors") if options[name]]
    return "-".join([*chosen, f"{options['index_columns']}-index-columns"])


def integers(count: int) -> Relation:
    columns = tuple(Column(f"a{i}", IntegerType()) for i in range(count))
    return Relation("numbers", columns, (), True)


@st.composite
def intervals(draw: st.DrawFn, column: int) -> Interval:
    keys = [MIXED.columns[column].type.key(v) for v in VALUES[column] if v is not None]
    one, other = sorted([draw(st.sampled_from(keys)), draw(st.sampled_from(keys))])  # type: ignore[type-var]
    shapes = [
        point(one),
        Interval(below(one), above(other)),
        Interval(above(one), TOP),
        Interval(ABOVE_NULL, above(one)),
        IS_NULL,
        NOT_NULL,
        NOTHING,
        *([prefix("a")] if column == 2 else []),
    ]
    return draw(st.sampled_from([point(one), point(one), *shapes]))


@st.composite
def unions(draw: st.DrawFn) -> list[Box]:
    boxes = []
    for _ in range(draw(st.integers(0, 3))):
        columns = draw(st.sets(st.integers(0, 3)))
        boxes.append(box({column: draw(intervals(column)) for column in sorted(columns)}))
    return boxes


rows = st.tuples(*(st.sampled_from(values) for values in VALUES))


@pytest.mark.parametrize("options", OPTIONS, ids=show_options)
@given(
    changes=st.lists(st.tuples(st.integers(0, 7), st.none() | unions()), max_size=25),
    events=st.lists(rows, min_size=1, max_size=6),
)
def test_equals_brute_force_after_any_changes(
    options: dict[str, Any], changes: list[tuple[int, list[Box] | None]], events: list[Row]
) -> None:
    tree, naive = TreeMatcher(MIXED, **options), NaiveMatcher(MIXED)
    for step, (subscription, boxes) in enumerate(changes):
        if boxes is None:
            assert tree.remove(subscription) == naive.remove(subscription)
        else:
            tree.insert(subscription, boxes)
            naive.insert(subscription, boxes)
        if step % 3 == 0:
            tree.analyse()
            assert tree.match(events[0]) == naive.match(events[0])
    for analysed in (False, True):
        assert [tree.match(row) for row in events] == [naive.match(row) for row in events]
        if not analysed:
            tree.analyse()


def equalities(random: Random, columns: int, values: int) -> list[Box]:
    asked = [column for column in range(columns) if random.random() < 0.6]
    return [box({column: point(random.randrange(values)) for column in asked})]


@pytest.mark.parametrize("collapse", [False, True])
def test_successors_visit_a_part_of_the_nodes_that_the_plain_search_visits(collapse: bool) -> None:
    """With equality tests alone. The plain search visits no node twice; so nor does this one."""
    random = Random(5)
    plain = TreeMatcher(integers(6), collapse=collapse, successors=False)
    jumping = TreeMatcher(integers(6), collapse=collapse, successors=True)
    for subscription in range(200):
        boxes = equalities(random, 6, 3)
        plain.insert(subscription, boxes)
        jumping.insert(subscription, boxes)
    jumping.analyse()
    for row in product(range(3), repeat=6):
        assert jumping.match(row) == plain.match(row)
        assert jumping.visits <= plain.visits
    assert jumping.visits < 0.8 * plain.visits


def test_each_optimisation_saves_visits() -> None:
    random = Random(6)
    unions_of_all = [(i, equalities(random, 8, 4)) for i in range(500)]
    events = [tuple(random.randrange(4) for _ in range(8)) for _ in range(50)]

    def visits(**options: Any) -> int:
        tree = TreeMatcher(integers(8), **options)
        tree.insert_many(unions_of_all)
        tree.analyse()
        for row in events:
            tree.match(row)
        return tree.visits

    plain = visits(collapse=False, successors=False)
    collapsed = visits(collapse=True, successors=False)
    jumping = visits(collapse=True, successors=True)
    factored = visits(collapse=True, successors=True, index_columns=2)
    assert plain > collapsed > jumping > factored


def test_collapsing_leaves_no_node_with_a_dont_care_edge_alone() -> None:
    """And removing everything leaves nothing."""
    random = Random(7)
    tree = TreeMatcher(integers(10), successors=False)
    held = {i: equalities(random, 10, 2) for i in range(100)}
    tree.insert_many(held.items())
    for subscription in list(held):
        for one in tree._store.trees():
            for node in one.nodes():
                assert node.level == one.depth or node.points
        tree.remove(subscription)
    assert tree.statistics().details["nodes"] == 0


def test_a_chain_of_levels_without_collapsing() -> None:
    tree = TreeMatcher(integers(5), collapse=False, successors=False)
    tree.insert(1, [box({4: point(1)})])
    assert tree.statistics().details["nodes"] == 6
    collapsed = TreeMatcher(integers(5), successors=False)
    collapsed.insert(1, [box({4: point(1)})])
    assert collapsed.statistics().details["nodes"] == 2


def test_an_order_may_be_given() -> None:
    relation = integers(3)
    tree = TreeMatcher(relation, order=["a2", "a0", "a1"])
    tree.insert_many([(1, [box({0: point(1), 2: point(2)})])])
    assert tree.match((1, 0, 2)) == [1]
    with pytest.raises(ValueError, match="each column"):
        TreeMatcher(relation, order=["a0", "a1"])


def test_boxes_that_are_one_within_a_subtree_are_removed_together() -> None:
    tree = TreeMatcher(integers(2), index_columns=1, order=["a0", "a1"])
    tree.insert(0, [box({0: point(0), 1: point(1)})])
    tree.insert(1, [(), box({0: point(0)})])
    assert tree.match((0, 1)) == [0, 1]
    assert tree.remove(1)
    assert tree.match((0, 1)) == [0]


def test_factoring_gives_up_when_copies_outgrow_their_use() -> None:
    relation = integers(2)
    tree, naive = TreeMatcher(relation, index_columns=1, order=["a0", "a1"]), NaiveMatcher(relation)
    for i in range(300):
        pinned = [box({0: point(i), 1: Interval(below(i), TOP)})]
        tree.insert(i, pinned)
        naive.insert(i, pinned)
    assert tree.statistics().details["trees"] == 301
    for i in range(300, 400):
        loose = [box({1: point(i)})]
        tree.insert(i, loose)
        naive.insert(i, loose)
    assert tree.statistics().details["trees"] == 1
    for i in (0, 7, 299, 350):
        assert tree.match((i, i)) == naive.match((i, i))
        assert tree.remove(i)
        assert tree.match((i, i)) == [j for j in naive.match((i, i)) if j != i]


@given(
    pairs=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=60),
    removed=st.sets(st.integers(0, 59)),
)
def test_range_outcomes(pairs: list[tuple[int, int]], removed: set[int]) -> None:
    outcomes: RangeOutcomes[Interval] = RangeOutcomes()
    held = {Interval(below(min(pair)), above(max(pair))) for pair in pairs}
    for interval in held:
        outcomes[interval] = interval
    assert set(outcomes.holding(10)) == {i for i in held if i.contains(10)}
    gone = {interval for place, interval in enumerate(sorted(held)) if place in removed}
    for interval in gone:
        del outcomes[interval]
    for key in (None, *range(32)):
        found = list(outcomes.holding(key))
        assert len(found) == len(set(found))
        assert set(found) == {i for i in held - gone if i.contains(key)}


def test_many_nested_and_many_disjoint_ranges_on_one_column() -> None:
    nested: RangeOutcomes[int] = RangeOutcomes()
    for i in range(10_000):
        nested[Interval(below(i), TOP)] = i
    assert len(list(nested.holding(99))) == 100
    disjoint: RangeOutcomes[int] = RangeOutcomes()
    for i in range(10_000):
        disjoint[Interval(below(2 * i), below(2 * i + 2))] = i
    assert list(disjoint.holding(31)) == [15]


def test_the_bounds_of_the_paper() -> None:
    """A tree with every node that can exist is visited as the lemmas say, for any event."""
    attributes, values = 3, 2
    tree = TreeMatcher(integers(attributes), collapse=False)
    everything = product([None, *range(values)], repeat=attributes)
    for subscription, asked in enumerate(everything):
        outcomes = {c: point(value) for c, value in enumerate(asked) if value is not None}
        tree.insert(subscription, [box(outcomes)])
    tree.match((0, 1, 0))
    assert tree.visits == worst_case_visits(attributes, values, len(tree)) == 15
    for size in (1, 100, 10_000, 1_000_000):
        assert worst_case_visits(30, 20, size) <= proved_visits(30, 20, size)
    growth = [(size, proved_visits(30, 20, size)) for size in (10, 1000, 100_000)]
    assert fitted_exponent(growth) == pytest.approx(proved_exponent(30, 20))


def test_growth_stays_below_what_is_proved(capsys: pytest.CaptureFixture[str]) -> None:
    matching_tree_growth(most=1_000, json=True)
    results = json.loads(capsys.readouterr().out)["results"]
    assert [result["variant"] for result in results] == [variant.name for variant in VARIANTS]
    for result in results:
        assert result["visits_per_event"] < result["worst_case_visits"] < result["proved_visits"]
    assert drawn_growth(results).startswith("<svg")
