"""All contents of a space at once: exactly the rows that each semijoin has."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.flow.engine import Engine
from penstock.joins import whole_contents
from penstock.messages import Message
from tests.examples import examples

QUERY = (
    "SELECT * FROM a JOIN b ON a.k = b.k "
    "WHERE x BETWEEN {} AND {} AND (y BETWEEN {} AND {} OR y IS NULL AND x = 3)"
)
small = st.integers(0, 8)
values = st.none() | small
rows = st.lists(st.tuples(st.integers(0, 2), values), max_size=12)
queries = st.lists(st.tuples(small, small, small, small), min_size=1, max_size=6)


def filled(left: list[tuple[int, int | None]], right: list[tuple[int, int | None]]) -> Engine:
    engine = Engine()
    engine.define(0, "CREATE TABLE a (id BIGINT PRIMARY KEY, k INTEGER, x INTEGER)")
    engine.define(1, "CREATE TABLE b (id BIGINT PRIMARY KEY, k INTEGER, y INTEGER)")
    bodies = [
        _event(table, column, i, row)
        for table, column, many in (("a", "x", left), ("b", "y", right))
        for i, row in enumerate(many)
    ]
    engine.absorb((2 + i, body) for i, body in enumerate(bodies))
    return engine


def _event(table: str, column: str, number: int, row: tuple[int, int | None]) -> bytes:
    value = "null" if row[1] is None else row[1]
    values = f'{{"id": {number}, "k": {row[0]}, "{column}": {value}}}'
    return f'{{"table": "{table}", "op": "insert", "row": {values}}}'.encode()


def received(engine: Engine, messages: list[Message]) -> set[tuple[object, ...]]:
    """Which points get which rows."""
    got: set[tuple[object, ...]] = set()
    for number in engine.queries:
        for placed in engine.index.points_of(number):
            base = engine.index.space(placed.space.id).base
            for message in messages:
                if message.space == placed.space.id and message.upserts(placed.point, base):
                    got.add((placed.point.id, message.key, message.row))
    return got


@pytest.mark.parametrize("scanned", [whole_contents.SCANNED_POINTS, 0], ids=["kernel", "scheme"])
@settings(max_examples=examples(60), deadline=None)
@given(left=rows, right=rows, wanted=queries)
def test_regions_say_what_names_say(
    scanned: int,
    left: list[tuple[int, int | None]],
    right: list[tuple[int, int | None]],
    wanted: list[tuple[int, int, int, int]],
) -> None:
    engine = filled(left, right)
    named: list[Message] = []
    for i, (a, b, c, d) in enumerate(wanted):
        query = engine.bind(QUERY.format(min(a, b), max(a, b), min(c, d), max(c, d)))
        named += engine.subscribe(1_000 + i, query)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(whole_contents, "SCANNED_POINTS", scanned)
        told = list(engine.contents(2_000))
    assert received(engine, told) == received(engine, named)
    places = [(message.space, message.key) for message in told]
    assert len(places) == len(set(places)), "a message for each row that somebody needs"
    assert all(not message.recipients and not message.since for message in told)
