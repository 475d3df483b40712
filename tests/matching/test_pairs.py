"""Pairs written out in every way say the same."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from penstock.matching.dedupe import deduplicated
from penstock.matching.pairs import CONTIGUOUS, Pairs, Runs
from penstock.matching.reference import plain_pairs

IDS = np.array([7, 3, 9, 3, 5, 7], np.int64)
EVENTS = np.array([4, 0, 3, 1, 2], np.int32)


@st.composite
def some_runs(draw: st.DrawFn) -> Runs:
    spans: list[tuple[int, int, int, int]] = []
    starts: list[int] = []
    lanes: list[int] = []
    for _ in range(draw(st.integers(0, 6))):
        first = draw(st.integers(0, len(IDS) - 1))
        count = draw(st.integers(1, len(IDS) - first))
        if draw(st.booleans()):
            picked = sorted(draw(st.sets(st.integers(0, len(EVENTS) - 1), min_size=1)))
            spans.append((first, count, 0, len(picked)))
            starts.append(len(lanes))
            lanes += picked
        else:
            base = draw(st.integers(0, len(EVENTS) - 1))
            spans.append((first, count, base, draw(st.integers(1, len(EVENTS) - base))))
            starts.append(CONTIGUOUS)
    return Runs(
        IDS,
        np.array(spans, np.int32).reshape(-1, 4),
        np.array(starts, np.int64),
        EVENTS,
        np.array(lanes, np.uint16),
        draw(st.integers(0, 3)),
    )


@given(st.lists(some_runs(), max_size=3))
def test_writing_out(parts: list[Runs]) -> None:
    pairs = Pairs(8, tuple(parts))
    expected = sorted(pair for part in parts for pair in plain_pairs(part))
    assert len(pairs) == len(expected)
    events, ids = pairs.expand()
    assert sorted(zip(events.tolist(), ids.tolist(), strict=True)) == expected
    chunks = [
        list(zip(events.tolist(), ids.tolist(), strict=True))
        for events, ids in pairs.chunks(pairs=8)
    ]
    assert sorted(pair for chunk in chunks for pair in chunk) == expected
    assert max(map(len, chunks), default=0) <= 16
    assert set(np.flatnonzero(pairs.any_match()).tolist()) == {event for event, _ in expected}
    offsets, ids = pairs.by_event()
    events = np.repeat(np.arange(8), np.diff(offsets))
    assert list(zip(events.tolist(), ids.tolist(), strict=True)) == expected


@given(some_runs())
def test_each_pair_once(runs: Runs) -> None:
    doubtful = np.ones(len(IDS), np.uint8)
    doubtful[2] = doubtful[4] = 0  # 9 and 5 have one box each
    single = Pairs(8, (Runs(IDS, runs.spans, runs.starts, runs.events, runs.lanes),))
    clean = deduplicated(single.parts[0], doubtful)
    found = sorted(pair for part in clean for pair in plain_pairs(part))
    expected = plain_pairs(single.parts[0])
    assert set(found) == set(expected)
    assert all(found.count(pair) == 1 for pair in found if pair[1] in (3, 7))


def test_parts_are_joined_where_they_began() -> None:
    one = Pairs.of_events([[1], [2, 3]])
    joined = Pairs.join([one, one], 4, [0, 2])
    assert joined.lists() == [[1], [2, 3], [1], [2, 3]]
