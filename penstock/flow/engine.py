"""Penstock in one process and in memory: records in, messages out.

An engine is a pure function of the log, one record at a time. A subscription is active from its own
record on. The Hub drives it; it runs the same stages as the pipeline, on state in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import NamedTuple

from penstock.catalog import Catalog, Relation, Row, RowKey
from penstock.catalog.signatures import Signature
from penstock.errors import ChangeError, SubscriptionError
from penstock.flow.changes import Change, Checked, Delta, check, row_after
from penstock.flow.derived import RowOperators, deltas_of, rows_of
from penstock.flow.exchange import SINGLE, StageInput
from penstock.flow.faults import blaming
from penstock.flow.index import Index
from penstock.flow.kinds import Events, Kind, Reason, Span, StreamEvents
from penstock.flow.local import run_locally
from penstock.flow.memory import GroupsAside, MemoryGroups, MemoryRows, RowsAside
from penstock.flow.new_points import NewPoints
from penstock.flow.operator_values import OperatorRuntime
from penstock.flow.plain import JoinStage, RowStage
from penstock.flow.plan import plain
from penstock.flow.stage import BatchView
from penstock.flow.stages import STAGES
from penstock.flow.stages.groups import StageGroups
from penstock.flow.stages.rows import StageRows
from penstock.joins import Scheme, SpacePoints, make_scheme
from penstock.joins.decomposition.statistics import Statistics
from penstock.messages import Message, each_message
from penstock.spaces import Decomposition, Edge, JoinValue, Placed, Replan
from penstock.sql import Query, ShapeBinder, parse_declaration

_POSITION = attrgetter("position")

_GEAR = plain("the state of this process is objects")

FEW_POINTS = 64
"""Up to this many points, scanning a table for each point is cheaper than reading all groups."""


class Refused(NamedTuple):
    """An event that could not be applied, and why."""

    offset: int
    reason: Reason


@dataclass
class Outcome:
    """The result of events: messages, and events that could not be applied."""

    messages: list[Message] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)


class Resolved(NamedTuple):
    """The changes of rows that events made."""

    deltas: list[Delta]
    refused: list[Refused]


class Engine:
    """Not thread-safe: one caller at a time."""

    def __init__(
        self,
        scheme: Scheme | None = None,
        *,
        catalog: Catalog | None = None,
        rows: StageRows | None = None,
        groups: StageGroups | None = None,
    ) -> None:
        self.catalog = Catalog() if catalog is None else catalog
        self._binder = ShapeBinder(self.catalog)
        self.index = Index(self.catalog)
        self.queries: dict[int, Query] = {}
        self.chosen: dict[int, Decomposition | None] = {}
        self.statistics = Statistics()
        self.rows: StageRows = MemoryRows() if rows is None else rows
        self.groups: StageGroups = MemoryGroups() if groups is None else groups
        self._noted = _NotedRows(self.rows, self.catalog)
        self._scheme = scheme or make_scheme()
        self._edges: dict[str, Edge] = {}  # edges whose groups are built
        self._unasked: list[Placed] = []  # new points, whose operators the next batch evaluates
        self.operators: Callable[[], OperatorRuntime] | None = None
        """Returns the operator runtime; called only if subscriptions use operators."""

    def aside(self, subscriptions: Iterable[int], scheme: Scheme) -> Engine:
        """A copy with these tables and some of the subscriptions, for attempts: changes of the copy
        do not affect this engine."""
        rows, groups = RowsAside(self.rows), GroupsAside(self.groups)
        engine = Engine(scheme, catalog=self.catalog, rows=rows, groups=groups)
        engine._edges = dict(self._edges)
        engine.operators = self.operators
        for number in subscriptions:
            points = list(self.index.points_of(number))
            changes_only = any(one.point.changes_only for one in points)
            query, chosen = self.queries[number], self.chosen[number]
            with blaming(number):
                engine.index.add(number, query, chosen, changes_only=changes_only)
            engine._unasked += [one for one in self._unasked if one in points]
        return engine

    def define(self, offset: int, sql: str) -> Relation | Signature:
        relation = parse_declaration(sql)
        self.catalog.add(relation, offset)
        return relation

    def subscribe(
        self,
        offset: int,
        query: Query,
        chosen: Decomposition | None = None,
        *,
        changes_only: bool = False,
    ) -> list[Message]:
        """Make the subscription of this record active; returns its initial content."""
        placed = self.enrol(offset, query, chosen, changes_only=changes_only)
        return self.initial(offset, placed)

    def enrol(
        self,
        offset: int,
        query: Query,
        chosen: Decomposition | None = None,
        *,
        changes_only: bool = False,
    ) -> list[Placed]:
        """Make the subscription of this record active; returns its points, without content."""
        self.learn(offset, query, chosen)
        placed = self.index.add(offset, query, chosen, changes_only=changes_only)
        self._unasked += placed
        self._seed_new_edges(offset)
        return placed

    def learn(self, subscription: int, query: Query, chosen: Decomposition | None) -> None:
        """Register a subscription without making it active."""
        self.queries[subscription], self.chosen[subscription] = query, chosen
        self.statistics.watch(query, partial(rows_of, self.rows))

    def replan(self, replan: Replan) -> list[Message]:
        """Change a subscription's decomposition; returns the initial content of moved points."""
        return self.initial(replan.offset, self.move(replan))

    def move(self, replan: Replan) -> list[Placed]:
        """Change a subscription's decomposition; returns the points that moved to other spaces."""
        subscription = replan.subscription
        query = self.query(subscription)
        self.chosen[subscription] = replan.decomposition
        since = self.index.replan(subscription, query, replan.decomposition)
        moved = list(self.index.points_of(subscription, since))
        if any(one.point.id.subscription == subscription for one in self._unasked):
            self._unasked += moved
        self._seed_new_edges(replan.offset)
        return moved

    def initial(self, offset: int, placed: Iterable[Placed]) -> list[Message]:
        """The initial content of points, addressed to them only."""
        points = list(placed)
        if not points:
            return []
        new = NewPoints(self.index, points, values=self._join_values)
        return self._run(_at(offset), new=new).messages

    def _join_values(self, points: SpacePoints) -> list[JoinValue] | None:
        """The groups that have rows for these points, if that is cheaper to find than by reading
        all groups; otherwise None."""
        if len(points) > FEW_POINTS:
            return None
        return RowStage(self.rows, self.index, self._row_operators()).join_values(points)

    def contents(self, offset: int) -> Iterator[Message]:
        """The rows that all points hold, addressed by regions: one message per needed row, however
        many points there are."""
        self._run(_at(offset))  # evaluates operators for points that had no batch yet
        everybody = [one for number in self.queries for one in self.index.points_of(number)]
        rows = RowStage(self.rows, self.index, self._row_operators())
        groups = JoinStage(self.groups, self.index, self._scheme)
        for points in self.index.parts(everybody):
            stage = rows if points.space.edge is None else groups
            yield from stage.contents(offset, points)

    def withdraw(self, subscription: int) -> None:
        self.query(subscription)
        self.index.remove(subscription)
        del self.queries[subscription], self.chosen[subscription]

    def query(self, subscription: int) -> Query:
        try:
            return self.queries[subscription]
        except KeyError:
            raise SubscriptionError(f"there is no subscription {subscription}") from None

    def bind(self, sql: str) -> Query:
        return self._binder.bind(sql)

    def events(self, run: Iterable[tuple[int, bytes]]) -> Outcome:
        """Apply published events, between which no subscription is added or removed."""
        events = _as_events(run)
        return self._run(_around(events.offsets), events)

    def absorb(self, run: Iterable[tuple[int, bytes]]) -> Resolved:
        """Apply events whose messages were emitted before: only the state changes."""
        events = _as_events(run)
        outcome = self._run(_around(events.offsets), events, silent=True)
        return Resolved(self._noted.last, outcome.refused)

    def _run(
        self,
        span: Span,
        events: Events | None = None,
        new: NewPoints | None = None,
        *,
        silent: bool = False,
    ) -> Outcome:
        """Run one batch through the flow."""
        asking, self._unasked = self._unasked, []
        new = replace(new or NewPoints(self.index), asking=asking)
        view = self._view(span, new, silent=silent)
        stores = {"rows": self._noted, "groups": self.groups}
        self._noted.last = []
        given = run_locally(STAGES, StageInput(SINGLE.buckets[0], span, events), stores, view)
        self._note_changes(self._noted.last)
        messages = list(each_message(given.unpacked(Kind.MESSAGE)))
        messages.sort(key=_POSITION)
        refused = [Refused(row.offset, Reason.read(row.body)) for row in given.rows(Kind.BAD)]
        return Outcome(messages, refused)

    def _note_changes(self, run: Sequence[Delta]) -> None:
        """Update the statistics; of derived relations, only those that decompositions depend on."""
        derived = [one for one in self.statistics.watched if one.declared is not one]
        changes = [*run, *(delta for one in derived for delta in deltas_of(one, run))]
        for _, relation, key, old, new in changes:
            self.statistics.note(relation.name, key, old, new)

    def _view(self, span: Span, new: NewPoints | None = None, *, silent: bool = False) -> BatchView:
        points = new or NewPoints(self.index, asking=())
        source = _Source(
            self.catalog, self.index, self._edges, points, self._scheme, self.operators
        )
        return BatchView(source, span, SINGLE, _GEAR, silent=silent)

    def _row_operators(self) -> RowOperators:
        return self._view(_at(0)).derivation.row_operators(self.rows)

    def try_changes(self, offset: int, changes: Iterable[Change]) -> None:
        """ChangeError if the changes, applied in order from this offset on, would be refused."""
        overlay: dict[tuple[str, RowKey], Row | None] = {}
        for i, change in enumerate(changes):
            checked = check(change, self.catalog, offset + i)
            place = (checked.relation.name, checked.key)
            current = overlay[place] if place in overlay else self._current(checked)
            overlay[place] = row_after(checked, current)

    def _current(self, checked: Checked) -> Row | None:
        return self.rows.get(checked.relation, checked.key)

    def _seed_new_edges(self, offset: int) -> None:
        new = [edge for edge in self.index.edges if edge.name not in self._edges]
        if new:
            self._edges.update((edge.name, edge) for edge in new)
            self._run(_at(offset), new=NewPoints(self.index, edges=new))


def _as_events(run: Iterable[tuple[int, bytes]]) -> Events:
    events = Events([], [])
    for offset, body in run:
        events.offsets.append(offset)
        events.bodies.append(body)
    return events


def _at(offset: int) -> Span:
    """A batch without records."""
    return Span(offset, offset, offset, offset, offset)


def _around(offsets: list[int]) -> Span:
    start, end = (offsets[0], offsets[-1] + 1) if offsets else (0, 0)
    return Span(start, end, start, start, start)


@dataclass(frozen=True)
class _Source:
    """The `IndexSource` of one batch."""

    tables: Catalog
    index: Index
    edges: Mapping[str, Edge]
    new: NewPoints
    joins: Scheme
    evaluating: Callable[[], OperatorRuntime] | None

    def operators(self) -> OperatorRuntime | None:
        return None if self.evaluating is None else self.evaluating()

    def catalog(self, _end: int) -> Catalog:
        return self.tables

    def index_at(self, _span: Span) -> Index:
        return self.index

    def new_points(self, _span: Span) -> NewPoints:
        return self.new

    def not_applied(self, _span: Span) -> Mapping[int, ChangeError]:
        return {}  # callers of the engine leave such events out

    def scheme(self) -> Scheme:
        return self.joins

    def needs(self, _relation: Relation) -> bool:
        return True


class _NotedRows:
    """Rows of a store, and the changes that the last batch made."""

    def __init__(self, below: StageRows, catalog: Catalog) -> None:
        self._below = below
        self._catalog = catalog
        self.get, self.put, self.rows = below.get, below.put, below.rows
        self.last: list[Delta] = []

    def keep_events(self, first_offset: int, events: bytes | StreamEvents) -> None:
        self._below.keep_events(first_offset, events)
        stream, kept = StreamEvents.read(events)
        relation = self._catalog[stream]
        self.last += [Delta(offset, relation, (offset,), None, row) for offset, row in kept]

    def note(self, deltas: list[Delta]) -> None:
        self.last += deltas
