"""Small random worlds of one edge: points in both spaces, and steps that bring rows together."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from penstock.catalog import Catalog, Column, IntegerType, Relation, Row, RowKey
from penstock.joins import Group, GroupStep, SpacePoints
from penstock.messages import Message, Point, PointId
from penstock.predicates.boxes import box, contains
from penstock.predicates.intervals import ABOVE_NULL, BOTTOM, TOP, Interval, above, below
from penstock.spaces import Edge, Side, Space

INTEGER = IntegerType()
COLUMNS = (Column("id", INTEGER, False), Column("k", INTEGER), Column("a", INTEGER))
TABLES = tuple(Relation(name, COLUMNS, (0,)) for name in ("r", "s"))
EDGE = Edge((Side("r", (1,)), Side("s", (1,))))
SPACES = tuple(Space(table, EDGE, side, 2) for side, table in enumerate(("r", "s")))

keys = st.none() | st.integers(0, 9)
cuts = st.sampled_from([BOTTOM, ABOVE_NULL, TOP]) | keys.map(below) | keys.map(above)
intervals = st.builds(Interval, cuts, cuts).filter(lambda interval: not interval.is_empty)
wishes = st.tuples(intervals, intervals)


@dataclass
class World:
    """What a subscription (an interval per side) should hold, and what it was told."""

    wishes: list[tuple[Interval, Interval]]
    group: Group
    spaces: list[SpacePoints]


def world(wanted: list[tuple[Interval, Interval]]) -> World:
    catalog = Catalog()
    for offset, relation in enumerate(TABLES):
        catalog.add(relation, offset)
    spaces = [SpacePoints(space, catalog) for space in SPACES]
    made = World([], Group(), spaces)
    for wish in wanted:
        subscribe(made, wish)
    return made


def subscribe(made: World, wish: tuple[Interval, Interval]) -> list[Point]:
    number = len(made.wishes)
    made.wishes.append(wish)
    points = [
        Point(PointId(number, 0, side), SPACES[side].id, box({2: wish[side]}), wish[1 - side])
        for side in (0, 1)
    ]
    for space, point in zip(made.spaces, points, strict=True):
        space.add(point)
    return points


def holds(wish: tuple[Interval, Interval], side: int, row: Row, group: Group) -> bool:
    """Whether a subscription's semijoin contains a row, by the definition."""
    base, filtering = wish[side], wish[1 - side]
    partners = group.sides[1 - side].values()
    return base.contains(_key(row)) and any(filtering.contains(_key(row)) for row in partners)


def _key(row: Row) -> int | None:
    value = row[2]
    assert value is None or isinstance(value, int)
    return value


Held = dict[tuple[int, int, RowKey], Row]
"""By subscription, side and row key."""


def all_held(made: World) -> Held:
    return {
        (number, side, key): row
        for number, wish in enumerate(made.wishes)
        for side in (0, 1)
        for key, row in made.group.sides[side].items()
        if holds(wish, side, row, made.group)
    }


def deliver(made: World, messages: list[Message], held: Held) -> list[tuple[Message, list[int]]]:
    """Do what messages say; returns for each the subscriptions it reached."""
    reached = []
    for message in messages:
        side = 0 if message.space == SPACES[0].id else 1
        told = []
        for number, wish in enumerate(made.wishes):
            point = Point(
                PointId(number, 0, side), message.space, box({2: wish[side]}), wish[1 - side]
            )
            if message.upserts(point, TABLES[side]):
                assert message.row is not None
                held[number, side, message.key] = message.row
                told.append(number)
            elif message.removes(point, TABLES[side]):
                held.pop((number, side, message.key), None)
                told.append(number)
        reached.append((message, told))
    return reached


@st.composite
def steps(draw: st.DrawFn, group: Group, offset: int, sides: tuple[int, ...] = (0, 1)) -> GroupStep:
    """A step that is possible in the group as it is."""
    side = draw(st.sampled_from(sides))
    rows = group.sides[side]
    fresh = (1000 * side + offset,)
    kind = draw(st.sampled_from(["insert", "insert", "update", "delete"])) if rows else "insert"
    if kind == "insert":
        row = (*fresh, 1, draw(keys))
        return GroupStep(offset, 1, side, fresh, None, row)
    key = draw(st.sampled_from(sorted(rows)))
    new = None if kind == "delete" else (key[0], 1, draw(keys))
    return GroupStep(offset, 1, side, key, rows[key], new)


def selects(wish: tuple[Interval, Interval], side: int, row: Row) -> bool:
    return contains(box({2: wish[side]}), TABLES[side], row)
