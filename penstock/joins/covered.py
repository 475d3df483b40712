"""Points of one table's own space that are kept in a matcher alone, without an object for each.

A million points as objects take gigabytes and minutes to make, in every process that needs them. As
a matcher they are some flat arrays, which can be written down once and mapped by everybody.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from penstock.catalog import Relation, Row
from penstock.joins.points import Mask
from penstock.matching import EventBatch
from penstock.matching.lanes import LaneMatcher
from penstock.messages import Point, PointId

_BRANCH_BITS = 16


class CoveredPoints:
    """The points of subscriptions over one relation, one for each of their branches."""

    def __init__(self, matcher: LaneMatcher, columns: Mapping[int, int]) -> None:
        """`columns` says how many points constrain each column."""
        self.matcher = matcher
        self.columns = Counter(columns)

    def __len__(self) -> int:
        return len(self.matcher)

    @property
    def relation(self) -> Relation:
        return self.matcher.relation

    def add_many(self, points: Iterable[Point]) -> None:
        boxes = []
        for point in points:
            boxes.append((_number(point.id.subscription, point.id.branch), [point.base]))
            self.columns.update(column for column, _ in point.base)
        self.matcher.insert_many(boxes)

    def remove(self, subscription: int) -> None:
        """Remove the points of a subscription, if they are here; its branches count from 0."""
        for branch in range(1 << _BRANCH_BITS):
            number = _number(subscription, branch)
            boxes = self.matcher.boxes_of(number)
            if boxes is None:
                return
            for box in boxes:
                self.columns.subtract(column for column, _ in box)
            self.matcher.remove(number)

    @property
    def mentioned_columns(self) -> set[int]:
        """The columns that some point constrains."""
        return {column for column, count in self.columns.items() if count > 0}

    def concerned(self, rows: Sequence[Row]) -> Mask:
        """Which of the rows some point selects."""
        return self.matcher.match_batch(self._batch(rows)).concerned()

    def selecting(self, rows: Sequence[Row], since: int) -> list[tuple[PointId, ...]]:
        """For each row, the points that select it of subscriptions recorded from `since` on."""
        offsets, numbers = self.matcher.match_batch(self._batch(rows)).by_event()
        wanted = numbers >= _number(since, 0)
        ends = np.concatenate([[0], np.cumsum(wanted)])[offsets]
        ids = [_point_id(number) for number in numbers[wanted].tolist()]
        return [tuple(ids[ends[i] : ends[i + 1]]) for i in range(len(rows))]

    def _batch(self, rows: Sequence[Row]) -> EventBatch:
        return EventBatch.of_stored(self.relation, rows)


def _number(subscription: int, branch: int) -> int:
    return subscription << _BRANCH_BITS | branch


def _point_id(number: int) -> PointId:
    return PointId(number >> _BRANCH_BITS, number & (1 << _BRANCH_BITS) - 1, 0)
