"""The index over regions finds what looking at every point finds, as points come and go."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog import Catalog, Column, IntegerType, Relation
from penstock.joins import SpacePoints
from penstock.kernels.trees import BY_ALL, BY_FILTER, plant
from penstock.matching.tiers import TierPolicy
from penstock.messages import ANY_FILTER, Message, Point, PointId, Position, Reach
from penstock.predicates.boxes import box
from penstock.predicates.intervals import ABOVE_NULL, BOTTOM, TOP, Interval, above, below
from penstock.routing import recipients, subscribers
from penstock.routing.region_kernel import points_in_region, points_in_region_reference
from penstock.routing.regions import POLICY
from penstock.routing.space_recipients import scanned
from penstock.spaces import Edge, Side, Space
from tests.examples import examples

INTEGER = IntegerType()
COLUMNS = ("id", "k", "a", "b")
TABLES = [
    Relation(name, tuple(Column(c, INTEGER, c != "id") for c in COLUMNS), (0,)) for name in "rs"
]
SPACE = Space("r", Edge((Side("r", (1,)), Side("s", (1,)))), 0, 2)

keys = st.none() | st.integers(0, 9)
cuts = st.sampled_from([BOTTOM, ABOVE_NULL, TOP]) | keys.map(below) | keys.map(above)
intervals = st.builds(Interval, cuts, cuts).filter(lambda interval: not interval.is_empty)
reaches = st.builds(Reach, cuts, cuts, cuts, cuts) | st.just(ANY_FILTER)
regions = st.lists(reaches, max_size=3).map(tuple)
boxes = st.dictionaries(st.sampled_from([2, 3]), intervals, max_size=2).map(box)
rows = st.tuples(st.just(1), st.just(1), keys, keys)


@st.composite
def messages(draw: st.DrawFn) -> Message:
    old = draw(st.none() | rows)
    remove = draw(regions) if old is not None else ()
    return Message(
        Position(1, 1),
        SPACE.id,
        (1,),
        draw(rows),
        draw(regions),
        None if old is None else ((2, old[2]), (3, old[3])),
        remove,
    )


def space() -> SpacePoints:
    catalog = Catalog()
    for offset, relation in enumerate(TABLES):
        catalog.add(relation, offset)
    return SpacePoints(SPACE, catalog)


@pytest.mark.slow
@pytest.mark.parametrize(
    "policy",
    [TierPolicy(1, 1, 2, 2), TierPolicy(4, 8, 1, 2), TierPolicy(3, 2, 1, 3), POLICY],
    ids=["no delta", "small segments", "three at once", "as it is"],
)
@settings(max_examples=examples(50))
@given(data=st.data())
def test_the_index_follows_the_points(policy: TierPolicy, data: st.DataObject) -> None:
    points = space()
    alive: dict[PointId, Point] = {}
    with (
        mock.patch("penstock.routing.space_recipients.SCANNED_POINTS", 0),
        mock.patch("penstock.routing.regions.POLICY", policy),
    ):
        for number in range(data.draw(st.integers(1, 25))):
            if alive and data.draw(st.integers(0, 3)) == 0:
                gone = data.draw(st.sampled_from(sorted(alive)))
                points.remove(gone)
                del alive[gone]
            else:
                name = PointId(number // 2, number % 2, 0)
                point = Point(name, SPACE.id, data.draw(boxes), data.draw(intervals))
                points.add(point)
                alive[name] = point
            if data.draw(st.booleans()):
                message = data.draw(messages())
                base = TABLES[0]
                expected = [
                    one.id
                    for one in alive.values()
                    if message.upserts(one, base) or message.removes(one, base)
                ]
                found = recipients(message, points)
                assert len(found) == len(set(found))
                assert sorted(found) == sorted(expected) == sorted(scanned(message, points))
                assert subscribers(message, points) == {one.subscription for one in expected}


codes = st.integers(0, 40)
ranges = st.tuples(codes, st.integers(0, 12)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@given(st.data(), st.sampled_from([BY_FILTER, BY_ALL]))
def test_the_kernel_is_as_its_reference(data: st.DataObject, columns: int) -> None:
    rows = data.draw(st.lists(st.tuples(ranges, ranges), max_size=80))
    cloud = np.array([(*a, *b) for a, b in rows], np.int64).reshape(-1, 4)
    drawn = data.draw(st.lists(st.tuples(codes, codes, codes, codes), min_size=1, max_size=3))
    region, code = np.array(drawn, np.int64), data.draw(codes)
    found = points_in_region(plant(cloud, columns=columns), region, code)
    assert sorted(found.tolist()) == points_in_region_reference(cloud, region, code)
