"""What a worker knows of the subscriptions and tables: the index as of one offset.

Workers live through many batches. Each keeps one view of a home and moves it forward with the
batches it sees; a batch that is replayed, and so asks for an earlier one, makes it start again.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from pathlib import Path

from penstock.catalog import Catalog
from penstock.engine.index import Index
from penstock.joins import Edge, Placed
from penstock.log import AnyHome, Home
from penstock.pipeline.rows import Span
from penstock.registry import Registry


@dataclass(frozen=True, slots=True)
class Arrivals:
    """What a batch has to begin with, before its first change."""

    subscriptions: list[int]
    """Active from this batch on, and without content so far."""
    edges: list[Edge]
    """Not known before: no subscription that was ever recorded needed them."""


class View:
    """The active subscriptions of a home. For one thread; follows what others have applied."""

    def __init__(self, home: AnyHome) -> None:
        self._registry = Registry(home, catch_up=False)
        self._catalog_to = 0
        self._begin()

    def _begin(self) -> None:
        self._catalog = self._registry.catalog()
        self.index = Index(self._catalog)
        self.edges: dict[str, Edge] = {}
        self.active = 0
        self._recorded: list[int] = []
        # Which subscription was the first to need an edge. Withdrawn ones count: the state kept
        # for their edges stays.
        self._first_needed: dict[Edge, int] = {}

    def catalog(self, end: int) -> Catalog:
        """The tables and streams that records before `end` declare (and maybe later ones)."""
        if end > self._catalog_to:
            self._catalog = self._registry.catalog()
            self._catalog_to = end
        return self._catalog

    def move_to(self, active: int) -> None:
        """Make `index` and `edges` those of the subscriptions before `active`."""
        if active < self.active:
            self._begin()
        if active == self.active:
            return
        changes = self._registry.changes_between(self.active, active)
        catalog = self.catalog(active)
        touched: list[Placed] = []
        for added in changes.added:
            self._recorded.append(added.id)
            placed = self.index.add(added.id, added.query(catalog))
            self._learn_edges(added.id, placed)
            touched += placed
        for withdrawn in changes.withdrawn:
            touched += self.index.remove(withdrawn.id)
        # A batch must give the same messages in a worker that has seen everything come and go as
        # in one that was started to replay it.
        for space in {one.space.id for one in touched}:
            self.index.space(space).forget_indexes()
        self.active = active

    def _learn_edges(self, subscription: int, placed: list[Placed]) -> None:
        for one in placed:
            edge = one.space.edge
            if edge is not None and edge.name not in self.edges:
                self.edges[edge.name] = edge
                self._first_needed[edge] = subscription

    def arrivals(self, span: Span) -> Arrivals:
        """What is new in a batch; the view must be that of the batch."""
        assert self.active == span.active
        untold = self._recorded[bisect_left(self._recorded, span.told) :]
        return Arrivals(
            [subscription for subscription in untold if subscription in self.index],
            [edge for edge, first in self._first_needed.items() if first >= span.previous],
        )


_views: dict[str, View] = {}


def worker_view(home: str) -> View:
    """The view that this process keeps of a home."""
    if home not in _views:
        _views[home] = View(Home.open(Path(home)))
    return _views[home]
