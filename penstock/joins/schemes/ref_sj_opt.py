"""`ref-sj-opt`: semijoins reformulated with the fewest skyline points.

The affected points are found by testing all points of a space, so the cost of a step grows with
their number.
"""

from __future__ import annotations

from penstock.catalog import Row
from penstock.joins.point_arrays import CodeArray
from penstock.joins.points import SpacePoints
from penstock.joins.semijoin import SemijoinScheme
from penstock.joins.skyline import SkylinePoint, affected, fewest_points


class RefSjOpt(SemijoinScheme):
    name = "ref-sj-opt"

    def describe(self, points: SpacePoints, row: Row, partners: CodeArray) -> list[SkylinePoint]:
        selected = points.selecting(row)
        low, high = points.filters.low[selected], points.filters.high[selected]
        return fewest_points(low, high, affected(low, high, partners))


SCHEME = RefSjOpt
