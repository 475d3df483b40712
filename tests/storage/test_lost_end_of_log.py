"""A log that lost its end is not appended to, and its mark is never lowered."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.errors import CorruptionError
from penstock.storage import Log, RecordKind

EVENT = RecordKind.EVENT
SEGMENT_BYTES = 200


def fill(log: Log, appends: int, first: int = 0) -> None:
    for number in range(first, first + appends):
        log.append([(EVENT, b"%d" % number), (EVENT, bytes(40))])


def segments(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.log"))


def drop_last_segment(directory: Path) -> None:
    segments(directory)[-1].unlink()


def cut_last_frame(directory: Path) -> None:
    last = segments(directory)[-1]
    os.truncate(last, last.stat().st_size - 1)


def drop_all(directory: Path) -> None:
    for path in segments(directory):
        path.unlink()


LOSSES: list[Callable[[Path], None]] = [drop_last_segment, cut_last_frame, drop_all]


@pytest.mark.parametrize("lose", LOSSES)
def test_nothing_is_appended_behind_a_lost_end(
    tmp_path: Path, lose: Callable[[Path], None]
) -> None:
    fill(Log(tmp_path, segment_bytes=SEGMENT_BYTES), 5)
    lose(tmp_path)
    left = {path: path.read_bytes() for path in tmp_path.iterdir()}
    log = Log(tmp_path, segment_bytes=SEGMENT_BYTES)
    for _ in range(2):  # the refusal is not forgotten
        with pytest.raises(CorruptionError, match="10 records were acknowledged") as caught:
            log.append([(EVENT, b"next")])
        with pytest.raises(CorruptionError):
            log.roll()
    assert str(tmp_path) in caught.value.detail
    assert "restore the log from a backup" in caught.value.hint
    assert "penstock rebuild" in caught.value.hint
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == left


def test_a_restored_end_is_gone_on_with(tmp_path: Path) -> None:
    fill(Log(tmp_path, segment_bytes=SEGMENT_BYTES), 5)
    last = segments(tmp_path)[-1]
    content = last.read_bytes()
    last.unlink()
    with pytest.raises(CorruptionError):
        Log(tmp_path).append([(EVENT, b"next")])
    last.write_bytes(content)
    assert Log(tmp_path).append([(EVENT, b"next")]) == 10


def test_a_file_that_shrinks_under_an_open_log(tmp_path: Path) -> None:
    log = Log(tmp_path)
    fill(log, 5)
    (path,) = segments(tmp_path)
    shorter = path.read_bytes()[:-60]
    path.write_bytes(shorter)
    with pytest.raises(CorruptionError, match="shorter than it was"):
        log.append([(EVENT, b"next")])
    assert path.read_bytes() == shorter, "nothing is made up for what is missing"


def test_a_crash_before_the_mark_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The frame is on disk: it counts, and the mark catches up with the next append."""
    log = Log(tmp_path)
    fill(log, 1)
    mark = log.lock_path.read_bytes()
    fill(log, 1, 1)
    log.lock_path.write_bytes(mark)
    log = Log(tmp_path)
    assert (log.acknowledged, log.end) == (2, 4)
    assert log.append([(EVENT, b"next")]) == 4
    assert log.acknowledged == 5


def test_a_kill_while_a_lost_end_is_filled_does_not_lower_the_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the rest of what is lost would be given out again."""
    log = Log(tmp_path)
    fill(log, 1)
    monkeypatch.setattr("penstock.storage.log.MAX_FRAME_RECORDS", 2)

    append, appended = Log._append, 0

    def append_once(log: Log, entries: list[tuple[RecordKind, bytes]], mark: int = 0) -> int:
        nonlocal appended
        appended += 1
        if appended > 1:
            raise KeyboardInterrupt
        return append(log, entries, mark)

    monkeypatch.setattr(Log, "_append", append_once)
    with pytest.raises(KeyboardInterrupt):
        log.fill(8)
    monkeypatch.undo()
    log = Log(tmp_path)
    assert (log.end, log.acknowledged) == (4, 8)
    with pytest.raises(CorruptionError, match="8 records were acknowledged"):
        log.append([(EVENT, b"next")])
    assert log.fill(8) == 4
    assert log.append([(EVENT, b"next")]) == 8


MARKS = {"missing": None, "empty": b"", "short": b"\x05", "damaged": struct.pack("<QI", 99, 0)}


@pytest.mark.parametrize("mark", MARKS)
def test_a_log_without_a_readable_mark_gets_one(tmp_path: Path, mark: str) -> None:
    log = Log(tmp_path)
    fill(log, 2)
    _put_mark(log, MARKS[mark])
    log = Log(tmp_path)
    assert log.acknowledged is None
    assert log.append([(EVENT, b"next")]) == 4
    assert log.acknowledged == 5


def _put_mark(log: Log, mark: bytes | None) -> None:
    if mark is None:
        log.lock_path.unlink()
    else:
        log.lock_path.write_bytes(mark)
