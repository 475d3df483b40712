"""A home whose rows change, DuckDB beside it, and readers that follow through brokers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from penstock import Change, Hub, Op
from penstock.service import Address, Broker, BrokerReader, BrokerSettings, parse_address
from penstock.testing.oracle import Oracle, comparable
from tests.drawn_changes import DrawnChanges

Result = TypeVar("Result")

PATIENCE_SECONDS = 120.0
"""Before a test gives up. Nothing is measured by it: machines may be slow."""
ANYWHERE = parse_address("127.0.0.1:0")
TABLES = (
    "CREATE TABLE r (id BIGINT PRIMARY KEY, k INTEGER, a INTEGER, text VARCHAR)",
    "CREATE TABLE s (id BIGINT PRIMARY KEY, k INTEGER, b INTEGER)",
)
SELECTION = "SELECT id, k, a FROM r WHERE a BETWEEN 1 AND 6"
JOIN = "SELECT r.id, s.id AS other, b FROM r JOIN s ON r.k = s.k WHERE a > 2 AND b < 7"
WIDE_JOIN = "SELECT r.id, b FROM r JOIN s ON r.k = s.k WHERE a > 2 AND r.text = '' AND b < 7"
EVERYTHING = "SELECT * FROM r"


class ServedHome:
    """Changes come from a seed. Use as a context manager."""

    def __init__(self, path: Path, seed: int = 1) -> None:
        self.path = path
        self.random = Random(seed)
        self.hub = Hub(path)
        self.oracle = Oracle()
        for sql in TABLES:
            self.hub.execute(sql)
            self.oracle.define(list(self.hub.catalog)[-1])
        self.changes = DrawnChanges(("r", "s"))

    def __enter__(self) -> ServedHome:
        return self

    def __exit__(self, *error: object) -> None:
        self.hub.close()
        self.oracle.__exit__(None, None, None)

    @property
    def end(self) -> int:
        """Up to which offset everything has been processed."""
        return self.hub.snapshot(next(iter(self.hub.subscriptions()))).cursor

    def change(self, times: int = 1, text: str = "") -> None:
        for _ in range(times):
            changes = [self._draw_change(text) for _ in range(self.random.choice((1, 3)))]
            self.hub.apply(changes)
            for change in changes:
                self.oracle.apply(change)

    def _draw_change(self, text: str) -> Change:
        change = self.changes.draw(self.random)
        if change.op is Op.DELETE:
            return change
        row = {**change.row, "k": self.random.randrange(4)}
        row["a" if change.table == "r" else "b"] = self.random.randrange(9)
        if change.table == "r":
            row["text"] = text
        return replace(change, row=row)

    def check(self, sql: str, reader: BrokerReader) -> None:
        found = comparable(row.values() for row in reader.rows())
        assert found == self.oracle.content(sql), sql


class Following:
    """A reader that follows in the background, and what it was told."""

    def __init__(self, address: Address, subscription: int, token: bytes = b"") -> None:
        self.troubles: list[str] = []
        self.ids: list[str] = []
        self.reader = BrokerReader(
            address, subscription, token=token, on_trouble=self.troubles.append
        )
        self.task = asyncio.ensure_future(self._follow())

    async def _follow(self) -> None:
        async for news in self.reader.news():
            self.ids += [one.id for one in news.notifications]

    async def reach(self, offset: int) -> None:
        """Wait until everything up to an offset has come."""
        await until(lambda: self.task.done() or self.reader.position >= offset)
        if self.task.done():
            self.task.result()

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not condition():
            await asyncio.sleep(0.02)


class RunningBroker:
    """A broker in the event loop of the test."""

    def __init__(self, broker: Broker, reports: list[str], task: asyncio.Future[None]) -> None:
        self.broker, self.reports, self.task = broker, reports, task

    @property
    def address(self) -> Address:
        return self.broker.address

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    async def reported(self, text: str) -> str:
        await until(lambda: any(text in line for line in self.reports))
        return next(line for line in self.reports if text in line)


async def run_broker(settings: BrokerSettings) -> RunningBroker:
    reports: list[str] = []
    ready: asyncio.Future[Address] = asyncio.get_running_loop().create_future()
    broker = Broker(settings, reports.append)
    task = asyncio.ensure_future(broker.run(ready.set_result))
    await until(lambda: task.done() or ready.done())
    if not ready.done():
        task.result()  # why it could not begin
    return RunningBroker(broker, reports, task)


@contextlib.asynccontextmanager
async def running(*settings: BrokerSettings) -> AsyncIterator[list[RunningBroker]]:
    """Brokers, ended in the end."""
    started: list[RunningBroker] = []
    try:
        started += [await run_broker(one) for one in settings]
        yield started
    finally:
        for broker in reversed(started):
            await broker.end()


@contextlib.asynccontextmanager
async def chained(
    home: Path, brokers: int, settings: Callable[[int], dict[str, Any]] = lambda _: {}
) -> AsyncIterator[list[RunningBroker]]:
    """A chain of brokers, the first at the home; `settings` of each, by its place."""
    started = [await run_broker(BrokerSettings(ANYWHERE, home=home, **settings(0)))]
    try:
        while len(started) < brokers:
            above = BrokerSettings(ANYWHERE, upstream=started[-1].address, **settings(len(started)))
            started.append(await run_broker(above))
        yield started
    finally:
        for broker in reversed(started):
            await broker.end()


def run(story: Coroutine[object, object, Result]) -> Result:
    return asyncio.run(_patiently(story))


async def _patiently(story: Awaitable[Result]) -> Result:
    async with asyncio.timeout(2 * PATIENCE_SECONDS):
        return await story
