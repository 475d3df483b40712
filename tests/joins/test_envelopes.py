"""Filters over several columns: messages reach exactly those they must, by brute force."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog import Catalog, Column, IntegerType, Key, Relation, Row, RowKey
from penstock.joins import Group, GroupStep, SpacePoints, make_scheme, scheme_names
from penstock.joins.envelopes import skyline_envelope
from penstock.joins.initial_regions import newcomer_messages
from penstock.messages import Message, Point, PointId, Position, decode_message, encode_message
from penstock.predicates.boxes import Box, contains
from penstock.predicates.intervals import EVERYTHING, Interval, above, below
from penstock.routing import recipients
from penstock.spaces import Edge, Side, Space
from tests.examples import examples

INTEGER = IntegerType()
NAMES = ("id", "k", "a", "b", "c")
TABLES = tuple(
    Relation(name, tuple(Column(n, INTEGER, n != "id") for n in NAMES), (0,)) for name in ("r", "s")
)
EDGE = Edge((Side("r", (1,)), Side("s", (1,))))
SEMIJOIN = [name for name in scheme_names() if "sj" in name or name == "auto"]
OTHERS = sorted(set(scheme_names()) - set(SEMIJOIN))

keys = st.none() | st.integers(0, 4)
cells = st.tuples(keys, keys, keys)
ends = st.tuples(st.integers(0, 4), st.integers(0, 4)).map(sorted)
intervals = ends.map(lambda pair: Interval(below(pair[0]), above(pair[1]))) | st.just(EVERYTHING)
wishes = st.tuples(*[st.tuples(intervals, intervals, intervals)] * 2)
"""An interval for each of the columns a, b and c of both tables."""

Wish = tuple[tuple[Interval, ...], tuple[Interval, ...]]
Held = dict[tuple[int, int, RowKey], Row]
"""By subscription, side and row key."""


@dataclass
class World:
    """Subscriptions to a join whose filters have so many columns, and the rows of one group."""

    columns: int
    wishes: list[Wish] = field(default_factory=list)
    group: Group = field(default_factory=Group)

    def __post_init__(self) -> None:
        catalog = Catalog()
        for offset, relation in enumerate(TABLES):
            catalog.add(relation, offset)
        more = tuple(range(3, 2 + self.columns))
        self.spaces = [
            SpacePoints(Space(table, EDGE, side, 2, more), catalog)
            for side, table in enumerate(("r", "s"))
        ]

    def add(self, wish: Wish) -> None:
        self.wishes.append(wish)
        for side in (0, 1):
            self.spaces[side].add(self.point(len(self.wishes) - 1, side))

    def point(self, number: int, side: int) -> Point:
        wish = self.wishes[number]
        base: Box = tuple((2 + i, one) for i, one in enumerate(wish[side]) if one != EVERYTHING)
        first, *more = wish[1 - side][: self.columns]
        space = self.spaces[side].space.id
        return Point(PointId(number, 0, side), space, base, first, tuple(more))

    def held(self) -> Held:
        """What every semijoin contains, by definition."""
        return {
            (number, side, key): row
            for number in range(len(self.wishes))
            for side in (0, 1)
            for key, row in self.group.sides[side].items()
            if contains(self.point(number, side).base, TABLES[side], row)
            and any(self._passes(number, side, r) for r in self.group.sides[1 - side].values())
        }

    def _passes(self, number: int, side: int, row: Row) -> bool:
        intervals = self.point(number, side).filters
        values = row[2 : 2 + self.columns]
        return all(i.contains(v) for i, v in zip(intervals, values, strict=True))  # type: ignore[arg-type]

    def deliver(self, message: Message, held: Held) -> set[tuple[int, int, RowKey]]:
        side = 0 if message.space == self.spaces[0].space.id else 1
        told = set()
        for number in range(len(self.wishes)):
            point, place = self.point(number, side), (number, side, message.key)
            if message.upserts(point, TABLES[side]):
                assert message.row is not None
                held[place] = message.row
                told.add(place)
            elif message.removes(point, TABLES[side]):
                held.pop(place, None)
                told.add(place)
        found = {point.subscription for point in recipients(message, self.spaces[side])}
        assert found == {number for number, _, _ in told}
        return told


@st.composite
def steps(draw: st.DrawFn, group: Group, offset: int) -> GroupStep:
    side = draw(st.integers(0, 1))
    rows = group.sides[side]
    kind = draw(st.sampled_from(["insert", "insert", "update", "delete"])) if rows else "insert"
    if kind == "insert":
        number = 1000 * side + offset
        return GroupStep(offset, 1, side, (number,), None, (number, 1, *draw(cells)))
    key = draw(st.sampled_from(sorted(rows)))
    new = None if kind == "delete" else (key[0], 1, *draw(cells))
    return GroupStep(offset, 1, side, key, rows[key], new)


@pytest.mark.parametrize("columns", [1, 2, 3])
@pytest.mark.parametrize("name", SEMIJOIN)
@settings(max_examples=examples(25))
@given(data=st.data())
def test_messages_reach_exactly_those_whose_tuples_change(
    name: str, columns: int, data: st.DataObject
) -> None:
    """So every envelope is descriptive, and nobody is sent what they hold. Other base columns than
    the one an index is built over may cost a needless message, but only with one filter column."""
    world, scheme = World(columns), make_scheme(name)
    for wish in data.draw(st.lists(wishes, max_size=6)):
        world.add(wish)
    held = world.held()
    for offset in range(data.draw(st.integers(1, 10))):
        step = data.draw(steps(world.group, offset))
        messages = list(scheme.messages(world.group, step, world.spaces))
        before = dict(held)
        world.group.apply(step)
        told = [world.deliver(decode_message(encode_message(m)), held) for m in messages]
        after = world.held()
        assert held == after
        changed = {p for p in before.keys() | after if before.get(p) != after.get(p)}
        all_told = set().union(*told)
        same_row = {p for p in all_told if p[2] == step.key and step.old is not None}
        assert changed <= all_told <= changed | same_row
        assert columns == 1 or all(told), "a message that nobody needs"


@pytest.mark.parametrize("columns", [2, 3])
@pytest.mark.parametrize("name", OTHERS)
@settings(max_examples=examples(20))
@given(data=st.data())
def test_join_rows_reach_exactly_those_who_want_them(
    name: str, columns: int, data: st.DataObject
) -> None:
    """With `rel-sel`, whoever selects the row; with the others, for each join row."""
    world, scheme = World(columns), make_scheme(name)
    for wish in data.draw(st.lists(wishes, max_size=6)):
        world.add(wish)
    told: set[tuple[int, int, RowKey, RowKey | None]] = set()
    for offset in range(data.draw(st.integers(1, 8))):
        step = data.draw(steps(world.group, offset))
        for message in scheme.messages(world.group, step, world.spaces):
            side = 0 if message.space == world.spaces[0].space.id else 1
            for number in range(len(world.wishes)):
                point, place = (
                    world.point(number, side),
                    (number, side, message.key, message.partner),
                )
                if message.upserts(point, TABLES[side]):
                    told.add(place)
                elif message.removes(point, TABLES[side]):
                    told.discard(place)
        world.group.apply(step)
    assert told == _join_rows(world, with_partner=name != "rel-sel")


def _join_rows(world: World, *, with_partner: bool) -> set[tuple[int, int, RowKey, RowKey | None]]:
    found: set[tuple[int, int, RowKey, RowKey | None]] = set()
    for number, side in product(range(len(world.wishes)), (0, 1)):
        for key, row in world.group.sides[side].items():
            if not contains(world.point(number, side).base, TABLES[side], row):
                continue
            if not with_partner:
                found.add((number, side, key, None))
                continue
            for partner, other in world.group.sides[1 - side].items():
                if world._passes(number, side, other):
                    found.add((number, side, key, partner))
    return found


@settings(max_examples=examples(30))
@given(data=st.data())
def test_what_new_subscriptions_start_with(data: st.DataObject) -> None:
    world = World(2)
    for wish in data.draw(st.lists(wishes, min_size=1, max_size=5)):
        world.add(wish)
    for offset in range(data.draw(st.integers(1, 8))):
        world.group.apply(data.draw(steps(world.group, offset)))
    for name in ("auto", "enum-sj"):
        held: Held = {}
        for points in world.spaces:
            for message in make_scheme(name).initial(Position(9, 0), [world.group], points):
                world.deliver(message, held)
        assert held == world.held()
    by_region: Held = {}
    for points in world.spaces:
        for message in newcomer_messages(Position(9, 0), world.group, points, 0):
            world.deliver(message, by_region)
    assert by_region == world.held()


vectors = st.lists(st.tuples(keys, keys), min_size=1, max_size=8, unique=True)


@given(vectors, st.tuples(keys, keys), st.lists(st.tuples(intervals, intervals), max_size=20))
def test_a_skyline_envelope_stands_for_all_vectors(
    mates: list[tuple[int | None, int | None]],
    centre: tuple[int | None, int | None],
    boxes: list[tuple[Interval, Interval]],
) -> None:
    """A box around the centre contains one of the envelope if and only if it contains any."""
    nearest = skyline_envelope(mates, centre)
    assert set(nearest) <= set(mates)
    for box in boxes:
        if _holds(box, centre):
            assert any(_holds(box, v) for v in nearest) == any(_holds(box, v) for v in mates)


def _holds(box: tuple[Interval, Interval], vector: Sequence[Key | None]) -> bool:
    return all(interval.contains(key) for interval, key in zip(box, vector, strict=True))
