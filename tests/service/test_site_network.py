"""The source and sites in one event loop: restarts, cut links, peers that say what they may not."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from random import Random
from typing import Any

import pytest

from penstock.errors import NetworkError, SubscriptionError
from penstock.service import (
    Address,
    Site,
    SiteSettings,
    SourceSettings,
    ViewReader,
    ViewSource,
    ask_state,
    parse_address,
)
from penstock.service.connections import connect, greet_listener
from penstock.service.packets import NodeFrame
from penstock.service.site_peers import receive_frame, send_frame
from penstock.views.plan_limits import PlanLimits
from penstock.views.site_frames import Join, SiteFrame
from penstock.views.site_host import Gap, Read
from tests.service.news_home import VIEWS, NewsHome
from tests.service.served_home import ANYWHERE, run, until
from tests.service.test_processes import CuttingProxy
from tests.service.test_sites import Subscriber, all_reach


class Running:
    """Something that serves, in the event loop of the test."""

    def __init__(self, task: asyncio.Future[None], address: Address, reports: list[str]) -> None:
        self.task, self.address, self.reports = task, address, reports

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


async def start(
    run_it: Callable[[Callable[[Address], None]], Coroutine[Any, Any, None]], reports: list[str]
) -> Running:
    ready: asyncio.Future[Address] = asyncio.get_running_loop().create_future()
    task = asyncio.ensure_future(run_it(ready.set_result))
    await until(lambda: task.done() or ready.done())
    if not ready.done():
        task.result()
    return Running(task, ready.result(), reports)


async def start_source(home: Path, sites: int, listen: Address = ANYWHERE) -> Running:
    reports: list[str] = []
    settings = SourceSettings(home, listen, sites=sites, limits=PlanLimits(3), grace_seconds=0.2)
    return await start(ViewSource(settings, reports.append).run, reports)


async def start_site(source: Address, tokens: tuple[bytes, ...] = (b"",)) -> Running:
    reports: list[str] = []
    settings = SiteSettings(ANYWHERE, source, tokens, feeds=3)
    return await start(Site(settings, reports.append).run, reports)


@contextlib.asynccontextmanager
async def network(home: NewsHome, sites: int) -> AsyncIterator[list[Running]]:
    """The source first."""
    running = [await start_source(home.path, sites)]
    try:
        running += [await start_site(running[0].address) for _ in range(sites)]
        yield running
    finally:
        for one in reversed(running):
            await one.end()


@pytest.fixture
def home(tmp_path: Path) -> NewsHome:
    made = NewsHome(tmp_path / "home")
    for sql in VIEWS[:8]:
        made.subscribe(sql)
    made.change(12)
    assert all(made.content(number) for number in made.hub.subscriptions())
    return made


def numbers(home: NewsHome) -> list[int]:
    return list(home.hub.subscriptions())


@pytest.mark.slow
def test_the_source_is_started_again(home: NewsHome) -> None:
    """Documents are numbered anew; subscribers are told only what differs."""

    async def story() -> None:
        async with network(home, 3) as running:
            subscribers = [Subscriber(running[0].address, one, b"") for one in numbers(home)]
            await all_reach(home, subscribers)
            await running[0].end()
            home.change(8)
            running[0] = await start_source(home.path, 3, running[0].address)
            await all_reach(home, subscribers)
            home.change(3)
            await all_reach(home, subscribers)
            for one in subscribers:
                await one.end()

    with home:
        run(story())


@pytest.mark.slow
def test_a_site_comes_and_one_goes_in_good_order(home: NewsHome) -> None:
    async def story() -> None:
        async with network(home, 2) as running:
            source = running[0].address
            subscribers = [Subscriber(source, one, b"") for one in numbers(home)]
            await all_reach(home, subscribers)
            running.append(await start_site(source))
            await running.pop(1).end()
            home.change(6)
            await all_reach(home, subscribers)
            assert (await ask_state(source))["moves"] == 4
            for one in subscribers:
                await one.end()

    with home:
        run(story())


@pytest.mark.slow
def test_links_between_a_site_and_the_source_are_cut(home: NewsHome) -> None:
    async def story() -> None:
        source = await start_source(home.path, 2)
        proxy = CuttingProxy(source.address, Random(3))
        sites = [await start_site(await proxy.start()), await start_site(source.address)]
        subscribers = [Subscriber(source.address, one, b"") for one in numbers(home)]
        while proxy.cuts < 6:
            home.change(1)
            await asyncio.sleep(0.02)
        proxy.is_cutting = False
        await all_reach(home, subscribers)
        for one in subscribers:
            await one.end()
        for running in (*sites, source):
            await running.end()
        proxy.end()

    with home:
        run(story())


@pytest.mark.slow
def test_who_asks_for_a_view_that_is_not_there(home: NewsHome) -> None:
    async def story() -> None:
        async with network(home, 1) as running:
            with pytest.raises(SubscriptionError, match="there is no view 99"):
                async for _ in ViewReader(running[0].address, 99).news():
                    pass

    with home:
        run(story())


@pytest.mark.slow
def test_reading_to_the_end(home: NewsHome) -> None:
    async def story() -> None:
        async with network(home, 2) as running:
            for number in numbers(home):
                reader = ViewReader(running[0].address, number)
                told = [row async for news in reader.news(follow=False) for row in news.come]
                assert len(told) == len(reader.rows()) == sum(home.content(number).values())

    with home:
        run(story())


async def say(address: Address, role: str, frame: SiteFrame | bytes) -> SiteFrame:
    """Connect, say something, and wait for an answer."""
    connection = await connect(address)
    with contextlib.closing(connection):
        await greet_listener(connection, role, "somebody", b"")
        if isinstance(frame, bytes):
            connection.send(NodeFrame(frame))
        else:
            send_frame(connection, frame)
        return await receive_frame(connection)


def test_peers_that_say_what_they_may_not(home: NewsHome) -> None:
    async def story() -> None:
        async with network(home, 1) as (source, site):
            for address in (source.address, site.address):
                for frame in (b"\x00", b"", Gap(1, 2)):
                    with pytest.raises(Exception, match=r"cannot be read|Gap from a reader"):
                        await say(address, "reader", frame)
            with pytest.raises(Exception, match="Join from a reader"):
                await say(source.address, "reader", Join("127.0.0.1:1", 3))
            subscriber = Subscriber(source.address, numbers(home)[0], b"")
            await subscriber.reach(home)
            await subscriber.end()

    with home:
        run(story())


def test_reads_that_nobody_can_answer_only_wait(home: NewsHome) -> None:
    async def story() -> None:
        async with network(home, 1) as (source, site):
            for address in (source.address, site.address):
                connection = await connect(address)
                await greet_listener(connection, "reader", "somebody", b"")
                for tag in range(100):
                    send_frame(connection, Read(tag, 1, 1 << 40, 1 << 50, 1 << 60))
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.1):
                        await receive_frame(connection)
                connection.close()
            subscriber = Subscriber(source.address, numbers(home)[0], b"")
            await subscriber.reach(home)
            await subscriber.end()

    with home:
        run(story())


def test_a_site_with_another_token_is_not_let_in(home: NewsHome) -> None:
    async def story() -> None:
        source = await start_source(home.path, 1)
        site = await start_site(source.address, (b"another token, long enough",))
        with pytest.raises(NetworkError, match="different tokens"):
            await site.task
        await source.end()

    with home:
        run(story())


def test_settings_that_cannot_be() -> None:
    anywhere = parse_address("0.0.0.0:0")
    with pytest.raises(NetworkError, match="a token is needed"):
        SiteSettings(anywhere, ANYWHERE).check()
    with pytest.raises(NetworkError, match="at least one site"):
        SourceSettings(Path("home"), ANYWHERE, sites=0).check()
