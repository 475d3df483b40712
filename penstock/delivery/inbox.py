"""What the message log holds for one subscription."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from penstock.client import Delivery, Initial, Switch
from penstock.messages import INITIAL_STEP, Message, Position, SpaceFilter, decode_message
from penstock.query import Query
from penstock.spaces import Decomposition, Replan, place
from penstock.storage.interfaces import BatchHeader, BatchLog

Replans: TypeAlias = Callable[[int, int], Sequence[Replan]]
"""The replans of one subscription that are recorded in a stretch of the log."""


class Inbox:
    """The messages of a subscription's spaces, batch by batch, from its beginning.

    A batch counts if the subscription was active in it. In a Hub's batch, which may hold the
    subscription's own record, only what comes from that record on is meant for it. One that needs
    nothing to start with is active in the batch that holds its record, whoever made it. `chosen`
    is the decomposition it began with.
    """

    def __init__(
        self,
        batches: BatchLog,
        subscription: int,
        query: Query,
        chosen: Decomposition | None,
        replans: Replans,
        initial: Initial = Initial.CONTENT,
    ) -> None:
        self._initial = initial
        self._batches = batches
        self._subscription = subscription
        self._query = query
        self._replans = replans
        self._spaces = self._spaces_of(chosen)
        self._asked_to = subscription + 1
        self._coming: list[Replan] = []  # recorded before that, not active in any batch so far
        self.last: BatchHeader | None = None
        self.looked_at = 0
        """Batches and messages that were looked at, so far."""

    def resume(self, last: BatchHeader, chosen: Decomposition | None) -> None:
        """Go on behind a batch, with the decomposition that the subscription had at its end."""
        self.last = last
        self._spaces = self._spaces_of(chosen)
        self._asked_to, self._coming = max(self._subscription + 1, last.active), []

    def new(self) -> Iterator[tuple[BatchHeader, list[Delivery]]]:
        """What has been published since the last batch that was given."""
        for header in self._batches.batches(self.last):
            if not self.is_active_in(header):
                continue
            switches = self._switches(header)
            spaces = self._spaces.union(*(self._spaces_of(s.decomposition) for s in switches))
            mine: list[Delivery] = [
                message
                for message in self._messages(header, spaces)
                if message.space in spaces and message.position.offset >= self._subscription
            ]
            if switches:
                self._spaces = self._spaces_of(switches[-1].decomposition)
            self.last = header
            yield header, sorted([*mine, *switches], key=lambda one: one.position)

    def is_active_in(self, header: BatchHeader) -> bool:
        active = header.active
        if self._initial is Initial.NONE:
            active = max(active, header.end)
        return self._subscription < active

    def _messages(self, header: BatchHeader, spaces: frozenset[int]) -> Iterator[Message]:
        """The messages of a batch, without most of those of other spaces.

        Those that stand for a past that was let go of are no changes: one starts with them.
        """
        is_start = header == self._batches.base
        messages = self._batches.read(header)
        self.looked_at += 1 + len(messages)
        for data in filter(SpaceFilter(spaces).may_pass, messages):
            message = decode_message(data)
            if is_start:
                message = message._replace(position=Position(message.position.offset, INITIAL_STEP))
            yield message

    def _switches(self, header: BatchHeader) -> list[Switch]:
        """Every batch of a Hub makes later records active, so they are not asked for one by one."""
        if header.active > self._asked_to:
            frontier = self._batches.frontier
            high = header.active if frontier is None else max(header.active, frontier.active)
            self._coming += self._replans(self._asked_to, high)
            self._asked_to = high
        mine = [replan for replan in self._coming if replan.offset < header.active]
        del self._coming[: len(mine)]
        return switches(header, mine)

    def _spaces_of(self, chosen: Decomposition | None) -> frozenset[int]:
        placed = place(self._query, self._subscription, chosen)
        return frozenset(one.space.id for one in placed)


def switches(header: BatchHeader, replans: Iterable[Replan]) -> list[Switch]:
    """Where a batch that makes these replans of one subscription active lets it switch: at their
    own records, where it holds them; the last of those before it at its start."""
    ordered = list(replans)
    before = [replan for replan in ordered if replan.offset < header.start]
    return [Switch.at(header.start, replan) for replan in before[-1:]] + [
        Switch.at(replan.offset, replan) for replan in ordered[len(before) :]
    ]
