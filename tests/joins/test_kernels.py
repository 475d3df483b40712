"""Kernels agree with their references, and the stabbing-set index keeps what it promises."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from penstock.joins.comparators.structures.cluster_kernels import (
    affected_reference,
    disposable,
    disposable_reference,
    exposed_reference,
    neighbours_of_anchors,
)
from penstock.joins.comparators.structures.stabbing import StabbingIndex
from penstock.joins.kernels.gaps import (
    Parted,
    all_gaps,
    all_gaps_reference,
    any_point,
    any_point_reference,
    split_gap,
    split_gap_reference,
)
from penstock.joins.kernels.probes import (
    exposed_values,
    exposed_values_reference,
    gaps_holding,
    gaps_holding_reference,
)
from penstock.joins.ranges import bridge_ranges, holds, union_ranges
from penstock.kernels.trees import Points, plant, unions_of
from penstock.kernels.unions import coarsen, stabs, union_reference, unite
from penstock.predicates.intervals import above, below

ranges = st.tuples(st.integers(0, 30), st.integers(0, 8)).map(lambda r: (r[0], r[0] + r[1]))
point = st.tuples(ranges, ranges).map(lambda pair: (*pair[0], *pair[1]))
clouds = st.lists(point, max_size=70).map(lambda rows: np.array(rows, np.int64).reshape(-1, 4))
values = st.lists(st.integers(-1, 40), min_size=1, max_size=6).map(lambda v: sorted(set(v)))


def parts(parted: Parted) -> list[list[tuple[int, int]]]:
    begin, low, high = (array.tolist() for array in parted)
    pairs = list(zip(low, high, strict=True))
    return [pairs[begin[i] : begin[i + 1]] for i in range(len(begin) - 1)]


@given(st.lists(ranges, min_size=1), st.integers(-1, 40))
def test_unions(given_ranges: list[tuple[int, int]], code: int) -> None:
    low, high = (np.array(side, np.int64) for side in zip(*given_ranges, strict=True))
    count = unite(low, high)
    found = list(zip(low[:count].tolist(), high[:count].tolist(), strict=True))
    assert found == union_reference(given_ranges)
    inside = any(a <= code <= b for a, b in given_ranges)
    assert stabs(low, high, 0, count, code) == inside
    few = coarsen(low, high, count, 2)
    assert few <= 2
    assert stabs(low, high, 0, few, code) or not inside


@given(clouds, st.lists(st.integers(-2, 40), min_size=3, max_size=3, unique=True))
def test_splitting_a_gap(cloud: Points, around: list[int]) -> None:
    x, c, y = sorted(around)
    forest = plant(cloud)
    assert parts(split_gap(forest, unions_of(forest), x, c, y)) == split_gap_reference(
        cloud, x, c, y
    )


@given(clouds, st.lists(st.integers(-2, 40), min_size=3, max_size=3, unique=True), values)
def test_exposed_values(cloud: Points, around: list[int], base: list[int]) -> None:
    x, c, y = sorted(around)
    forest, coded, marks = plant(cloud), np.array(base, np.int64), np.zeros(len(base), np.bool_)
    count = exposed_values(forest, unions_of(forest), x, c, y, coded, marks)
    assert marks.tolist() == exposed_values_reference(cloud, x, c, y, base)
    assert count == marks.sum()


@given(clouds, values, st.integers(0, 40))
def test_gaps_holding_a_base_value(cloud: Points, cut_at: list[int], a: int) -> None:
    forest, coded = plant(cloud), np.array(cut_at, np.int64)
    marks = gaps_holding(forest, unions_of(forest), coded, a)
    assert marks.tolist() == gaps_holding_reference(cloud, cut_at, a)


@given(clouds, values, st.integers(0, 40))
def test_all_gaps_and_any_point(cloud: Points, cut_at: list[int], a: int) -> None:
    forest = plant(cloud)
    unions, coded = unions_of(forest), np.array(cut_at, np.int64)
    assert parts(all_gaps(forest, unions, coded)) == all_gaps_reference(cloud, cut_at)
    found = any_point(forest, unions, a, coded, coded)
    assert found == any_point_reference(cloud, a, cut_at, cut_at)


@given(clouds, values, st.integers(0, 40), st.integers(0, 40))
def test_clusters(cloud: Points, partners: list[int], a: int, c: int) -> None:
    index, coded = StabbingIndex(cloud), np.array(partners, np.int64)
    assert index.affected(coded, a).tolist() == affected_reference(cloud, partners, a)
    assert index.any_point(coded, a) == bool(affected_reference(cloud, partners, a))
    q = neighbours_of_anchors(index.anchors, coded)
    out = np.zeros(max(len(q), 1), np.int64)
    disposable(index._forest, index.anchors, a, q, out)
    found = [bool(one) for one in out[: max(len(q) - 1, 0)]]
    assert found == disposable_reference(cloud, a, q.tolist())
    x, y = c - 4, c + 5
    assert union_reference(index.exposed(x, c, y)) == exposed_reference(cloud, x, c, y)


@given(clouds, values, st.lists(st.integers(0, 40), max_size=5))
def test_cluster_skylines_are_descriptive(
    cloud: Points, partners: list[int], rows: list[int]
) -> None:
    index = StabbingIndex(cloud)
    coded, batch = np.array(partners, np.int64), np.array(rows, np.int64)
    for merged in (False, True):
        begin, xs, ys = index.skylines(coded, batch, merged=merged)
        for i, a in enumerate(rows):
            points = [(int(xs[j]), int(ys[j])) for j in range(begin[i], begin[i + 1])]
            hit = affected_reference(cloud, partners, a)
            for number, (low, high, base_low, base_high) in enumerate(cloud.tolist()):
                if base_low <= a <= base_high:
                    covered = any(low <= x and high >= y for x, y in points)
                    assert covered == (number in hit)


def fewest_clusters(cloud: list[tuple[int, ...]]) -> int:
    anchors: list[int] = []
    for low, high, *_ in sorted(cloud, key=lambda row: row[1]):
        if not anchors or low > anchors[-1]:
            anchors.append(high)
    return len(anchors)


@given(clouds, st.data())
def test_clusters_stay_within_twice_the_fewest(cloud: Points, data: st.DataObject) -> None:
    index = StabbingIndex(cloud)
    alive = {i: tuple(row) for i, row in enumerate(cloud.tolist())}
    assert index.clusters == fewest_clusters(list(alive.values()))
    for _ in range(data.draw(st.integers(0, 20))):
        if alive and data.draw(st.booleans()):
            number = data.draw(st.sampled_from(sorted(alive)))
            index.delete(number)
            del alive[number]
        else:
            row = data.draw(point)
            alive[index.insert(*row)] = row
        assert len(index) == len(alive)
        assert index.clusters <= 2 * max(1, fewest_clusters(list(alive.values())))
        partners, a = data.draw(values), data.draw(st.integers(0, 40))
        found = index.affected(np.array(partners, np.int64), a).tolist()
        rows = np.array([alive[i] for i in sorted(alive)], np.int64).reshape(-1, 4)
        numbers = sorted(alive)
        assert found == [numbers[i] for i in affected_reference(rows, partners, a)]


@given(st.lists(st.lists(ranges, max_size=4), max_size=4), st.integers(0, 40))
def test_flat_unions(unions: list[list[tuple[int, int]]], value: int) -> None:
    flats = [
        [cut for low, high in union_reference(union) for cut in (below(low), above(high))]
        for union in unions
    ]
    expected = any(low <= value <= high for union in unions for low, high in union)
    assert holds(union_ranges(flats), below(value)) == expected
    assert holds(bridge_ranges(union_ranges(flats)), below(value)) == expected
