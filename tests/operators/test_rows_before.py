"""Subscriptions that come after the rows: these are asked about what nobody needed to know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock import Hub, Subscription
from tests.operators.evaluating import Call
from tests.operators.samples import PREDICATES, is_lucky, is_odd

TABLES = (
    "CREATE TABLE t (id BIGINT PRIMARY KEY, k INTEGER, n BIGINT)",
    "CREATE TABLE u (id BIGINT PRIMARY KEY, k INTEGER, n BIGINT)",
)
SOME = "SELECT t.id AS one, u.id AS other FROM t JOIN u ON t.k = u.k WHERE isOdd(t.n) AND t.n > 3"
ALL = SOME.removesuffix(" AND t.n > 3")


@pytest.fixture
def hub(calls: Counter[Call]) -> Iterator[Hub]:
    with Hub() as made:
        prepare(made)
        yield made


def prepare(hub: Hub) -> None:
    for one in PREDICATES:
        hub.register_operator(one)
    for sql in TABLES:
        hub.execute(sql)


def fill(hub: Hub) -> None:
    for number in range(6):
        for table in "tu":
            hub.insert(table, {"id": number, "k": number % 2, "n": number})


def values(subscription: Subscription) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in subscription.content())


def test_a_join_that_others_had_before_with_fewer_rows(hub: Hub) -> None:
    few = hub.subscribe(SOME)
    fill(hub)
    assert values(few) == [(5, 1), (5, 3), (5, 5)]
    many = hub.subscribe(ALL)
    assert values(many) == [(n, m) for n in (1, 3, 5) for m in (1, 3, 5)]
    hub.delete("t", {"id": 1})
    assert values(many) == [(n, m) for n in (3, 5) for m in (1, 3, 5)]
    hub.update("u", {"id": 3, "k": 0})
    assert values(many) == [(n, m) for n in (3, 5) for m in (1, 5)]


def test_a_partner_that_others_had_before_with_fewer_rows(hub: Hub) -> None:
    hub.subscribe(SOME.replace("t.n", "u.n"))
    fill(hub)
    many = hub.subscribe(ALL.replace("t.n", "u.n"))
    assert values(many) == [(n, m) for n in (1, 3, 5) for m in (1, 3, 5)]
    hub.delete("u", {"id": 1})
    assert values(many) == [(n, m) for n in (1, 3, 5) for m in (3, 5)]


def test_a_column_that_nobody_had_while_rows_came(hub: Hub) -> None:
    """The groups of the join stay when its last subscription goes, and the call is another's."""
    first = hub.subscribe(ALL)
    hub.unsubscribe(first)
    other = hub.subscribe("SELECT id FROM t WHERE isOdd(n) AND isLucky(n)")
    fill(hub)
    assert values(other) == [(1,), (3,)]
    assert values(hub.subscribe(ALL)) == [(n, m) for n in (1, 3, 5) for m in (1, 3, 5)]


@pytest.mark.parametrize("sql", [ALL, "SELECT id FROM t WHERE isOdd(n)"])
def test_what_a_row_was_is_known_after_reopening(
    sql: str, tmp_path: Path, calls: Counter[Call]
) -> None:
    with Hub(tmp_path / "home") as hub:
        prepare(hub)
        hub.subscribe("SELECT id FROM t WHERE isOdd(n) AND n > 3")
        hub.subscribe(SOME)
        fill(hub)
        number = hub.subscribe(sql).id
    with Hub(tmp_path / "home", operators=PREDICATES) as hub:
        subscription = hub.subscription(number)
        before = values(subscription)
        assert {row[0] for row in before} == {1, 3, 5}
        hub.delete("t", {"id": 1})
        hub.update("t", {"id": 3, "n": 4})
        assert values(subscription) == [row for row in before if row[0] == 5]


def test_asking_again_is_left_to_what_is_known(hub: Hub, calls: Counter[Call]) -> None:
    hub.subscribe(SOME)
    fill(hub)
    hub.subscribe(ALL)
    hub.subscribe("SELECT id FROM t WHERE isOdd(n) AND isLucky(n)")
    assert set(calls.values()) == {1}
    assert {row for name, _, row in calls if name == is_odd.name} == {(n,) for n in range(6)}
    assert {row for name, _, row in calls if name == is_lucky.name} == {(1,), (3,), (5,)}
