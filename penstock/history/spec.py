"""What a backtest asks, in a form that travels to the workers; and what they make of it."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from penstock.catalog import Catalog
from penstock.flow.index import Index
from penstock.history.rows import HistoryKind, HistoryRow
from penstock.messages import Message, encode_message
from penstock.query import Query
from penstock.routing import recipients
from penstock.spaces import Edge, Placed


@dataclass(frozen=True)
class BacktestSpec:
    """Queries, known by their number, as if all had been subscribed at `start`."""

    catalog: Catalog
    queries: tuple[Query, ...]
    start: int
    end: int
    shown: int
    """So many notifications of each query are wanted themselves, not only counted."""
    ranges: int
    """Into so many ranges of offsets the counts are split."""
    id: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def has_joins(self) -> bool:
        return any(query.joins for query in self.queries)

    @property
    def tables(self) -> frozenset[str]:
        """The names of the relations that any query reads."""
        return frozenset(node.relation.name for query in self.queries for node in query.nodes)

    def range_of(self, offset: int) -> int:
        return (offset - self.start) * self.ranges // max(1, self.end - self.start)


class WorkerSpec:
    """The points of all queries, as a worker needs them."""

    def __init__(self, question: BacktestSpec) -> None:
        self.question = question
        self.index = Index(question.catalog)
        placed: list[Placed] = []
        for number, query in enumerate(question.queries):
            placed += self.index.add(number, query)
        self.edges: dict[str, Edge] = {edge.name: edge for edge in self.index.edges}
        everybody = list(self.index.parts(placed))
        self.selections = [points for points in everybody if points.space.edge is None]
        self.semijoins = [points for points in everybody if points.space.edge is not None]

    def deliveries(self, messages: Iterable[Message]) -> Iterator[HistoryRow]:
        """The messages, once for each query that must see them."""
        for message in messages:
            found = recipients(message, self.index.space(message.space))
            numbers = {point.subscription for point in found}
            body = encode_message(message) if numbers else b""
            offset, step = message.position
            for number in numbers:
                yield HistoryRow(number, offset, HistoryKind.DELIVERY, step, body)


_prepared: WorkerSpec | None = None


def prepared(question: BacktestSpec) -> WorkerSpec:
    """What this process has made of a question; the last one is remembered."""
    global _prepared
    if _prepared is None or _prepared.question.id != question.id:
        _prepared = WorkerSpec(question)
    return _prepared
