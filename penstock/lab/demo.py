"""The demonstration: a few thousand changes, two thousand standing queries, real Spark.

Everything uses the public interfaces: a home, its log, the pipeline, the message log, and clients
that build contents from messages. At the end every content is compared with the workload's own
result of the query.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

from penstock.client import Content, ContentRow
from penstock.errors import PenstockError
from penstock.flow.changes import Change, Op
from penstock.flow.events import encode_change
from penstock.flow.explain import Explanation, explain
from penstock.flow.memory import MemoryRows
from penstock.lab.workloads.stocks import (
    CREATE_REVIEWS,
    CREATE_STOCKS,
    Interest,
    Market,
    draw_interests,
)
from penstock.maintenance import Clients, Traffic
from penstock.registry import Registry
from penstock.storage import Home, RecordKind

FRAME_EVENTS = 500

BAD_EVENTS = (
    b'{"table": "stocks", "op": "insert", "row": {"id": 900001, "symbol": "GO',
    b'{"table": "stocks", "op": "update", "row": {"id": 900002, "per": 12.5}}',
)
"""A truncated one, and one for a row that does not exist."""

FEW_ROWS = range(3, 9)
"""Number of rows of the content shown as an example."""

Advance: TypeAlias = Callable[[int, int], None]


class Reporter(Protocol):
    def step(self, what: str) -> AbstractContextManager[Advance]:
        """Announces a step; the returned function is called with the work done, and in all."""


@dataclass(frozen=True, slots=True)
class Example:
    """One subscription to look at, and a change that would affect it."""

    subscription: int
    sql: str
    columns: list[str]
    rows: list[ContentRow]
    change: Change
    explanation: Explanation


@dataclass(frozen=True, slots=True)
class DemoReport:
    home: Path
    subscriptions: int
    events: int
    quarantined: int
    traffic: Traffic
    checked: int
    """Contents that were compared with another evaluation of the query, and were equal."""
    example: Example
    seconds: float


def run_demo(
    path: Path, reporter: Reporter, *, subscriptions: int, changes: int, seed: int, master: str
) -> DemoReport:
    started = time.monotonic()
    interests = draw_interests(subscriptions, seed)
    with reporter.step("a home with two tables: stocks and reviews"):
        home = Home.create(path)
        registry = Registry(home)
        for statement in (CREATE_STOCKS, CREATE_REVIEWS):
            registry.define(statement)
    with reporter.step(f"{subscriptions:,} subscriptions around shared interests"):
        stored = registry.subscribe_many([interest.sql for interest in interests], "demo")
    market, before_changes = Market(seed), home.log.end
    with reporter.step(f"{changes:,} changes published to the log") as advance:
        events = _publish(home, market, changes, advance)
    with reporter.step("the pipeline on Spark: log → message log") as advance:
        _process(home, master, before_changes, advance)
    clients = Clients(home)
    with reporter.step(f"{subscriptions:,} clients build their contents from messages") as advance:
        clients.take_in(lambda end: advance(end, home.log.end))
    numbered = {one.id: interest for one, interest in zip(stored, interests, strict=True)}
    with reporter.step("every content compared with the query run over all rows"):
        checked = _check(clients.contents, numbered, market)
    return DemoReport(
        home=path,
        subscriptions=subscriptions,
        events=events,
        quarantined=sum(1 for _ in home.quarantine.entries()),
        traffic=clients.traffic,
        checked=checked,
        example=_example(registry, clients.contents, numbered, market),
        seconds=time.monotonic() - started,
    )


def _publish(home: Home, market: Market, count: int, advance: Advance) -> int:
    events = [encode_change(change) for change in market.changes(count)]
    events += BAD_EVENTS
    for start in range(0, len(events), FRAME_EVENTS):
        frame = events[start : start + FRAME_EVENTS]
        home.log.append([(RecordKind.EVENT, event) for event in frame])
        advance(start + len(frame), len(events))
    return len(events)


def _process(home: Home, master: str, before_changes: int, advance: Advance) -> None:
    from penstock.pipeline.run import run  # lazy: Spark takes a moment to load

    run(
        home.path,
        once=True,
        master=master,
        # The first batch ends where the changes begin, so all subscriptions are active before them.
        batch_rows=before_changes,
        on_progress=lambda batch: advance(batch.done, batch.total),
    )


def _check(contents: dict[int, Content], interests: dict[int, Interest], market: Market) -> int:
    for number, interest in interests.items():
        content = contents[number].rows() if number in contents else []
        built = Counter(tuple(row.values()) for row in content)
        if built != Counter(interest.answer(market.rows)):
            raise PenstockError(
                f"the content of subscription {number} is wrong",
                detail=interest.sql,
                hint="this is a bug in Penstock; please report it",
            )
    return len(interests)


def _example(
    registry: Registry, contents: dict[int, Content], interests: dict[int, Interest], market: Market
) -> Example:
    number = _shown_subscription(contents, interests)
    content, interest = contents[number], interests[number]
    rows = content.rows()
    assert interest.per is not None
    change = _price_out_of_range(market, interest.per[0], interest.per[1], rows)
    catalog = registry.catalog()
    tables = MemoryRows()
    for table, kept in (("stocks", market.rows.stocks), ("reviews", market.rows.reviews)):
        relation = catalog[table]
        for one in kept.values():
            row = relation.store_row(one._asdict())
            tables.put(relation, relation.key_of(row, 0), row)
    return Example(
        number,
        interest.sql,
        [output.label for output in content.query.outputs],
        rows,
        change,
        explain(number, content.query, change, catalog, tables, registry.applied + 1),
    )


def _shown_subscription(contents: dict[int, Content], interests: dict[int, Interest]) -> int:
    """The first join with a handful of rows; in a small demonstration, the join with most."""
    joins = [n for n, i in interests.items() if i.per is not None and i.rating is not None]
    sizes = {number: len(contents[number].rows()) for number in joins}
    few = [number for number in joins if sizes[number] in FEW_ROWS]
    return few[0] if few else max(joins, key=lambda number: sizes[number])


def _price_out_of_range(market: Market, low: float, high: float, rows: list[ContentRow]) -> Change:
    """A stock of the content becomes too expensive for it; or, if there is none, one enters."""
    if rows:
        return Change("stocks", Op.UPDATE, {"id": rows[0]["stocks.id"], "per": high + 1})
    stock = next(iter(market.rows.stocks.values()))
    return Change("stocks", Op.UPDATE, {"id": stock.id, "per": (low + high) / 2})
