"""The skyline is descriptive and as small as can be."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from penstock.joins.skyline import SkylinePoint, affected, fewest_points

intervals = st.tuples(st.integers(-1, 8), st.integers(0, 4)).map(lambda p: (p[0], p[0] + p[1]))


def covered(point: SkylinePoint, interval: tuple[int, int]) -> bool:
    return interval[0] <= point.x and interval[1] >= point.y


def is_descriptive(
    points: list[SkylinePoint], ranges: list[tuple[int, int]], hit: list[bool]
) -> bool:
    return all(any(covered(p, r) for p in points) == h for r, h in zip(ranges, hit, strict=True))


def arrays(ranges: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    pairs = np.array(ranges, np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


@given(st.lists(intervals, max_size=12), st.lists(st.integers(-1, 12), max_size=6))
def test_affected_means_containing_a_partner(
    ranges: list[tuple[int, int]], partners: list[int]
) -> None:
    low, high = arrays(ranges)
    found = affected(low, high, np.unique(np.array(partners, np.int64)))
    expected = [any(a <= p <= b for p in partners) for a, b in ranges]
    assert found.tolist() == expected


@given(st.lists(intervals, max_size=9), st.lists(st.integers(-1, 12), max_size=5))
def test_fewest_points_describe_exactly_the_affected(
    ranges: list[tuple[int, int]], partners: list[int]
) -> None:
    low, high = arrays(ranges)
    hit = affected(low, high, np.unique(np.array(partners, np.int64)))
    points = fewest_points(low, high, hit)
    assert is_descriptive(points, ranges, hit.tolist())
    assert len(points) == smallest_description(ranges, hit.tolist())


def smallest_description(ranges: list[tuple[int, int]], hit: list[bool]) -> int:
    """By trying all sets of candidate points, smallest first."""
    wanted = [r for r, h in zip(ranges, hit, strict=True) if h]
    candidates = [SkylinePoint(x, y) for x, _ in wanted for _, y in wanted]
    useful = [
        p
        for p in dict.fromkeys(candidates)
        if not any(covered(p, r) for r, h in zip(ranges, hit, strict=True) if not h)
    ]
    for size in range(len(wanted) + 1):
        for chosen in combinations(useful, size):
            if is_descriptive(list(chosen), ranges, hit):
                return size
    raise AssertionError("no description")
