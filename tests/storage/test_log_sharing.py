"""One log, several processes and threads."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from penstock.errors import LockedError
from penstock.storage import Log, Record
from penstock.storage import log as log_module
from tests.storage.test_log_durability import EVENT

# Several processes

_FORK = multiprocessing.get_context("fork")


def _append_many(directory: Path, writer: int, count: int) -> None:
    log = Log(directory, segment_bytes=2000)
    for i in range(count):
        log.append([(EVENT, b"%d %d %d" % (writer, i, part)) for part in range(3)])


def test_two_processes_append_and_one_reads(tmp_path: Path) -> None:
    count = 60
    writers = [_FORK.Process(target=_append_many, args=(tmp_path, w, count)) for w in range(2)]
    for writer in writers:
        writer.start()
    reader = Log(tmp_path)
    seen: list[Record] = []
    deadline = time.monotonic() + 60
    while len(seen) < 2 * 3 * count and time.monotonic() < deadline:
        seen += list(reader.read(len(seen)))
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    assert [record.offset for record in seen] == list(range(2 * 3 * count))
    for number in range(2):
        own = [tuple(map(int, r.body.split())) for r in seen if r.body.startswith(b"%d " % number)]
        assert own == [(number, i, part) for i in range(count) for part in range(3)]
    for first in range(0, len(seen), 3):
        assert len({record.body[:-1] for record in seen[first : first + 3]}) == 1, (
            "frames are whole"
        )


def test_a_killed_writer_harms_nobody(tmp_path: Path) -> None:
    for _ in range(5):
        writer = _FORK.Process(target=_append_many, args=(tmp_path, 0, 100_000))
        before = Log(tmp_path).end
        writer.start()
        while Log(tmp_path).end == before:
            time.sleep(0.001)
        os.kill(writer.pid or 0, signal.SIGKILL)
        writer.join()
    log = Log(tmp_path)
    end = log.append([(EVENT, b"after")])
    assert end % 3 == 0, "no part of a frame"
    assert len(list(Log(tmp_path).read(0))) == end + 1


def test_waiting_for_the_append_lock_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "APPEND_LOCK_SECONDS", 0.05)
    with Log(tmp_path).appending(), pytest.raises(LockedError, match="keeps the log locked"):
        Log(tmp_path).append([(EVENT, b"x")])


def test_threads_share_one_log(tmp_path: Path) -> None:
    log = Log(tmp_path)

    def work(number: int) -> None:
        for i in range(20):
            log.append([(EVENT, b"%d %d" % (number, i))])
            assert log.end > i

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({record.body for record in log.read(0)}) == log.end == 80
