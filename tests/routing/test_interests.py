"""Interests: exact for points, never too few for boxes of points, and one index for all of it."""

from __future__ import annotations

import subprocess
import sys
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import NetworkError
from penstock.messages import ANY_FILTER, Message, Point
from penstock.packing import unpack
from penstock.predicates.intervals import IS_NULL, Interval, above, below
from penstock.routing.interest_index import InterestIndex
from penstock.routing.interests import (
    MAX_INTEREST_BYTES,
    Interest,
    SpaceShape,
    check_interest,
    concerns,
    hull,
    interest_from,
    interest_of,
    name_of,
    pack_interest,
)
from tests.examples import examples
from tests.routing.interest_worlds import (
    RELATION,
    SELECTION,
    SHAPES,
    interests,
    messages,
    points,
    shapes,
)


def is_meant(message: Message, point: Point) -> bool:
    return message.upserts(point, RELATION) or message.removes(point, RELATION)


def _lies_in(point: Point, interest: Interest) -> bool:
    return interest.covers(interest_of(point, with_number=True))


@settings(max_examples=examples(150))
@given(st.data())
def test_the_interest_of_a_point_is_concerned_exactly_when_the_point_is(
    data: st.DataObject,
) -> None:
    shape = data.draw(shapes)
    point, message = data.draw(points(shape)), data.draw(messages(shape))
    own = interest_of(point, with_number=True)
    if message.recipients:
        # A message that names its recipients has a row in their boxes, if it has one at all.
        named = point.id in message.recipients
        assert not (is_meant(message, point) and not named)
        assert not concerns(message, own, RELATION) or named
    else:
        assert concerns(message, own, RELATION) == is_meant(message, point)


@settings(max_examples=examples(150))
@given(st.data())
def test_no_message_passes_by_an_interest_that_holds_a_point_it_means(data: st.DataObject) -> None:
    shape = data.draw(shapes)
    point, message = data.draw(points(shape)), data.draw(messages(shape))
    interest = hull(interest_of(point, with_number=True), data.draw(interests(shape)))
    assert _lies_in(point, interest)
    if is_meant(message, point) and not message.recipients:
        assert concerns(message, interest, RELATION)


@settings(max_examples=examples(100))
@given(st.data())
def test_a_cover_is_concerned_by_whatever_concerns_what_it_covers(data: st.DataObject) -> None:
    shape = data.draw(shapes)
    one, other = data.draw(interests(shape)), data.draw(interests(shape))
    both = hull(one, other)
    assert both.covers(one)
    assert both.covers(other)
    for outer, inner in ((one, other), (both, one)):
        if outer.covers(inner):
            message = data.draw(messages(shape))
            if concerns(message, inner, RELATION):
                assert concerns(message, outer, RELATION)


@pytest.mark.slow
@settings(max_examples=examples(60))
@pytest.mark.parametrize(
    ("plain", "opened", "ratio", "scans"), [(1000, 5, 4, 2), (0, 0, 4, 0), (3, 2, 2, 0)]
)
@given(data=st.data())
def test_the_index_finds_what_looking_at_every_interest_finds(
    plain: int, opened: int, ratio: int, scans: int, data: st.DataObject
) -> None:
    shape = data.draw(shapes)
    room = "penstock.routing.interest_index."
    with (
        mock.patch(room + "PLAIN_INTERESTS", plain),
        mock.patch(room + "OPEN_INTERESTS", opened),
        mock.patch(room + "MERGE_RATIO", ratio),
        mock.patch(room + "SCANS_BEFORE_MASKS", scans),
    ):
        index, held = InterestIndex(shape), dict[int, tuple[Interest, int]]()
        for name in range(data.draw(st.integers(1, 20))):
            if held and data.draw(st.integers(0, 3)) == 0:
                gone = data.draw(st.sampled_from(sorted(held)))
                assert index.remove(gone) == held.pop(gone)[0]
            else:
                held[name] = (data.draw(interests(shape)), data.draw(st.sampled_from([0, 1, 70])))
                index.add(name, *held[name])
            if data.draw(st.booleans()):
                _compare(index, held, shape, data)
        _compare(index, held, shape, data)


def _compare(
    index: InterestIndex,
    held: dict[int, tuple[Interest, int]],
    shape: SpaceShape,
    data: st.DataObject,
) -> None:
    asked = data.draw(st.lists(messages(shape), min_size=1, max_size=3))
    expected = []
    for message in asked:
        names = {n for n, (i, _) in held.items() if concerns(message, i, RELATION)}
        assert set(index.names(message)) == names
        expected.append(sum({1 << held[name][1] for name in names}))
    assert index.links(asked) == expected
    probe = data.draw(interests(shape))
    links = data.draw(st.sampled_from([-1, 1, 2, 3, 1 << 70]))
    of_links = {n: i for n, (i, link) in held.items() if links >> link & 1}
    covering = index.covering(probe, links)
    assert (covering is None) == (not any(i.covers(probe) for i in of_links.values()))
    assert covering is None or of_links[covering].covers(probe)
    assert sorted(index.covered(probe, links)) == sorted(
        n for n, i in of_links.items() if probe.covers(i)
    )
    assert sorted(index.meeting(probe, links)) == sorted(
        n for n, i in of_links.items() if i.meets(probe)
    )


def test_many_interests_added_at_once_are_found() -> None:
    index = InterestIndex(SELECTION)
    wanted = [
        Interest(1, ((2, Interval(below(i), above(i + 2))),), (ANY_FILTER,)) for i in range(3000)
    ]
    index.add_many((i, one, i % 3) for i, one in enumerate(wanted))
    assert index.covering(wanted[7]) == 7
    assert index.covered(wanted[7]) == [7]
    narrow = Interest(1, ((2, Interval(below(8), above(8))),), (ANY_FILTER,))
    assert index.covering(narrow, 1 << 1) == 7


@given(st.data())
def test_interests_survive_packing(data: st.DataObject) -> None:
    interest = data.draw(interests(data.draw(shapes)))
    read = interest_from(unpack(pack_interest(interest)))
    assert read == interest
    assert name_of(read) == name_of(interest)
    check_interest(read, SHAPES)


@pytest.mark.parametrize(
    "bad",
    [
        Interest(99, (), ()),
        Interest(1, ((9, IS_NULL),), (ANY_FILTER,)),
        Interest(3, (), (ANY_FILTER,)),
        Interest(1, ((2, IS_NULL), (2, IS_NULL)), (ANY_FILTER,)),
    ],
)
def test_interests_that_do_not_fit_their_space_are_refused(bad: Interest) -> None:
    with pytest.raises(NetworkError):
        check_interest(bad, SHAPES)


def test_an_interest_of_absurd_size_is_refused() -> None:
    text = "x" * MAX_INTEREST_BYTES
    with pytest.raises(NetworkError, match="interest of"):
        name_of(Interest(1, ((2, Interval(below(text), above(text))),), ()))


@pytest.mark.parametrize("plain", [None, [1, 2], [1, [[0, [[7], [0]]]], [], [[0], [3]]], "x"])
def test_what_is_not_an_interest_is_refused(plain: object) -> None:
    with pytest.raises(NetworkError):
        interest_from(plain)


def test_small_tables_need_no_compiler() -> None:
    program = (
        "import sys\n"
        "from penstock.routing.interest_index import InterestIndex\n"
        "assert InterestIndex\n"
        "assert not {'numba', 'numpy', 'pyarrow', 'sqlglot', 'pyspark'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
