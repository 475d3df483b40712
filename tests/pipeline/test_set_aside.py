"""A fault in any step of processing: the record to blame is set aside, all others are served.

One record is marked, and a step of processing is made to fail whenever it meets the mark. Whoever
processes the home, the contents of all other subscriptions are what DuckDB makes of the events that
are not in quarantine.
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from penstock import Hub, PenstockError
from penstock.errors import ChangeError, SubscriptionError
from penstock.joins.points import SpacePoints
from penstock.maintenance.compaction import compact
from penstock.maintenance.verification import verify
from penstock.registry import Registry
from penstock.storage import Home, RecordKind
from penstock.testing import LocalPipeline
from penstock.testing.oracle import Oracle
from tests.maintenance.test_verify import silent
from tests.pipeline.disturbing import PATIENCE_SECONDS, pipeline_process, said
from tests.pipeline.telling import content, values_of

STRIKING = Path(__file__).parent / "striking"

MARK = "poisoned"
TABLES = (
    "CREATE TABLE stocks (id BIGINT PRIMARY KEY, symbol VARCHAR, per DOUBLE)",
    "CREATE TABLE reviews (id BIGINT PRIMARY KEY, symbol VARCHAR, rating INTEGER)",
    "CREATE STREAM ticks (symbol VARCHAR, price DOUBLE)",
)
QUERIES = (
    "SELECT id, symbol FROM stocks WHERE per > 10",
    "SELECT id, per FROM stocks WHERE symbol <> 'x'",
    "SELECT symbol, rating FROM reviews WHERE rating > 2",
    "SELECT symbol, rating FROM reviews WHERE rating < 9",
    "SELECT stocks.id, rating FROM stocks JOIN reviews USING (symbol) WHERE per > 5 AND rating > 1",
    "SELECT reviews.id, per FROM stocks JOIN reviews USING (symbol) WHERE per > 0 AND rating < 99",
    "SELECT symbol, price FROM ticks WHERE price > 1",
    "SELECT price FROM ticks WHERE symbol <> 'x'",
)
MARKED_QUERIES = (
    f"SELECT id FROM stocks WHERE symbol <> '{MARK}'",
    f"SELECT stocks.id FROM stocks JOIN reviews USING (symbol) WHERE stocks.symbol < '{MARK}'",
    f"SELECT price FROM ticks WHERE symbol > '{MARK}'",
)


class FaultError(Exception):
    """What nobody expected."""


def event(table: str, **row: object) -> dict[str, Any]:
    return {"table": table, "op": "insert", "row": row}


def usual_events(first: int) -> list[dict[str, Any]]:
    return [
        change
        for i in range(first, first + 3)
        for change in (
            event("stocks", id=i, symbol=f"s{i % 2}", per=20.0 + i),
            event("reviews", id=i, symbol=f"s{i % 2}", rating=3 + i % 5),
            event("ticks", symbol=f"s{i}", price=float(i)),
        )
    ]


MARKED_EVENTS = {
    "stocks": event("stocks", id=90, symbol=MARK, per=50.0),
    "reviews": event("reviews", id=91, symbol=MARK, rating=5),
    "ticks": event("ticks", symbol=MARK, price=7.0),
}

# Where an event is met: what it is part of is among the arguments.
EVENT_STEPS = (
    "penstock.flow.events:_read_plain",
    "penstock.flow.plain:RowStage.resolve",
    "penstock.flow.plain:selection_messages",
    "penstock.flow.plain:_somebody_selects",
    "penstock.flow.group_steps:EdgeSteps.add",
    "penstock.flow.plain:JoinStage._run_group",
    "penstock.flow.plain:consequences",
    "penstock.messages.wire:encode_message",
    "penstock.joins.points:SpacePoints.selecting",
    "penstock.routing.space_recipients:subscribers",
)
# Where a subscription is met: among the arguments, or among the points of the first one.
SUBSCRIPTION_STEPS = (
    "penstock.spaces.spaces:place",
    "penstock.flow.index:Index.add",
    "penstock.joins.points:SpacePoints.add",
    "penstock.joins.points:SpacePoints.selecting",
    "penstock.joins.selections:SelectionIndex.any_match",
    "penstock.flow.plain:RowStage.initial",
    "penstock.flow.plain:JoinStage.initial",
    "penstock.joins.points:SpacePoints.subset",
    "penstock.registry.plans:decode_plan",
)
# What the fast path of each stage begins with.
FAST_STEPS = (
    "penstock.flow.columnar.reader:ColumnReader.read",
    "penstock.flow.packed.rows:SentChanges.__init__",
    "penstock.joins.packed.joining:PackedJoins.run",
)


def meets_mark(values: tuple[object, ...]) -> bool:
    """Whether the marked record is in the arguments of a call, or among points that it is about."""
    for value in values:
        points = getattr(value, "points", value)
        if isinstance(points, SpacePoints):
            if any(MARK in repr(points[number]) for number in points.ids):
                return True
        elif MARK in repr(value):
            return True
    return False


@contextmanager
def failing(step: str, fails: Callable[[tuple[object, ...]], bool] = meets_mark) -> Iterator[None]:
    """Make a function fail, wherever it was imported to."""
    module_name, _, path = step.partition(":")
    owner: Any = importlib.import_module(module_name)
    *outer, name = path.split(".")
    for part in outer:
        owner = getattr(owner, part)
    real = getattr(owner, name)

    def faulty(*values: Any, **named: Any) -> Any:
        taken = tuple(list(v) if isinstance(v, Iterator) else v for v in values)
        if fails((*taken, *named.values())):
            raise FaultError(f"in {name}")
        return real(*taken, **named)

    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(owner, name, faulty))
        for module in [m for n, m in sys_modules() if n.startswith("penstock")]:
            if getattr(module, name, None) is real:
                stack.enter_context(mock.patch.object(module, name, faulty))
        yield


def sys_modules() -> list[tuple[str, Any]]:
    import sys

    return list(sys.modules.items())


def publish(home: Home, *events: dict[str, Any]) -> None:
    home.log.append([(RecordKind.EVENT, json.dumps(one).encode()) for one in events])


def filled(path: Path) -> tuple[Home, list[int]]:
    """A home with tables, subscriptions, and events that nobody has processed."""
    home = Home.create(path)
    with Registry(home) as registry:
        for sql in TABLES:
            registry.define(sql)
        numbers = [one.id for one in registry.subscribe_many(QUERIES)]
    publish(home, *usual_events(0))
    return home, numbers


class Runner:
    """Processes a home up to the end of its log, each time it is called."""

    def __init__(self, home: Home) -> None:
        self.home = home

    def __call__(self) -> None:
        raise NotImplementedError


class ByHub(Runner):
    def __call__(self) -> None:
        Hub(self.home.path, reoptimise_every=None).close()


class ByPipeline(Runner):
    def __init__(self, home: Home) -> None:
        super().__init__(home)
        self._pipeline = LocalPipeline(home, batch_rows=7)

    def __call__(self) -> None:
        self._pipeline.run()


class ByPlainPipeline(ByPipeline):
    """Its fast paths fail of everything."""

    def __call__(self) -> None:
        with ExitStack() as stack:
            for step in FAST_STEPS:
                stack.enter_context(failing(step, lambda _: True))
            self._pipeline.run()


RUNNERS = [ByHub, ByPipeline, ByPlainPipeline]


def check_contents(home: Home, numbers: list[int]) -> None:
    """Every content is what DuckDB makes of the events that are not in quarantine."""
    bad = {one.offset for one in home.quarantine.entries()}
    with Registry(home) as registry, Oracle() as oracle:
        for relation in registry.catalog():
            oracle.define(relation)
        for record in home.log.read(0, kinds=frozenset({RecordKind.EVENT})):
            if record.offset not in bad:
                change = json.loads(record.body)
                names = ", ".join(change["row"])
                values = list(change["row"].values())
                marks = ", ".join("?" for _ in values)
                oracle._run(f"INSERT INTO {change['table']} ({names}) VALUES ({marks})", values)
        for number in numbers:
            found = content(home, registry, number)
            assert found is not None
            assert values_of(found) == oracle.content(registry.subscription(number).sql), number


@pytest.mark.slow
@pytest.mark.parametrize("kind", RUNNERS)
@pytest.mark.parametrize("table", MARKED_EVENTS)
@pytest.mark.parametrize("step", EVENT_STEPS)
def test_an_event_is_set_aside(tmp_path: Path, step: str, table: str, kind: type[Runner]) -> None:
    home, numbers = filled(tmp_path / "home")
    runner = kind(home)
    runner()
    with failing(step):
        publish(home, *usual_events(10), MARKED_EVENTS[table], *usual_events(20))
        runner()
        publish(home, *usual_events(30))
        runner()
        check_contents(home, numbers)
        bad = list(home.quarantine.entries())
        assert [MARK.encode() in one.raw for one in bad] in ([], [True])
        with Registry(home) as registry:
            assert list(registry.records_set_aside()) == [one.offset for one in bad]
            assert registry.suspended() == []
    # Without the fault everything goes on, and nobody applies the event by itself.
    for first, other in ((40, ByHub), (50, ByPipeline)):
        publish(home, *usual_events(first))
        other(home)()
        check_contents(home, numbers)
    assert verify(home, silent).findings == []


@pytest.mark.slow
def test_each_step_is_one_that_fails(tmp_path: Path) -> None:
    """A step that no runner takes would prove nothing."""
    for i, step in enumerate(EVENT_STEPS):
        found = 0
        for j, kind in enumerate((ByHub, ByPlainPipeline)):
            for table, marked in MARKED_EVENTS.items():
                home, _ = filled(tmp_path / f"{i}-{j}-{table}")
                runner = kind(home)
                runner()
                with failing(step):
                    publish(home, marked, *usual_events(10))
                    runner()
                found += len(list(home.quarantine.entries()))
        assert found, step


@pytest.mark.slow
@pytest.mark.parametrize("kind", RUNNERS)
@pytest.mark.parametrize("sql", MARKED_QUERIES)
@pytest.mark.parametrize("step", SUBSCRIPTION_STEPS)
def test_a_subscription_is_suspended(
    tmp_path: Path, step: str, sql: str, kind: type[Runner]
) -> None:
    home, numbers = filled(tmp_path / "home")
    runner = kind(home)
    runner()
    with Registry(home) as registry:
        marked = registry.subscribe(sql).id
    with failing(step):
        runner()
        publish(home, *usual_events(10))
        runner()
        check_contents(home, numbers)
        assert not list(home.quarantine.entries())
        with Registry(home) as registry:
            assert registry.suspended() in ([], [marked])
            is_suspended = bool(registry.suspended())
    for first, other in ((40, ByHub), (50, ByPipeline)):
        publish(home, *usual_events(first))
        other(home)()
        check_contents(home, numbers if is_suspended else [*numbers, marked])
    with Registry(home) as registry:
        later = registry.subscribe(sql).id  # its edge may be one that the suspended one needed
    runner()
    check_contents(home, [*numbers, later])
    compact(home, silent)
    check_contents_compacted(home, [*numbers, later])


def check_contents_compacted(home: Home, numbers: list[int]) -> None:
    assert verify(home, silent).findings == []
    with Registry(home) as registry:
        assert all(content(home, registry, number) is not None for number in numbers)


@pytest.mark.spark
def test_on_spark(tmp_path: Path) -> None:
    """The fast path of joins fails of everything, the plain one of a marked event."""
    home, numbers = filled(tmp_path / "home")
    ByHub(home)()  # everybody is active, and Spark has groups to build again
    marked = event("stocks", id=90, symbol=MARK, per=50.0)
    publish(home, *usual_events(10), marked, *usual_events(20))
    environ = {
        "PYTHONPATH": os.pathsep.join([str(STRIKING), os.environ.get("PYTHONPATH", "")]),
        "PENSTOCK_FAIL": MARK,
    }
    with pipeline_process(home, tmp_path, 1000, **environ) as process:
        assert process.wait(PATIENCE_SECONDS) == 0, said(tmp_path)
    assert [MARK.encode() in one.raw for one in home.quarantine.entries()] == [True]
    with Registry(home) as registry:
        assert registry.suspended() == []
    check_contents(home, numbers)


def test_a_hub_says_so(tmp_path: Path) -> None:
    with Hub(tmp_path / "home") as hub:
        for sql in TABLES:
            hub.execute(sql)
        first, second = hub.subscribe(QUERIES[0]), hub.subscribe(QUERIES[1])
        with failing("penstock.joins.points:SpacePoints.add"):
            with pytest.raises(SubscriptionError, match="is suspended") as refused:
                hub.subscribe(MARKED_QUERIES[0])
            assert "FaultError: in add" in refused.value.detail
        with failing("penstock.flow.plain:_somebody_selects"):
            with pytest.raises(ChangeError, match="processing it failed") as failed:
                hub.apply([MARKED_EVENTS["stocks"], *usual_events(0)])
            assert "is in quarantine; the others are applied" in failed.value.detail
        suspended = second.id + 1
        with pytest.raises(SubscriptionError, match=f"{suspended} is suspended"):
            hub.subscription(suspended)
        assert [row["id"] for row in first.content()] == [0, 1, 2]
        assert len(second.notifications()) == 3
        hub.unsubscribe(suspended)
    with Hub(tmp_path / "home") as hub:
        assert [row["id"] for row in hub.subscription(first.id).content()] == [0, 1, 2]


def test_a_hub_in_memory_goes_on() -> None:
    with Hub() as hub:
        hub.execute(TABLES[0])
        subscription = hub.subscribe(QUERIES[0])
        hub.subscribe(QUERIES[1])
        with failing("penstock.flow.plain:_somebody_selects"):
            hub.insert("stocks", {"id": 1, "symbol": "a", "per": 20.0})
            with pytest.raises(PenstockError):
                hub.insert("stocks", {"id": 2, "symbol": MARK, "per": 20.0})
            hub.insert("stocks", {"id": 3, "symbol": "a", "per": 20.0})
        assert [row["id"] for row in subscription.content()] == [1, 3]
        assert [one.offset for one in hub.quarantine()] == [4]


def test_a_live_content_that_cannot_be_built_is_its_own_trouble() -> None:
    with Hub() as hub:
        hub.execute(TABLES[0])
        one, other = hub.subscribe(QUERIES[0]), hub.subscribe(QUERIES[1])
        number = one.id

        def is_first(values: tuple[object, ...]) -> bool:
            return getattr(values[0], "id", None) == number

        with failing("penstock.delivery.subscription:Subscription.deliver", is_first):
            hub.insert("stocks", {"id": 1, "symbol": "a", "per": 20.0})
        with pytest.raises(SubscriptionError, match="cannot be built"):
            one.content()
        assert len(other.content()) == 1


def test_what_the_disk_says_is_not_blamed_on_a_record(tmp_path: Path) -> None:
    home, _ = filled(tmp_path / "home")
    with (
        mock.patch("penstock.flow.plain.selection_messages", side_effect=OSError("no disk")),
        pytest.raises(OSError, match="no disk"),
    ):
        ByHub(home)()
    ByHub(home)()
    assert not list(home.quarantine.entries())
