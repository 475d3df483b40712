"""The whole of Penstock in one process and in memory: records in, messages out.

An engine is a pure function of the log, one record at a time. A subscription is active from its own
record on. The Hub drives it; the pipeline runs the same stages, partitioned.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple, TypeAlias

from penstock.catalog import Catalog, Relation, Row, RowKey
from penstock.catalog.halves import is_half
from penstock.engine.changes import Change, Checked, Delta, check, row_after
from penstock.engine.faults import RecordFaultError, blaming, is_fault
from penstock.engine.index import Index
from penstock.engine.memory import GroupsAside, MemoryGroups, MemoryRows, RowsAside
from penstock.engine.plain_events import reader_of
from penstock.engine.stages import GroupStore, JoinStage, RowStage, RowStore, steps_of
from penstock.errors import ChangeError, NoChangeError, SubscriptionError
from penstock.joins import Edge, JoinValue, Placed, Scheme, SpacePoints, make_scheme
from penstock.joins.decomposition import Decomposition, Replan
from penstock.joins.decomposition.statistics import Statistics
from penstock.joins.selections import NewSelections
from penstock.messages import Message, each_message
from penstock.sql import Query, ShapeBinder, parse_relation

_POSITION = attrgetter("position")

FEW_POINTS = 64
"""Up to here, a pass over a table for each point takes less than putting all groups together."""


Refused: TypeAlias = tuple[int, bytes, ChangeError]
"""The offset and the bytes of an event that could not be carried out, and why."""


@dataclass
class Outcome:
    """What some events led to: messages, and events that could not be carried out."""

    messages: list[Message] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)


class Resolved(NamedTuple):
    """What some events did to rows."""

    deltas: list[Delta]
    refused: list[Refused]


class Engine:
    """Not thread-safe: one caller at a time."""

    def __init__(
        self,
        scheme: Scheme | None = None,
        *,
        catalog: Catalog | None = None,
        rows: RowStore | None = None,
        groups: GroupStore | None = None,
    ) -> None:
        self.catalog = Catalog() if catalog is None else catalog
        self._binder = ShapeBinder(self.catalog)
        self.index = Index(self.catalog)
        self.queries: dict[int, Query] = {}
        self.chosen: dict[int, Decomposition | None] = {}
        self.statistics = Statistics()
        self.rows: RowStore = MemoryRows() if rows is None else rows
        self.groups: GroupStore = MemoryGroups() if groups is None else groups
        self._row_stage = RowStage(self.rows, self.index)
        self._join_stage = JoinStage(self.groups, self.index, scheme or make_scheme())
        self._seeded: set[Edge] = set()

    def aside(self, subscriptions: Iterable[int], scheme: Scheme) -> Engine:
        """An engine with these tables and some of the subscriptions, to attempt something with:
        this one does not change with it."""
        rows, groups = RowsAside(self.rows), GroupsAside(self.groups)
        engine = Engine(scheme, catalog=self.catalog, rows=rows, groups=groups)
        engine._seeded = set(self._seeded)
        for number in subscriptions:
            points = self.index.points_of(number)
            changes_only = any(one.point.changes_only for one in points)
            query, chosen = self.queries[number], self.chosen[number]
            with blaming(number):
                engine.index.add(number, query, chosen, changes_only=changes_only)
        return engine

    def define(self, offset: int, sql: str) -> Relation:
        relation = parse_relation(sql)
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
        """Make the subscription of this record active, without its initial content; its points."""
        self.learn(offset, query, chosen)
        placed = self.index.add(offset, query, chosen, changes_only=changes_only)
        self._seed_new_edges(offset)
        return placed

    def learn(self, subscription: int, query: Query, chosen: Decomposition | None) -> None:
        """Know of a subscription, without serving it."""
        self.queries[subscription], self.chosen[subscription] = query, chosen
        self.statistics.watch(query, self.rows.rows)

    def replan(self, replan: Replan) -> list[Message]:
        """Give a subscription another decomposition; returns what its moved points start with."""
        return self.initial(replan.offset, self.move(replan))

    def move(self, replan: Replan) -> list[Placed]:
        """Give a subscription another decomposition; the points that are in other spaces now."""
        subscription = replan.subscription
        query = self.query(subscription)
        self.chosen[subscription] = replan.decomposition
        since = self.index.replan(subscription, query, replan.decomposition)
        self._seed_new_edges(replan.offset)
        return list(self.index.points_of(subscription, since))

    def initial(self, offset: int, placed: Iterable[Placed]) -> list[Message]:
        """The rows that points start with, for them alone."""
        messages: list[Message] = []
        for points in self.index.parts(placed):
            if points.space.edge is None:
                messages += self._row_stage.initial(offset, NewSelections(points))
            else:
                values = self._join_values(points)
                messages += self._join_stage.initial(offset, points, values=values)
        return messages

    def _join_values(self, points: SpacePoints) -> list[JoinValue] | None:
        """Which groups have rows for some points, if that is found sooner than by going through
        all of them."""
        if len(points) > FEW_POINTS or is_half(points.space.table):
            return None
        return self._row_stage.join_values(points)

    def contents(self, offset: int) -> Iterator[Message]:
        """The rows that all points hold, told by regions: as many messages as there are rows that
        anybody needs, however many points there are."""
        everybody = [one for number in self.queries for one in self.index.points_of(number)]
        for points in self.index.parts(everybody):
            stage = self._row_stage if points.space.edge is None else self._join_stage
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
        """Carry out published events, between which no subscription comes or goes."""
        deltas, refused = self._resolve(run)
        messages, steps = self._row_stage.consequences(deltas)
        messages += each_message(self._join_stage.run(steps))
        messages.sort(key=_POSITION)
        return Outcome(messages, refused)

    def absorb(self, run: Iterable[tuple[int, bytes]]) -> Resolved:
        """Carry out events whose messages were emitted before: only the state changes."""
        resolved = self._resolve(run)
        self._join_stage.absorb(steps_of(self.index, resolved.deltas))
        return resolved

    def _resolve(self, run: Iterable[tuple[int, bytes]]) -> Resolved:
        """Make the changes of rows."""
        deltas: list[Delta] = []
        refused: list[Refused] = []
        read, resolve = reader_of(self.catalog).read, self._row_stage.resolve
        for offset, raw in run:
            try:
                delta = resolve(offset, read(raw, offset))
            except NoChangeError:
                continue
            except ChangeError as error:
                refused.append((offset, raw, error))
            except Exception as error:
                raise RecordFaultError(offset, error) if is_fault(error) else error from error
            else:
                if delta is not None:
                    deltas.append(delta)
        for _, relation, key, old, new in deltas:
            self.statistics.note(relation.name, key, old, new)
        return Resolved(deltas, refused)

    def try_changes(self, offset: int, changes: Iterable[Change]) -> None:
        """ChangeError if the changes, one after the other from this offset, cannot be made."""
        overlay: dict[tuple[str, RowKey], Row | None] = {}
        for i, change in enumerate(changes):
            checked = check(change, self.catalog, offset + i)
            place = (checked.relation.name, checked.key)
            current = overlay[place] if place in overlay else self._current(checked)
            overlay[place] = row_after(checked, current)

    def _current(self, checked: Checked) -> Row | None:
        return self.rows.get(checked.relation, checked.key)

    def _seed_new_edges(self, offset: int) -> None:
        for edge in self.index.edges:
            if edge not in self._seeded:
                self._seeded.add(edge)
                self._join_stage.seed(edge, self._row_stage.seed(offset, edge))
