"""What a batch has to begin with: the points that became active with it."""

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
    """Set if they are all points of the space that were recorded from there on."""
    values: Iterable[JoinValue] | None = None
    """Set if it is known which groups have base rows that they select."""


@dataclass(frozen=True)
class NewPoints:
    """What is new in a batch, before its first change; for one thread, like the index."""

    index: Index
    points: Sequence[Placed] = ()
    """Active from this batch on, and without rows so far: those of new subscriptions, and those
    that another decomposition has moved."""
    edges: Sequence[Edge] = ()
    """Not known before: no subscription that was ever recorded needed them."""
    since: int | None = None
    """Subscriptions that were recorded from here on are new; None if only `points` tell."""
    has_snapshots: bool = False
    """Whether subscriptions that are not objects but in a snapshot are among the new ones."""
    values: Callable[[SpacePoints], list[JoinValue] | None] | None = None
    """Which groups have base rows that new points of a space select, if somebody knows."""
    asking: Sequence[Placed] | None = None
    """Points with conditions on operators that rows were not asked about yet; None: `points`."""

    @cached_property
    def asking_by_table(self) -> list[tuple[Relation, list[Point]]]:
        """The tables whose rows operators must be asked about, and for which points."""
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
