"""How the log is cut into batches, and who is active in which."""

from __future__ import annotations

from penstock.flow.kinds import Span
from penstock.pipeline.offsets import LAYOUT, StreamOffset, next_offset, span_of
from penstock.storage import BatchHeader, MemoryLog, RecordKind

EVENT, SUBSCRIBE, WITHDRAW = RecordKind.EVENT, RecordKind.SUBSCRIBE, RecordKind.WITHDRAW


def log_of(*frames: list[RecordKind]) -> MemoryLog:
    log = MemoryLog()
    for frame in frames:
        log.append([(kind, b"") for kind in frame])
    return log


def batches(
    log: MemoryLog,
    *,
    max_records: int = 2,
    start: StreamOffset | None = None,
    frontier: BatchHeader | None = None,
    target: int | None = None,
) -> list[Span]:
    """The batches up to the end, if each is published as soon as it is done."""
    start = start or StreamOffset()
    spans: list[Span] = []
    while True:
        end = next_offset(log, frontier, start, log.end if target is None else target, max_records)
        if end == start:
            return spans
        span = span_of(start, end)
        if frontier is None or span.end > frontier.end or span.start == span.end:
            frontier = BatchHeader(span.start, span.end, span.active)
        spans.append(span)
        start = end


def test_nothing_comes_of_nothing() -> None:
    assert batches(log_of()) == []
    assert batches(log_of([EVENT]), start=StreamOffset(1, 0, 0)) == []


def test_a_batch_is_whole_frames_and_active_are_those_before_it() -> None:
    log = log_of([EVENT], [EVENT, EVENT, EVENT], [EVENT], [EVENT])
    assert batches(log) == [Span(0, 1, 0, 0, 0), Span(1, 4, 1, 0, 0), Span(4, 6, 4, 1, 1)]


def test_a_batch_has_so_many_bytes_at_most() -> None:
    log = MemoryLog()
    for size in (10, 10, 50, 1, 1):
        log.append([(EVENT, b"x" * size)])
    start, ends = StreamOffset(), []
    while (end := next_offset(log, None, start, log.end, 3, 20)) != start:
        start = end
        ends.append(end.position)
    assert ends == [2, 3, 5]


def test_who_waits_at_the_end_gets_a_batch_without_records() -> None:
    log = log_of([EVENT], [SUBSCRIBE])
    assert batches(log, max_records=9) == [Span(0, 2, 0, 0, 0), Span(2, 2, 2, 0, 0)]
    # Once: the next look finds nothing, until something is written.
    assert batches(log, start=StreamOffset(2, 2, 0)) == []
    log.append([(EVENT, b"")])
    assert batches(log, start=StreamOffset(2, 2, 0)) == [Span(2, 3, 2, 2, 0)]


def test_who_goes_counts_like_who_comes() -> None:
    assert batches(log_of([WITHDRAW]))[-1] == Span(1, 1, 1, 0, 0)


def test_a_subscription_that_became_active_on_the_way_does_not_wait() -> None:
    log = log_of([SUBSCRIBE], [EVENT], [EVENT])
    assert batches(log, max_records=1)[-1] == Span(2, 3, 2, 1, 1)


def test_a_target_is_not_passed() -> None:
    log = log_of([EVENT], [EVENT], [EVENT])
    assert batches(log, max_records=9, target=2) == [Span(0, 2, 0, 0, 0)]
    assert batches(log, max_records=9, target=1, start=StreamOffset(2, 0, 0)) == []


def test_what_others_published_is_caught_up_with_but_nobody_becomes_active_on_the_way() -> None:
    log = log_of([SUBSCRIBE], [EVENT], [EVENT], [SUBSCRIBE], [EVENT])
    hub = BatchHeader(0, 3, 3)
    assert batches(log, max_records=2, frontier=hub) == [
        Span(0, 2, 0, 0, 0),
        Span(2, 3, 0, 0, 0),  # ends where the published part does
        Span(3, 5, 3, 0, 3),  # everybody before 3 is new to the state, and has content already
        Span(5, 5, 5, 3, 3),  # for the subscription at 3
    ]


def test_state_that_lags_behind_is_told_of_subscriptions_at_the_end() -> None:
    log = log_of([SUBSCRIBE], [EVENT])
    assert batches(log, max_records=9, frontier=BatchHeader(0, 2, 2)) == [
        Span(0, 2, 0, 0, 0),
        Span(2, 2, 2, 0, 2),
    ]


def test_offsets_travel_as_json() -> None:
    offset = StreamOffset(7, 5, 3)
    assert offset.to_json() == {"position": 7, "active": 5, "told": 3, "layout": LAYOUT}
    assert StreamOffset.from_json(offset.to_json()) == offset
