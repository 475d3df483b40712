"""Finding recipients in bulk agrees with asking each point."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.catalog import Catalog, Column, IntegerType, Relation
from penstock.joins import SpacePoints
from penstock.messages import Message, Point, PointId, Position, Reach
from penstock.predicates.boxes import box
from penstock.predicates.intervals import ABOVE_NULL, BOTTOM, TOP, Interval, above, below
from penstock.routing import recipients
from penstock.spaces import Edge, Side, Space

INTEGER = IntegerType()
TABLES = [
    Relation(name, (Column("id", INTEGER, False), Column("k", INTEGER), Column("a", INTEGER)), (0,))
    for name in ("r", "s")
]
SPACE = Space("r", Edge((Side("r", (1,)), Side("s", (1,)))), 0, 2)

keys = st.none() | st.integers(0, 6)
cuts = st.sampled_from([BOTTOM, ABOVE_NULL, TOP]) | keys.map(below) | keys.map(above)
intervals = st.builds(Interval, cuts, cuts).filter(lambda interval: not interval.is_empty)
reaches = st.builds(Reach, cuts, cuts, cuts, cuts)


def points_of(wishes: list[tuple[Interval, Interval]]) -> tuple[SpacePoints, list[Point]]:
    catalog = Catalog()
    for offset, relation in enumerate(TABLES):
        catalog.add(relation, offset)
    points = [
        Point(PointId(i, 0, 0), SPACE.id, box({2: base}), wanted)
        for i, (base, wanted) in enumerate(wishes)
    ]
    space = SpacePoints(SPACE, catalog)
    for point in points:
        space.add(point)
    return space, points


@given(
    st.lists(st.tuples(intervals, intervals), max_size=8),
    st.lists(reaches, max_size=2),
    st.lists(reaches, max_size=2),
    keys,
    keys,
)
def test_bulk_equals_one_by_one(
    wishes: list[tuple[Interval, Interval]],
    upsert: list[Reach],
    remove: list[Reach],
    new: int | None,
    old: int | None,
) -> None:
    space, points = points_of(wishes)
    message = Message(
        Position(1, 1), SPACE.id, (1,), (1, 1, new), tuple(upsert), ((2, old),), tuple(remove)
    )
    base = TABLES[0]
    expected = [p.id for p in points if message.upserts(p, base) or message.removes(p, base)]
    assert sorted(recipients(message, space)) == sorted(expected)
