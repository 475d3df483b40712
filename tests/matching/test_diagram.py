"""Decision diagrams: any condition, nodes shared and in order, and what others build on."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import combinations, product
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.catalog import Column, DoubleType, IntegerType, Relation, Row, StringType
from penstock.errors import SubscriptionError
from penstock.lab.experiments.diagram_order import SETS, Generator, diagram_order
from penstock.matching.events import EventBatch, row_keys
from penstock.matching.matchers.diagram import (
    And,
    AttributeStatistics,
    DiagramMatcher,
    Expression,
    Is,
    Not,
    Or,
    attribute_order,
    random_order,
)
from penstock.matching.matchers.diagram.coding import CodedPredicates, direct_truth
from penstock.matching.matchers.diagram.evaluation import evaluate_one
from penstock.matching.matchers.diagram.nodes import FALSE, TRUE, NodeTable, TooLargeError
from penstock.matching.matchers.diagram.predicates import PredicateIndex
from penstock.matching.matchers.naive import NaiveMatcher
from penstock.predicates.boxes import Box, box
from penstock.predicates.intervals import (
    ABOVE_NULL,
    EVERYTHING,
    IS_NULL,
    NOT_NULL,
    NOTHING,
    TOP,
    Interval,
    above,
    below,
    point,
)

NAN = float("nan")
MIXED = Relation(
    "mixed",
    (Column("a", IntegerType()), Column("b", DoubleType()), Column("c", StringType())),
    (),
    True,
)
VALUES: list[list[Any]] = [
    [None, 0, 1, 2, 3],
    [None, NAN, -0.0, 0.0, 1.5],
    [None, "", "a", "ab", "b"],
]


def integers(count: int) -> Relation:
    columns = tuple(Column(f"a{i}", IntegerType()) for i in range(count))
    return Relation("numbers", columns, (), True)


def up_to(key: int) -> Interval:
    return Interval(ABOVE_NULL, above(key))


def more_than(key: int) -> Interval:
    return Interval(above(key), TOP)


@st.composite
def predicates(draw: st.DrawFn) -> tuple[int, Interval]:
    column = draw(st.integers(0, len(VALUES) - 1))
    keys = [MIXED.columns[column].type.key(v) for v in VALUES[column] if v is not None]
    one, other = sorted([draw(st.sampled_from(keys)), draw(st.sampled_from(keys))])
    shapes = [
        point(one),
        Interval(below(one), above(other)),
        Interval(above(one), TOP),
        Interval(ABOVE_NULL, above(one)),
        IS_NULL,
        NOT_NULL,
        NOTHING,
        EVERYTHING,
    ]
    return column, draw(st.sampled_from(shapes))


expressions = st.recursive(
    predicates().map(lambda one: Is(*one)),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda parts: And(tuple(parts)))
        | st.lists(inner, max_size=3).map(lambda parts: Or(tuple(parts)))
        | inner.map(Not)
    ),
    max_leaves=8,
)
unions = st.lists(st.lists(predicates(), max_size=4).map(lambda one: box(dict(one))), max_size=4)
rows = st.tuples(*(st.sampled_from(values) for values in VALUES))


def holds(expression: Expression, row: Row) -> bool:
    if isinstance(expression, Is):
        return expression.interval.contains(row_keys(MIXED, row)[expression.column])
    if isinstance(expression, Not):
        return not holds(expression.part, row)
    combine: Callable[[list[bool]], bool] = all if isinstance(expression, And) else any
    return combine([holds(part, row) for part in expression.parts])


@given(
    st.dictionaries(st.integers(0, 9), expressions, max_size=5),
    st.lists(rows, min_size=1, max_size=5),
)
def test_any_and_or_not(conditions: dict[int, Expression], events: list[Row]) -> None:
    matcher = DiagramMatcher(MIXED)
    for subscription, expression in conditions.items():
        matcher.insert_expression(subscription, expression)
    for row in events:
        expected = [i for i, expression in sorted(conditions.items()) if holds(expression, row)]
        assert matcher.match(row) == expected
        for subscription in conditions:
            explained = matcher.explain(row, subscription)
            assert explained.matched == (subscription in expected)


@given(
    changes=st.lists(st.tuples(st.integers(0, 7), st.none() | unions), max_size=25),
    events=st.lists(rows, min_size=1, max_size=6),
)
def test_equals_brute_force_after_any_changes(
    changes: list[tuple[int, list[Box] | None]], events: list[Row]
) -> None:
    matcher, naive = DiagramMatcher(MIXED), NaiveMatcher(MIXED)
    batch = EventBatch.of_rows(MIXED, events)
    for step, (subscription, boxes) in enumerate(changes):
        if boxes is None:
            assert matcher.remove(subscription) == naive.remove(subscription)
        else:
            matcher.insert(subscription, boxes)
            naive.insert(subscription, boxes)
        if step % 5 == 1:
            assert matcher.match_batch(batch).lists() == naive.match_batch(batch).lists()
        if step % 5 == 3:
            matcher.sweep()
    assert matcher.match_batch(batch).lists() == naive.match_batch(batch).lists()
    matcher.reorder()
    assert matcher.match_batch(batch).lists() == naive.match_batch(batch).lists()


@given(st.lists(unions, max_size=6))
def test_diagrams_are_ordered_and_reduced(given_unions: list[list[Box]]) -> None:
    matcher = DiagramMatcher(MIXED)
    matcher.insert_many(list(enumerate(given_unions)))
    nodes = matcher.nodes
    seen = set()
    for place in range(2, len(nodes)):
        low, high = nodes.children(place)
        assert low != high
        assert max(low, high) < place
        for child in (low, high):
            if child > TRUE:
                assert nodes.rank(nodes.variables[place]) < nodes.rank(nodes.variables[child])
        seen.add((nodes.variables[place], low, high))
    assert len(seen) == len(nodes) - 2


def test_the_kernel_equals_the_reference() -> None:
    random = Random(3)
    matcher = DiagramMatcher(integers(4))
    matcher.insert_many(
        (i, [box({c: up_to(random.randrange(9)) for c in range(4) if random.random() < 0.6})])
        for i in range(50)
    )
    batch = EventBatch.of_rows(
        matcher.relation, [tuple(random.randrange(9) for _ in range(4)) for _ in range(130)]
    )
    found = matcher.match_batch(batch).lists()
    for e in range(len(batch)):
        keys = batch.keys(e)
        truth = [p.interval.contains(keys[p.column]) for p in matcher.predicates.predicates]
        values = evaluate_one(matcher.nodes, truth)
        assert found[e] == [i for i in range(50) if any(values[r] for r in matcher.roots(i))]


def test_predicates_are_tested_alike_in_both_ways() -> None:
    index = PredicateIndex(MIXED)
    for column, value in ((0, 1), (0, 3), (1, 0.0), (1, NAN), (2, "a"), (2, "ab")):
        key = MIXED.columns[column].type.key(value)
        for interval in (point(key), Interval(above(key), TOP), IS_NULL, NOT_NULL):
            index.variable(column, interval)
    for far in (-(2**70), 2**70):
        index.variable(0, point(far))
        index.variable(0, Interval(above(far), TOP))
    batch = EventBatch.of_rows(MIXED, list(product(*VALUES)))
    coded = CodedPredicates(MIXED, index.predicates)
    assert np.array_equal(coded.truth(batch), direct_truth(index.predicates, batch))


def test_subscriptions_share_what_is_equal() -> None:
    """The example of the paper: two subscriptions that differ in the price alone."""
    matcher = DiagramMatcher(integers(3), order=["a0", "a1", "a2"])
    rest = {1: point(20), 2: point(7)}
    matcher.insert(1, [box({0: point(150), **rest})])
    matcher.insert(2, [box({0: Interval(ABOVE_NULL, below(150)), **rest})])
    assert len(matcher.nodes) == 2 + 4
    ((_, roots),) = matcher.diagrams().items()
    assert sorted(roots) == sorted(matcher.roots(1) + matcher.roots(2))
    matcher.insert(3, [box({0: point(150), **rest})])
    assert matcher.roots(3) == matcher.roots(1)


def test_a_union_without_a_good_order_is_kept_as_several_roots() -> None:
    """(a0 = i AND a1 = i) OR …: every subset of the a0 tests would need a node of its own."""
    matcher = DiagramMatcher(integers(2), order=["a0", "a1"])
    boxes = [box({0: up_to(i), 1: up_to(100 - i)}) for i in range(40)]
    matcher.insert(1, boxes)
    assert len(matcher.roots(1)) == 40
    assert len(matcher.nodes) == 2 + 80
    assert matcher.match((5, 5)) == [1]
    assert matcher.match_batch(EventBatch.of_rows(matcher.relation, [(5, 5)] * 3)).lists() == [
        [1],
        [1],
        [1],
    ]


def test_an_operation_that_explodes_leaves_nothing_behind() -> None:
    table = NodeTable(lambda variable: variable)
    one = table.disjunction([[i, 30 + i] for i in range(8)], 10_000)
    other = table.disjunction([[i, 30 + i] for i in range(8, 16)], 10_000)
    before = len(table)
    with pytest.raises(TooLargeError):
        table.either(one, other, 1000)
    with pytest.raises(TooLargeError):
        table.disjunction([[i, 30 + i] for i in range(30)], 1000)
    assert len(table) == before
    assert table.node(0, FALSE, TRUE) == before


def test_an_expression_that_explodes_is_refused() -> None:
    matcher = DiagramMatcher(integers(60))
    parts = tuple(And((Is(i, point(1)), Is(30 + i, point(1)))) for i in range(30))
    with pytest.raises(SubscriptionError, match="too large"):
        matcher.insert_expression(1, Or(parts))
    assert 1 not in matcher
    assert len(matcher.nodes) == 2


def test_predicates_are_found_by_what_they_mean() -> None:
    index = PredicateIndex(integers(2))
    ten, *_ = [index.variable(0, i) for i in (more_than(10), more_than(8), more_than(5), point(9))]
    index.variable(1, more_than(3))
    assert index.find(0, Interval(below(11), TOP)) == ten
    assert index.find(1, more_than(4)) is None
    shown = [predicate.describe(index.relation) for predicate in index.predicates[:4]]
    assert shown[3] == "a0 = 9"


def test_sweeping_drops_nodes_and_predicates() -> None:
    matcher = DiagramMatcher(integers(3))
    for i in range(20):
        matcher.insert(i, [box({0: point(i), 1: point(i), 2: up_to(5)})])
    for i in range(5, 20):
        matcher.remove(i)
    assert len(matcher.predicates) == 41
    matcher.sweep()
    assert len(matcher.predicates) == 11
    assert len(matcher.nodes) == 2 + 11
    assert [matcher.match((i, i, 4)) for i in range(6)] == [[0], [1], [2], [3], [4], []]


def test_the_order_puts_low_what_is_met_again() -> None:
    """Frequent and concentrated attributes at the bottom, companions side by side."""
    boxes = [
        box({0: point(i), 1: point(0), 2: point(i % 3), **({3: point(0)} if i % 4 == 0 else {})})
        for i in range(60)
    ]
    order = attribute_order(AttributeStatistics.of_boxes(5, boxes))
    assert order.index(1) > order.index(2) > order.index(0)
    assert order.index(1) > order.index(3)

    # 0 and 3 are asked for together, as are 1 and 2; all are alike otherwise.
    pairs = [box({c: point(0) for c in ((0, 3) if i % 2 else (1, 2))}) for i in range(20)]
    companions = attribute_order(AttributeStatistics.of_boxes(4, pairs))
    assert set(companions[:2]) in ({0, 3}, {1, 2})

    assert sorted(random_order(20, 1)) == list(range(20))
    assert random_order(20, 1) != random_order(20, 2)


def test_a_learnt_order_needs_fewer_nodes_than_the_opposite() -> None:
    random = Random(4)
    boxes = []
    for _ in range(2000):
        asked = [c for c in range(8) if random.random() < 0.9 - 0.1 * c]
        boxes.append(box({c: point(random.randrange(2 + 2 * c)) for c in asked}))
    learnt = DiagramMatcher(integers(8))
    learnt.insert_many((i, [one]) for i, one in enumerate(boxes))
    names = [f"a{c}" for c in reversed(learnt.order)]
    opposite = DiagramMatcher(integers(8), order=names)
    opposite.insert_many((i, [one]) for i, one in enumerate(boxes))
    assert len(learnt.nodes) < 0.8 * len(opposite.nodes)
    assert learnt.order != opposite.order


def test_constants_and_equal_spellings() -> None:
    matcher = DiagramMatcher(integers(1))
    matcher.insert(1, [()])
    matcher.insert(2, [])
    matcher.insert(3, [box({0: NOTHING})])
    matcher.insert(4, [box({0: more_than(4)}), box({0: Interval(below(5), TOP)})])
    assert matcher.roots(1) == (TRUE,)
    assert matcher.roots(2) == matcher.roots(3) == ()
    assert len(matcher.predicates) == 1
    assert matcher.match((None,)) == [1]
    assert matcher.match((5,)) == [1, 4]
    assert all(a != b for a, b in combinations(matcher.diagrams(), 2))


@pytest.mark.slow
def test_the_order_matters_in_the_experiment(capsys: pytest.CaptureFixture[str]) -> None:
    diagram_order(subscriptions=400, random_orders=0, repetitions=1, json=True)
    results = json.loads(capsys.readouterr().out)["results"]
    nodes = {(result["set"], result["order"]): result["nodes"] for result in results}
    for name, distinct in SETS.items():
        assert nodes[name, "learnt"] < nodes[name, "learnt, upside down"]
        assert len({p for one in Generator(distinct).boxes(400) for p in one}) <= distinct
    assert all(result["nodes"] < result["tests"] for result in results)
