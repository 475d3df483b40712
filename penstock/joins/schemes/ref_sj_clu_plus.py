"""`ref-sj-clu+`: skyline points from cluster anchors, merged (Chandramouli and Yang, 2008, 3.2.1).

Consecutive points of `ref-sj-clu` become one wherever no selected and unaffected subscription lies
in the triangle between them (appendix B).
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.catalog import Row
from penstock.joins.clustered import ClusterIndex, ClusterScheme, cluster_points
from penstock.joins.points import CodeArray, SpacePoints
from penstock.joins.skyline import SkylinePoint


class RefSjCluPlus(ClusterScheme):
    name = "ref-sj-clu+"

    def describe(
        self, points: SpacePoints, index: ClusterIndex, row: Row, partners: CodeArray
    ) -> Iterable[SkylinePoint]:
        return cluster_points(index, row, partners, merged=True)


SCHEME = RefSjCluPlus
