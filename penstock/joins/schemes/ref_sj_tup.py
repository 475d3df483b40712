"""`ref-sj-tup`: one skyline point per joining value (Chandramouli and Yang, 2008, 3.2.1).

Easy to find, and long where a row joins with many others.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.catalog import Row
from penstock.joins.clustered import ClusterIndex, ClusterScheme
from penstock.joins.points import CodeArray, SpacePoints
from penstock.joins.skyline import SkylinePoint


class RefSjTup(ClusterScheme):
    name = "ref-sj-tup"

    def describe(
        self, points: SpacePoints, index: ClusterIndex, row: Row, partners: CodeArray
    ) -> Iterable[SkylinePoint]:
        if not index.stabbing.anyone(partners, index.base_code(row)):
            return ()
        return (SkylinePoint(value, value) for value in partners.tolist())


SCHEME = RefSjTup
