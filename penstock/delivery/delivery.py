"""Delivery of one subscription: cuts are read from the acknowledged cursor on, sent, acknowledged.

Delivery is at least once. The state is a `CursorState`: with a name it is durable, without one it
lasts as long as the object. Nothing is queued for a slow receiver: its cuts are read later from the
message log.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from types import TracebackType

from msgspec.structs import replace

from penstock.client import News
from penstock.delivery.channels import Channel
from penstock.delivery.cursors import MAX_ERROR_CHARACTERS, CursorState, DurableCursors
from penstock.delivery.reader import SubscriptionReader
from penstock.delivery.registration import Registration
from penstock.errors import ChannelError, SubscriptionError, shortened
from penstock.storage import AnyHome, Home

RETRY_AFTER_SECONDS = (5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)
"""Waiting times after failures: 5 s, 5 min, 30 min, 2, 5, 10, 14, 20 and 24 h, three days in all.
After the last one the delivery is suspended until it is resumed by hand."""
SAVE_EVERY_CUTS = 100
"""Acknowledged cuts between two saves of the cursor, which sync the disk (some milliseconds each).
After a crash at most this many cuts are sent again."""
POLL_SECONDS = 0.25
"""A stateful batch takes about as long, so polling more often would find little more."""


class SubscriptionDelivery:
    """The delivery of one subscription. Use as a context manager; not thread-safe.

    Push with `send_to(channel)`, pull by iterating, or `async for` over `stream()`: a cut is
    acknowledged when the next one is requested.
    """

    def __init__(
        self,
        home: AnyHome,
        subscription: int | Registration,
        cursor: int | None = None,
        *,
        name: str | None = None,
        target: str = "",
        clock: Callable[[], float] = time.time,
        retry_after_seconds: tuple[float, ...] = RETRY_AFTER_SECONDS,
    ) -> None:
        """With a `name` the state is durable: a delivery of that name continues where the last one
        was acknowledged, and `cursor` is where a new one starts."""
        self._home = home
        self._subscription = subscription
        self._clock = clock
        self._retry_after = retry_after_seconds
        self._closing = ExitStack()
        self._cursors: DurableCursors | None = None
        self._unsaved = 0  # acknowledged cuts since the cursor was saved
        self._reader: SubscriptionReader | None = None
        self._news: Iterator[News] = iter(())
        number = subscription.id if isinstance(subscription, Registration) else subscription
        known = None
        if name is not None:
            assert isinstance(home, Home), "a home in memory keeps no cursors"
            self._cursors = DurableCursors(home)
            self._closing.enter_context(self._cursors.lock(name))
            known = self._cursors.get(name)
        try:
            self.state = known or self._first_state(name or "", number, cursor, target)
            if self.state.subscription != number:
                raise SubscriptionError(
                    f"cursor {name} is of subscription {self.state.subscription}, not {number}",
                    hint="choose another name for the cursor",
                )
        except BaseException:
            self._closing.close()
            raise

    def _first_state(self, name: str, number: int, cursor: int | None, target: str) -> CursorState:
        reader = SubscriptionReader(self._home, self._subscription, cursor)
        start = reader.lost_before if cursor is None else cursor
        state = CursorState(name=name, subscription=number, cursor=start, target=target)
        if self._cursors is not None:
            self._cursors.save(state)  # from now on, compaction keeps what it needs
        return state

    def __enter__(self) -> SubscriptionDelivery:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Save the cursor and release its name."""
        try:
            self._save()
        finally:
            self._closing.close()

    @property
    def is_due(self) -> bool:
        """Whether something may be sent now: not suspended, and not waiting after a failure."""
        waits = self.state.next_attempt is not None and self._clock() < self.state.next_attempt
        return not self.state.is_suspended and not waits

    def next_cut(self) -> News | None:
        """The next batch with notifications, or None if there is none yet. A batch that was not
        acknowledged is returned again."""
        if self._reader is None or self._reader.cursor > self.state.cursor:
            self._reader = SubscriptionReader(self._home, self._subscription, self.state.cursor)
            self._news = self._reader.new()
        for news in self._news:
            if news.notifications:
                return news
            self._move(news.cursor)
        self._news = self._reader.new()
        return None

    def acknowledge(self, news: News, cursor: int | None = None) -> bool:
        """Move the cursor past a cut; False if the receiver did not accept all of it."""
        cursor = news.cursor if cursor is None else cursor
        if not news.since <= cursor <= news.cursor:
            raise ChannelError(
                f"cursor {cursor} was acknowledged, which was not sent",
                detail=f"cursors {news.since} to {news.cursor} were",
            )
        is_whole = cursor == news.cursor
        if is_whole:
            self._move(cursor)
        if is_whole and self.state.last_error:
            self.resume()
        return is_whole

    def fail(self, error: ChannelError) -> None:
        """Record that a cut could not be sent, and when to try again."""
        failures = self.state.failures + 1
        is_last = failures > len(self._retry_after)
        wait = None if is_last else self._clock() + self._retry_after[failures - 1]
        self.state = replace(
            self.state,
            failures=failures,
            next_attempt=wait,
            is_suspended=is_last,
            last_error=shortened(error.primary, MAX_ERROR_CHARACTERS),
        )
        self._unsaved += 1

    def restart(self, cursor: int = 0) -> None:
        """Reset the cursor; 0 starts again with the initial content."""
        SubscriptionReader(self._home, self._subscription, cursor)  # raises if it does not exist
        generation = self.state.generation + 1
        self._reader = None
        self.state = replace(self.state, cursor=cursor, generation=generation)
        self.resume()
        self._save()

    def resume(self) -> None:
        """Try again at once, even if suspended."""
        self.state = replace(
            self.state, next_attempt=None, failures=0, is_suspended=False, last_error=""
        )
        self._unsaved += 1

    def send_to(self, channel: Channel) -> int:
        """Send all available cuts; returns the number of acknowledged notifications. Stops at the
        first failure, which is recorded in the state, and at a receiver that wants the rest
        later."""
        sent = 0
        try:
            while self.is_due and (news := self.next_cut()) is not None:
                if not self.acknowledge(news, channel.send(news)):
                    break
                sent += len(news.notifications)
                if self._unsaved >= SAVE_EVERY_CUTS:
                    channel.commit()
                    self._save()
            channel.commit()
        except ChannelError as error:
            self.fail(error)
        self._save()
        return sent

    def __iter__(self) -> Iterator[News]:
        """The available cuts, each acknowledged when the next one is requested."""
        while (news := self.next_cut()) is not None:
            yield news
            self.acknowledge(news)
            if self._unsaved >= SAVE_EVERY_CUTS:
                self._save()
        self._save()

    async def stream(
        self, poll_seconds: float = POLL_SECONDS, *, follow: bool = True
    ) -> AsyncIterator[News]:
        """The available cuts and, with `follow`, all future ones; for asyncio. Files are read in a
        thread."""
        import asyncio  # lazy: most callers do not use it

        while True:
            news = await asyncio.to_thread(self.next_cut)
            if news is not None:
                yield news
                self.acknowledge(news)
                continue
            await asyncio.to_thread(self._save)
            if not follow:
                return
            await asyncio.sleep(poll_seconds)

    def _move(self, cursor: int) -> None:
        self.state = replace(self.state, cursor=cursor)
        self._unsaved += 1

    def _save(self) -> None:
        if self._cursors is not None and self._unsaved:
            self._cursors.save(self.state)
            self._unsaved = 0
