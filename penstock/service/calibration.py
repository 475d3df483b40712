"""How many others a view at this site can feed, measured on this machine over loopback.

A site sends results to more and more readers; the largest number that receives them within a given
time is its limit ("a simple test at each subscriber machine", Karanasos, Katsifodimos and
Manolescu, 2013, 5.5). The readers run in the same process, so the limit errs on the low side.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from statistics import median

from penstock.documents.document import NodeId
from penstock.documents.evaluation import Cell
from penstock.documents.patterns import PatternNode, TreePattern
from penstock.errors import PlanError
from penstock.service.addresses import Address
from penstock.service.connections import Connection, connect, greet_listener
from penstock.service.site_peers import Listener, Peer, receive_frame, send_frame
from penstock.service.tokens import NO_TOKEN
from penstock.views.site_frames import SiteFrame
from penstock.views.site_host import Batch, Hosted, Hosting, Read, SiteHost
from penstock.views.sites import SOURCE_NODE, Assign, Results

MOST_FEEDS = 1_000
DOCUMENTS = 9
"""Sent for each number of readers; the median counts."""
RESULT_BYTES = 2_000
"""Size of one document's results: a tenth of a document of 20 kB."""
WITHIN_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Calibration:
    feeds: int
    """The largest number of readers that receive results within the time."""
    within_seconds: float
    measured: dict[int, float] = field(default_factory=dict)
    """Seconds until the last reader has the results, by number of readers."""


async def largest_within(
    measure: Callable[[int], Awaitable[float]], within_seconds: float, most: int
) -> Calibration:
    """The largest number for which an increasing cost stays within a limit: by doubling, then
    bisection."""
    if within_seconds <= 0 or most < 1:
        raise PlanError("A calibration needs a time above 0 and at least one reader")
    measured: dict[int, float] = {}

    async def is_within(number: int) -> bool:
        if number not in measured:
            measured[number] = await measure(number)
        return measured[number] <= within_seconds

    low, high = 0, 1
    while high <= most and await is_within(high):
        low, high = high, 2 * high
    high = min(high, most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        if await is_within(middle):
            low = middle
        else:
            high = middle
    return Calibration(low, within_seconds, dict(sorted(measured.items())))


async def calibrate_site(
    within_seconds: float = WITHIN_SECONDS,
    result_bytes: int = RESULT_BYTES,
    most: int = MOST_FEEDS,
) -> Calibration:
    """Measure the limit of this machine."""
    bench = _Bench(result_bytes)
    await bench.start()
    try:
        return await largest_within(bench.seconds, within_seconds, most)
    finally:
        bench.end()


class _Bench:
    """A site with one view, and connected readers."""

    def __init__(self, result_bytes: int) -> None:
        pattern = TreePattern((PatternNode("a", -1, val=True),))
        self._host = SiteHost()
        self._host.address = "here"
        self._host.on_hosting(Hosting(1, (Hosted(0, pattern, (Assign(0, ()),)),), {}))
        self._rows = ((Cell(NodeId(0, 0, 0), "x" * result_bytes),),)
        self._listener = Listener("", (NO_TOKEN,), self._on_read, self._on_gone, lambda _: None)
        self._readers: list[Connection] = []
        self._document = 0

    async def start(self) -> None:
        await self._listener.start(Address("127.0.0.1", 0))

    def end(self) -> None:
        for connection in self._readers:
            connection.abort()
        self._listener.end()

    async def seconds(self, readers: int) -> float:
        while len(self._readers) < readers:
            connection = await connect(self._listener.address)
            await greet_listener(connection, "reader", "", NO_TOKEN)
            self._readers.append(connection)
        spent = [await self._pass_on(self._readers[:readers]) for _ in range(DOCUMENTS)]
        return median(spent)

    async def _pass_on(self, readers: list[Connection]) -> float:
        """Time from the results being available until the last waiting reader has them."""
        number, self._document = self._document, self._document + 1
        waiting = [asyncio.ensure_future(self._read(one, number)) for one in readers]
        while self._host.parked_reads < len(readers):
            await asyncio.sleep(0)
        began = time.perf_counter()
        ((_, asked),) = self._host.take_reads()
        results = Results(SOURCE_NODE, number, self._rows)
        self._host.on_answer(Batch(asked.tag, (results,)))
        for peer_number, answer in self._host.take_answers():
            peer = self._listener.peer(peer_number)
            if peer is not None:
                send_frame(peer.connection, answer)
        await asyncio.gather(*waiting)
        return time.perf_counter() - began

    async def _read(self, connection: Connection, number: int) -> None:
        send_frame(connection, Read(number, 1, 0, number, 1))
        await receive_frame(connection)

    def _on_read(self, peer: Peer, frame: SiteFrame) -> None:
        assert isinstance(frame, Read)
        self._host.on_read(peer.number, frame)

    def _on_gone(self, peer: Peer) -> None:
        self._host.drop_reader(peer.number)
