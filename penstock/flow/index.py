"""The index: the points of all active subscriptions, by space, by table and by edge."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from penstock.catalog import Catalog, Relation, Row
from penstock.flow.derived_index import DerivedIndex
from penstock.joins import SpacePoints
from penstock.joins.frozen_points import FrozenSpace
from penstock.joins.matcher_points import MatcherPoints
from penstock.joins.selections import Selections
from penstock.messages import Point, PointId
from penstock.query import Query
from penstock.spaces import Decomposition, Edge, Placed, Space, place


class Index:
    """The active subscriptions as points in spaces.

    Spaces and edges stay once they have been seen, even when their last point is removed: the state
    of an edge stays complete, so a later subscription can use it immediately.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self.samples: Mapping[str, Sequence[Row]] = {}
        """Representative rows, by table, for building matchers; contents do not depend on them.
        Used for spaces that are created after they were set."""
        self._spaces: dict[int, SpacePoints] = {}
        self._on_edge: dict[Edge, list[SpacePoints]] = {}
        self._edges_of: dict[str, list[Edge]] = {}
        self._placed: dict[int, list[Placed]] = {}
        self._covered: dict[str, MatcherPoints] = {}
        self.derived = DerivedIndex(catalog)

    def __len__(self) -> int:
        return len(self._placed)

    def __contains__(self, subscription: int) -> bool:
        return subscription in self._placed

    def add(
        self,
        subscription: int,
        query: Query,
        chosen: Decomposition | None = None,
        *,
        changes_only: bool = False,
    ) -> list[Placed]:
        """Make a subscription active; returns its points."""
        placed = place(query, subscription, chosen, changes_only=changes_only)
        self._placed[subscription] = placed
        for one in placed:
            self._add_point(one.space, one.point)
        return placed

    def replan(self, subscription: int, query: Query, chosen: Decomposition) -> list[Placed]:
        """Change the decomposition of an active subscription; returns its former points."""
        before = self._placed[subscription]
        changes_only = any(one.point.changes_only for one in before)
        after = place(query, subscription, chosen, changes_only=changes_only)
        for old, new in zip(before, after, strict=True):
            if old.space != new.space:
                self._remove_point(old.space, old.point)
                self._add_point(new.space, new.point)
        self._placed[subscription] = after
        return before

    def points_of(
        self, subscription: int, since: Sequence[Placed] | None = None
    ) -> Iterator[Placed]:
        """The points of an active subscription; with `since`, its former points, only those that
        are in another space now."""
        for i, one in enumerate(self._placed.get(subscription, [])):
            if since is None or since[i].space != one.space:
                yield one

    def remove(self, subscription: int) -> list[Placed]:
        """Make a subscription inactive; returns its former points, except covered ones."""
        placed = self._placed.pop(subscription, [])
        if not placed:
            for covered in self._covered.values():
                covered.remove(subscription)
            placed = self._thawed(subscription)
        for one in placed:
            self._remove_point(one.space, one.point)
        return placed

    def _add_point(self, space: Space, point: Point) -> None:
        points = self._points_in(space)
        points.add(point)
        self.derived.add(points.base, point)

    def _remove_point(self, space: Space, point: Point) -> None:
        points = self._spaces[space.id]
        points.remove(point.id)
        self.derived.remove(points.base, point)

    def _thawed(self, subscription: int) -> list[Placed]:
        """The frozen points of a subscription, turned into objects."""
        return [
            Placed(points.space, point)
            for points in self._spaces.values()
            for point in points.thaw(subscription)
        ]

    def is_frozen(self, subscription: int) -> bool:
        return any(points.is_frozen(subscription) for points in self._spaces.values())

    def freeze(self, frozen: Iterable[FrozenSpace]) -> None:
        """Set the frozen points, of many subscriptions over several tables, replacing earlier
        ones."""
        for points in self._spaces.values():
            points.forget_frozen()
        for one in frozen:
            self._points_in(one.space).freeze(one.points, one.shadows)

    def _points_in(self, space: Space) -> SpacePoints:
        if space.id not in self._spaces:
            points = SpacePoints(space, self._catalog, self.samples.get(space.table, ()))
            self._spaces[space.id] = points
            if space.edge is None:
                self.derived.note(space.table)
            else:
                self._on_edge.setdefault(space.edge, []).append(points)
                for table in _feeding(space.edge):
                    self.derived.note(table)
                    edges = self._edges_of.setdefault(table, [])
                    if space.edge not in edges:
                        edges.append(space.edge)
        return self._spaces[space.id]

    def space(self, number: int) -> SpacePoints:
        return self._spaces[number]

    @property
    def edges(self) -> list[Edge]:
        return list(self._on_edge)

    def edges_of(self, relation: Relation) -> list[Edge]:
        return self._edges_of.get(relation.name, [])

    def relations(self, edge: Edge) -> list[Relation]:
        """The tables that feed an edge, each once."""
        return [self._catalog[table] for table in _feeding(edge)]

    def on_edge(self, edge: Edge) -> list[SpacePoints]:
        """The spaces of an edge that have points."""
        return [points for points in self._on_edge.get(edge, []) if len(points)]

    def cover(self, covered: Iterable[MatcherPoints]) -> None:
        """Set the points of many subscriptions over one relation each, as matchers instead of
        objects, replacing earlier ones."""
        self._covered = {points.relation.name: points for points in covered}
        for name in self._covered:
            self.derived.note(name)

    @property
    def covered(self) -> list[MatcherPoints]:
        return list(self._covered.values())

    def selections(self, relation: Relation) -> Selections | None:
        """The points of the subscriptions over this relation only, if there are any."""
        space = Space(relation.name)
        points, covered = self._spaces.get(space.id), self._covered.get(relation.name)
        if not points and not covered:
            return None
        return Selections(space, points or None, covered or None)

    def parts(
        self, placed: Iterable[Placed], frozen_since: int | None = None
    ) -> Iterator[SpacePoints]:
        """The spaces of these points, restricted to those with initial content, and to the frozen
        points of subscriptions that were recorded from an offset on."""
        ids: dict[int, list[PointId]] = {}
        for one in placed:
            if not one.point.changes_only:
                ids.setdefault(one.space.id, []).append(one.point.id)
        if frozen_since is not None:
            for number, points in self._spaces.items():
                if points.has_frozen_since(frozen_since):
                    ids.setdefault(number, [])
        for number, of_space in ids.items():
            yield self._spaces[number].subset(of_space, frozen_since)


def _feeding(edge: Edge) -> list[str]:
    """The names of the tables that an edge joins."""
    return sorted({side.table for side in edge.sides})
