"""What every log promises, run against the one on disk and the one in memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import CorruptionError, HomeError
from penstock.storage import Log, MemoryLog, Record, RecordKind, RecordLog
from penstock.storage import frames as frames_module

EVENT, DDL, SUBSCRIBE = RecordKind.EVENT, RecordKind.DDL, RecordKind.SUBSCRIBE


@pytest.fixture(params=["disk", "small segments", "memory"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> RecordLog:
    if request.param == "memory":
        return MemoryLog()
    return Log(tmp_path) if request.param == "disk" else Log(tmp_path, segment_bytes=100)


def bodies(log: RecordLog, start: int = 0, end: int | None = None) -> list[bytes]:
    return [record.body for record in log.read(start, end)]


def test_an_empty_log(log: RecordLog) -> None:
    assert log.end == 0
    assert list(log.read(0)) == []
    assert log.frame_boundary(0, 10) == 0


def test_offsets_count_records(log: RecordLog) -> None:
    assert log.append([(EVENT, b"a"), (DDL, b"b")]) == 0
    assert log.append([(SUBSCRIBE, b"")]) == 2
    assert log.end == 3
    assert list(log.read(0)) == [
        Record(0, EVENT, b"a"),
        Record(1, DDL, b"b"),
        Record(2, SUBSCRIBE, b""),
    ]


def test_reading_a_part_of_a_frame(log: RecordLog) -> None:
    log.append([(EVENT, bytes([i])) for i in range(5)])
    log.append([(EVENT, bytes([i])) for i in range(5, 8)])
    assert bodies(log, 2, 6) == [b"\2", b"\3", b"\4", b"\5"]
    assert bodies(log, 3, 3) == []
    assert [first for first, _ in log.frames(2, 6)] == [2, 5]


def test_reading_some_kinds(log: RecordLog) -> None:
    log.append([(EVENT, b"a"), (DDL, b"b")])
    log.append([(EVENT, b"c")])
    log.append([(DDL, b"d")])
    kinds = frozenset({DDL})
    assert [record.offset for record in log.read(0, kinds=kinds)] == [1, 3]
    assert [first for first, _ in log.frames(0, kinds=kinds)] == [0, 3]
    assert list(log.read(0, kinds=frozenset({SUBSCRIBE}))) == []


def test_an_empty_append_changes_nothing(log: RecordLog) -> None:
    log.append([(EVENT, b"a")])
    assert log.append([]) == 1
    assert log.end == 1


def test_checking_before_appending(log: RecordLog) -> None:
    log.append([(EVENT, b"a")])
    with log.appending() as tail:
        assert tail.end == 1
        assert bodies(log, 0, tail.end) == [b"a"]
        assert tail.append([(EVENT, b"b"), (EVENT, b"c")]) == 1
        assert tail.end == 3
        assert tail.append([(EVENT, b"d")]) == 3
    assert bodies(log) == [b"a", b"b", b"c", b"d"]


def test_a_tail_ends_with_its_lock(log: RecordLog) -> None:
    with log.appending() as tail:
        pass
    with pytest.raises(HomeError, match="append lock"):
        tail.append([(EVENT, b"a")])


def test_an_error_while_appending_gives_the_lock_back(log: RecordLog) -> None:
    with pytest.raises(RuntimeError), log.appending():
        raise RuntimeError("refused")
    assert log.append([(EVENT, b"a")]) == 0


def test_boundaries_are_ends_of_frames(log: RecordLog) -> None:
    for size in (3, 3, 10, 1):
        log.append([(EVENT, b"x")] * size)
    assert log.frame_boundary(0, 1) == 3, "at least one frame"
    assert log.frame_boundary(0, 3) == 3
    assert log.frame_boundary(0, 5) == 3
    assert log.frame_boundary(0, 6) == 6
    assert log.frame_boundary(3, 4) == 6
    assert log.frame_boundary(6, 4) == 16
    assert log.frame_boundary(0, 1000) == 17
    assert log.frame_boundary(17, 5) == 17
    assert log.frame_boundary(1, 1) == 3, "a start inside a frame leads to its end"


def test_boundaries_within_some_bytes(log: RecordLog) -> None:
    for size in (10, 10_000, 10_000, 10):
        log.append([(EVENT, b"x" * size)])
    # A frame has some bytes beside its records.
    assert log.frame_boundary(0, 9, 10_500) == 2
    assert log.frame_boundary(0, 9, 9_000) == 1
    assert log.frame_boundary(1, 9, 9_000) == 2, "at least one frame"
    assert log.frame_boundary(1, 9, 20_500) == 4
    assert log.frame_boundary(1, 1, 20_500) == 2
    assert log.frame_boundary(4, 9, 1) == 4


def test_a_range_beyond_the_end_means_lost_records(log: RecordLog) -> None:
    log.append([(EVENT, b"a")])
    with pytest.raises(CorruptionError, match="ends at offset 1, but offset 5"):
        log.read(0, 5)
    with pytest.raises(CorruptionError):
        log.read(2)
    with pytest.raises(CorruptionError):
        log.frame_boundary(2, 1)
    with pytest.raises(HomeError, match="not a range"):
        log.read(1, 0)


def test_limits(log: RecordLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames_module, "MAX_RECORD_BYTES", 10)
    monkeypatch.setattr(frames_module, "MAX_FRAME_BYTES", 30)
    monkeypatch.setattr(frames_module, "MAX_FRAME_RECORDS", 4)
    for entries, reason in (
        ([(EVENT, b"x" * 11)], "at most 10 bytes"),
        ([(EVENT, b"x" * 10)] * 3, "at most 30 bytes"),
        ([(EVENT, b"")] * 5, "at most 4 records"),
    ):
        with pytest.raises(HomeError, match=reason):
            log.append(entries)
    assert log.end == 0
    assert log.append([(EVENT, b"x" * 10)]) == 0


entries = st.lists(st.tuples(st.sampled_from(RecordKind), st.binary(max_size=40)), max_size=5)


@given(st.lists(entries, max_size=8), st.data())
def test_any_appends_read_back(
    tmp_path_factory: pytest.TempPathFactory,
    appends: list[list[tuple[RecordKind, bytes]]],
    data: st.DataObject,
) -> None:
    directory = tmp_path_factory.mktemp("log")
    writers: list[RecordLog] = [MemoryLog(), Log(directory, segment_bytes=120)]
    for log in writers:
        for one in appends:
            log.append(one)
    everything = [entry for one in appends for entry in one]
    start = data.draw(st.integers(0, len(everything)))
    end = data.draw(st.integers(start, len(everything)))
    wanted = [Record(i, *everything[i]) for i in range(start, end)]
    for log in (*writers, Log(directory, segment_bytes=120)):
        assert log.end == len(everything)
        assert list(log.read(start, end)) == wanted
