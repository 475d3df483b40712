"""`ref-sj-clu+`: skyline points from cluster anchors, merged (Chandramouli and Yang, 2008, 3.2.1).

Consecutive points of `ref-sj-clu` become one wherever no selected and unaffected subscription lies
in the triangle between them (appendix B).
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.catalog import Row
from penstock.joins.comparators.structures.clustered import (
    ClusterIndex,
    ClusterScheme,
    cluster_reaches,
)
from penstock.joins.points import SpacePoints
from penstock.messages import Reaches


class RefSjCluPlus(ClusterScheme):
    name = "ref-sj-clu+"

    def reaches(
        self, points: SpacePoints, index: ClusterIndex, row: Row, partners: Iterable[Row]
    ) -> Reaches:
        return cluster_reaches(index, row, partners, merged=True)


SCHEME = RefSjCluPlus
