"""Payload caches and mergers in broker processes: less is sent, and contents stay DuckDB's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import NetworkError
from penstock.service import BrokerSettings
from tests.service.served_home import (
    ANYWHERE,
    EVERYTHING,
    JOIN,
    Following,
    ServedHome,
    chained,
    run,
    until,
)

LONG_TEXTS = ("x" * 500, "y" * 900)
BUDGET = 0.3


def caching(*places: int) -> Any:
    """Only the brokers in these places of a chain keep payloads."""
    return lambda place: {} if place in places else {"payload_cache_bytes": 0}


def change_texts(served: ServedHome, times: int) -> None:
    for number in range(times):
        served.change(1, LONG_TEXTS[number % 2])


async def sent_bytes(served: ServedHome, settings: Any) -> tuple[int, int]:
    """Of a chain of three through which long texts go; and how many did not have to be sent."""
    numbers = {sql: served.hub.subscribe(sql).id for sql in (EVERYTHING, JOIN)}
    async with chained(served.path, 3, settings) as brokers:
        readers = [(sql, Following(brokers[2].address, n)) for sql, n in numbers.items()]
        for _, one in readers:
            await one.reach(served.end)
        for _ in range(10):
            change_texts(served, 4)
            for sql, one in readers:
                await one.reach(served.end)
                served.check(sql, one.reader)
        done = [one.broker.statistics() for one in brokers]
        for _, one in readers:
            await one.end()
    return sum(one.sent_bytes for one in done), sum(one.payloads_saved for one in done)


@pytest.mark.slow
def test_a_long_text_goes_over_a_link_once(tmp_path: Path) -> None:
    found = {}
    for name, places in {"all": (0, 1, 2), "ends": (0, 2), "none": ()}.items():
        with ServedHome(tmp_path / name) as served:
            found[name] = run(sent_bytes(served, caching(*places)))
    # A plain broker in the middle keeps nothing, so everything is sent to it and by it.
    assert found["none"][1] == found["ends"][1] == 0
    assert found["all"][1] > 20
    assert found["all"][0] < 0.7 * found["none"][0]


def test_a_condition_on_a_text_that_is_payload_until_then(tmp_path: Path) -> None:
    """From then on the column travels with the row, because brokers must look at it."""
    sqls = [f"SELECT id, text FROM r WHERE text LIKE '{text[:3]}%'" for text in LONG_TEXTS]

    async def story(served: ServedHome) -> None:
        everything = served.hub.subscribe(EVERYTHING).id
        async with chained(served.path, 3) as brokers:
            readers = [(EVERYTHING, Following(brokers[2].address, everything))]
            while not brokers[0].broker.statistics().payloads_saved:
                change_texts(served, 4)
                await readers[0][1].reach(served.end)
            for sql in sqls:
                readers.append((sql, Following(brokers[2].address, served.hub.subscribe(sql).id)))
                change_texts(served, 10)
                for one_sql, one in readers:
                    await one.reach(served.end)
                    served.check(one_sql, one.reader)
            for _, one in readers:
                await one.end()

    with ServedHome(tmp_path / "home") as served:
        run(story(served))


@pytest.mark.slow
def test_mergers_are_made_within_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of what lies between two interests nothing is known until it comes in vain; then it is."""
    monkeypatch.setattr("penstock.service.broker_settings.MERGE_PERIOD_TICKS", 1)
    monkeypatch.setattr("penstock.service.broker.TICK_SECONDS", 0.05)
    monkeypatch.setattr("penstock.routing.merging.measures.ENOUGH_MESSAGES", 20)
    sqls = [f"SELECT id, k, a FROM r WHERE a = {a} AND k = {k}" for a in (0, 4, 8) for k in (0, 2)]

    async def story(served: ServedHome) -> None:
        served.hub.subscribe(EVERYTHING)  # so that there are messages about other rows
        numbers = {sql: served.hub.subscribe(sql).id for sql in (*sqls, JOIN)}
        merging = {"false_positives": BUDGET}
        async with chained(served.path, 2, lambda _: merging) as (_, leaf):
            readers = [(sql, Following(leaf.address, n)) for sql, n in numbers.items()]

            async def change_until(condition: Callable[[], bool]) -> None:
                while not condition():
                    served.change(20)
                    for _, one in readers:
                        await one.reach(served.end)

            await change_until(lambda: leaf.broker.statistics().in_vain > 0)
            upstream = leaf.broker._exchange.upstream
            assert upstream is not None
            counted = leaf.broker._node.tables.merged_table(upstream.number).false_positives
            for more in range(100, 500, 100):
                await change_until(lambda more=more: counted.received > more)  # type: ignore[misc]
                assert counted.share <= BUDGET
            assert leaf.broker.statistics().in_vain < counted.received * 2 * BUDGET
            for sql, one in readers:
                served.check(sql, one.reader)
                assert len(set(one.ids)) == len(one.ids)
                await one.end()

    with ServedHome(tmp_path / "home") as served:
        run(story(served))


@pytest.mark.slow
def test_without_a_budget_mergers_are_perfect(tmp_path: Path) -> None:
    sqls = [f"SELECT id, k, a FROM r WHERE a = {a} AND k = {k}" for a in range(8) for k in range(4)]

    async def story(served: ServedHome) -> None:
        numbers = {sql: served.hub.subscribe(sql).id for sql in sqls}
        async with chained(served.path, 2) as (_, leaf):
            readers = [(sql, Following(leaf.address, n)) for sql, n in numbers.items()]
            for _, one in readers:
                await one.reach(served.end)
            await until(lambda: leaf.broker.statistics().mergers == 1)
            served.change(50)
            for sql, one in readers:
                await one.reach(served.end)
                served.check(sql, one.reader)
                await one.end()
            done = leaf.broker.statistics()
            assert done.received > 0
            assert done.in_vain == 0

    with ServedHome(tmp_path / "home") as served:
        run(story(served))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"payload_cache_bytes": -1}, "a payload cache of -1 bytes"),
        ({"payload_cache_bytes": 1 << 50}, "limit: 17,179,869,184 bytes"),
        ({"false_positives": 1.5}, "1.5 is not a share"),
    ],
)
def test_settings_that_cannot_be(options: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match=said):
        BrokerSettings(ANYWHERE, home=tmp_path, **options).check()
