"""The broker at a home: publishes its message log, and describes its subscriptions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from penstock.delivery import MARKS, MessageFeed, plain_description
from penstock.errors import PenstockError
from penstock.network import BrokerNode, Outcome
from penstock.routing.interests import SpaceShape, everything_in
from penstock.service.packets import Ask, Described, NotDescribed, refusal
from penstock.storage import Home

SOURCE = "messages"
"""The name under which a message log is advertised. A tree of brokers has one home."""
LOOK_SECONDS = 0.1
"""Poll interval of the message log; a poll takes some microseconds."""
PUBLISHED_AT_ONCE = 1_000
"""Messages per turn, before the process serves its connections again."""


class PayloadColumns(Mapping[int, tuple[int, ...]]):
    """By space: the columns that no condition of a subscription uses. This broker describes every
    followed subscription, so their columns are known before the messages they matter for."""

    def __init__(self) -> None:
        self._feed: MessageFeed | None = None
        self._widths: dict[int, int] = {}

    def follow(self, feed: MessageFeed) -> None:
        self._feed = feed

    def add(self, shapes: Iterable[SpaceShape]) -> None:
        self._widths |= {one.space: len(one.base.columns) for one in shapes if one != MARKS}

    def __getitem__(self, space: int) -> tuple[int, ...]:
        width = self._widths[space]
        mentioned = set[int]() if self._feed is None else self._feed.mentioned(space)
        return tuple(column for column in range(width) if column not in mentioned)

    def __iter__(self) -> Iterator[int]:
        return iter(self._widths)

    def __len__(self) -> int:
        return len(self._widths)


class HomeRoot:
    def __init__(self, path: Path, node: BrokerNode, payload_columns: PayloadColumns) -> None:
        self._feed = MessageFeed(Home.open(path))
        self._payload_columns = payload_columns
        payload_columns.follow(self._feed)
        self._node = node
        self._published: int | None = None
        self.shapes: list[SpaceShape] = []

    def look(self, now: float) -> tuple[list[SpaceShape], list[Outcome]]:
        """Look for new spaces and batches; returns the new spaces and the outcomes of the node."""
        fresh = self._feed.advance()
        outcomes = []
        if fresh:
            self.shapes += fresh
            self._payload_columns.add(fresh)
            outcomes.append(self._node.learn_spaces(fresh, now))
            advertised = [everything_in(shape) for shape in fresh]
            outcomes.append(self._node.speak_for(SOURCE, self._feed, advertised, now))
        if self._published is None:
            self._published = self._feed.end  # later messages are requested
        return fresh, outcomes

    def publish_some(self, now: float) -> Outcome | None:
        """Publish a portion of what is unpublished; None if there is nothing."""
        assert self._published is not None
        if self._published >= self._feed.end:
            return None
        outcome = self._node.publish(SOURCE, self._published, now, PUBLISHED_AT_ONCE)
        self._published = max(self._published + 1, self._node.reached(SOURCE))
        return outcome

    def describe(self, ask: Ask) -> Described | NotDescribed:
        try:
            described = self._feed.describe(ask.subscription)
        except PenstockError as error:
            return NotDescribed(ask.number, refusal(error, is_final=True))
        return Described(ask.number, plain_description(described, self._feed.catalog()))

    def close(self) -> None:
        self._feed.close()
