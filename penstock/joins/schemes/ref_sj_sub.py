"""`ref-sj-sub`: the skyline of least area (Chandramouli and Yang, 2008, 3.2.1).

Its points are the smallest filter intervals of the affected subscriptions, all of which are found
first.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.catalog import Row
from penstock.joins.clustered import ClusterIndex, ClusterScheme
from penstock.joins.points import CodeArray, SpacePoints
from penstock.joins.skyline import SkylinePoint, minimal_ranges


class RefSjSub(ClusterScheme):
    name = "ref-sj-sub"

    def describe(
        self, points: SpacePoints, index: ClusterIndex, row: Row, partners: CodeArray
    ) -> Iterable[SkylinePoint]:
        numbers = index.affected(row, partners)
        smallest = minimal_ranges(index.low[numbers], index.high[numbers])
        return [SkylinePoint(x, y) for x, y in smallest]


SCHEME = RefSjSub
