"""What every channel promises, whatever it leads to.

A harness gives the ways a channel can be driven; the tests in `test_channels.py` run against all of
them. A receiver that fails loses nothing and skips nothing: the cut comes again, with the same ids.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path

from penstock.client import News
from penstock.delivery import CallbackChannel, Channel, JsonLinesChannel, SubscriptionDelivery
from penstock.errors import ChannelError


class BrokenReceiverError(Exception):
    """What a receiver raises in these tests."""


class Harness(ABC):
    """One way to drive a delivery. `fail_at` is the number of the cut, from 0 on, that the receiver
    does not take."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.received: list[str] = []

    def take(self, news: News, *, is_broken: bool) -> None:
        if is_broken:
            raise BrokenReceiverError
        self.received += [one.id for one in news.notifications]

    @abstractmethod
    def drain(self, delivery: SubscriptionDelivery, fail_at: int | None = None) -> None:
        """Hand over all cuts there are, or those before the one that fails."""


class Pushed(Harness):
    """Through a channel."""

    def drain(self, delivery: SubscriptionDelivery, fail_at: int | None = None) -> None:
        channel = Failing(self.channel(), fail_at)
        try:
            delivery.resume()
            delivery.send_to(channel)
        finally:
            channel.close()
        assert bool(delivery.state.last_error) == (channel.failed > 0)

    @abstractmethod
    def channel(self) -> Channel: ...


class Failing:
    """A channel that does not take one cut."""

    def __init__(self, channel: Channel, fail_at: int | None) -> None:
        self._channel = channel
        self._fail_at = fail_at
        self._sent = 0
        self.failed = 0
        self.target = channel.target

    def send(self, news: News) -> int:
        if self._sent == self._fail_at:
            self.failed += 1
            raise ChannelError("broken")
        self._sent += 1
        return self._channel.send(news)

    def commit(self) -> None:
        self._channel.commit()

    def close(self) -> None:
        self._channel.close()


class Callback(Pushed):
    def channel(self) -> Channel:
        return CallbackChannel(lambda news: self.take(news, is_broken=False))


class JsonFile(Pushed):
    def channel(self) -> Channel:
        return JsonLinesChannel(self.directory / "out.jsonl")

    def drain(self, delivery: SubscriptionDelivery, fail_at: int | None = None) -> None:
        super().drain(delivery, fail_at)
        lines = (self.directory / "out.jsonl").read_text().splitlines()
        self.received = [json.loads(line)["id"] for line in lines]


class NamedPipe(Pushed):
    """The reader of the pipe is another thread, which stays until all writers are gone."""

    def channel(self) -> Channel:
        return JsonLinesChannel(self.directory / "pipe")

    def drain(self, delivery: SubscriptionDelivery, fail_at: int | None = None) -> None:
        path = self.directory / "pipe"
        if not path.exists():
            os.mkfifo(path)
        lines: list[str] = []
        reader = threading.Thread(target=lambda: lines.extend(path.read_text().splitlines()))
        reader.start()
        try:
            super().drain(delivery, fail_at)
        finally:
            reader.join()
        self.received += [json.loads(line)["id"] for line in lines]


class Iterator(Harness):
    def drain(self, delivery: SubscriptionDelivery, fail_at: int | None = None) -> None:
        with suppress(BrokenReceiverError):
            for number, news in enumerate(delivery):
                self.take(news, is_broken=number == fail_at)


class Asyncio(Harness):
    def drain(self, delivery: SubscriptionDelivery, fail_at: int | None = None) -> None:
        with suppress(BrokenReceiverError):
            asyncio.run(self._drain(delivery, fail_at))

    async def _drain(self, delivery: SubscriptionDelivery, fail_at: int | None) -> None:
        number = 0
        async for news in delivery.stream(follow=False):
            self.take(news, is_broken=number == fail_at)
            number += 1


HARNESSES: tuple[type[Harness], ...] = (Callback, Iterator, Asyncio, JsonFile, NamedPipe)
