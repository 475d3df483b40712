"""The plain gear of routing finds what the fast one finds, and what every point says itself."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog import Catalog
from penstock.messages import EVERYONE, Message, Point, PointId, Position, Reach
from penstock.predicates.boxes import box
from penstock.predicates.intervals import EVERYTHING, Interval, point
from penstock.routing import PlainRegions, RoutingTable, plain, recipients
from penstock.spaces import Placed, Space
from tests.examples import examples
from tests.routing.test_recipients import (
    SPACE,
    TABLES,
    intervals,
    keys,
    points_of,
    reaches,
)


@given(
    st.lists(st.tuples(intervals, intervals), max_size=12),
    st.sets(st.integers(0, 11)),
    st.lists(reaches, max_size=2),
    st.lists(reaches, max_size=2) | st.just(list(EVERYONE)),
    keys,
    keys,
    st.integers(0, 12),
)
@settings(max_examples=examples(300))
def test_both_gears_and_every_point_agree(
    wishes: list[tuple[Interval, Interval]],
    gone: set[int],
    upsert: list[Reach],
    remove: list[Reach],
    new: int | None,
    old: int | None,
    since: int,
) -> None:
    fast, points = points_of(wishes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plain, "CHUNK_POINTS", 4)
        regions = PlainRegions(TABLES[0])
        for one in points:
            regions.add(one)
        message = Message(
            Position(1, 1), SPACE.id, (1,), (1, 1, new), tuple(upsert), ((2, old),), tuple(remove)
        )
        for kept in (points, [p for p in points if p.id.subscription not in gone]):
            for one in points:
                if one not in kept:
                    regions.remove(one.id)
                    fast.remove(one.id)
            for asked in (message, message._replace(since=since)):
                base = TABLES[0]
                expected = {p.id for p in kept if asked.upserts(p, base) or asked.removes(p, base)}
                found = regions.recipients(asked)
                assert len(found) == len(set(found))
                assert set(found) == expected == set(recipients(asked, fast))
                assert regions.subscribers(asked) == {one.subscription for one in expected}
            assert len(regions) == len(kept)
            assert sorted(p.id for p in regions) == sorted(p.id for p in kept)


def test_named_recipients() -> None:
    named = (PointId(7, 0, 0), PointId(7, 1, 0), PointId(9, 0, 0))
    message = Message(Position(1, 1), SPACE.id, (1,), (1, 1, 1), recipients=named)
    regions = PlainRegions(TABLES[0])
    assert regions.recipients(message) == list(named)
    assert regions.subscribers(message) == {7, 9}


def catalog() -> Catalog:
    found = Catalog()
    for offset, relation in enumerate(TABLES):
        found.add(relation, offset)
    return found


def placed(number: int, key: int, space: Space) -> list[Placed]:
    at = PointId(number, 0, 0)
    return [Placed(space, Point(at, space.id, box({2: point(key)}), EVERYTHING))]


def about(key: int, space: Space) -> Message:
    return Message(Position(1, 1), space.id, (1,), (1, 1, key), EVERYONE)


@pytest.mark.parametrize("space", [Space("r"), SPACE], ids=["one table", "a join"])
def test_a_table_that_grows_shifts_up(space: Space) -> None:
    """Answers stay the same in both gears, as subscriptions come, move and go."""
    table = RoutingTable(catalog(), plain_points=10)
    for number in range(30):
        table.put(number, placed(number, number % 5, space))
        assert (space.id in table._fast) == (number >= 10)
        expected = {other for other in range(number + 1) if other % 5 == 3}
        assert table.subscribers(about(3, space)) == expected
    for number in (3, 8):
        table.remove(number)
        assert number not in table
    table.put(13, placed(13, 4, space))
    assert table.subscribers(about(3, space)) == {18, 23, 28}
    assert table.subscribers(about(4, space)) == {4, 9, 13, 14, 19, 24, 29}
    assert table.subscribers(about(3, Space("s"))) == set()


def test_without_a_compiler_it_stays_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "penstock.joins.points", None)  # importing it fails
    table, space = RoutingTable(catalog(), plain_points=10), Space("r")
    for number in range(30):
        table.put(number, placed(number, number % 5, space))
    assert table.subscribers(about(3, space)) == {3, 8, 13, 18, 23, 28}
