"""The sink: one file for a batch, the same whenever it is run, and nothing twice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from penstock.errors import HomeError, LockedError
from penstock.flow.exchange import EncodedMessages, StageInput, StageOutput
from penstock.flow.kinds import Kind, Reason, Span
from penstock.pipeline.buckets import spread_of
from penstock.pipeline.chunks import chunk_rows, staged_names
from penstock.pipeline.sink import (
    MessageSink,
    gather,
    is_published,
    publish,
    sweep_staging,
)
from penstock.storage import BatchHeader, Home, MemoryHome, RecordKind

SPREAD = spread_of(8)

SentRow = tuple[Kind, int, int, bytes]


def sent(staging: Path, *workers: Sequence[SentRow]) -> StageInput:
    """What the sink gets if these workers have these rows."""
    chunks = []
    for rows in workers:
        out = StageOutput(SPREAD)
        for kind, offset, step, body in rows:
            if kind is Kind.MESSAGE:
                out.written.append((0, EncodedMessages([(offset, step, [body])])))
            else:
                out.add(0, kind, offset, body)
        chunks += chunk_rows(out, staging)
    return StageInput.of_chunks(chunks)


def header(*span: int) -> tuple[Kind, int, int, bytes]:
    return (Kind.TICK, span[0], 0, Span(*span).to_bytes())


def message(offset: int, step: int, body: bytes) -> tuple[Kind, int, int, bytes]:
    return (Kind.MESSAGE, offset, step, body)


def test_the_order_of_messages_does_not_depend_on_who_computed_them(tmp_path: Path) -> None:
    rows = [message(9, 1, b"a"), message(8, 2, b"b"), message(8, 1, b"d"), message(8, 1, b"c")]
    head = header(8, 10, 8, 8, 8)
    one = gather(sent(tmp_path, [head, *rows[:2]], rows[2:]), tmp_path)
    other = gather(sent(tmp_path, rows[1:], [rows[0], head]), tmp_path)
    assert one == other
    assert one.messages == [b"c", b"d", b"b", b"a"]
    assert one.header == BatchHeader(8, 10, 8)


@pytest.mark.parametrize("spans", [[], [(0, 1, 0, 0, 0), (0, 2, 0, 0, 0)]])
def test_a_batch_has_one_span(tmp_path: Path, spans: list[tuple[int, ...]]) -> None:
    rows = [message(1, 1, b"a"), *(header(*span) for span in spans)]
    with pytest.raises(HomeError, match="without its span, or with several"):
        gather(sent(tmp_path, rows), tmp_path)


def test_staged_messages_that_are_gone_are_missed_by_name(tmp_path: Path) -> None:
    inbox = sent(tmp_path, [header(0, 1, 0, 0, 0), message(0, 1, b"a")])
    sweep_staging(tmp_path)
    with pytest.raises(HomeError, match="cannot read staged messages") as caught:
        gather(inbox, tmp_path)
    assert staged_names(inbox)[0] in caught.value.detail


def test_bad_events_get_their_bytes_from_the_log(tmp_path: Path) -> None:
    home = MemoryHome()
    home.log.append([(RecordKind.EVENT, b"zero"), (RecordKind.DDL, b"one")])
    home.log.append([(RecordKind.EVENT, b"two"), (RecordKind.EVENT, b"three")])
    reason = Reason("wrong", "very", "do better")
    rows = [(Kind.BAD, offset, 0, reason.to_bytes()) for offset in (3, 0)]
    outcome = gather(sent(tmp_path, [header(0, 4, 0, 0, 0), *rows]), tmp_path)
    publish(home.log, home.messages, outcome)
    entries = list(home.quarantine.entries())
    assert [(e.offset, e.raw) for e in entries] == [(0, b"zero"), (3, b"three")]
    assert {(e.primary, e.detail, e.hint) for e in entries} == {tuple(reason)}


def test_a_replayed_batch_changes_nothing(tmp_path: Path) -> None:
    home = MemoryHome()
    home.log.append([(RecordKind.EVENT, b"")] * 2)
    first, other = (
        gather(sent(tmp_path, [header(0, 2, 0, 0, 0), message(1, 1, body)]), tmp_path)
        for body in (b"a", b"b")
    )
    for outcome in (first, first, other):
        publish(home.log, home.messages, outcome)
        assert list(home.messages.batches()) == [BatchHeader(0, 2, 0)]
        assert home.messages.read(BatchHeader(0, 2, 0)) == [b"a"]


@pytest.mark.parametrize(
    ("batch", "frontier", "expected"),
    [
        ((0, 2, 0), None, False),
        ((0, 0, 0), None, True),  # Spark's first batch over an empty log
        ((2, 4, 2), (0, 2, 0), False),
        ((2, 4, 2), (2, 4, 2), True),  # itself, before a crash
        ((2, 4, 2), (2, 4, 4), True),  # a Hub did the same records
        ((2, 4, 2), (0, 9, 9), True),
        ((4, 4, 4), (2, 4, 2), False),  # somebody was waiting
        ((4, 4, 4), (4, 4, 4), True),
        ((4, 4, 4), (2, 4, 4), True),
        ((5, 5, 5), (2, 5, 4), True),  # the record at 4 is no subscription
        ((6, 8, 6), (2, 4, 4), False),  # a gap, which the message log refuses
    ],
)
def test_what_is_published_is_not_published_again(
    batch: tuple[int, int, int], frontier: tuple[int, int, int] | None, expected: bool
) -> None:
    home = MemoryHome()
    kinds = [RecordKind.SUBSCRIBE] * 4 + [RecordKind.EVENT] * 5
    home.log.append([(kind, b"") for kind in kinds])
    published = None if frontier is None else BatchHeader(*frontier)
    assert is_published(home.log, BatchHeader(*batch), published) is expected


def test_half_a_batch_cannot_be_published() -> None:
    with pytest.raises(HomeError, match="published up to 3"):
        is_published(MemoryHome().log, BatchHeader(2, 4, 2), BatchHeader(2, 3, 3))


def test_a_run_that_has_ended_publishes_nothing_any_more(tmp_path: Path) -> None:
    home = Home.create(tmp_path / "home")
    home.log.append([(RecordKind.EVENT, b"")])
    inbox = sent(home.staging, [header(0, 1, 0, 0, 0), message(0, 1, b"a")])
    with pytest.raises(LockedError, match="somebody else"):
        MessageSink(home, "another term").commit(inbox)
    assert home.messages.frontier is None
    with home.processing_lock("test") as processing:
        MessageSink(home, processing.term).commit(inbox)
    assert home.messages.read(BatchHeader(0, 1, 0)) == [b"a"]
    assert list(home.staging.iterdir()) == []
