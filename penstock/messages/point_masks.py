"""Points of one space as bit masks: finds those in a region without testing each.

For few points: the branches of one subscription, or recently added points. A point in a set is the
bit of its number.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from penstock.catalog import Relation, Row
from penstock.messages.message import EVERYONE, Envelope, Point, Reach, Reaches
from penstock.predicates.intervals import Interval
from penstock.predicates.masks import IntervalMasks


class PointMasks:
    """Immutable. `base` is the table whose rows the points select."""

    def __init__(self, points: Sequence[Point], base: Relation) -> None:
        self.points = points
        self._everyone = (1 << len(points)) - 1
        boxes: dict[int, dict[int, Interval]] = {}
        for i, point in enumerate(points):
            for column, interval in point.base:
                boxes.setdefault(column, {})[i] = interval
        count = len(points)
        self._base = [
            (column, base.columns[column].type, IntervalMasks(intervals, count))
            for column, intervals in sorted(boxes.items())
        ]

    @cached_property
    def _filters(self) -> list[IntervalMasks]:
        """By filter column; not needed for subscriptions over one table."""
        filters = zip(*(point.filters for point in self.points), strict=True)
        return [IntervalMasks(dict(enumerate(of)), len(self.points)) for of in filters]

    def selecting(self, row: Row) -> int:
        """The points whose base boxes contain a row."""
        found = self._everyone
        for column, value_type, masks in self._base:
            value = row[column]
            found &= masks.containing(None if value is None else value_type.key(value))
            if not found:
                break
        return found

    def within(self, reaches: Reaches) -> int:
        """The points whose filters lie within one of the reaches."""
        if reaches == EVERYONE:
            return self._everyone
        found = 0
        for reach in reaches:
            found |= self._enveloped(reach) if isinstance(reach, Envelope) else self._met(reach)
        return found

    def _met(self, reach: Reach, column: int = 0) -> int:
        return self._filters[column].bounded(reach[:2], reach[2:])

    def _enveloped(self, envelope: Envelope) -> int:
        found = self._everyone
        for column, reach in enumerate(envelope.reaches):
            found &= self._met(reach, column)
        for vector in envelope.without:
            admitting = self._everyone
            for masks, key in zip(self._filters, vector, strict=True):
                admitting &= masks.containing(key)
            found &= ~admitting
        return found
