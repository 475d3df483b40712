"""A subscription with many branches: messages find the points they mean, without a look at all."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import Hub
from penstock.catalog import Catalog, Column, IntegerType, Relation
from penstock.client import Content
from penstock.client.own_points import OwnPoints
from penstock.messages import (
    ANY_FILTER,
    EVERYONE,
    Envelope,
    Message,
    Point,
    PointId,
    Position,
    Reach,
)
from penstock.predicates.boxes import box
from penstock.predicates.intervals import ABOVE_NULL, BOTTOM, TOP, Interval, above, below
from penstock.predicates.masks import IntervalMasks, bits
from penstock.sql import bind, parse_relation
from tests.examples import examples

INTEGER = IntegerType()
TABLE = Relation("r", tuple(Column(name, INTEGER, name != "id") for name in ("id", "a", "b")), (0,))
SUBSCRIPTION = 5

keys = st.none() | st.integers(0, 3)
cuts = st.sampled_from([BOTTOM, ABOVE_NULL, TOP]) | keys.map(below) | keys.map(above)
intervals = st.builds(Interval, cuts, cuts)
boxes = st.dictionaries(st.sampled_from([1, 2]), intervals, max_size=2).map(box)
rows = st.tuples(st.just(1), keys, keys)
ids = st.builds(PointId, st.sampled_from([SUBSCRIPTION, 6]), st.integers(0, 5), st.integers(0, 1))
reach = st.builds(Reach, cuts, cuts, cuts, cuts) | st.just(ANY_FILTER)


def regions(more: int) -> st.SearchStrategy[tuple[Reach | Envelope, ...]]:
    """Of a space with so many more filter columns."""
    one: st.SearchStrategy[Reach | Envelope] = reach
    if more:
        vectors = st.lists(st.tuples(*[keys] * (1 + more)), max_size=2).map(tuple)
        one = st.builds(Envelope, st.tuples(*[reach] * (1 + more)), vectors) | st.just(ANY_FILTER)
    return st.lists(one, max_size=3).map(tuple) | st.just(EVERYONE)


@st.composite
def messages(draw: st.DrawFn, more: int) -> Message:
    row, old = draw(st.none() | rows), draw(st.none() | rows)
    is_told = row is not None or old is not None
    return Message(
        Position(1, 1),
        7,
        (1,),
        row,
        draw(regions(more)) if row is not None else (),
        None if old is None else ((1, old[1]), (2, old[2])),
        draw(regions(more)) if is_told else (),
        draw(st.just(()) | st.lists(ids, max_size=3).map(tuple)),
        since=draw(st.sampled_from([0, 0, SUBSCRIPTION, 6])),
    )


@settings(max_examples=examples(150))
@given(st.data(), st.integers(0, 2))
def test_they_are_those_that_each_message_is_meant_for(data: st.DataObject, more: int) -> None:
    filters = st.lists(intervals, min_size=more, max_size=more).map(tuple)
    wishes = data.draw(st.lists(st.tuples(boxes, intervals, filters), min_size=1, max_size=12))
    points = [
        Point(PointId(SUBSCRIPTION, i // 2, i % 2), 7, *wish) for i, wish in enumerate(wishes)
    ]
    own = OwnPoints(points, TABLE)
    for message in data.draw(st.lists(messages(more), min_size=1, max_size=5)):
        taking = [i for i, point in enumerate(points) if message.upserts(point, TABLE)]
        giving = [i for i, point in enumerate(points) if message.removes(point, TABLE)]
        assert list(bits(own.upserting(message))) == taking
        assert list(bits(own.removing(message))) == giving


@given(st.dictionaries(st.integers(0, 20), intervals), keys)
def test_unbounded_members_contain_everything(known: dict[int, Interval], key: int | None) -> None:
    found = IntervalMasks(known, 21).containing(key)
    assert list(bits(found)) == [i for i in range(21) if i not in known or known[i].contains(key)]


def _counting(name: str) -> Any:
    def compare(self: CountedKey, other: object) -> bool:
        CountedKey.compared += 1
        return bool(getattr(int, name)(self, other))

    return compare


class CountedKey(int):
    """A value that counts how often it is compared."""

    compared = 0

    __lt__, __le__, __gt__, __ge__, __eq__, __ne__ = map(
        _counting, ("__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__")
    )
    __hash__ = int.__hash__


def comparisons(branches: int) -> int:
    """How many a row costs that comes to a content of so many branches, and goes again."""
    catalog = Catalog()
    catalog.add(parse_relation("CREATE TABLE t (id BIGINT PRIMARY KEY, a BIGINT)"), 0)
    excluded = ", ".join(str(3 * i) for i in range(branches - 1))
    content = Content(1, bind(f"SELECT * FROM t WHERE a NOT IN ({excluded})", catalog))
    assert len(content.query.branches) == branches
    (space,) = content.spaces
    CountedKey.compared = 0
    row = (1, CountedKey(3 * (branches // 2) + 1))
    content.apply([Message(Position(2, 1), space, (1,), row, EVERYONE)])
    assert len(content.rows()) == 1
    content.apply([Message(Position(3, 1), space, (1,), old=((1, row[1]),), remove=EVERYONE)])
    assert content.rows() == []
    return CountedKey.compared


def test_a_thousand_branches_cost_a_few_comparisons_more_than_ten() -> None:
    assert comparisons(1_000) <= comparisons(10) + 4 * 2 * 7  # four searches, each 7 steps deeper


def calls(work: Callable[[], object]) -> int:
    """How many functions of Penstock a piece of work calls."""
    counted = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal counted
        counted += event == "call" and "penstock" in frame.f_code.co_filename

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return counted


WIDE = {
    "selection": "SELECT * FROM t WHERE a NOT IN ({excluded})",
    "base": "SELECT * FROM t JOIN u USING (k) WHERE t.a NOT IN ({excluded})",
    "filter": "SELECT * FROM t JOIN u USING (k) WHERE u.a NOT IN ({excluded})",
}


def calls_per_change(sql: str, excluded: int, subscriptions: int) -> float:
    with Hub() as hub:
        for table in "tu":
            hub.execute(f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, k INTEGER, a INTEGER)")
        queries = [
            sql.format(excluded=", ".join(str(3 * i + shift) for i in range(excluded)))
            for shift in range(subscriptions)
        ]
        contents = [hub.subscribe(query) for query in queries]

        def tell(first: int, count: int) -> None:
            for number in range(first, first + count):
                row = {"id": number, "k": number // 3, "a": number}
                hub.insert("t", row)
                hub.insert("u", row)
                hub.update("t", {"id": number, "a": number + 1})
                hub.delete("u", {"id": number})
            for one in contents:
                one.content()

        tell(0, 3)  # what is built once, is built
        return calls(lambda: tell(3, 30)) / 120


@pytest.mark.slow
@pytest.mark.parametrize("subscriptions", [1, 3])
@pytest.mark.parametrize("kind", sorted(WIDE))
def test_work_per_change_hardly_grows_with_branches(kind: str, subscriptions: int) -> None:
    few, many = (calls_per_change(WIDE[kind], count, subscriptions) for count in (10, 1_000))
    assert many <= 4 * few  # a hundred times as many branches; beyond some, an index is asked
