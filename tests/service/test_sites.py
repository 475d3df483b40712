"""Sites as processes: every subscriber ends with what the home returns, whatever is killed."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from penstock.errors import NetworkError
from penstock.service import Address, LocalSites, ViewNews, ViewReader, ask_state, read_tokens
from tests.service.news_home import VIEWS, NewsHome, view_sql
from tests.service.served_home import PATIENCE_SECONDS, run, until


class Subscriber:
    """Reads a view in the background, and puts together what it is told."""

    def __init__(self, source: Address, view: int, token: bytes) -> None:
        self.view = view
        self.troubles: list[str] = []
        self.reader = ViewReader(source, view, token=token, on_trouble=self.troubles.append)
        self.rows: Counter[tuple[object, ...]] = Counter()
        self.task = asyncio.ensure_future(self._follow())

    async def _follow(self) -> None:
        async for news in self.reader.news():
            self._take(news)

    def _take(self, news: ViewNews) -> None:
        for row in news.gone:
            self.rows[tuple(row.values())] -= 1
        for row in news.come:
            self.rows[tuple(row.values())] += 1
        assert min(self.rows.values(), default=0) >= 0, "a row is gone twice"
        self.rows = +self.rows

    async def reach(self, home: NewsHome) -> None:
        """Wait until it has what the home returns; that it came once is what `rows` counts."""
        wanted = home.content(self.view)
        await until(lambda: self.task.done() or self.rows == wanted)
        if self.task.done():
            self.task.result()

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


async def all_reach(home: NewsHome, subscribers: list[Subscriber]) -> None:
    for one in subscribers:
        await one.reach(home)


@pytest.mark.slow
def test_twelve_sites_of_which_two_are_killed(tmp_path: Path) -> None:
    async def story(home: NewsHome, network: LocalSites, numbers: list[int]) -> None:
        token = read_tokens(network.token_file)[0]
        source = network.addresses[0]
        subscribers = [Subscriber(source, number, token) for number in numbers]
        await all_reach(home, subscribers)
        home.change(10)
        await all_reach(home, subscribers)
        for killed in (3, 8):
            home.change(3)
            network.kill(killed)
            home.change(10)
            await all_reach(home, subscribers)
        state = await ask_state(source, token)
        assert state["sites"] == 10
        assert int(str(state["moves"])) >= 2  # every site has a view, some have two
        assert int(str(state["fed_by_source"])) < len(VIEWS)
        assert int(str(state["extracted_by_home"])) > 0
        late = home.subscribe(view_sql("//article", ("headline", "author", "section")))
        home.hub.unsubscribe(numbers[0])
        await subscribers.pop(0).end()
        home.change(5)
        subscribers.append(Subscriber(source, late, token))
        await all_reach(home, subscribers)
        for one in subscribers:
            await one.end()

    with NewsHome(tmp_path / "home") as home:
        numbers = [home.subscribe(sql) for sql in VIEWS]
        home.change(10)
        with LocalSites(home.path, 12, feeds=3) as network:
            assert len(network.addresses) == 13
            run(story(home, network, numbers))


@pytest.mark.slow
def test_a_network_for_trying(tmp_path: Path) -> None:
    """It says where the source listens; views are followed from there; Ctrl-C ends everything."""
    with NewsHome(tmp_path / "home") as home:
        numbers = [home.subscribe(sql) for sql in VIEWS[:4]]
        home.change(12)
        wanted = {number: sum(home.content(number).values()) for number in numbers}
        assert all(wanted.values())
    penstock = [sys.executable, "-m", "penstock"]
    up = subprocess.Popen(
        [*penstock, "views", "up", str(home.path), "--sites", "2", "--json"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert up.stdout is not None
        said = msgspec.json.decode(up.stdout.readline())
        assert len(said["sites"]) == 2
        token = ["--token-file", said["token_file"]]
        for number, rows in wanted.items():
            follow = [*penstock, "views", "follow", said["source"], str(number), "--no-follow"]
            told = subprocess.run(
                [*follow, *token, "--json"], capture_output=True, text=True, check=True
            )
            lines = [msgspec.json.decode(line) for line in told.stdout.splitlines()]
            assert sum(len(line["come"]) for line in lines) == rows
        status = [*penstock, "views", "status", said["source"]]
        refused = subprocess.run(status, capture_output=True, text=True, check=False)
        assert "different tokens" in refused.stderr
        assert refused.returncode == NetworkError.exit_code
        shown = subprocess.run([*status, *token], capture_output=True, text=True, check=True)
        assert "views: 4" in shown.stdout
        up.send_signal(signal.SIGINT)
        assert up.wait(PATIENCE_SECONDS) == 0
        assert not Path(said["token_file"]).exists()
    finally:
        up.terminate()
        up.wait()
