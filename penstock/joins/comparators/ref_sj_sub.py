"""`ref-sj-sub`: the skyline of least area (Chandramouli and Yang, 2008, 3.2.1).

Its points are the minimal filter intervals of the affected subscriptions, which are enumerated
first.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.catalog import Row
from penstock.joins.comparators.structures.clustered import ClusterIndex, ClusterScheme, reaches_of
from penstock.joins.points import SpacePoints
from penstock.joins.skyline import minimal_ranges
from penstock.messages import Reaches


class RefSjSub(ClusterScheme):
    name = "ref-sj-sub"

    def reaches(
        self, points: SpacePoints, index: ClusterIndex, row: Row, partners: Iterable[Row]
    ) -> Reaches:
        numbers = index.affected(row, index.partner_codes(partners))
        smallest = minimal_ranges(index.low[numbers], index.high[numbers])
        return reaches_of(index.codes, *zip(*smallest, strict=True)) if smallest else ()


SCHEME = RefSjSub
