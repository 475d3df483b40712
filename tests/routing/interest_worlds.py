"""Random interests, points and messages of small spaces, in which everything collides."""

from __future__ import annotations

from hypothesis import strategies as st

from penstock.catalog import Column, IntegerType, Relation
from penstock.messages import ANY_FILTER, Envelope, Message, Point, PointId, Position, Reach
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
from penstock.routing.interests import Interest, SpaceShape

INTEGER = IntegerType()
RELATION = Relation(
    "r", tuple(Column(name, INTEGER, name != "id") for name in ("id", "k", "a", "b")), (0,)
)
SELECTION = SpaceShape(1, RELATION, 0)
JOINED = SpaceShape(2, RELATION, 1)
WIDE = SpaceShape(3, RELATION, 2)
SHAPES = {shape.space: shape for shape in (SELECTION, JOINED, WIDE)}

keys = st.none() | st.integers(0, 5)
cuts = st.sampled_from([BOTTOM, ABOVE_NULL, TOP]) | keys.map(below) | keys.map(above)
pairs_of_cuts = st.tuples(cuts, cuts).map(sorted)
intervals = st.builds(Interval, cuts, cuts).filter(lambda interval: not interval.is_empty)
boxes = st.dictionaries(st.sampled_from([2, 3]), intervals, max_size=2).map(box)
rows = st.tuples(st.just(1), st.just(1), keys, keys)
numbers = st.integers(1, 6)


@st.composite
def reaches(draw: st.DrawFn) -> Reach:
    if draw(st.integers(0, 5)) == 0:
        return ANY_FILTER
    return Reach(*draw(pairs_of_cuts), *draw(pairs_of_cuts))


@st.composite
def regions(draw: st.DrawFn, shape: SpaceShape) -> tuple[Reach | Envelope, ...]:
    if shape.is_selection:
        return (ANY_FILTER,)
    count = draw(st.integers(0, 3))
    if shape.filters == 1:
        return tuple(draw(reaches()) for _ in range(count))
    vectors = st.lists(st.tuples(keys, keys), max_size=2).map(tuple)
    return tuple(
        ANY_FILTER
        if draw(st.integers(0, 6)) == 0
        else Envelope((draw(reaches()), draw(reaches())), draw(vectors))
        for _ in range(count)
    )


@st.composite
def messages(draw: st.DrawFn, shape: SpaceShape) -> Message:
    row = draw(rows)
    old = draw(st.none() | rows)
    plain_old = None if old is None else ((2, old[2]), (3, old[3]))
    kind = draw(st.integers(0, 4))
    if kind == 0:
        named = tuple(PointId(n, 0, 0) for n in draw(st.lists(numbers, min_size=1, max_size=3)))
        shown = draw(st.sampled_from([row, None]))
        return Message(Position(1, 1), shape.space, (1,), shown, recipients=named)
    since = draw(numbers) if kind == 1 else 0
    upsert = draw(regions(shape))
    remove = draw(regions(shape)) if old is not None else ()
    return Message(Position(1, 1), shape.space, (1,), row, upsert, plain_old, remove, since=since)


@st.composite
def points(draw: st.DrawFn, shape: SpaceShape) -> Point:
    number = draw(numbers)
    if shape.is_selection:
        return Point(PointId(number, 0, 0), shape.space, draw(boxes), EVERYTHING)
    filters = [draw(intervals) for _ in range(shape.filters)]
    return Point(PointId(number, 0, 0), shape.space, draw(boxes), filters[0], tuple(filters[1:]))


@st.composite
def interests(draw: st.DrawFn, shape: SpaceShape, *, numbered: bool = True) -> Interest:
    bounds = tuple(
        ANY_FILTER if shape.is_selection else draw(reaches()) for _ in range(max(1, shape.filters))
    )
    span = EVERYTHING
    if numbered and draw(st.booleans()):
        first, last = sorted((draw(numbers), draw(numbers)))
        span = Interval(below(first), above(last))
    return Interest(shape.space, draw(boxes), bounds, span)


shapes = st.sampled_from([SELECTION, JOINED, WIDE])
