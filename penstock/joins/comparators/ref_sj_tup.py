"""`ref-sj-tup`: one skyline point per joining value (Chandramouli and Yang, 2008, 3.2.1).

Cheap to compute; long if a row joins many others.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.catalog import Row
from penstock.joins.comparators.structures.clustered import ClusterIndex, ClusterScheme
from penstock.joins.points import SpacePoints
from penstock.messages import Reach, Reaches
from penstock.predicates.intervals import BOTTOM, TOP, above, below


class RefSjTup(ClusterScheme):
    name = "ref-sj-tup"

    def reaches(
        self, points: SpacePoints, index: ClusterIndex, row: Row, partners: Iterable[Row]
    ) -> Reaches:
        if not index.stabbing.any_point(index.partner_codes(partners), index.base_code(row)):
            return ()
        values = {points.attribute(partner) for partner in partners}
        ordered = sorted(values, key=below)
        return tuple(Reach(BOTTOM, below(value), above(value), TOP) for value in ordered)


SCHEME = RefSjTup
