"""The sink: one file for a batch, the same whenever it is run, and nothing twice."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from penstock.errors import HomeError, LockedError
from penstock.log import BatchHeader, Home, MemoryHome, RecordKind
from penstock.pipeline.rows import Reason, RowBuffer, RowKind, Span
from penstock.pipeline.sink import (
    MessageWriter,
    Staged,
    gather,
    is_published,
    publish,
    stage,
    sweep_staging,
)


@pytest.fixture(autouse=True)
def thaw() -> Iterator[None]:
    """Workers freeze what they have loaded; this process is not one for long."""
    yield
    gc.unfreeze()


def staged(path: Path, rows: Sequence[tuple[RowKind, int, int, bytes]]) -> Path:
    out = RowBuffer()
    for kind, offset, step, body in rows:
        out.add(0, kind, offset, body, step)
    stage(path, iter([out.to_arrow()]))
    return path


def header(*span: int) -> tuple[RowKind, int, int, bytes]:
    return (RowKind.HEADER, span[0], 0, Span(*span).to_bytes())


def message(offset: int, step: int, body: bytes) -> tuple[RowKind, int, int, bytes]:
    return (RowKind.MESSAGE, offset, step, body)


def test_the_order_of_messages_does_not_depend_on_who_computed_them(tmp_path: Path) -> None:
    rows = [message(9, 1, b"a"), message(8, 2, b"b"), message(8, 1, b"d"), message(8, 1, b"c")]
    one = gather(
        [
            staged(tmp_path / "1", [header(8, 10, 8, 8, 8), *rows[:2]]),
            staged(tmp_path / "2", rows[2:]),
        ]
    )
    other = gather(
        [
            staged(tmp_path / "3", rows[1:]),
            staged(tmp_path / "4", [rows[0], header(8, 10, 8, 8, 8)]),
        ]
    )
    assert one == other
    assert one.messages == [b"c", b"d", b"b", b"a"]
    assert one.header == BatchHeader(8, 10, 8)


def test_a_batch_has_one_header(tmp_path: Path) -> None:
    with pytest.raises(HomeError, match="0 headers"):
        gather([staged(tmp_path / "1", [message(1, 1, b"a")])])


def test_bad_events_get_their_bytes_from_the_log(tmp_path: Path) -> None:
    home = MemoryHome()
    home.log.append([(RecordKind.EVENT, b"zero"), (RecordKind.DDL, b"one")])
    home.log.append([(RecordKind.EVENT, b"two"), (RecordKind.EVENT, b"three")])
    reason = Reason("wrong", "very", "do better")
    rows = [(RowKind.BAD, offset, 0, reason.to_bytes()) for offset in (3, 0)]
    outcome = gather([staged(tmp_path / "1", [header(0, 4, 0, 0, 0), *rows])])
    publish(home.log, home.messages, outcome)
    entries = list(home.quarantine.entries())
    assert [(e.offset, e.raw) for e in entries] == [(0, b"zero"), (3, b"three")]
    assert {(e.primary, e.detail, e.hint) for e in entries} == {tuple(reason)}


def test_a_replayed_batch_changes_nothing(tmp_path: Path) -> None:
    home = MemoryHome()
    home.log.append([(RecordKind.EVENT, b"")] * 2)
    first = gather([staged(tmp_path / "1", [header(0, 2, 0, 0, 0), message(1, 1, b"a")])])
    other = gather([staged(tmp_path / "2", [header(0, 2, 0, 0, 0), message(1, 1, b"b")])])
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
    writer = MessageWriter(str(home.path), "another term")
    path = staged(home.staging / "1.arrow", [header(0, 1, 0, 0, 0)])
    with pytest.raises(LockedError, match="somebody else"):
        writer.commit([Staged(str(path))], 0)
    assert home.messages.frontier is None
    with home.processing_lock("test") as processing:
        MessageWriter(str(home.path), processing.term).commit([Staged(str(path)), None], 0)
    assert home.messages.frontier == BatchHeader(0, 1, 0)
    assert not path.exists()


def test_staged_files_of_a_failed_batch_are_removed(tmp_path: Path) -> None:
    home = Home.create(tmp_path / "home")
    writer = MessageWriter(str(home.path), "")
    one = writer.write(iter([RowBuffer().to_arrow()]))
    two = writer.write(iter([]))
    assert len(list(home.staging.iterdir())) == 2
    writer.abort([one, None], 0)
    assert isinstance(two, Staged)
    assert [str(path) for path in home.staging.iterdir()] == [two.path]
    sweep_staging(home.staging)
    assert list(home.staging.iterdir()) == []
