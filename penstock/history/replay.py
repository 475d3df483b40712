"""Runs the flow over the whole log as a batch job: the tasks of a backtest.

Each task of the flow sees its rows sorted by bucket and batch, so it holds the state of one bucket
at a time, on disk. Messages leave the flow where they are emitted, as deliveries to queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter

from penstock.flow.exchange import StageInput, StageOutput
from penstock.flow.graph import tasks_of
from penstock.flow.kinds import Kind, Span
from penstock.flow.safely import advance_gears, advance_task
from penstock.flow.stage import Stage
from penstock.history.rows import HistoryKind, HistoryRow, refused
from penstock.history.spec import BacktestIndex
from penstock.messages import decode_message
from penstock.pipeline.log_events import events_of
from penstock.pipeline.state import BucketState
from penstock.routing import recipients

_IN_FLOW = frozenset(Kind)


def read_task(numbers: Iterable[int], known: BacktestIndex) -> Iterator[HistoryRow]:
    """The first task of the flow, for the batches of these numbers."""
    stages = tasks_of(known.spec.flow)[0]
    for number in numbers:
        span = known.spec.spans[number]
        if span == known.spec.span_at(known.spec.start):
            for bucket in known.spread.buckets:  # new points affect all buckets
                yield HistoryRow(bucket, span.start, Kind.TICK, 0, b"")
        for events in events_of(known.home.log, span.start, span.end):
            given = StageInput(known.spread.buckets[0], span, events)
            yield from _rows_of(_advance(stages, given, None, known), span, known)


def keyed_task(
    number: int, rows: Iterable[HistoryRow], known: BacktestIndex
) -> Iterator[HistoryRow]:
    """A later task of the flow, for sorted rows; other rows are passed on."""
    stages = tasks_of(known.spec.flow)[number]
    for bucket, history in groupby(rows, attrgetter("place")):
        with BucketState.temporary() as state:
            for start, batch in groupby(history, attrgetter("offset")):
                mine = []
                for row in batch:
                    if row.kind in _IN_FLOW:
                        mine.append((bucket, row.kind, row.step, row.body))
                    else:
                        yield row
                if mine:
                    span = known.spec.span_at(start)
                    given = StageInput.of_chunks(one for one in mine if one[1] != Kind.TICK)
                    given.bucket, given.span = bucket, span
                    yield from _ticks(mine, span)
                    yield from _rows_of(_advance(stages, given, state, known), span, known)
                    state.settle()


def _ticks(rows: Iterable[tuple[int, int, int, bytes]], span: Span) -> Iterator[HistoryRow]:
    for bucket, kind, _, _ in rows:
        if kind == Kind.TICK:
            yield HistoryRow(bucket, span.start, Kind.TICK, 0, b"")


def _advance(
    stages: Sequence[Stage], given: StageInput, state: BucketState | None, known: BacktestIndex
) -> StageOutput:
    return advance_task(stages, given, state, known, known.spread, advance_gears)


def _rows_of(out: StageOutput, span: Span, known: BacktestIndex) -> Iterator[HistoryRow]:
    """The output of a task: rows for the next one, deliveries, and the number of refused events."""
    bad = 0
    for given in out.inputs(span).values():
        bad += sum(row.offset >= known.spec.start for row in given.rows(Kind.BAD))
    if bad:
        yield refused(bad)
    for bucket, kind, count, chunk in out.chunks():
        if kind not in _LEAVING:
            yield HistoryRow(bucket, span.start, kind, count, chunk)
    for body in out.message_bytes():
        yield from _deliveries(body, known)


_LEAVING = frozenset({Kind.BAD, Kind.SKIPPED, Kind.FAULT})
"""Kinds that no later task takes, and that are not part of the result."""


def _deliveries(body: bytes, known: BacktestIndex) -> Iterator[HistoryRow]:
    """A message, once for each query that must get it."""
    message = decode_message(body)
    offset, step = message.position
    found = recipients(message, known.index.space(message.space))
    for number in {point.subscription for point in found}:
        yield HistoryRow(number, offset, HistoryKind.DELIVERY, step, body)
