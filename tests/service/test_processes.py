"""Broker processes that are killed and started again, and links that are cut in the middle."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import subprocess
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from random import Random

import msgspec
import pytest

from penstock.errors import NetworkError
from penstock.service import Address, BrokerSettings
from penstock.service.local_network import ready_address, start_broker
from tests.service.served_home import (
    ANYWHERE,
    EVERYTHING,
    JOIN,
    PATIENCE_SECONDS,
    SELECTION,
    Following,
    ServedHome,
    run,
    run_broker,
    running,
    until,
)


@pytest.fixture
def served(tmp_path: Path) -> ServedHome:
    return ServedHome(tmp_path / "home")


TEXT = "long enough to be kept and not sent again " * 5


class Processes:
    """A chain of three brokers, each a process of its own; `plain` ones keep no payloads."""

    def __init__(self, home: Path, plain: Collection[int]) -> None:
        self.home, self.plain = home, plain
        self.processes: list[subprocess.Popen[str]] = []
        self.addresses: list[Address] = []
        for number in range(3):
            self.processes.append(self._started(number, "127.0.0.1:0"))
            self.addresses.append(ready_address(self.processes[-1]))

    def _started(self, number: int, listen: str) -> subprocess.Popen[str]:
        options = ["--false-positives", "0.2"]
        if number in self.plain:
            options += ["--payload-cache", "0"]
        if number == 0:
            return start_broker(listen, "--home", str(self.home), *options)
        return start_broker(listen, "--upstream", str(self.addresses[number - 1]), *options)

    def kill(self, number: int) -> None:
        self.processes[number].send_signal(signal.SIGKILL)
        self.processes[number].wait()
        assert self.processes[number].stdout is not None
        self.processes[number].stdout.close()  # type: ignore[union-attr]

    def restart(self, number: int) -> None:
        """At the address that it had."""
        self.processes[number] = self._started(number, str(self.addresses[number]))
        assert ready_address(self.processes[number]) == self.addresses[number]

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


@contextlib.contextmanager
def three_brokers(home: Path, plain: Collection[int]) -> Iterator[Processes]:
    processes = Processes(home, plain)
    try:
        yield processes
    finally:
        processes.end()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("killed", "plain"), [((0,), ()), ((1,), ()), ((2,), ()), ((0, 1, 2), ()), ((2, 0, 1), (1,))]
)
def test_brokers_are_killed_during_traffic(
    served: ServedHome, killed: tuple[int, ...], plain: tuple[int, ...]
) -> None:
    async def story(processes: Processes) -> None:
        numbers = {sql: served.hub.subscribe(sql).id for sql in (SELECTION, JOIN, EVERYTHING)}
        readers = [
            (sql, Following(address, number))
            for sql, number in numbers.items()
            for address in processes.addresses
        ]
        for _ in range(3):
            served.change(4, TEXT)
            for _, one in readers:
                await one.reach(served.end)
        for broker in killed:
            served.change(5, TEXT)
            processes.kill(broker)
            for _ in range(5):
                served.change(2, TEXT)
                await asyncio.sleep(0)
            await asyncio.to_thread(processes.restart, broker)
            served.change(5, TEXT)
        for sql, one in readers:
            await one.reach(served.end)
            served.check(sql, one.reader)
            assert len(set(one.ids)) == len(one.ids), "told twice"
        if killed == (2,):
            # Those at the other brokers were not disturbed at all.
            others = [one for number, (_, one) in enumerate(readers) if number % 3 != 2]
            assert not [one.troubles for one in others if one.troubles]
        for _, one in readers:
            await one.end()

    with served, three_brokers(served.path, plain) as processes:
        run(story(processes))


class CuttingProxy:
    """Passes bytes on, and cuts connections after some of them, as long as it is told to."""

    def __init__(self, target: Address, random: Random) -> None:
        self.target, self.random = target, random
        self.is_cutting = True
        self.cuts = 0
        self._server: asyncio.Server | None = None

    async def start(self) -> Address:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()[:2]
        return Address(host, port)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_connection(*self.target)
        left = self.random.randrange(200, 3_000)
        both = [
            asyncio.ensure_future(self._pass(reader, up_writer, 1 << 60)),
            asyncio.ensure_future(self._pass(up_reader, writer, left)),
        ]
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        for one in both:
            one.cancel()
        for one_way in (writer, up_writer):
            one_way.transport.abort()

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, left: int
    ) -> None:
        """Towards the reader, at most so many bytes while links are being cut."""
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65_536):
                if self.is_cutting and len(data) >= left:
                    writer.write(data[:left])
                    await writer.drain()
                    self.cuts += 1
                    return
                left -= len(data)
                writer.write(data)
                await writer.drain()

    def end(self) -> None:
        assert self._server is not None
        self._server.close()


@pytest.mark.slow
def test_links_are_cut_in_the_middle_of_a_packet(served: ServedHome) -> None:
    async def story() -> None:
        numbers = {sql: served.hub.subscribe(sql).id for sql in (SELECTION, JOIN)}
        async with running(BrokerSettings(ANYWHERE, home=served.path)) as (root,):
            proxy = CuttingProxy(root.address, Random(5))
            leaf = await run_broker(BrokerSettings(ANYWHERE, upstream=await proxy.start()))
            readers = [
                (sql, Following(address, number))
                for sql, number in numbers.items()
                for address in (leaf.address, root.address)
            ]
            while proxy.cuts < 12:
                served.change(2)
                await asyncio.sleep(0.01)
            proxy.is_cutting = False
            served.change(5)
            for sql, one in readers:
                await one.reach(served.end)
                served.check(sql, one.reader)
                assert len(set(one.ids)) == len(one.ids), "told twice"
            assert not readers[1][1].troubles
            assert not readers[3][1].troubles
            for _, one in readers:
                await one.end()
            await leaf.end()
            proxy.end()

    with served:
        run(story())


@pytest.mark.slow
def test_a_reader_whose_connections_are_cut_goes_on(served: ServedHome) -> None:
    async def story() -> None:
        number = served.hub.subscribe(SELECTION).id
        async with running(BrokerSettings(ANYWHERE, home=served.path)) as (root,):
            proxy = CuttingProxy(root.address, Random(6))
            following = Following(await proxy.start(), number)
            while proxy.cuts < 12:
                served.change(2)
                await asyncio.sleep(0.01)
            proxy.is_cutting = False
            await following.reach(served.end)
            served.check(SELECTION, following.reader)
            assert len(set(following.ids)) == len(following.ids), "told twice"
            assert following.troubles
            await following.end()
            proxy.end()

    with served:
        run(story())


@pytest.mark.slow
def test_a_network_for_trying(served: ServedHome) -> None:
    """It says where its brokers listen; Ctrl-C ends all of them."""
    served.change(10)
    number = served.hub.subscribe(SELECTION).id
    penstock = [sys.executable, "-m", "penstock"]
    up = subprocess.Popen(
        [*penstock, "network", "up", str(served.path), "--brokers", "2", "--json"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert up.stdout is not None
        said = msgspec.json.decode(up.stdout.readline())
        assert len(said["brokers"]) == 2
        token = ["--token-file", said["token_file"]]
        tail = [*penstock, "tail", "--broker", said["brokers"][1], str(number), "--no-follow"]
        told = subprocess.run([*tail, *token, "--json"], capture_output=True, text=True, check=True)
        lines = [msgspec.json.decode(line) for line in told.stdout.splitlines()]
        assert len(lines) == sum(served.oracle.content(SELECTION).values())
        refused = subprocess.run(tail, capture_output=True, text=True, check=False)
        assert "different tokens" in refused.stderr
        assert refused.returncode == NetworkError.exit_code
        up.send_signal(signal.SIGINT)
        up.wait(PATIENCE_SECONDS)
        done = msgspec.json.decode(up.stdout.readline())["statistics"]
        assert [one["sent_bytes"] > 0 for one in done] == [True, True]
        assert not Path(said["token_file"]).exists()
        asyncio.run(until(lambda: not any(map(_listens, said["brokers"]))))
    finally:
        up.terminate()
        up.wait()
        served.__exit__()


def _listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with contextlib.suppress(OSError), socket.create_connection((host, int(port)), 1):
        return True
    return False
