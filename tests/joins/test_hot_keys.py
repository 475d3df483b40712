"""One join value that very many rows share: what a change costs must not grow with them.

Work is counted, not timed: the rows of groups that are gone over, and the calls of functions.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import Any
from unittest import mock

import pytest

from penstock import Hub
from penstock.catalog import Row, RowKey
from penstock.joins import Group
from penstock.spaces import Decomposition, candidates
from penstock.sql import bind

SMALL, LARGE = 400, 1_600
"""Rows on each side. Logarithmic growth would be 1.2 between them, linear growth 4."""
MOST_GROWTH = 2.0


class Work:
    """Counts rows that are gone over, and calls."""

    def __init__(self) -> None:
        self.rows = 0
        self.calls = 0

    def note(self, frame: FrameType, event: str, argument: object) -> None:
        self.calls += event == "call"


class CountedRows(dict[RowKey, Row]):
    work: Work

    def _counted(self) -> CountedRows:
        self.work.rows += len(self)
        return self

    def __iter__(self) -> Iterator[RowKey]:
        return super(CountedRows, self._counted()).__iter__()

    def items(self) -> Any:
        return super(CountedRows, self._counted()).items()

    def values(self) -> Any:
        return super(CountedRows, self._counted()).values()


def widest(hub: Hub, sql: str) -> Decomposition:
    """Filters by as many columns as there are conditions."""
    query = bind(sql, hub.catalog)
    return tuple(
        tuple(
            max(candidates(query, branch, node), key=lambda choice: len(choice.columns))
            for node in range(len(query.nodes))
        )
        for branch in range(len(query.branches))
    )


Change = dict[str, Any]
Pattern = Callable[[int], Iterable[list[Change]]]


def row(table: str, number: int, value: int) -> Change:
    values = {"id": number, "k": 1, "a": value, "b": value % 7}
    return {"table": table, "op": "upsert", "row": values}


def one_side_first(count: int) -> Iterable[list[Change]]:
    for table in ("r", "s"):
        yield from ([row(table, i, i * 37 % 1000)] for i in range(count))


def by_turns(count: int) -> Iterable[list[Change]]:
    return ([row("rs"[i % 2], i // 2, i * 37 % 1000)] for i in range(2 * count))


def ever_larger_values(count: int) -> Iterable[list[Change]]:
    return ([row("rs"[i % 2], i // 2, i)] for i in range(2 * count))


def in_batches(count: int) -> Iterable[list[Change]]:
    for first in range(0, count, 50):
        some = range(first, min(count, first + 50))
        yield [row(table, i, i * 37 % 1000) for i in some for table in ("r", "s")]


QUERIES = {
    "nobody": "r.a > 500000 AND s.a > 500000",
    "somebody": "r.a = 37 AND s.a > 996",
    "several columns": "r.a > 500000 AND r.b > 9 AND s.a > 500000 AND s.b > 9",
}


def work_for(pattern: Pattern, query: str, count: int, updates: int = 0) -> Work:
    """What it takes to fill both tables; or to change some rows, when they are full."""
    sql = f"SELECT r.id AS r, s.id AS s FROM r JOIN s USING (k) WHERE {QUERIES[query]}"
    work = Work()
    rows = type("Rows", (CountedRows,), {"work": work})

    def counted_group() -> Group:
        return Group((rows(), rows()))

    with (
        mock.patch("penstock.flow.memory.Group", counted_group),
        Hub(reoptimise_every=None) as hub,
    ):
        for table in ("r", "s"):
            hub.execute(
                f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, k INTEGER, a INTEGER, b INTEGER)"
            )
        hub.subscribe(sql, decomposition=widest(hub, sql) if query == "several columns" else None)
        changes: list[list[Change]] = list(pattern(count))
        if updates:
            hub.apply([change for batch in changes for change in batch])
            hub.apply([row("rs"[i % 2], i, i) for i in range(2)])  # the tables are known now
            work.rows = 0
            changes = [[row("rs"[i % 2], i, i * 31 % 1000)] for i in range(updates)]
        sys.setprofile(work.note)
        try:
            for batch in changes:
                hub.apply(batch)
        finally:
            sys.setprofile(None)
    return work


@pytest.mark.slow
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("pattern", [one_side_first, by_turns, ever_larger_values, in_batches])
def test_rows_that_come(pattern: Pattern, query: str) -> None:
    """Total work is no worse than n log n."""
    small, large = work_for(pattern, query, SMALL), work_for(pattern, query, LARGE)
    assert large.calls / LARGE < MOST_GROWTH * small.calls / SMALL
    # Until it is known that a join value is hot, its rows are gone over; later, now and then.
    assert large.rows / LARGE < max(MOST_GROWTH * small.rows / SMALL, 64)


@pytest.mark.slow
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("pattern", [one_side_first, ever_larger_values])
def test_single_updates(pattern: Pattern, query: str) -> None:
    small, large = (work_for(pattern, query, count, updates=200) for count in (SMALL, LARGE))
    assert large.calls < MOST_GROWTH * small.calls
    assert large.rows <= 8 * LARGE  # what is remembered of each side and space, and no more


def test_rows_that_another_column_excludes_are_not_told() -> None:
    """Shadows look at one base column, here the one that excludes nothing."""
    with Hub(reoptimise_every=None) as hub:
        for table in ("r", "s"):
            hub.execute(f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, k INTEGER, a INTEGER)")
        hub.subscribe("SELECT r.id FROM r JOIN s USING (k) WHERE r.id >= 0 AND r.a = 5 AND s.a = 7")
        rows = [{"id": i, "k": 1, "a": i % 500} for i in range(1_000)]
        hub.apply([{"table": "r", "op": "insert", "row": values} for values in rows])
        hub.insert("s", {"id": 1, "k": 1, "a": 7})
        hub.update("r", {"id": 9, "a": 8})
        hub.delete("s", {"id": 1})
        messages = hub._home.messages
        told = [m for header in messages.batches() for m in messages.read(header)]
    assert len(told) == 2 * (2 + 1)  # two rows of r and one of s, that come and go
