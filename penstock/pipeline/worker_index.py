"""A worker's view of the subscriptions and tables: the index as of one offset.

Workers live through many batches. Each keeps one view of a home and moves it forward with the
batches it sees; a replayed batch asks for an earlier offset, and the view is rebuilt.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from penstock.catalog import Catalog, Relation
from penstock.client import Initial
from penstock.errors import ChangeError, PenstockError
from penstock.flow.faults import blaming
from penstock.flow.index import Index
from penstock.flow.kinds import Span
from penstock.flow.new_points import NewPoints
from penstock.flow.operator_values import OperatorRuntime
from penstock.joins import Scheme, make_scheme
from penstock.joins.frozen_points import FrozenSpace
from penstock.joins.matcher_points import MatcherPoints
from penstock.pipeline.buckets import spread_of
from penstock.pipeline.snapshots import Snapshot, newest
from penstock.query import Query
from penstock.registry import HomeOperators, Registry, StoredSubscription, SubscriptionChanges
from penstock.spaces import Decomposition, Edge, Placed, Replan, place
from penstock.storage import (
    AnyHome,
    Home,
    events_in_quarantine,
    refusal,
    samples,
    suspects_among,
    usable_statistics,
)

SCHEME = "ref-sj-gap"
"""Gives the same regions as the kernels, so that messages are the same bytes in both gears: a run
that starts over refills its groups, and then uses another gear for a batch."""


class WorkerIndex:
    """The active subscriptions of a home. For one thread; reads what other processes have applied.

    Subscriptions come from the newest snapshot, as far as it goes; later ones are objects.
    Suspended ones are left out. With `only`, it is a view of some subscriptions, for an attempt.
    """

    def __init__(self, home: AnyHome, only: Collection[int] | None = None) -> None:
        self._home = home
        self._only = only
        self.spread = spread_of(home.buckets)
        self._registry = Registry(home, catch_up=False)
        stored = home if isinstance(home, Home) else None
        self._snapshots = None if stored is None or only is not None else stored.snapshots
        # They affect the cost of matching, never the messages of a batch.
        self._samples = samples(None if stored is None else usable_statistics(stored.path))
        self._catalog_to = 0
        self._operators: HomeOperators | None = None
        self._begin()

    def _begin(self) -> None:
        self._catalog = self._registry.catalog()
        self.index = Index(self._catalog)
        self.index.samples = self._samples
        self.edges: dict[str, Edge] = {}
        self.active = 0
        self._covered_to = 0
        self._recorded: list[int] = []
        # The first record that needed an edge. Withdrawn subscriptions count: the state kept for
        # their edges stays.
        self._first_needed: dict[Edge, int] = {}
        self._replanned: dict[int, _Replanned] = {}
        # Subscriptions that need no rows to start with, in the index although recorded after
        # `active`: all of those before `_early_to`.
        self._early: set[int] = set()
        self._early_to = 0
        self._new_points: tuple[Span, NewPoints] | None = None
        self._aside = self._registry.count_set_aside()
        self._refused: tuple[tuple[Span, int], Mapping[int, ChangeError]] | None = None

    def attempt(self, only: Collection[int]) -> WorkerIndex:
        """A separate view of some of the subscriptions."""
        return WorkerIndex(self._home, only)

    def subscriptions(self, span: Span) -> list[int]:
        """The subscriptions that take part in a batch."""
        active = [one.id for one in self._registry.subscriptions(span.active)]
        early = self._registry.changes_only(span.active, max(span.active, span.end))
        return sorted({*active, *(one.id for one in early)})

    def suspects(self) -> set[int]:
        """Subscriptions that took part in faults of events."""
        return suspects_among(self._registry.records_set_aside().values())

    def operators(self) -> OperatorRuntime:
        """The operators of the home in this process."""
        if self._operators is None:
            path = self._home.path if isinstance(self._home, Home) else None
            self._operators = HomeOperators(self._registry.catalog, path)
        return self._operators.runtime

    def not_applied(self, span: Span) -> Mapping[int, ChangeError]:
        """The events of a batch that must not be applied: those set aside and, if the batch is read
        again, those refused when it was published."""
        known = span, self._registry.count_set_aside()
        if self._refused is None or self._refused[0] != known:
            start, end = span.start, span.end
            frontier = self._home.messages.frontier
            refused: dict[int, ChangeError] = {}
            if frontier is not None and start < frontier.end:
                refused = events_in_quarantine(self._home.quarantine, start, end)
            aside = self._registry.records_set_aside(start, end)
            refused |= {offset: refusal(one) for offset, one in aside.items()}
            self._refused = known, refused
        return self._refused[1]

    def catalog(self, end: int) -> Catalog:
        """The tables and streams that records before `end` declare (and maybe later ones)."""
        if end > self._catalog_to:
            self._catalog = self._registry.catalog()
            self._catalog_to = end
        return self._catalog

    def move_to(self, active: int, end: int = 0) -> None:
        """Set `index` and `edges` to the subscriptions before `active`, plus those before `end`,
        the end of the batch, that need no rows to start with."""
        end = max(active, end)
        if (active, end) != (self.active, self._early_to):
            self._new_points = None
        has_changed = self._registry.count_set_aside() != self._aside
        if active < self.active or end < self._early_to or has_changed:
            self._begin()
        if active > self.active:
            self._move_to(active)
        if end > max(active, self._early_to):
            for one in self._registry.changes_only(max(active, self._early_to), end):
                if self._is_wanted(one.id):
                    self._early.add(one.id)
                    with blaming(one.id):
                        self.index.add(one.id, one.query(self.catalog(end)), changes_only=True)
        self._early_to = end

    def _move_to(self, active: int) -> None:
        snapshot = None
        if self._snapshots is not None:
            snapshot = newest(self._snapshots, active, len(self._registry.suspended()))
        if snapshot is not None and snapshot.active > max(self._covered_to, self.active):
            # If it is removed just now, the next batch finds a newer one.
            with suppress(PenstockError, OSError):
                catalog = self.catalog(active)
                self._adopt(snapshot, list(snapshot.covered(catalog)), list(snapshot.frozen()))
        self._follow(self._registry.changes_between(self.active, active), active)

    def _adopt(
        self, snapshot: Snapshot, covered: list[MatcherPoints], frozen: list[FrozenSpace]
    ) -> None:
        """Switch to a snapshot: subscriptions in it need no objects any more."""
        others = self._registry.numbered(snapshot.others_from(self.active))
        changes = self._registry.changes_between(self.active, snapshot.active, added=False)
        self._follow(replace(changes, added=others), snapshot.active)
        early = {number for number in self._early if number < snapshot.active}
        others_too = set(snapshot.others_from(0))
        for number in [n for n in (*self._recorded, *early) if n not in others_too]:
            self.index.remove(number)
        self._early -= early
        self._recorded = [number for number in self._recorded if number in self.index]
        self.index.cover(covered)
        self.index.freeze(frozen)
        for edge, first in snapshot.edges:
            self.edges[edge.name] = edge
            self._first_needed[edge] = min(first, self._first_needed.get(edge, first))
        self._covered_to = snapshot.active

    def _follow(self, changes: SubscriptionChanges, active: int) -> None:
        catalog = self.catalog(active)
        touched: list[Placed] = []
        # In the order of the log: then every worker knows the same spaces in the same order,
        # whether it has seen all batches or was just started.
        for _, one in _in_order(changes):
            if isinstance(one, Replan):
                touched += self._replan(one, catalog)
            else:
                touched += self._add(one, catalog)
        for withdrawn in changes.withdrawn:
            touched += self.index.remove(withdrawn.id)
        # A batch must give the same messages in a worker that has seen every change as in one that
        # was started to replay it.
        for space in {one.space.id for one in touched}:
            self.index.space(space).forget_indexes()
        self.active = active

    def _add(self, added: StoredSubscription, catalog: Catalog) -> list[Placed]:
        if added.suspended or not self._is_wanted(added.id):
            return []
        self._recorded.append(added.id)
        if added.id in self._early:
            self._early.remove(added.id)
            return []
        with blaming(added.id):
            query, changes_only = added.query(catalog), added.initial is Initial.NONE
            placed = self.index.add(added.id, query, added.decomposition, changes_only=changes_only)
        self._learn_edges(added.id, placed)
        return placed

    def _is_wanted(self, number: int) -> bool:
        return self._only is None or number in self._only

    def _replan(self, replan: Replan, catalog: Catalog) -> list[Placed]:
        number = replan.subscription
        if number not in self.index and not self.index.is_frozen(number):
            return []
        if number not in self._replanned:
            stored = self._registry.subscription(number, withdrawn=True)
            if number not in self.index:
                self.index.remove(number)
                self.index.add(number, stored.query(catalog), stored.decomposition)
                insort(self._recorded, number)
            began = [(number, stored.decomposition)]
            self._replanned[number] = _Replanned(stored.query(catalog), began)
        known = self._replanned[number]
        known.chosen.append((replan.offset, replan.decomposition))
        with blaming(replan.offset):
            before = self.index.replan(number, known.query, replan.decomposition)
        placed = list(self.index.points_of(number, before))
        self._learn_edges(replan.offset, placed)
        return [*before, *placed]

    def _learn_edges(self, offset: int, placed: list[Placed]) -> None:
        for one in placed:
            edge = one.space.edge
            if edge is not None and edge.name not in self.edges:
                self.edges[edge.name] = edge
                self._first_needed[edge] = offset

    def index_at(self, span: Span) -> Index:
        """The points that are active in a batch."""
        self.move_to(span.active, span.end)
        return self.index

    def new_points(self, span: Span) -> NewPoints:
        """What is new in a batch."""
        self.move_to(span.active, span.end)
        if self._new_points is None or self._new_points[0] != span:
            self._new_points = span, self._find_new_points(span)
        return self._new_points[1]

    def _find_new_points(self, span: Span) -> NewPoints:
        since = span.initial_from
        points: list[Placed] = []
        for number in self._recorded[bisect_left(self._recorded, since) :]:
            points += self.index.points_of(number)
        for number, known in self._replanned.items():
            if number < since <= known.chosen[-1][0]:
                points += self.index.points_of(number, known.points_at(number, since))
        edges = [edge for edge, first in self._first_needed.items() if first >= span.active_before]
        # State that is rebuilt has not been queried for any subscription, whether or not it has
        # content.
        numbers = self._recorded[bisect_left(self._recorded, span.active_before) :]
        numbers += [number for number in self._early if number >= span.start]
        asking = [one for number in numbers for one in self.index.points_of(number)]
        has_snapshots = since < self._covered_to
        return NewPoints(self.index, points, edges, since, has_snapshots, asking=asking)

    def scheme(self) -> Scheme:
        """A new one for each partition and batch: what it caches of groups is of no use in the next
        batch, which reads them again."""
        return make_scheme(SCHEME)

    def needs(self, _relation: Relation) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class _Replanned:
    """A subscription with several decompositions, and the records that set them."""

    query: Query
    chosen: list[tuple[int, Decomposition | None]]

    def points_at(self, number: int, offset: int) -> list[Placed]:
        """Where its points were, according to the records before an offset."""
        (*_, last) = (one for recorded, one in self.chosen if recorded < offset)
        return place(self.query, number, last)


def _in_order(changes: SubscriptionChanges) -> list[tuple[int, StoredSubscription | Replan]]:
    """Subscriptions and replans with their offsets, in the order of the log."""
    added: list[tuple[int, StoredSubscription | Replan]] = [(one.id, one) for one in changes.added]
    replanned = [(one.offset, one) for one in changes.replanned]
    return sorted([*added, *replanned], key=lambda pair: pair[0])


@cache
def worker_home(path: str) -> Home:
    """The home at a path, cached per process: reopening a log would scan it again."""
    return Home.open(Path(path))


@cache
def worker_view(path: str) -> WorkerIndex:
    """The view of a home, cached per process."""
    return WorkerIndex(worker_home(path))
