"""Points as arrays: put together and taken apart, they are the points that they were."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.joins.point_arrays import CodedRanges, PointArrays
from penstock.joins.points import SpacePoints
from penstock.messages import Point, PointId
from penstock.predicates.boxes import box
from penstock.predicates.intervals import (
    ABOVE_NULL,
    BOTTOM,
    EVERYTHING,
    TOP,
    Interval,
    above,
    below,
)
from tests.joins.worlds import SPACES, intervals, world

wide = intervals | st.just(EVERYTHING)
ends = st.sampled_from([BOTTOM, ABOVE_NULL, TOP])
text_cuts = ends | st.text(max_size=2).map(below) | st.text(max_size=2).map(above)
texts = st.builds(Interval, text_cuts, text_cuts).filter(lambda interval: not interval.is_empty)
boxes = st.dictionaries(st.integers(0, 2), intervals, max_size=2).map(box)


def numbered(wishes: list[tuple[tuple[tuple[int, Interval], ...], Interval]]) -> list[Point]:
    return [
        Point(PointId(i // 2, i % 2, 0), SPACES[0].id, base, filtering)
        for i, (base, filtering) in enumerate(wishes)
    ]


points = st.lists(st.tuples(boxes, wide), max_size=8).map(numbered)


def told(arrays: PointArrays) -> list[Point]:
    return list(arrays.points(SPACES[0].id))


@given(st.sampled_from([wide, texts]), st.data())
def test_ranges_in_the_codes_of_more_constants(
    kind: st.SearchStrategy[Interval], data: st.DataObject
) -> None:
    some, more = (data.draw(st.lists(kind)) for _ in range(2))
    joined = CodedRanges.of(some).concat(CodedRanges.of(more))
    assert [joined.interval(i) for i in range(len(joined))] == [*some, *more]


@given(points, st.data())
def test_points_survive_being_parted_and_joined(some: list[Point], data: st.DataObject) -> None:
    chosen = [data.draw(st.booleans()) for _ in some]
    parts = [
        PointArrays.of([p for p, here in zip(some, chosen, strict=True) if here == wanted], 0)
        for wanted in (True, False)
    ]
    assert told(parts[0].concat(parts[1])) == some
    assert told(PointArrays.of(some[::-1], 0)) == some


@given(points, st.data())
def test_frozen_points_are_like_others(some: list[Point], data: st.DataObject) -> None:
    made = world([]).spaces[0]
    plain, frozen = made.subset([]), made.subset([])
    kept = data.draw(st.integers(0, len(some)))
    frozen.freeze(PointArrays.of(some[:kept], 0))
    for point in some:
        plain.add(point)
    for point in some[kept:]:
        frozen.add(point)
    for point in data.draw(st.lists(st.sampled_from(some), unique=True)) if some else []:
        if data.draw(st.booleans()):
            plain.remove(point.id)
            frozen.remove(point.id)
        else:
            assert frozen[point.id] == plain[point.id] == point
            break
    assert_same(plain, frozen)
    since = data.draw(st.integers(0, 4))
    new = [i for i in plain.ids if i.subscription >= since]
    assert_same(plain.subset(new), frozen.subset(new, frozen_since=since))


def assert_same(plain: SpacePoints, other: SpacePoints) -> None:
    assert len(plain) == len(other)
    assert plain.ids == other.ids
    assert plain.mentioned_columns == other.mentioned_columns
    assert plain.main_column == other.main_column
    for value in (None, 0, 3, 9):
        row = (value, value, value)
        assert plain.selecting(row).tolist() == other.selecting(row).tolist()
        admitted = plain.filters.containing(value)
        assert admitted.tolist() == other.filters.containing(value).tolist()
