"""The stabbing-set index: filter intervals in few clusters that each share a common value.

Intervals are taken in the order of their right ends; one that contains no anchor yet makes its
right end an anchor (Chandramouli and Yang, 2008, 3.1.1). The intervals that made the anchors are
pairwise disjoint, so no fewer clusters are possible: they are the *witnesses* of that.

A new interval goes to a cluster whose anchor it contains, or founds one. The optimum cannot fall
below the number of living witnesses; when there are more than twice as many clusters, the index is
rebuilt. So there are never more than twice as many clusters as needed. Members added since the last
build are kept in separate small trees, one per cluster, built on demand.
"""

from __future__ import annotations

import numpy as np

from penstock.joins.comparators.structures.cluster_kernels import (
    affected_places,
    any_affected,
    exposed_ranges,
    skylines,
)
from penstock.kernels.compiled import njit
from penstock.kernels.trees import HIGH, LOW, Forest, Points, plant
from penstock.kernels.unions import Codes64

LATE_MEMBERS = 1024
"""Members added since the last build that trigger a rebuild (or 1/8 of all, if that is more)."""


@njit
def _greedy_anchors(low: Codes64, high: Codes64, order: Codes64) -> tuple[Codes64, Codes64]:
    """Anchors, ascending, and the witness of each; `order` sorts the intervals by their ends."""
    anchors = np.empty(order.shape[0], np.int64)
    witnesses = np.empty(order.shape[0], np.int64)
    count = 0
    for i in order:
        if count == 0 or low[i] > anchors[count - 1]:
            anchors[count], witnesses[count] = high[i], i
            count += 1
    return anchors[:count], witnesses[:count]


class StabbingIndex:
    """Points (filter low, filter high, base low, base high) in clusters, identified by number."""

    def __init__(self, points: Points) -> None:
        self._points: list[tuple[int, ...]] = []
        self._all = np.ascontiguousarray(points, np.int64).reshape(-1, 4)
        self._alive = np.ones(len(self._all), np.bool_)
        self._build()

    def _build(self) -> None:
        points = self._all
        numbers = np.flatnonzero(self._alive & (points[:, LOW] <= points[:, HIGH]))
        some = points[numbers]
        order = np.argsort(some[:, HIGH], kind="stable")
        anchors, witnesses = _greedy_anchors(some[:, LOW].copy(), some[:, HIGH].copy(), order)
        cluster = np.searchsorted(anchors, some[:, LOW])
        by_cluster = np.argsort(cluster, kind="stable")
        starts = np.searchsorted(cluster[by_cluster], np.arange(len(anchors) + 1))
        self.anchors = anchors
        self._forest = plant(some[by_cluster], starts.astype(np.int64))
        self._number_at = numbers[by_cluster][self._forest.order]
        self._witnesses = set(numbers[witnesses].tolist())
        self._late: list[int] = []
        self._founded: list[int] = []  # anchors of clusters founded since the build
        self._late_forest: tuple[Codes64, Forest, Codes64] | None = None
        self._gone = 0

    def __len__(self) -> int:
        return int(self._alive.sum()) + len(self._points)

    @property
    def clusters(self) -> int:
        """The number of clusters: at most twice as many as needed."""
        return len(self.anchors) + len(self._founded)

    @property
    def needed(self) -> int:
        """A lower bound on the number of clusters: the living witnesses."""
        return len(self._witnesses)

    def insert(self, low: int, high: int, base_low: int, base_high: int) -> int:
        """Returns the number of the new point."""
        number = len(self._all) + len(self._points)
        self._points.append((low, high, base_low, base_high))
        self._late.append(number)
        self._late_forest = None
        if low <= high and not self._is_stabbed(low, high):
            self._founded.append(high)
        self._rebuild_if_due()
        return number

    def delete(self, number: int) -> None:
        self._absorb()
        self._alive[number] = False
        self._gone += 1
        self._late_forest = None
        self._witnesses.discard(number)
        self._rebuild_if_due()

    def affected(self, partners: Codes64, a: int) -> Codes64:
        """The numbers of the points that select `a` and contain a partner value; sorted."""
        found = []
        for anchors, forest, number_at in self._parts():
            out = np.empty(len(number_at), np.int64)
            count = affected_places(forest, anchors, partners, a, out)
            found.append(number_at[out[:count]])
        numbers = np.concatenate(found)
        return np.sort(numbers[self._alive[numbers]])

    def any_point(self, partners: Codes64, a: int) -> bool:
        """Whether `affected` finds a point; deleted points may count until the next build."""
        return any(any_affected(f, anchors, partners, a) for anchors, f, _ in self._parts())

    def exposed(self, x: int, c: int, y: int) -> list[tuple[int, int]]:
        """The union of the base ranges of the points inside (x, y) that contain c.

        Deleted points may count until the next build.
        """
        ranges: list[tuple[int, int]] = []
        for anchors, forest, _ in self._parts():
            low, high = exposed_ranges(forest, anchors, x, c, y)
            ranges += zip(low.tolist(), high.tolist(), strict=True)
        return ranges

    def skylines(
        self, partners: Codes64, values: Codes64, *, merged: bool
    ) -> tuple[Codes64, Codes64, Codes64]:
        """The cluster-based skylines for many base values (`ref-sj-clu`, merged: `ref-sj-clu+`)."""
        if self._late or self._gone:
            self._absorb()
            self._build()  # a skyline needs all clusters in one forest
        return skylines(self._forest, self.anchors, partners, values, merged)

    def _is_stabbed(self, low: int, high: int) -> bool:
        following = int(np.searchsorted(self.anchors, low))
        if following < len(self.anchors) and self.anchors[following] <= high:
            return True
        return any(low <= anchor <= high for anchor in self._founded)

    def _rebuild_if_due(self) -> None:
        too_many = self.clusters > 2 * max(self.needed, 1)
        if too_many or len(self._late) > max(LATE_MEMBERS, len(self._all) // 8):
            self._absorb()
            self._build()

    def _absorb(self) -> None:
        """Append the points inserted one by one to the arrays."""
        if self._points:
            more = np.array(self._points, np.int64).reshape(-1, 4)
            self._all = np.concatenate([self._all, more])
            self._alive = np.concatenate([self._alive, np.ones(len(more), np.bool_)])
            self._points = []

    def _parts(self) -> list[tuple[Codes64, Forest, Codes64]]:
        """The trees of the last build, and those of later members."""
        self._absorb()
        parts = [(self.anchors, self._forest, self._number_at)]
        if self._late:
            if self._late_forest is None:
                self._late_forest = self._plant_late()
            parts.append(self._late_forest)
        return parts

    def _plant_late(self) -> tuple[Codes64, Forest, Codes64]:
        numbers = np.array([n for n in self._late if self._alive[n]], np.int64)
        some = self._all[numbers]
        some, numbers = some[some[:, LOW] <= some[:, HIGH]], numbers[some[:, LOW] <= some[:, HIGH]]
        anchors = np.unique(np.concatenate([self.anchors, np.array(self._founded, np.int64)]))
        cluster = np.searchsorted(anchors, some[:, LOW])
        by_cluster = np.argsort(cluster, kind="stable")
        starts = np.searchsorted(cluster[by_cluster], np.arange(len(anchors) + 1))
        forest = plant(some[by_cluster], starts.astype(np.int64))
        return anchors, forest, numbers[by_cluster][forest.order]
