"""Segments, merging, snapshots and threads of the default matcher."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from penstock.catalog import Column, DoubleType, IntegerType, Relation, StringType
from penstock.errors import CorruptionError, HomeError
from penstock.lab.workloads.matching import matching_workload
from penstock.matching import EventBatch
from penstock.matching.lanes import LaneMatcher
from penstock.matching.matchers.naive import NaiveMatcher
from penstock.matching.segment import Policy
from penstock.matching.snapshot import sweep
from penstock.predicates.boxes import Box
from penstock.predicates.intervals import Interval, above, below, point, prefix

THINGS = Relation(
    "things",
    (Column("n", IntegerType()), Column("x", DoubleType()), Column("s", StringType())),
    (),
    True,
)
WORDS = ("a", "ab", "b", "c")


def union(i: int) -> list[Box]:
    """Some boxes of subscription `i`, overlapping ones among them."""
    x = DoubleType().key(i % 7 / 2)
    assert isinstance(x, int)
    boxes: list[Box] = [((0, Interval(below(i % 50), above(i % 50 + i % 9))),)]
    if i % 3 == 0:
        boxes.append(((0, point(i % 50)), (2, point(WORDS[i % 4]))))
    if i % 5 == 0:
        boxes.append(((1, Interval(above(x), above(x + (1 << 52)))), (2, prefix(WORDS[i % 4]))))
    return boxes


def batch(count: int = 300) -> EventBatch:
    rows = [(i % 61, i % 5 / 2, WORDS[i % 4]) for i in range(count)]
    return EventBatch.of_rows(THINGS, rows)


def assert_same(matcher: LaneMatcher, twin: NaiveMatcher, events: EventBatch) -> None:
    expected = twin.match_batch(events).lists()
    assert matcher.match_batch(events).lists() == expected
    assert matcher.any_match(events).tolist() == [one != [] for one in expected]


def test_thousands_of_changes_through_several_merges() -> None:
    matcher = LaneMatcher(THINGS, policy=Policy(64), background=False)
    twin = NaiveMatcher(THINGS)
    events = batch(20)
    for first in range(0, 1500, 150):
        for one in (matcher, twin):
            one.insert_many((i, union(i)) for i in range(first, first + 150))
            for i in range(first // 2, first // 2 + 40):
                one.remove(i)
            one.insert(first, union(first + 1))
        assert_same(matcher, twin, events)
    details = matcher.statistics().details
    assert int(details["segments"]) < 12
    assert len(matcher) == len(twin)
    matcher.compact()
    assert len(matcher.segments) == 1
    assert matcher.segments[0].dead_count == 0
    assert_same(matcher, twin, events)


def test_matching_goes_on_while_others_insert_and_remove() -> None:
    matcher = LaneMatcher(THINGS, policy=Policy(64))
    everything: list[Box] = [()]
    matcher.insert(-1, everything)
    events = batch(64)
    failures: list[object] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            offsets, ids = matcher.match_batch(events).by_event()
            if (np.diff(offsets) < 1).any() or not (ids[offsets[:-1]] == -1).all():
                failures.append(offsets)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for i in range(6000):
        matcher.insert(i, union(i))
        if i % 2:
            matcher.remove(i - 1)
    done.set()
    for reader in readers:
        reader.join()
    matcher.wait()
    assert not failures
    twin = NaiveMatcher(THINGS)
    twin.insert_many([(-1, everything), *((i, union(i)) for i in range(1, 6000, 2))])
    assert_same(matcher, twin, batch(20))


def test_large_batches_are_shared_among_threads() -> None:
    workload = matching_workload("MA", 3000, 9000)
    alone = LaneMatcher(workload.relation, threads=1)
    alone.insert_ranges(workload.boxes)
    both = alone.with_threads(2)
    one, other = (m.match_batch(workload.events) for m in (alone, both))
    for a, b in zip(one.by_event(), other.by_event(), strict=True):
        assert np.array_equal(a, b)
    assert one.any_match().sum() == other.any_match().sum() > 0
    assert np.array_equal(alone.any_match(workload.events), one.any_match())
    assert np.array_equal(both.any_match(workload.events), one.any_match())


@pytest.mark.slow
@pytest.mark.parametrize(("name", "strategy"), [("JHIGH", "boxes"), ("MA", "lanes")])
def test_threads_share_boxes_where_events_are_better_left_together(
    name: str, strategy: str
) -> None:
    workload = matching_workload(name, 30_000, 6000)
    alone = LaneMatcher(workload.relation, threads=1, policy=Policy(0, strategy))
    alone.insert_ranges(workload.boxes)
    alone.insert(-1, [Box({})])  # contains every row
    both = alone.with_threads(2)
    assert both.segments[0].shared_strategy(3000, threads=2) == strategy
    one, other = (m.match_batch(workload.events) for m in (alone, both))
    for a, b in zip(one.by_event(), other.by_event(), strict=True):
        assert np.array_equal(a, b)


def test_flat_arrays_and_boxes_mean_the_same() -> None:
    workload = matching_workload("JLOW", 2000, 500)
    by_arrays, by_boxes = (LaneMatcher(workload.relation, background=False) for _ in range(2))
    by_arrays.insert_many(list(workload.boxes.unions())[:10])  # replaced by the arrays
    by_arrays.insert_ranges(workload.boxes)
    by_boxes.insert_many(workload.boxes.unions())
    assert len(by_arrays) == len(by_boxes) == 2000
    one, other = (m.match_batch(workload.events) for m in (by_arrays, by_boxes))
    assert one.lists() == other.lists()


def test_a_snapshot_is_the_same_matcher(tmp_path: Path) -> None:
    matcher = LaneMatcher(THINGS, policy=Policy(64), background=False)
    twin = NaiveMatcher(THINGS)
    for one in (matcher, twin):
        one.insert_many((i, union(i)) for i in range(900))
        one.remove(17)
    matcher.save(tmp_path)
    opened = LaneMatcher.open(THINGS, tmp_path)
    assert_same(opened, twin, batch(50))
    assert 17 not in opened
    for one in (opened, twin):
        one.insert(1000, [()])
        one.remove(18)
    assert_same(opened, twin, batch(50))
    opened.save(tmp_path)
    assert sweep(tmp_path) > 0
    assert_same(LaneMatcher.open(THINGS, tmp_path), twin, batch(50))


def test_own_ranges_survive_a_snapshot(tmp_path: Path) -> None:
    workload = matching_workload("JHIGH", 3000, 200)
    matcher = LaneMatcher(workload.relation)
    matcher.insert_ranges(workload.boxes)
    assert matcher.segments[0].box_index is not None
    matcher.save(tmp_path)
    opened = LaneMatcher.open(workload.relation, tmp_path)
    events = workload.events
    assert opened.match_batch(events).lists() == matcher.match_batch(events).lists()


def test_damaged_snapshots_are_refused(tmp_path: Path) -> None:
    with pytest.raises(HomeError, match="no snapshot"):
        LaneMatcher.open(THINGS, tmp_path)
    matcher = LaneMatcher(THINGS)
    matcher.insert(1, union(1))
    matcher.save(tmp_path)
    segment = next(tmp_path.glob("segment-*.bin"))
    whole = segment.read_bytes()
    for damaged in (whole[:-8], b"x" + whole[1:], b""):
        segment.write_bytes(damaged)
        with pytest.raises(CorruptionError):
            LaneMatcher.open(THINGS, tmp_path)
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(CorruptionError):
        LaneMatcher.open(THINGS, tmp_path)


def test_bitmaps_are_built_once_single_events_have_cost_enough() -> None:
    workload = matching_workload("MA", 3000, 300)
    matcher = LaneMatcher(workload.relation, sample=workload.events)
    matcher.insert_ranges(workload.boxes)
    expected = matcher.match_batch(workload.events).lists()
    for i in range(300):
        assert matcher.match(workload.events.row(i)) == expected[i]
    strategies = {strategy for strategy, _ in matcher.segments[0].planner.costs}
    assert {"lanes", "walk", "bitmaps"} <= strategies
