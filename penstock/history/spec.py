"""The specification of a backtest, serialisable for the workers, and the index they build from
it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from penstock.catalog import Catalog, Relation
from penstock.catalog.derived import base_name
from penstock.errors import ChangeError
from penstock.flow.exchange import Spread
from penstock.flow.graph import FLOW
from penstock.flow.index import Index
from penstock.flow.kinds import Span
from penstock.flow.new_points import NewPoints
from penstock.flow.operator_values import OperatorRuntime
from penstock.history.reading import RECORDS_PER_TASK, stretches
from penstock.joins import Scheme, make_scheme
from penstock.pipeline.worker_index import SCHEME
from penstock.query import Query
from penstock.spaces import Edge, Placed
from penstock.storage import Home, events_not_applied


@dataclass(frozen=True)
class BacktestSpec:
    """Queries, identified by number, as if all had been subscribed at `start`."""

    catalog: Catalog
    queries: tuple[Query, ...]
    start: int
    end: int
    shown: int
    """Number of notifications per query that are returned, not only counted."""
    ranges: int
    """Number of offset ranges for the counts."""
    buckets: int = 64
    """Number of partitions of the state of keyed stages."""
    records: int = RECORDS_PER_TASK
    """Maximum number of records per batch."""
    flow: str = FLOW
    id: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def tables(self) -> frozenset[str]:
        """The names of the tables that any query reads."""
        return frozenset(
            base_name(node.relation.name) for query in self.queries for node in query.nodes
        )

    @cached_property
    def spans(self) -> list[Span]:
        """The batches, in order. No query is active in those before the start."""
        before = [Span(low, high, 0, 0, 0) for low, high in stretches(0, self.start, self.records)]
        active = self.start
        return before + [
            Span(low, high, active, active, active)
            for low, high in stretches(self.start, self.end, self.records)
        ]

    def span_at(self, start: int) -> Span:
        """The batch that begins at an offset; of two, the one with new subscriptions."""
        return self._by_start[start]

    @cached_property
    def _by_start(self) -> dict[int, Span]:
        return {span.start: span for span in self.spans}

    def range_of(self, offset: int) -> int:
        return (offset - self.start) * self.ranges // max(1, self.end - self.start)


class BacktestIndex:
    """The points of all queries, as the stages see them: an `IndexSource`."""

    def __init__(self, spec: BacktestSpec, home: Home) -> None:
        self.spec = spec
        self.home = home
        self.spread = Spread(tuple(range(spec.buckets)))
        self.index = Index(spec.catalog)
        self._nobody = Index(spec.catalog)
        self._placed: list[Placed] = []
        for number, query in enumerate(spec.queries):
            self._placed += self.index.add(number, query)
        self.edges: Mapping[str, Edge] = {edge.name: edge for edge in self.index.edges}

    def catalog(self, _end: int) -> Catalog:
        return self.spec.catalog

    def index_at(self, span: Span) -> Index:
        return self.index if self._is_after_start(span) else self._nobody

    def new_points(self, span: Span) -> NewPoints:
        if self._is_after_start(span) and span.start == self.spec.start:
            return NewPoints(self.index, self._placed, self.index.edges)
        return NewPoints(self.index)

    def _is_after_start(self, span: Span) -> bool:
        return span.start >= self.spec.start

    @cached_property
    def _not_applied(self) -> Mapping[int, ChangeError]:
        return events_not_applied(self.home)

    def operators(self) -> OperatorRuntime | None:
        return None

    def not_applied(self, _span: Span) -> Mapping[int, ChangeError]:
        return self._not_applied

    def scheme(self) -> Scheme:
        return make_scheme(SCHEME)

    def needs(self, relation: Relation) -> bool:
        return relation.name in self.spec.tables


_known: BacktestIndex | None = None


def worker_spec(spec: BacktestSpec, path: str) -> BacktestIndex:
    """The index of a specification, cached per process (the last one only)."""
    global _known
    if _known is None or _known.spec.id != spec.id:
        _known = BacktestIndex(spec, Home.open(path))
    return _known
