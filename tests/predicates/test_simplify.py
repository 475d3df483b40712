"""Fewer boxes, the same rows: whatever the order, and quickly."""

from __future__ import annotations

import itertools
import random
import time

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog import Column, IntegerType, Relation
from penstock.predicates.boxes import (
    Box,
    box,
    contains,
    covers,
    describe_box,
    intersect,
    is_empty,
    simplify_union,
)
from penstock.predicates.intervals import ABOVE_NULL, TOP, Interval, above, below, point
from penstock.predicates.simplify import Product, simplify
from tests.examples import examples
from tests.predicates.strategies import small_intervals

RELATION = Relation("t", tuple(Column(name, IntegerType()) for name in "xyz"), ())
ROWS = list(itertools.product([None, 0, 1, 2, 3, 4, 5, 6, 7], repeat=2))

boxes = st.dictionaries(st.integers(0, 1), small_intervals, max_size=2).map(box)
branches = st.lists(st.tuples(boxes, boxes), max_size=8)


def holds(union: list[tuple[Box, ...]], row: tuple[int | None, ...]) -> bool:
    """Both boxes are asked about the same row: what matters is that they are kept apart."""
    return any(all(contains(one, RELATION, row) for one in branch) for branch in union)


@given(boxes, boxes)
def test_boxes(one: Box, other: Box) -> None:
    both = intersect(one, other)
    for row in ROWS:
        inside = contains(one, RELATION, row) and contains(other, RELATION, row)
        assert contains(both, RELATION, row) == inside
        if covers(one, other) and contains(other, RELATION, row):
            assert contains(one, RELATION, row)
        if is_empty(one):
            assert not contains(one, RELATION, row)


def test_a_box_can_be_read() -> None:
    one = box({2: point(5), 0: Interval(ABOVE_NULL, below(3))})
    assert describe_box(one, RELATION) == ["x <= 2", "z = 5"]


@settings(max_examples=examples(100))
@given(branches, st.randoms(use_true_random=False))
def test_the_same_rows_in_any_order(union: list[tuple[Box, ...]], chance: random.Random) -> None:
    simple = simplify_union(union)
    assert len(simple) <= len(union)
    for row in ROWS:
        assert holds(simple, row) == holds(union, row)
    for one, other in itertools.permutations(simple, 2):
        assert not all(covers(a, b) for a, b in zip(one, other, strict=True))
    shuffled = list(union)
    chance.shuffle(shuffled)
    assert simplify_union(shuffled) == simple
    assert simplify_union(simple) == simple


def test_touching_boxes_become_one() -> None:
    squares = [(box({0: _cell(i), 1: _cell(j)}),) for i in range(8) for j in range(8)]
    whole = Interval(below(0), below(8))
    assert simplify_union(squares) == [(box({0: whole, 1: whole}),)]


def _cell(i: int) -> Interval:
    return Interval(below(i), below(i + 1))


def _range(start: int) -> Interval:
    return Interval(below(start), below(start + 9))


def test_a_free_place_absorbs() -> None:
    anything = [(box({0: Interval(ABOVE_NULL, above(5))}),), ((),), (box({1: point(1)}),)]
    assert simplify_union(anything) == [((),)]
    assert simplify_union([]) == []


def test_never_null_makes_a_place_free() -> None:
    low, high = Interval(ABOVE_NULL, below(5)), Interval(below(5), TOP)
    halves: list[Product] = [(((0, 0), (low,)),), (((0, 0), (high,)),)]
    assert simplify(halves) == [(((0, 0), (Interval(ABOVE_NULL, TOP),)),)]
    assert simplify(halves, frozenset({(0, 0)})) == [()]


def test_a_thousand_boxes_take_no_time() -> None:
    chance = random.Random(3)
    points = [(box({0: point(2 * i)}),) for i in range(1_000)]
    diagonal = [(box({0: point(i), 1: point(i)}),) for i in range(1_000)]
    ranges = [(box({c: _range(chance.randrange(60)) for c in range(3)}),) for _ in range(1_000)]
    start = time.process_time()
    assert len(simplify_union(points)) == 1_000
    assert len(simplify_union(diagonal)) == 1_000
    assert len(simplify_union(ranges)) <= 1_000
    assert time.process_time() - start < 10  # about 0.2 s on a quiet machine
