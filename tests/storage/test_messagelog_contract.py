"""What every message log promises, run against the one on disk and the one in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import CorruptionError, EventError, HomeError
from penstock.storage import BatchHeader, BatchLog, MemoryMessageLog, MessageLog, QuarantinedEvent
from tests.storage.memory_files import MemoryFiles
from tests.storage.rolling import roll_early

FIRST, SECOND, THIRD = BatchHeader(0, 10, 0), BatchHeader(10, 10, 10), BatchHeader(10, 25, 10)
BAD = [QuarantinedEvent(3, b"\xff", "no", "because", "try"), QuarantinedEvent(7, b"", "é", "", "")]


@pytest.fixture(params=["disk", "rolled", "object store", "memory"])
def messages(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> BatchLog:
    if request.param == "memory":
        return MemoryMessageLog()
    if request.param == "object store":
        return MessageLog(tmp_path / "messages", tmp_path / "quarantine", MemoryFiles())
    if request.param == "rolled":
        roll_early(monkeypatch, 2)
    (tmp_path / "messages").mkdir()
    (tmp_path / "quarantine").mkdir()
    return MessageLog(tmp_path / "messages", tmp_path / "quarantine")


def test_an_empty_log(messages: BatchLog) -> None:
    assert messages.frontier is None
    assert list(messages.batches()) == []
    assert list(messages.quarantine.entries()) == []


def test_batches_in_order(messages: BatchLog) -> None:
    messages.publish(FIRST, [b"a", b"", b"\x00"])
    messages.publish(SECOND, [])
    messages.publish(THIRD, [b"c"])
    assert list(messages.batches()) == [FIRST, SECOND, THIRD]
    assert list(messages.batches(FIRST)) == [SECOND, THIRD]
    assert list(messages.batches(THIRD)) == []
    assert messages.frontier == THIRD
    assert [messages.read(header) for header in messages.batches()] == [
        [b"a", b"", b"\x00"],
        [],
        [b"c"],
    ]


def test_publishing_again_changes_nothing(messages: BatchLog) -> None:
    messages.publish(FIRST, [b"a"], BAD)
    messages.publish(SECOND, [])
    messages.publish(FIRST, [b"a"], BAD)
    assert list(messages.batches()) == [FIRST, SECOND]
    assert list(messages.quarantine.entries()) == BAD


@pytest.mark.parametrize(
    ("header", "content"), [(FIRST, [b"b"]), (FIRST, []), (BatchHeader(0, 10, 5), [b"a"])]
)
def test_another_content_is_refused(
    messages: BatchLog, header: BatchHeader, content: list[bytes]
) -> None:
    messages.publish(FIRST, [b"a"])
    with pytest.raises(CorruptionError, match=r"batch \[0, 10\) is already published"):
        messages.publish(header, content)
    assert messages.read(FIRST) == [b"a"]


@pytest.mark.parametrize("start", [9, 11, 0])
def test_a_batch_that_does_not_follow_is_refused(messages: BatchLog, start: int) -> None:
    messages.publish(FIRST, [])
    with pytest.raises(HomeError, match="does not follow the message log, which ends at 10"):
        messages.publish(BatchHeader(start, 30, 0), [])
    assert list(messages.batches()) == [FIRST]


def test_a_batch_backwards_is_refused(messages: BatchLog) -> None:
    with pytest.raises(HomeError, match=r"\[5, 4\) is not a batch"):
        messages.publish(BatchHeader(5, 4, 0), [])


def test_a_batch_that_is_not_there(messages: BatchLog) -> None:
    messages.publish(FIRST, [])
    with pytest.raises(HomeError):
        messages.read(SECOND)
    with pytest.raises(CorruptionError):
        messages.read(BatchHeader(0, 10, 9))


def test_the_quarantine(messages: BatchLog) -> None:
    messages.publish(FIRST, [b"a"], BAD)
    later = QuarantinedEvent(12, b"{", "cut short", "", "")
    messages.publish(THIRD, [], [later])
    assert list(messages.quarantine.entries()) == [*BAD, later]
    assert messages.quarantine.get(7) == BAD[1]
    assert messages.quarantine.get(12) == later
    for offset in (4, 11, 99):
        with pytest.raises(EventError, match=f"no event of offset {offset}"):
            messages.quarantine.get(offset)
