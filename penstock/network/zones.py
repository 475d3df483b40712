"""Zones of subscription space: the geometry of a content-addressable network.

A point of a space has two coordinates for each base column that is a dimension and for each filter
column: where the interval begins, and where it ends. Coordinates are cuts, which are compared and
never measured, so columns can have any type. A zone is a half-open box. The owner of a zone knows
only its neighbours: routing towards a coordinate, and from there to every zone that a region meets,
is decided from the own zone and those of neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from penstock.catalog import Row
from penstock.messages import Envelope, Message, Point, Reach, Reaches
from penstock.predicates.boxes import interval_of
from penstock.predicates.intervals import BOTTOM, TOP, Cut, above, below
from penstock.routing.interests import SpaceShape

Coordinates: TypeAlias = tuple[Cut, ...]
Span: TypeAlias = tuple[Cut, Cut]
Region: TypeAlias = tuple[Span, ...]
"""A box with both ends included, one span per dimension."""

BEYOND: Cut = (4,)
"""Above everything, including TOP: the end of the last zone."""


class Zone(NamedTuple):
    """From `low`, included, to `high`, not included, in each dimension."""

    low: Coordinates
    high: Coordinates

    def contains(self, place: Coordinates) -> bool:
        return all(a <= c < b for a, c, b in zip(self.low, place, self.high, strict=True))

    def meets(self, region: Region) -> bool:
        return all(
            first < high and last >= low
            for low, high, (first, last) in zip(self.low, self.high, region, strict=True)
        )

    def split(self, dimension: int, at: Cut) -> tuple[Zone, Zone]:
        low, high = list(self.low), list(self.high)
        low[dimension] = high[dimension] = at
        return Zone(self.low, tuple(high)), Zone(tuple(low), self.high)

    def touches(self, other: Zone) -> bool:
        """Whether they share a face: they touch in one dimension, and overlap in all others."""
        is_adjacent = False
        for a, b, c, d in zip(self.low, self.high, other.low, other.high, strict=True):
            if a == d or b == c:
                if is_adjacent:
                    return False
                is_adjacent = True
            elif a > d or c > b:
                return False
        return is_adjacent

    def joined(self, other: Zone) -> Zone | None:
        """The union of both if it is a box."""
        different = [
            d
            for d in range(len(self.low))
            if (self.low[d], self.high[d]) != (other.low[d], other.high[d])
        ]
        if len(different) != 1:
            return None
        (d,) = different
        if self.high[d] == other.low[d]:
            return Zone(self.low, other.high)
        return Zone(other.low, self.high) if other.high[d] == self.low[d] else None

    def leads_to(self, other: Zone, place: Coordinates) -> bool:
        """Whether this zone is the next one on the path from another zone to a place.

        The path leaves the other zone at its point nearest to the place, through the face of the
        first dimension in which the place lies outside.
        """
        crossed = False
        for mine, end, low, high, at in zip(
            self.low, self.high, other.low, other.high, place, strict=True
        ):
            if at < low:
                if not crossed:
                    crossed = True
                    if end != low:
                        return False
                elif not mine <= low < end:
                    return False
            elif at >= high:
                if not crossed:
                    crossed = True
                    if mine != high:
                        return False
                elif not mine < high <= end:
                    return False
            elif not mine <= at < end:
                return False
        return crossed


class CanSpace(NamedTuple):
    """How points and messages of one space become coordinates and regions."""

    shape: SpaceShape
    columns: tuple[int, ...]
    """The base columns that are dimensions. Others are tested at the destination."""

    @property
    def dimensions(self) -> int:
        return 2 * (len(self.columns) + self.shape.filters)

    def whole(self) -> Zone:
        return Zone((BOTTOM,) * self.dimensions, (BEYOND,) * self.dimensions)

    def place(self, point: Point) -> Coordinates:
        found: list[Cut] = []
        for column in self.columns:
            found += interval_of(point.base, column)
        for interval in point.filters[: self.shape.filters]:
            found += interval
        return tuple(found)

    def regions(self, message: Message) -> list[Region]:
        """Boxes that contain all points a message may be addressed to."""
        base = self.shape.base
        if message.recipients:
            row = message.row if message.row is not None else None
            if row is None and message.old is not None:
                row = message.row_before(base)
            return [self._around(row) + ((BOTTOM, TOP),) * (2 * self.shape.filters)]
        found: list[Region] = []
        if message.row is not None:
            found += self._of_reaches(message.row, message.upsert)
        if message.remove:
            found += self._of_reaches(message.row_before(base), message.remove)
        return list(dict.fromkeys(found))

    def _around(self, row: Row | None) -> Region:
        """The intervals that contain the values of a row."""
        spans: list[Span] = []
        for column in self.columns:
            if row is None:
                spans += [(BOTTOM, TOP), (BOTTOM, TOP)]
                continue
            value = row[column]
            key = None if value is None else self.shape.base.columns[column].type.key(value)
            spans += [(BOTTOM, below(key)), (above(key), TOP)]
        return tuple(spans)

    def _of_reaches(self, row: Row, reaches: Reaches) -> Iterator[Region]:
        around = self._around(row)
        for one in reaches:
            columns = one.reaches if isinstance(one, Envelope) else (one,)
            yield around + tuple(self._ends(columns))

    def _ends(self, columns: Sequence[Reach]) -> Iterator[Span]:
        for i in range(self.shape.filters):
            # A reach over the first column only leaves the others unbounded.
            if i < len(columns):
                yield columns[i][:2]
                yield columns[i][2:]
            else:
                yield (BOTTOM, TOP)
                yield (BOTTOM, TOP)


def groups_with_common_place(
    regions: Iterable[Region],
) -> list[tuple[Coordinates, list[Region]]]:
    """Groups of boxes that share a place, with that place: each group is one spanning tree."""
    groups: list[tuple[list[Span], list[Region]]] = []
    for region in regions:
        for shared, members in groups:
            both = [(max(a, c), min(b, d)) for (a, b), (c, d) in zip(shared, region, strict=True)]
            if all(first <= last for first, last in both):
                shared[:] = both
                members.append(region)
                break
        else:
            groups.append((list(region), [region]))
    return [(tuple(first for first, _ in shared), members) for shared, members in groups]
