"""Points of one table's own space that exist only in a matcher, without an object for each.

A million points as objects take gigabytes and minutes to build, in every process that needs them. A
matcher is a few flat arrays, which are written once and mapped by all processes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from penstock.catalog import Relation, Row
from penstock.joins.point_arrays import Mask
from penstock.matching import EventBatch
from penstock.matching.lanes import LaneMatcher
from penstock.messages import Point, PointId

_BRANCH_BITS = 16
_CHANGES_ONLY = 1 << _BRANCH_BITS - 1  # a query has far fewer branches


class MatcherPoints:
    """The points of subscriptions over one relation, one for each of their branches."""

    def __init__(
        self, matcher: LaneMatcher, columns: Mapping[int, int], changes_only: int = 0
    ) -> None:
        """`columns` is the number of points that constrain each column, `changes_only` the number
        of points that hold no rows."""
        self.matcher = matcher
        self.columns = Counter(columns)
        self.changes_only = changes_only

    def __len__(self) -> int:
        return len(self.matcher)

    @property
    def relation(self) -> Relation:
        return self.matcher.relation

    def add_many(self, points: Iterable[Point]) -> None:
        boxes = []
        for point in points:
            flag = _CHANGES_ONLY if point.changes_only else 0
            boxes.append((_number(point.id.subscription, point.id.branch) | flag, [point.base]))
            self.columns.update(column for column, _ in point.base)
            self.changes_only += point.changes_only
        self.matcher.insert_many(boxes)

    def remove(self, subscription: int) -> None:
        """Remove the points of a subscription, if there are any; its branches count from 0."""
        for flag in (0, _CHANGES_ONLY):
            for branch in range(_CHANGES_ONLY):
                number = _number(subscription, branch) | flag
                boxes = self.matcher.boxes_of(number)
                if boxes is None:
                    break
                for box in boxes:
                    self.columns.subtract(column for column, _ in box)
                self.changes_only -= flag != 0
                self.matcher.remove(number)

    @property
    def mentioned_columns(self) -> set[int]:
        """The columns that some point constrains; all, if some point holds no rows itself."""
        if self.changes_only:
            return set(range(len(self.relation.columns)))
        return {column for column, count in self.columns.items() if count > 0}

    def any_match(self, batch: EventBatch) -> Mask:
        """Which of the rows some point selects."""
        return self.matcher.any_match(batch)

    def since(self, subscription: int) -> MatcherPoints:
        """A read-only view: points with initial content of subscriptions from this one on."""
        first = _number(subscription, 0)
        matcher = self.matcher.only(lambda ids: (ids >= first) & (ids & _CHANGES_ONLY == 0))
        return MatcherPoints(matcher, self.columns)

    def selecting(self, rows: Sequence[Row]) -> list[tuple[PointId, ...]]:
        """For each row, the points that select it."""
        batch = EventBatch.of_stored(self.relation, rows, self.mentioned_columns)
        offsets, numbers = self.matcher.match_batch(batch).by_event()
        ids = [_point_id(number) for number in numbers.tolist()]
        return [tuple(ids[start:end]) for start, end in pairwise(offsets.tolist())]


def _number(subscription: int, branch: int) -> int:
    return subscription << _BRANCH_BITS | branch


def _point_id(number: int) -> PointId:
    return PointId(number >> _BRANCH_BITS, number & (1 << _BRANCH_BITS) - 1, 0)
