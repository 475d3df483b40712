"""The message log and the quarantine on disk under crashes and damage."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest

from penstock.errors import CorruptionError, EventError, HomeError
from penstock.storage import BatchHeader, MessageLog, QuarantinedEvent, disk
from penstock.storage.batch_codec import encode_batch
from penstock.storage.batch_files import BatchFile, BatchFiles
from penstock.storage.disk import FileFormat
from penstock.storage.message_log import MESSAGE_FORMAT
from penstock.storage.rolled import Extent

FIRST, SECOND, THIRD = BatchHeader(0, 10, 0), BatchHeader(10, 20, 10), BatchHeader(20, 30, 10)
BAD = [QuarantinedEvent(3, b"\xff", "no", "because", "try")]


@pytest.fixture
def messages(tmp_path: Path) -> MessageLog:
    (tmp_path / "messages").mkdir()
    (tmp_path / "quarantine").mkdir()
    return reopened(tmp_path)


def reopened(path: Path) -> MessageLog:
    return MessageLog(path / "messages", path / "quarantine")


def the_file(directory: Path) -> Path:
    (path,) = directory.iterdir()
    return path


def test_names_are_those_of_the_batches(messages: MessageLog) -> None:
    messages.publish(BatchHeader(0, 123, 0), [], BAD)
    name = "00000000000000000000-00000000000000000123"
    assert the_file(messages.directory).name == f"{name}.messages"
    assert the_file(messages.quarantine.directory).name == f"{name}.quarantine"


def test_every_cut_and_every_flipped_bit_is_noticed(messages: MessageLog) -> None:
    messages.publish(FIRST, [b"hello", b""])
    path = the_file(messages.directory)
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(CorruptionError, match="is damaged at byte"):
            messages.read(FIRST)
    for position in range(len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= 0x40
        path.write_bytes(damaged)
        with pytest.raises(CorruptionError, match="is damaged at byte"):
            messages.read(FIRST)
    path.write_bytes(whole + b"\0")
    with pytest.raises(CorruptionError, match="is damaged at byte"):
        messages.read(FIRST)


MANY = [i.to_bytes(4) * 8 for i in range(5_000)]
"""Enough to be compressed."""


def test_large_batches_are_compressed_and_read_as_they_were(messages: MessageLog) -> None:
    messages.publish(FIRST, MANY)
    assert messages.read(FIRST) == MANY
    assert the_file(messages.directory).stat().st_size < sum(map(len, MANY)) / 2
    messages.publish(FIRST, MANY)  # again: nothing happens
    with pytest.raises(CorruptionError, match="already published"):
        messages.publish(FIRST, MANY[1:])
    messages.write_base(FIRST, MANY)
    assert messages.base == FIRST
    assert reopened(messages.directory.parent).read(FIRST) == MANY


def test_damage_to_a_compressed_batch_is_noticed(messages: MessageLog) -> None:
    messages.publish(FIRST, MANY)
    path = the_file(messages.directory)
    whole = path.read_bytes()
    for position in [*range(80), len(whole) // 2, len(whole) - 1]:
        damaged = bytearray(whole)
        damaged[position] ^= 0x40
        path.write_bytes(damaged)
        with pytest.raises(CorruptionError, match="is damaged at byte"):
            messages.read(FIRST)


def test_what_cannot_be_decompressed_is_damaged(messages: MessageLog) -> None:
    """Even if its checksum fits."""
    messages.publish(FIRST, MANY)
    path = the_file(messages.directory)
    body = (10**6).to_bytes(8, "little") + bytes(100_000)
    plain = FileFormat(MESSAGE_FORMAT.name, MESSAGE_FORMAT.magic, version=1)
    head, _ = encode_batch(plain, FIRST, body)
    path.write_bytes(MESSAGE_FORMAT.header(2) + head[FileFormat.SIZE :] + body)
    with pytest.raises(CorruptionError, match="cannot be decompressed"):
        messages.read(FIRST)


def test_a_damaged_quarantine_is_noticed(messages: MessageLog) -> None:
    messages.publish(FIRST, [], BAD)
    path = the_file(messages.quarantine.directory)
    path.write_bytes(path.read_bytes()[:-1] + b"\xff")
    with pytest.raises(CorruptionError, match=r"quarantine is damaged"):
        list(messages.quarantine.entries())


def test_a_file_under_another_name_is_noticed(messages: MessageLog) -> None:
    messages.publish(FIRST, [])
    path = the_file(messages.directory)
    path.rename(path.with_name("00000000000000000000-00000000000000000011.messages"))
    with pytest.raises(CorruptionError, match=r"content is that of batch \[0, 10\)"):
        list(messages.batches())


def test_a_missing_batch_is_noticed(messages: MessageLog) -> None:
    for header in (FIRST, SECOND, THIRD):
        messages.publish(header, [])
    (messages.directory / "00000000000000000010-00000000000000000020.messages").unlink()
    with pytest.raises(CorruptionError, match="one batch ends at 10, the next begins at 20"):
        list(messages.batches())
    with pytest.raises(CorruptionError, match="gap"):
        list(messages.batches(FIRST))


def test_a_missing_beginning_is_noticed(messages: MessageLog) -> None:
    for header in (FIRST, SECOND):
        messages.publish(header, [])
    the_first = messages.directory / "00000000000000000000-00000000000000000010.messages"
    the_first.unlink()
    with pytest.raises(CorruptionError, match="one batch ends at 0, the next begins at 10"):
        list(messages.batches())


def test_an_unknown_version_is_refused(messages: MessageLog) -> None:
    messages.publish(FIRST, [])
    path = the_file(messages.directory)
    newer = FileFormat("message batch", b"PENSTMSG", version=9).header()
    path.write_bytes(newer + path.read_bytes()[FileFormat.SIZE :])
    with pytest.raises(HomeError, match="version 9"):
        messages.read(FIRST)


def test_a_crash_before_the_rename_publishes_nothing(
    messages: MessageLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(path: Path, *content: bytes) -> None:
        if path.suffix != ".messages":
            disk.write_aside(path, *content)
            return
        path.with_suffix(".1.tmp").write_bytes(content[0][:10])
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("penstock.storage.file_store.write_aside", crash)
        with pytest.raises(KeyboardInterrupt):
            messages.publish(FIRST, [b"a"], BAD)
    again = reopened(messages.directory.parent)
    assert again.frontier is None
    assert list(again.quarantine.entries()) == [], "only the messages make a batch true"
    with pytest.raises(EventError):
        again.quarantine.get(3)
    again.sweep()
    assert list(messages.directory.iterdir()) == []
    assert list(messages.quarantine.directory.iterdir()) == []
    again.publish(FIRST, [b"a"], BAD)
    assert list(again.quarantine.entries()) == BAD


def test_a_retry_without_bad_events_leaves_no_quarantine(messages: MessageLog) -> None:
    messages.quarantine.write(FIRST, BAD)
    messages.publish(FIRST, [])
    assert list(messages.quarantine.entries()) == []


def test_a_reader_sees_what_a_writer_adds(messages: MessageLog) -> None:
    reader = reopened(messages.directory.parent)
    headers = [BatchHeader(i, i + 1, 0) for i in range(50)]
    for i, header in enumerate(headers):
        messages.publish(header, [])
        assert list(reader.batches()) == headers[: i + 1]


def test_an_old_listing_is_used_again(
    messages: MessageLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages.publish(FIRST, [])
    old = time.time() - 100
    os.utime(messages.directory, (old, old))
    assert messages.frontier == FIRST
    listed = messages._files.list_files()
    assert messages._files.list_files() is listed
    messages.publish(SECOND, [])
    assert messages.frontier == SECOND


def _publish_many(path: Path) -> None:
    messages = reopened(path)
    start = 0 if messages.frontier is None else messages.frontier.end
    for i in range(start, 1_000_000):
        bad = QuarantinedEvent(i, b"raw", "no", "", "")
        messages.publish(BatchHeader(i, i + 1, i), [b"%d" % i] * 100, [bad])


def test_a_killed_writer_leaves_whole_batches(messages: MessageLog) -> None:
    path = messages.directory.parent
    for _ in range(4):
        before = messages.frontier
        writer = multiprocessing.get_context("fork").Process(target=_publish_many, args=(path,))
        writer.start()
        while messages.frontier == before:
            time.sleep(0.002)
        os.kill(writer.pid or 0, signal.SIGKILL)
        writer.join()
    messages.sweep()
    headers = list(messages.batches())
    assert headers == [BatchHeader(i, i + 1, i) for i in range(len(headers))]
    assert all(messages.read(h) == [b"%d" % h.start] * 100 for h in headers)
    assert [e.offset for e in messages.quarantine.entries()] == list(range(len(headers)))
    assert not list(messages.directory.glob("*.tmp"))


@pytest.mark.parametrize("compacted", [SECOND, THIRD])
def test_a_reader_that_compaction_overtakes_is_told(
    messages: MessageLog, compacted: BatchHeader
) -> None:
    """What it has read stays right; what follows is in the base, and nothing is damaged."""
    for header in (FIRST, SECOND, THIRD):
        messages.publish(header, [b"one"])
    reader = messages.batches()
    assert next(reader) == FIRST
    compact_in_another_process(messages, compacted)
    with pytest.raises(HomeError, match="between offsets 10 and") as caught:
        list(reader)
    assert not isinstance(caught.value, CorruptionError)


@pytest.mark.parametrize("compacted", [SECOND, THIRD])
def test_a_reader_that_has_read_nothing_begins_with_the_base(
    messages: MessageLog, compacted: BatchHeader, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = [FIRST, SECOND, THIRD]
    for header in headers:
        messages.publish(header, [b"one"])
    opened = BatchFiles.open_extent

    def compact_first(files: BatchFiles, extent: Extent) -> BatchFile:
        monkeypatch.undo()
        compact_in_another_process(messages, compacted)
        return opened(files, extent)

    monkeypatch.setattr(BatchFiles, "open_extent", compact_first)
    assert list(messages.batches()) == headers[headers.index(compacted) :]


def compact_in_another_process(messages: MessageLog, header: BatchHeader) -> None:
    other = reopened(messages.directory.parent)
    other.write_base(header, [b"all"])
    other.sweep()
    names = [path.name for path in messages.directory.iterdir()]
    assert not [name for name in names if name.startswith(f"{0:020}-") and "base" not in name]
