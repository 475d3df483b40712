"""What every matcher must do, compared with the brute-force twin."""

from __future__ import annotations

import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.catalog import Column, DoubleType, IntegerType, Relation, Row, StringType
from penstock.errors import ChangeError, SubscriptionError
from penstock.matching import EventBatch, Matcher, create
from penstock.predicates.boxes import Box
from penstock.predicates.intervals import (
    IS_NULL,
    NOT_NULL,
    NOTHING,
    Interval,
    above,
    below,
    point,
)
from tests.matching.strategies import World, worlds

STOCKS = Relation(
    "stocks",
    (Column("id", IntegerType()), Column("price", DoubleType()), Column("symbol", StringType())),
    (0,),
)


# The same test body runs for each subclass; hypothesis sees several executors of one function.
inherited = settings(suppress_health_check=[HealthCheck.differing_executors, HealthCheck.too_slow])


def at_least(value: float) -> Interval:
    return Interval(below(DoubleType().key(value)), NOT_NULL.high)


class MatcherContract:
    """Subclasses say which matcher; pytest runs all of this against it."""

    name: str
    options: dict[str, object]

    def create(self, relation: Relation) -> Matcher:
        return create(self.name, relation, **self.options)

    # --- against the twin -----------------------------------------------------------------------

    @inherited
    @given(st.data())
    def test_agrees_with_the_twin_under_any_order_of_changes(self, data: st.DataObject) -> None:
        world = data.draw(worlds())
        matcher, twin = self.create(world.relation), create("naive", world.relation)
        for _ in range(data.draw(st.integers(1, 6))):
            self._change(data, world, matcher, twin)
            rows = data.draw(st.lists(world.rows(), max_size=5))
            batch = EventBatch.of_rows(world.relation, rows)
            expected = twin.match_batch(batch).lists()
            assert matcher.match_batch(batch).lists() == expected
            # Twice, because a matcher may try several ways.
            for _ in range(2):
                assert matcher.any_match(batch).tolist() == [one != [] for one in expected]
            for row in rows[:2]:
                assert matcher.match(row) == twin.match(row)
            assert len(matcher) == len(twin)

    def _change(self, data: st.DataObject, world: World, matcher: Matcher, twin: Matcher) -> None:
        kind = data.draw(st.sampled_from(["insert", "insert many", "remove"]))
        ids = st.integers(0, 9)
        if kind == "insert":
            subscription, boxes = data.draw(st.tuples(ids, world.unions()))
            matcher.insert(subscription, boxes)
            twin.insert(subscription, boxes)
        elif kind == "insert many":
            many = data.draw(st.dictionaries(ids, world.unions(), max_size=8))
            matcher.insert_many(many.items())
            twin.insert_many(many.items())
        else:
            subscription = data.draw(ids)
            assert matcher.remove(subscription) == twin.remove(subscription)
            assert subscription not in matcher

    @inherited
    @given(st.data())
    def test_explains_like_the_twin(self, data: st.DataObject) -> None:
        world = data.draw(worlds())
        matcher, twin = self.create(world.relation), create("naive", world.relation)
        boxes = data.draw(world.unions())
        row = data.draw(world.rows())
        for one in (matcher, twin):
            one.insert(1, [b for b in boxes if not any(i.is_empty for _, i in b)])
        matcher.match(row)
        explained = matcher.explain(row, 1)
        expected = twin.explain(row, 1)
        assert explained.matched == expected.matched == (matcher.match(row) == [1])
        assert [f.column for f in explained.failures] == [f.column for f in expected.failures]

    # --- by hand --------------------------------------------------------------------------------

    def matches(self, boxes: list[Box], *rows: Row, relation: Relation = STOCKS) -> list[bool]:
        matcher = self.create(relation)
        matcher.insert(7, boxes)
        lists = matcher.match_batch(EventBatch.of_rows(relation, rows)).lists()
        assert lists == [matcher.match(row) for row in rows]
        return [one == [7] for one in lists]

    def test_empty_conjunction_matches_everything_and_empty_union_nothing(self) -> None:
        assert self.matches([()], (1, 1.0, "x"), (None, None, None)) == [True, True]
        assert self.matches([], (1, 1.0, "x")) == [False]

    def test_contradictions_match_nothing(self) -> None:
        empty = Interval(below(5), below(5))
        assert self.matches([((0, empty),), ((0, NOTHING),)], (5, 1.0, "x")) == [False]

    def test_null_satisfies_only_what_asks_for_null(self) -> None:
        row = (None, None, None)
        assert self.matches([((0, NOT_NULL),)], row) == [False]
        assert self.matches([((0, IS_NULL),), ((2, point("x")),)], row) == [True]

    def test_nan_is_the_largest_double_and_minus_zero_is_zero(self) -> None:
        rows = [(1, value, "x") for value in (-0.0, 0.0, math.inf, math.nan, -1.0)]
        assert self.matches([((1, at_least(0.0)),)], *rows) == [True, True, True, True, False]
        nan = point(DoubleType().key(math.nan))
        assert self.matches([((1, nan),)], *rows) == [False, False, False, True, False]

    def test_a_missing_attribute_is_null(self) -> None:
        matcher = self.create(STOCKS)
        matcher.insert(1, [((0, point(5)),)])
        matcher.insert(2, [((1, IS_NULL),)])
        row = STOCKS.store_row({"id": 5})
        assert matcher.match(row) == [1, 2]

    def test_rows_that_do_not_fit_are_refused(self) -> None:
        matcher = self.create(STOCKS)
        matcher.insert(1, [((0, point(5)),)])
        for row in [(1, 2.0), ("5", 1.0, "x"), (5, "1.0", "x"), (5, 1.0, 3), (True, 1.0, "x")]:
            with pytest.raises(ChangeError):
                matcher.match(row)

    def test_a_subscription_is_reported_once_however_many_boxes_contain_the_event(self) -> None:
        boxes: list[Box] = [((0, Interval(below(k), above(10))),) for k in range(9)]
        assert self.matches(boxes, (10, 1.0, "x"), (0, 1.0, "x")) == [True, True]

    def test_many_subscriptions_with_one_predicate(self) -> None:
        matcher = self.create(STOCKS)
        matcher.insert_many((i, [((0, point(3)),)]) for i in range(self.crowd))
        batch = EventBatch.of_rows(STOCKS, [(3, 1.0, "x"), (4, 1.0, "x")])
        offsets, ids = matcher.match_batch(batch).by_event()
        assert offsets.tolist() == [0, self.crowd, self.crowd]
        assert (ids == range(self.crowd)).all()
        assert len(matcher.match((3, None, None))) == self.crowd

    crowd = 3000

    def test_one_subscription_with_500_predicates(self) -> None:
        wide = Relation("wide", tuple(Column(f"c{i}", IntegerType()) for i in range(500)), ())
        boxes: list[Box] = [tuple((i, Interval(below(0), above(i))) for i in range(500))]
        rows: list[Row] = [(0,) * 500, tuple(range(500)), (*range(499), 500)]
        assert self.matches(boxes, *rows, relation=wide) == [True, True, False]

    def test_inserting_again_replaces(self) -> None:
        matcher = self.create(STOCKS)
        matcher.insert(1, [((0, point(3)),)])
        assert matcher.match((3, None, None)) == [1]
        matcher.insert(1, [((0, point(4)),)])
        assert matcher.match((3, None, None)) == []
        assert matcher.match((4, None, None)) == [1]
        assert len(matcher) == 1

    def test_removed_is_gone_at_once(self) -> None:
        matcher = self.create(STOCKS)
        matcher.insert_many((i, [()]) for i in range(5))
        assert matcher.match((1, None, None)) == [0, 1, 2, 3, 4]
        assert matcher.remove(3)
        assert not matcher.remove(3)
        assert matcher.match((1, None, None)) == [0, 1, 2, 4]
        assert 3 not in matcher
        assert 4 in matcher
        with pytest.raises(SubscriptionError):
            matcher.explain((1, None, None), 3)

    def test_says_what_failed_first_and_what_would_have_passed(self) -> None:
        matcher = self.create(STOCKS)
        matcher.insert(1, [((0, Interval(below(3), below(6))), (2, point("x")))])
        failure = matcher.explain((9, 1.0, "y"), 1).failures[0]
        assert (failure.column, failure.condition) == ("id", "3 <= id <= 5")
        assert (failure.value, failure.passing) == ("9", "5")
        failure = matcher.explain((4, 1.0, "y"), 1).failures[0]
        assert (failure.column, failure.value, failure.passing) == ("symbol", "'y'", "'x'")
        assert matcher.explain((4, 1.0, "x"), 1).matched_box == 0

    def test_an_empty_batch_and_an_empty_matcher(self) -> None:
        matcher = self.create(STOCKS)
        assert matcher.match((1, 1.0, "x")) == []
        assert matcher.match_batch(EventBatch.of_rows(STOCKS, [])).lists() == []
        matcher.insert(1, [()])
        assert matcher.match_batch(EventBatch.of_rows(STOCKS, [])).lists() == []

    def test_counts_what_it_holds(self) -> None:
        matcher = self.create(STOCKS)
        matcher.insert_many([(1, [((0, point(3)),), ((0, point(9)),)]), (2, [((0, point(3)),)])])
        statistics = matcher.statistics()
        assert (statistics.subscriptions, statistics.boxes) == (2, 3)
        assert statistics.bytes > 0
