"""A remote reader: follows one subscription through a broker.

After a lost connection it reconnects and continues after the last complete batch; contents are
built as in the home (`penstock.delivery.ReceivedSubscription`).
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncGenerator, Callable
from random import random

from penstock.client import BEGINNING, ContentRow, News
from penstock.delivery import Description, ReceivedSubscription, Step, description_from_plain
from penstock.errors import NetworkError, PenstockError, SubscriptionError
from penstock.service.addresses import Address
from penstock.service.connections import Connection, FinalError, connect, greet_listener
from penstock.service.packets import (
    Ask,
    Attach,
    Delivered,
    Described,
    NotDescribed,
    refused_error,
)
from penstock.service.tokens import NO_TOKEN

RETRY_SECONDS = (0.1, 5.0)
"""Delay between attempts to connect: initial and maximum."""
ANSWER_SECONDS = 30.0
"""Timeout for a description, which may come over many brokers."""


class BrokerReader:
    """Iterate over `news()`. `on_trouble` gets the reason of each reconnect."""

    def __init__(
        self,
        broker: Address,
        subscription: int,
        *,
        since: int | None = None,
        token: bytes = NO_TOKEN,
        on_trouble: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._address = broker
        self._subscription = subscription
        self._since = BEGINNING if since is None else since
        self._token = token
        self._on_trouble = on_trouble
        self._name = f"{secrets.token_hex(8)}@"
        self._received: ReceivedSubscription | None = None
        self._next_question = 1
        self._must_reach: int | None = None

    @property
    def position(self) -> int:
        """The offset up to which it has read."""
        return BEGINNING if self._received is None else self._received.position

    def rows(self) -> list[ContentRow]:
        """The content at the last cut."""
        if self._received is None:
            raise SubscriptionError(f"subscription {self._subscription} has not been read yet")
        return self._received.rows()

    async def news(self, *, follow: bool = True) -> AsyncGenerator[News]:
        """The changes of each batch; without `follow`, up to the last one available."""
        wait = RETRY_SECONDS[0]
        while True:
            try:
                async with contextlib.aclosing(self._connected(follow)) as found:
                    async for news in found:
                        wait = RETRY_SECONDS[0]
                        yield news
                return
            except FinalError as refused:
                raise refused.error from None
            except (ConnectionError, NetworkError) as error:
                if self._received is None and wait > RETRY_SECONDS[1] / 4:
                    raise _unreachable(self._address, error) from None
                self._on_trouble(str(error).partition("\n")[0])
            await asyncio.sleep(wait * (0.5 + random()))
            wait = min(2 * wait, RETRY_SECONDS[1])

    async def _connected(self, follow: bool) -> AsyncGenerator[News]:
        """The cuts of one connection."""
        connection = await connect(self._address)
        with contextlib.closing(connection):
            await greet_listener(connection, "reader", self._name, self._token)
            pinging = asyncio.ensure_future(connection.ping())
            try:
                received = await self._begin(connection)
                while follow or received.cursor < (self._must_reach or 0):
                    packet = await connection.receive()
                    if isinstance(packet, Delivered):
                        news = await self._take(connection, received, packet)
                        if news is not None:
                            yield news
            finally:
                pinging.cancel()

    async def _begin(self, connection: Connection) -> ReceivedSubscription:
        described = await self._describe(connection)
        if self._must_reach is None:
            self._must_reach = described.end
        if self._received is None:
            self._received = ReceivedSubscription(described, self._since)
        else:
            self._received.describe(described)
        self._attach(connection, self._received)
        return self._received

    async def _take(
        self, connection: Connection, received: ReceivedSubscription, packet: Delivered
    ) -> News | None:
        step = received.take(packet.sequence, packet.message)
        if step is Step.BATCH:
            return received.apply()
        if step is Step.DESCRIBE:
            received.describe(await self._describe(connection))
        if step is not Step.TAKEN:
            self._attach(connection, received)
        return None

    def _attach(self, connection: Connection, received: ReceivedSubscription) -> None:
        points = tuple(received.described.points())
        connection.send(Attach(points, received.cursor))

    async def _describe(self, connection: Connection) -> Description:
        """Messages that arrive meanwhile belong to a batch that is requested again."""
        number, self._next_question = self._next_question, self._next_question + 1
        connection.send(Ask(number, self._subscription))
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                while True:
                    packet = await connection.receive()
                    if isinstance(packet, Described) and packet.number == number:
                        return description_from_plain(packet.description)
                    if isinstance(packet, NotDescribed) and packet.number == number:
                        raise _not_described(packet)
        except TimeoutError:
            raise NetworkError(
                f"subscription {self._subscription} was not described in time",
                detail=f"by the broker at {self._address}",
            ) from None


def _not_described(packet: NotDescribed) -> Exception:
    error: PenstockError = refused_error(packet.refused)
    return FinalError(error) if packet.refused.is_final else error


def _unreachable(address: Address, error: Exception) -> PenstockError:
    if isinstance(error, PenstockError):
        return error
    return NetworkError(f"the broker at {address} cannot be followed", detail=str(error))
