"""`ref-sj-clu`: skyline points from cluster anchors (Chandramouli and Yang, 2008, 3.2.1).

A point (c, c) for each joining value next to the anchor of a cluster: at most two per cluster.
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


class RefSjClu(ClusterScheme):
    name = "ref-sj-clu"

    def reaches(
        self, points: SpacePoints, index: ClusterIndex, row: Row, partners: Iterable[Row]
    ) -> Reaches:
        return cluster_reaches(index, row, partners, merged=False)


SCHEME = RefSjClu
