"""The points that became active with a batch and need their initial content first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from penstock.catalog import Relation
from penstock.catalog.derived import ExtendedRelation
from penstock.catalog.payload_split import columns_like
from penstock.flow.index import Index
from penstock.joins import SpacePoints
from penstock.joins.selections import NewSelections
from penstock.messages import Point
from penstock.spaces import Edge, JoinValue, Placed


class NewSemijoins(NamedTuple):
    """New points of one space over an edge."""

    points: SpacePoints
    since: int | None = None
    """Set if these are all points of the space recorded from this offset on."""
    values: Iterable[JoinValue] | None = None
    """The groups with base rows that these points select, if known."""


@dataclass(frozen=True)
class NewPoints:
    """What is new in a batch, before its first change. Not thread-safe, like the index."""

    index: Index
    points: Sequence[Placed] = ()
    """Points that are active from this batch on, without content so far: those of new
    subscriptions, and those moved by another decomposition."""
    edges: Sequence[Edge] = ()
    """New edges, which no earlier subscription used."""
    since: int | None = None
    """Subscriptions recorded from this offset on are new; None if only `points` are."""
    has_snapshots: bool = False
    """Whether new subscriptions are in a snapshot instead of being objects."""
    values: Callable[[SpacePoints], list[JoinValue] | None] | None = None
    """Finds the groups with base rows that new points of a space select, if that is possible."""
    asking: Sequence[Placed] | None = None
    """Points whose operators have not been evaluated on existing rows yet; None: `points`."""

    @cached_property
    def asking_by_table(self) -> list[tuple[Relation, list[Point]]]:
        """The tables on whose rows operators must be evaluated, and the points that need it."""
        found: dict[str, tuple[Relation, list[Point]]] = {}
        for one in self.points if self.asking is None else self.asking:
            relation = columns_like(self.index.space(one.space.id).base)
            if isinstance(relation, ExtendedRelation) and relation.lazy_columns:
                table = relation.base
                found.setdefault(table.name, (table, []))[1].append(one.point)
        return list(found.values())

    @cached_property
    def _parts(self) -> list[SpacePoints]:
        return list(self.index.parts(self.points))

    @cached_property
    def selections(self) -> list[NewSelections]:
        """The new points of the spaces of tables, space by space."""
        objects = {p.base.name: p for p in self._parts if p.space.edge is None}
        covered = {}
        if self.has_snapshots and self.since is not None:
            covered = {c.relation.name: c.since(self.since) for c in self.index.covered}
        found = [
            NewSelections(objects.get(name), covered.get(name), self.since)
            for name in sorted({*objects, *covered})
        ]
        return [new for new in found if len(new)]

    @cached_property
    def semijoins(self) -> list[NewSemijoins]:
        """The new points of the spaces over edges, space by space."""
        if self.since is None:
            found = [NewSemijoins(points) for points in self._parts]
        else:
            moved = [one for one in self.points if one.point.id.subscription < self.since]
            new = [one for one in self.points if one.point.id.subscription >= self.since]
            frozen_since = self.since if self.has_snapshots else None
            found = [NewSemijoins(p, self.since) for p in self.index.parts(new, frozen_since)]
            found += [NewSemijoins(points) for points in self.index.parts(moved)]
        found = [one for one in found if one.points.space.edge is not None]
        if self.values is None:
            return found
        return [one._replace(values=self.values(one.points)) for one in found]
