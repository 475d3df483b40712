"""All schemes that send semijoin tuples: they tell exactly those they must, and no one twice."""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import Hub
from penstock.errors import PenstockError
from penstock.joins import GroupStep, make_scheme, remembered, scheme_names
from penstock.joins.accounting import description_bytes, message_bytes
from penstock.joins.initial_regions import newcomer_messages
from penstock.joins.semijoin import partner_codes
from penstock.joins.skyline import affected
from penstock.messages import Message, PointId, Position, Reach, each_message
from penstock.predicates.intervals import BOTTOM, TOP, above, below
from penstock.routing import recipients
from tests.examples import examples
from tests.joins.test_skyline import smallest_description
from tests.joins.worlds import all_held, deliver, keys, steps, subscribe, wishes, world

SEMIJOIN = [name for name in scheme_names() if "sj" in name or name == "auto"]


def test_the_schemes_by_name() -> None:
    assert scheme_names() == [
        "auto",
        "enum-j",
        "enum-sj",
        "ref-j",
        "ref-j+",
        "ref-sj-clu",
        "ref-sj-clu+",
        "ref-sj-gap",
        "ref-sj-opt",
        "ref-sj-sub",
        "ref-sj-tup",
        "rel-sel",
    ]
    assert all(make_scheme(name).name == name for name in scheme_names())


def test_an_unknown_scheme_is_refused_by_name() -> None:
    with pytest.raises(PenstockError, match="unknown scheme magic") as caught:
        Hub(scheme="magic")
    assert "ref-sj-opt" in caught.value.hint


@pytest.mark.slow
@pytest.mark.parametrize("name", SEMIJOIN)
@settings(max_examples=examples(60))
@given(data=st.data())
def test_messages_reach_exactly_those_whose_tuples_change(name: str, data: st.DataObject) -> None:
    """By brute force: a message reaches a point if and only if the point's semijoin gains, loses or
    changes the row. So every skyline is descriptive, and nobody is sent what they hold."""
    made = world(data.draw(st.lists(wishes, max_size=6)))
    scheme = make_scheme(name)
    held = all_held(made)
    for offset in range(data.draw(st.integers(1, 12))):
        if data.draw(st.integers(0, 5)) == 0:
            number = len(made.wishes)
            subscribe(made, data.draw(wishes))
            held |= {place: row for place, row in all_held(made).items() if place[0] == number}
        step = data.draw(steps(made.group, offset))
        messages = list(scheme.messages(made.group, step, made.spaces))
        before = dict(held)
        made.group.apply(step)
        reached = deliver(made, messages, held)
        after = all_held(made)
        assert held == after
        changed = {
            place for place in before.keys() | after if before.get(place) != after.get(place)
        }
        told = {
            (number, 0 if message.space == made.spaces[0].space.id else 1, message.key)
            for message, numbers in reached
            for number in numbers
        }
        # An update that changes nothing a point can see still travels: the row is new.
        same_row = {(n, s, k) for n, s, k in told if k == step.key and step.old is not None}
        assert changed <= told <= changed | same_row
        assert all(numbers for _, numbers in reached), "a message that nobody needs"


@given(data=st.data())
def test_the_optimal_scheme_has_the_fewest_points_and_shadows_no_fewer(
    data: st.DataObject,
) -> None:
    """Against all sets of points that describe the affected among those who select the row."""
    made = world(data.draw(st.lists(wishes, min_size=1, max_size=7)))
    for offset in range(data.draw(st.integers(1, 5))):
        made.group.apply(data.draw(steps(made.group, offset)))
    row = (5000, 1, data.draw(keys))
    step = GroupStep(100, 1, 0, (5000,), None, row)
    points = made.spaces[0]
    partners = partner_codes(points, made.group.sides[1].values())
    low, high = (ends[points.selecting(row)] for ends in (points.filters.low, points.filters.high))
    hit = affected(low, high, partners).tolist()
    fewest = smallest_description(list(zip(low.tolist(), high.tolist(), strict=True)), hit)
    sent = {
        name: list(make_scheme(name).messages(made.group, step, [points]))
        for name in ("ref-sj-opt", "ref-sj-gap")
    }
    counts = {name: sum(len(one.upsert) for one in messages) for name, messages in sent.items()}
    assert counts["ref-sj-opt"] == fewest <= counts["ref-sj-gap"]


@given(data=st.data())
def test_new_points_start_with_what_they_hold(data: st.DataObject) -> None:
    made = world(data.draw(st.lists(wishes, max_size=8)))
    for offset in range(data.draw(st.integers(0, 15))):
        made.group.apply(data.draw(steps(made.group, offset)))
    started = {}
    for side, points in enumerate(made.spaces):
        for message in make_scheme("ref-sj-gap").initial(Position(9, 0), [made.group], points):
            assert message.recipients == tuple(sorted(set(message.recipients)))
            assert message.row is not None
            started |= {
                (p.subscription, side, message.key): message.row for p in message.recipients
            }
    assert started == all_held(made)


@pytest.mark.parametrize("scanned", [0, 1_000])
@given(data=st.data())
def test_a_region_tells_newcomers_what_they_hold_and_others_nothing(
    scanned: int, data: st.DataObject
) -> None:
    made = world(data.draw(st.lists(wishes, max_size=8)))
    since = data.draw(st.integers(1, 9))
    for offset in range(data.draw(st.integers(0, 15))):
        made.group.apply(data.draw(steps(made.group, offset)))
    started = {}
    for side, points in enumerate(made.spaces):
        new = points.subset([i for i in points.ids if i.subscription >= since])
        with mock.patch("penstock.joins.schemes.auto.SCANNED_POINTS", scanned):
            messages = list(newcomer_messages(Position(9, 0), made.group, new, since))
        for message in messages:
            assert message.row is not None
            told = recipients(message, points)
            asked = [i for i in points.ids if message.upserts(points[i], points.base)]
            assert sorted(told) == sorted(asked)
            started |= {(i.subscription, side, message.key): message.row for i in told}
    assert started == {place: row for place, row in all_held(made).items() if place[0] >= since}


@settings(max_examples=examples(40))
@given(data=st.data())
def test_many_steps_at_once_are_as_one_by_one(data: st.DataObject) -> None:
    drawn = data.draw(st.lists(wishes, max_size=6))
    one, many = world(drawn), world(drawn)
    stepwise, at_once = make_scheme("ref-sj-gap"), make_scheme("ref-sj-gap")
    offset = 0
    for _ in range(data.draw(st.integers(1, 5))):
        expected: list[Message] = []
        batch = []
        # Where one side is quiet, what is known of the other is remembered.
        sides = data.draw(st.sampled_from([(0, 1), (0,), (1,)]))
        for _ in range(data.draw(st.integers(1, 12))):
            step = data.draw(steps(one.group, offset, sides))
            batch.append(step)
            expected += stepwise.messages(one.group, step, one.spaces)
            one.group.apply(step)
            offset += 1
        found = list(each_message(at_once.run(many.group, batch, many.spaces)))
        assert sorted(map(repr, found)) == sorted(map(repr, expected))
        assert many.group == one.group


@settings(max_examples=examples(30))
@given(data=st.data())
def test_a_lost_cache_costs_time_only(data: st.DataObject) -> None:
    made = world(data.draw(st.lists(wishes, min_size=1, max_size=6)))
    warm, held = make_scheme("ref-sj-gap"), all_held(made)
    for offset in range(10):
        step = data.draw(steps(made.group, offset))
        messages = list(warm.messages(made.group, step, made.spaces))
        cold = list(make_scheme("ref-sj-gap").messages(made.group, step, made.spaces))
        made.group.apply(step)
        deliver(made, messages if offset % 2 else cold, held)
        assert held == all_held(made)


def test_the_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "MAX_REMEMBERED", 16)
    with Hub(scheme="ref-sj-gap") as hub:
        for table in ("r", "s"):
            hub.execute(f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, k INTEGER, a INTEGER)")
        sub = hub.subscribe("SELECT r.id FROM r JOIN s USING (k) WHERE r.a > 1 AND s.a > 1")
        for i in range(60):
            hub.insert("r", {"id": i, "k": i % 30, "a": i})
            hub.insert("s", {"id": i, "k": i % 30, "a": i % 7})
        expected = {
            r for r in range(2, 60) if any(s % 7 > 1 for s in range(60) if s % 30 == r % 30)
        }
        assert {row["id"] for row in sub.content()} == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ref-sj-gap", "ref-sj-clu+", "enum-j"])
def test_keys_with_many_rows_on_each_side(name: str) -> None:
    """Thousands of rows with one join value and few distinct values: many are equal."""
    count = 40 if name == "enum-j" else 1500
    with Hub(scheme=name) as hub:
        for table in ("r", "s"):
            hub.execute(f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, k INTEGER, a INTEGER)")
        rows = [{"id": i, "k": 1, "a": i % 10} for i in range(count)]
        for table in ("r", "s"):
            hub.apply([{"table": table, "op": "insert", "row": row} for row in rows])
        text = "SELECT r.id AS r, s.id AS s FROM r JOIN s USING (k) WHERE r.a = 3 AND s.a >= 9"
        sub = hub.subscribe(text)
        each = count // 10
        assert len(sub.content()) == each * each
        gone = [{"table": "s", "op": "delete", "row": {"id": i}} for i in range(9, count, 10)]
        hub.apply(gone[:-1])
        assert len(sub.content()) == each
        hub.apply(gone[-1:])
        assert sub.content() == []
        hub.update("s", {"id": 0, "a": 12})
        assert len(sub.content()) == each


def test_bytes_are_those_of_the_paper() -> None:
    reaches = (Reach(BOTTOM, below(1), above(2), TOP), Reach(BOTTOM, below(3), above(4), TOP))
    row = (1, 2, 3, "x" * 100)
    message = Message(Position(1, 1), 7, (1,), row, upsert=reaches)
    assert description_bytes(message) == 16
    assert message_bytes(message) == 3 * 4 + 100 + 16
    unicast = Message(
        Position(1, 1), 7, (1,), row, recipients=tuple(PointId(i, 0, 0) for i in range(5))
    )
    assert message_bytes(unicast) == 5 * 112


@pytest.mark.parametrize("name", scheme_names())
def test_words_that_look_like_numbers(name: str) -> None:
    """They are ordered as words: '10' < '2'."""
    words = ["05", "10", "2", "5", "50", " 3", "1e1", None]
    with Hub(scheme=name) as hub:
        for table in ("r", "s"):
            hub.execute(f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, k INTEGER, a VARCHAR)")
        text = "SELECT r.a AS r, s.a AS s FROM r JOIN s USING (k) WHERE r.a >= '10' AND s.a <= '2'"
        early = hub.subscribe(text)
        for i, word in enumerate(words):
            hub.insert("r", {"id": i, "k": 1, "a": word})
            hub.insert("s", {"id": i, "k": 1, "a": word})
        expected = {(r, s) for r in words for s in words if r and s and r >= "10" and s <= "2"}
        for sub in (early, hub.subscribe(text)):
            assert {(row["r"], row["s"]) for row in sub.content()} == expected


def test_the_pipeline_s_scheme_has_a_fast_gear() -> None:
    """Others fall back to the plain gear."""
    offered = {name for name in scheme_names() if make_scheme(name).packed is not None}
    assert offered == {"ref-sj-gap"}
