"""Readers that follow subscriptions through brokers: what they have is what DuckDB says."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from penstock.errors import NetworkError, SubscriptionError
from penstock.service import BrokerReader, BrokerSettings, parse_address
from penstock.service.packets import Attach, Delivered
from penstock.service.readers import Readers
from penstock.spaces import decomposition_of
from penstock.sql import bind
from penstock.testing.decompositions import numbered_decomposition
from tests.service.raw_peers import described_points, raw_reader
from tests.service.served_home import (
    ANYWHERE,
    EVERYTHING,
    JOIN,
    SELECTION,
    WIDE_JOIN,
    Following,
    ServedHome,
    chained,
    run,
    running,
    until,
)


@pytest.fixture
def served(tmp_path: Path) -> ServedHome:
    return ServedHome(tmp_path / "home")


def test_contents_far_away_are_those_at_home(served: ServedHome) -> None:
    async def story() -> None:
        served.change(10)
        early = [(sql, served.hub.subscribe(sql).id) for sql in (SELECTION, JOIN)]
        served.change(10)
        async with chained(served.path, 3) as brokers:
            readers = [
                (sql, Following(broker.address, number))
                for sql, number in early
                for broker in brokers
            ]
            served.change(10)
            late = served.hub.subscribe(JOIN).id  # its spaces are known, or become so
            readers.append((JOIN, Following(brokers[2].address, late)))
            other = "SELECT s.id FROM s JOIN r ON r.a = s.b WHERE r.k = 1"
            new_space = served.hub.subscribe(other).id
            readers.append((other, Following(brokers[2].address, new_space)))
            served.change(10)
            for sql, one in readers:
                await one.reach(served.end)
                served.check(sql, one.reader)
                assert len(set(one.ids)) == len(one.ids)
                await one.end()
            assert not [line for one in brokers for line in one.reports if "connected" not in line]

    with served:
        run(story())


def test_reading_up_to_the_end_and_no_further(served: ServedHome) -> None:
    async def story() -> None:
        number = served.hub.subscribe(SELECTION).id
        served.change(20)
        async with chained(served.path, 2) as brokers:
            reader = BrokerReader(brokers[1].address, number)
            cuts = [news async for news in reader.news(follow=False)]
            served.check(SELECTION, reader)
            middle = cuts[len(cuts) // 2].cursor
            again = BrokerReader(brokers[1].address, number, since=middle)
            later = [news async for news in again.news(follow=False)]
            assert later == [news for news in cuts if news.cursor > middle]

    with served:
        run(story())


def test_replans_and_withdrawals_reach_readers(served: ServedHome) -> None:
    async def story() -> None:
        served.change(20)
        number = served.hub.subscribe(WIDE_JOIN).id
        async with chained(served.path, 2) as brokers:
            following = Following(brokers[1].address, number)
            await following.reach(served.end)
            query = bind(WIDE_JOIN, served.hub.catalog)
            now = decomposition_of(query, None)
            others = {numbered_decomposition(query, i) for i in range(20)} - {now}
            served.hub.replan(number, min(others))
            served.change(5)
            await following.reach(served.end)
            served.check(WIDE_JOIN, following.reader)
            served.hub.unsubscribe(number)
            other = served.hub.subscribe(SELECTION).id
            served.change(1)
            await until(following.task.done)
            with pytest.raises(SubscriptionError, match="withdrawn"):
                following.task.result()
            still = Following(brokers[1].address, other)
            await still.reach(served.end)
            served.check(SELECTION, still.reader)
            await still.end()

    with served:
        run(story())


def test_a_subscription_that_is_not_there_is_named(served: ServedHome) -> None:
    async def story() -> None:
        async with chained(served.path, 2) as brokers:
            reader = BrokerReader(brokers[1].address, 999)
            with pytest.raises(SubscriptionError, match="no subscription 999"):
                async for _ in reader.news():
                    pass
            with pytest.raises(SubscriptionError, match="has not been read"):
                reader.rows()

    with served:
        run(story())


@pytest.mark.slow
def test_nobody_listens(tmp_path: Path) -> None:
    async def story() -> None:
        reader = BrokerReader(parse_address("127.0.0.1:1"), 1)
        with pytest.raises(NetworkError, match=r"no broker can be reached at 127\.0\.0\.1:1"):
            async for _ in reader.news():
                pass

    run(story())


@pytest.mark.slow
def test_a_slow_reader_is_read_for_later(served: ServedHome) -> None:
    """It is held as long as it does not read, holds up nobody, and misses nothing."""

    async def story() -> None:
        number = served.hub.subscribe(EVERYTHING).id
        async with chained(served.path, 2) as brokers:
            leaf = brokers[1]
            slow = await raw_reader(leaf.address)
            points, start = await described_points(slow, number)
            slow.send(Attach(points, start))
            quick = Following(leaf.address, number)
            readers: Readers = leaf.broker._exchange.readers
            while not readers.holds:
                served.change(5, "x" * 100_000)
                await quick.reach(served.end)
            served.change(5)
            await quick.reach(served.end)
            served.check(EVERYTHING, quick.reader)
            sequences: list[int] = []
            last = brokers[0].broker._root._feed.end  # type: ignore[union-attr]
            while not sequences or sequences[-1] < last:
                packet = await slow.receive()
                if isinstance(packet, Delivered):
                    sequences.append(packet.sequence)
            assert sequences == sorted(set(sequences))
            got = await all_sequences(leaf.address, number, last)
            assert sequences == got
            slow.close()
            await quick.end()

    async def all_sequences(address: object, number: int, last: int) -> list[int]:
        other = await raw_reader(address)  # type: ignore[arg-type]
        points, start = await described_points(other, number)
        other.send(Attach(points, start))
        found: list[int] = []
        while not found or found[-1] < last:
            packet = await other.receive()
            if isinstance(packet, Delivered):
                found.append(packet.sequence)
        other.close()
        return found

    with served:
        run(story())


def test_tokens_are_needed_where_others_can_connect(served: ServedHome) -> None:
    with pytest.raises(NetworkError, match="a token is needed"):
        BrokerSettings(parse_address("0.0.0.0:0"), home=served.path).check()
    with pytest.raises(NetworkError, match="either a home or another broker"):
        BrokerSettings(ANYWHERE).check()
    BrokerSettings(parse_address("0.0.0.0:0"), home=served.path, tokens=(b"t" * 20,)).check()
    served.__exit__()


def test_a_token_for_each_link(served: ServedHome) -> None:
    async def story() -> None:
        number = served.hub.subscribe(SELECTION).id
        one, other, wrong = b"1" * 20, b"2" * 20, b"3" * 20
        async with running(BrokerSettings(ANYWHERE, home=served.path, tokens=(one, other))) as (
            root,
        ):
            good = [Following(root.address, number, token) for token in (one, other)]
            bad = [Following(root.address, number, token) for token in (wrong, b"")]
            for following in bad:
                await until(following.task.done)
                with pytest.raises(NetworkError, match="different tokens"):
                    following.task.result()
            with pytest.raises(NetworkError, match="different tokens"):
                await asyncio.wait_for(_joined(root.address, wrong), None)
            served.change(5)
            for following in good:
                await following.reach(served.end)
                served.check(SELECTION, following.reader)
                await following.end()
            await root.reported("different tokens")

    async def _joined(address: object, token: bytes) -> None:
        settings = BrokerSettings(ANYWHERE, upstream=address, upstream_token=token)  # type: ignore[arg-type]
        async with running(settings) as (broker,):
            await broker.task

    with served:
        run(story())
