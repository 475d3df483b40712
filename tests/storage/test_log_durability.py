"""The log on disk under crashes, damage and other processes."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import CorruptionError, HomeError
from penstock.storage import Log, Record, RecordKind
from penstock.storage.acknowledged import write_acknowledged
from penstock.storage.disk import FileFormat
from penstock.storage.frames import HEADER_BYTES, SEGMENT_FORMAT, encode_frame

EVENT = RecordKind.EVENT
FIRST = "00000000000000000000.log"

APPENDS = [
    [(EVENT, b"alpha"), (RecordKind.DDL, b"")],
    [(EVENT, bytes(9))],
    [(EVENT, b"gamma"), (EVENT, b"delta"), (RecordKind.WITHDRAW, b"x")],
]
RECORDS = [Record(i, *entry) for i, entry in enumerate(e for one in APPENDS for e in one)]
ACKNOWLEDGED = RECORDS[:3]
"""Those before the last append."""


def write(directory: Path, segment_bytes: int = 1 << 20) -> tuple[bytes, int]:
    """Make the log above; the bytes of its only segment, and where its last frame begins."""
    log = Log(directory, segment_bytes=segment_bytes)
    sizes = []
    for one in APPENDS:
        log.append(one)
        sizes.append((directory / FIRST).stat().st_size)
    return (directory / FIRST).read_bytes(), sizes[-2]


def put(path: Path, position: int, byte: int) -> None:
    """Change one byte in place: rewriting a file makes some file systems wait for the disk."""
    with path.open("r+b", buffering=0) as file:
        file.seek(position)
        file.write(bytes([byte]))


def forget(directory: Path, end: int) -> None:
    """As if no more had been acknowledged: a crash came first."""
    write_acknowledged(Log(directory).lock_path, end)


@pytest.fixture
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of tiny logs need not reach the disk."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


# Torn tails


@pytest.mark.usefixtures("unsynced")
def test_every_cut_of_the_last_frame_leaves_what_was_acknowledged(tmp_path: Path) -> None:
    whole, last = write(tmp_path)
    path = tmp_path / FIRST
    for size in range(last, len(whole)):
        path.write_bytes(whole[:size])
        forget(tmp_path, 3)
        log = Log(tmp_path)
        assert list(log.read(0)) == ACKNOWLEDGED
        assert log.append([(EVENT, b"next")]) == 3
        again = [*ACKNOWLEDGED, Record(3, EVENT, b"next")]
        assert list(log.read(0)) == again
        assert list(Log(tmp_path).read(0)) == again


@given(st.data())
def test_a_cut_anywhere_leaves_whole_frames(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    directory = tmp_path_factory.mktemp("log")
    entry = st.tuples(st.sampled_from(RecordKind), st.binary(max_size=30))
    appends = data.draw(st.lists(st.lists(entry, min_size=1, max_size=4), min_size=1, max_size=5))
    log, ends = Log(directory), [(0, 0), (FileFormat.SIZE, 0)]
    for one in appends:
        log.append(one)
        ends.append(((directory / FIRST).stat().st_size, log.end))
    whole = (directory / FIRST).read_bytes()
    size = data.draw(st.integers(0, len(whole)))
    (directory / FIRST).write_bytes(whole[:size])
    survived = max(offset for at, offset in ends if at <= size)
    everything = [entry for one in appends for entry in one]
    wanted = [Record(i, *e) for i, e in enumerate(everything[:survived])]
    forget(directory, survived)
    torn = Log(directory)
    assert list(torn.read(0)) == wanted
    assert torn.append([(EVENT, b"next")]) == survived
    assert list(Log(directory).read(0)) == [*wanted, Record(survived, EVENT, b"next")]


@pytest.mark.parametrize("zeros", [1, HEADER_BYTES - 1, HEADER_BYTES, 5000])
@pytest.mark.parametrize("kept", [0, FileFormat.SIZE, None])
def test_a_tail_of_zeros_was_never_written(tmp_path: Path, kept: int | None, zeros: int) -> None:
    whole, _ = write(tmp_path)
    (tmp_path / FIRST).write_bytes(whole[:kept] + bytes(zeros))
    log = Log(tmp_path)
    wanted = RECORDS if kept is None else []
    forget(tmp_path, len(wanted))
    assert list(log.read(0)) == wanted
    log.append([(EVENT, b"next")])
    assert len(list(Log(tmp_path).read(0))) == len(wanted) + 1


def test_cutting_a_torn_tail_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    whole, last = write(tmp_path)
    (tmp_path / FIRST).write_bytes(whole[: last + 7])
    forget(tmp_path, 3)
    log = Log(tmp_path)
    with caplog.at_level(logging.WARNING, "penstock.storage"):
        assert log.end == 3
        assert not caplog.records, "reading changes nothing"
        log.append([(EVENT, b"next")])
    assert "cut 7 bytes" in caplog.text
    assert FIRST in caplog.text


def test_a_reader_sees_a_frame_only_when_all_of_it_is_there(tmp_path: Path) -> None:
    whole, last = write(tmp_path)
    path = tmp_path / FIRST
    path.write_bytes(whole[:last])
    reader = Log(tmp_path)
    for size in range(last, len(whole)):
        path.write_bytes(whole[:size])
        assert reader.end == 3
    path.write_bytes(whole)
    assert list(reader.read(0)) == RECORDS


# Damage


@pytest.mark.usefixtures("unsynced")
def test_every_flipped_bit_is_noticed(tmp_path: Path) -> None:
    whole, _ = write(tmp_path)
    path = tmp_path / FIRST
    for position in range(len(whole)):
        for bit in range(8):
            put(path, position, whole[position] ^ (1 << bit))
            with pytest.raises(CorruptionError, match=r"damaged at byte \d+") as caught:
                list(Log(tmp_path).read(0))
            assert str(path) in caught.value.detail
            assert caught.value.hint
        put(path, position, whole[position])
    assert list(Log(tmp_path).read(0)) == RECORDS


@given(st.data())
def test_flipped_bits_never_hide_records(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Whatever else is wrong with the file: fewer records only if its end is missing."""
    directory = tmp_path_factory.mktemp("log")
    whole, _ = write(directory)
    damaged = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(whole) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    (directory / FIRST).write_bytes(damaged)
    try:
        assert list(Log(directory).read(0)) == RECORDS
    except CorruptionError:
        assert bytes(damaged) != whole


def test_damage_stops_readers_and_writers_but_not_what_is_before(tmp_path: Path) -> None:
    whole, last = write(tmp_path)
    damaged = bytearray(whole)
    damaged[last] ^= 1  # the length of the last frame
    (tmp_path / FIRST).write_bytes(damaged)
    with pytest.raises(CorruptionError, match=rf"{FIRST} is damaged at byte {last}: .*offset 3"):
        Log(tmp_path).append([(EVENT, b"next")])
    assert (tmp_path / FIRST).read_bytes() == damaged


def test_a_damaged_payload_is_named_when_it_is_read(tmp_path: Path) -> None:
    whole, last = write(tmp_path)
    (tmp_path / FIRST).write_bytes(whole[:-1] + b"\xff")
    records = Log(tmp_path).read(0)
    assert [next(records) for _ in range(3)] == ACKNOWLEDGED
    with pytest.raises(CorruptionError, match=rf"byte {last}: the checksum of a frame .*offset 3"):
        next(records)


def test_an_unknown_version_is_refused(tmp_path: Path) -> None:
    whole, _ = write(tmp_path)
    newer = FileFormat(SEGMENT_FORMAT.name, SEGMENT_FORMAT.magic, version=2).header()
    (tmp_path / FIRST).write_bytes(newer + whole[FileFormat.SIZE :])
    with pytest.raises(HomeError, match="log segment of version 2"):
        Log(tmp_path).read(0)


def test_a_record_of_an_unknown_kind_is_refused(tmp_path: Path) -> None:
    frame = encode_frame(0, [(31, b"from the future")])  # type: ignore[list-item]
    (tmp_path / FIRST).write_bytes(SEGMENT_FORMAT.header() + frame)
    with pytest.raises(HomeError, match="unknown kind 31 at offset 0"):
        list(Log(tmp_path).read(0))


def test_a_frame_in_the_wrong_place_is_noticed(tmp_path: Path) -> None:
    frame = encode_frame(7, [(EVENT, b"x")])
    (tmp_path / FIRST).write_bytes(SEGMENT_FORMAT.header() + frame)
    with pytest.raises(CorruptionError, match=r"byte 16: a frame says it begins at offset 7"):
        Log(tmp_path).read(0)
    (tmp_path / FIRST).write_bytes(SEGMENT_FORMAT.header() + encode_frame(0, []))
    with pytest.raises(CorruptionError, match=r"byte 16: .* is not one that a log writes"):
        Log(tmp_path).read(0)


def test_what_changes_after_it_was_found_is_noticed(tmp_path: Path) -> None:
    whole, last = write(tmp_path)
    path, log = tmp_path / FIRST, Log(tmp_path)
    assert log.end == len(RECORDS)
    put(path, last + HEADER_BYTES - 1, whole[last + HEADER_BYTES - 1] ^ 1)
    with pytest.raises(CorruptionError, match=rf"byte {last}: the frame header has changed"):
        list(log.read(0))
    path.write_bytes(whole[:-1])
    with pytest.raises(CorruptionError, match=rf"byte {last}: the frame is cut short"):
        list(log.read(0, len(RECORDS)))


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    other = FileFormat("song", b"SOMESONG", version=1).header()
    (tmp_path / FIRST).write_bytes(other + bytes(100))
    with pytest.raises(CorruptionError, match="not a log segment"):
        Log(tmp_path).read(0)


def test_a_foreign_file_is_named(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "notes.log").touch()
    with pytest.raises(HomeError, match=r"notes\.log"):
        Log(tmp_path).read(0)


# Several segments


def segments(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.log"))


@pytest.fixture
def three(tmp_path: Path) -> list[Path]:
    log = Log(tmp_path, segment_bytes=1)
    for one in APPENDS:
        log.append(one)
    assert [path.name for path in segments(tmp_path)] == [
        FIRST,
        "00000000000000000002.log",
        "00000000000000000003.log",
    ]
    return segments(tmp_path)


def test_segments_are_read_as_one(three: list[Path]) -> None:
    log = Log(three[0].parent)
    assert list(log.read(0)) == RECORDS
    assert list(log.read(1, 4)) == RECORDS[1:4]
    assert log.frame_boundary(0, 2) == 2
    assert log.frame_boundary(0, 5) == 3
    sizes = [path.stat().st_size for path in three]
    assert log.frame_boundary(0, 9, sizes[0] + sizes[1]) == 3
    assert log.frame_boundary(0, 9, sum(sizes)) == log.end


@pytest.mark.parametrize("missing", [0, 1])
def test_a_missing_segment_is_noticed(three: list[Path], missing: int) -> None:
    three[missing].unlink()
    with pytest.raises(CorruptionError, match=f"{[0, 2][missing]}"):
        list(Log(three[0].parent).read(0))


def test_a_segment_that_goes_while_we_look_is_noticed(three: list[Path]) -> None:
    log = Log(three[0].parent)
    assert log.end == len(RECORDS)
    three[1].unlink()
    with pytest.raises(CorruptionError, match=r"0002\.log is missing"):
        _ = log.end


@pytest.mark.usefixtures("unsynced")
def test_only_the_last_segment_may_be_torn(three: list[Path]) -> None:
    whole = three[1].read_bytes()
    for size in range(len(whole)):
        three[1].write_bytes(whole[:size])
        with pytest.raises(CorruptionError, match=r"00002\.log is damaged"):
            list(Log(three[0].parent).read(0))
    three[1].write_bytes(whole + bytes(100))
    with pytest.raises(CorruptionError, match=r"00002\.log is damaged"):
        list(Log(three[0].parent).read(0))


@pytest.mark.usefixtures("unsynced")
def test_every_flipped_bit_of_any_segment_is_noticed(three: list[Path]) -> None:
    for path in three:
        whole = path.read_bytes()
        for position in range(0, len(whole), 3):
            put(path, position, whole[position] ^ 0x10)
            with pytest.raises(CorruptionError):
                list(Log(path.parent).read(0))
            put(path, position, whole[position])


@pytest.mark.usefixtures("unsynced")
def test_a_crash_while_a_segment_is_made(three: list[Path]) -> None:
    header = three[2].read_bytes()[: FileFormat.SIZE]
    for size in range(FileFormat.SIZE + 1):
        three[2].write_bytes(header[:size])
        forget(three[0].parent, 3)
        log = Log(three[0].parent, segment_bytes=1)
        assert list(log.read(0)) == RECORDS[:3]
        assert log.append([(EVENT, b"next")]) == 3
        assert list(Log(three[0].parent).read(3)) == [Record(3, EVENT, b"next")]
        assert len(segments(three[0].parent)) == 3


# Failing writes


def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, _ = write(tmp_path)
    log = Log(tmp_path)

    def full_disk(descriptor: int, content: bytes, position: int) -> None:
        os.pwrite(descriptor, content[:10], position)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("penstock.storage.file_store.write_all", full_disk)
        with pytest.raises(HomeError, match="cannot append to the log: No space left on device"):
            log.append([(EVENT, b"next")])
    assert (tmp_path / FIRST).read_bytes() == whole
    assert log.append([(EVENT, b"next")]) == len(RECORDS)


def test_a_missing_directory_is_a_home_error(tmp_path: Path) -> None:
    with pytest.raises(HomeError, match="cannot read the log"):
        Log(tmp_path / "nowhere").read(0)
