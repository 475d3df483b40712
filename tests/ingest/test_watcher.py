"""Files dropped into a directory: each event of each file once, whatever happens."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import Hub
from penstock.errors import BacklogError, HomeError, InputError, LockedError
from penstock.ingest import formats
from penstock.ingest.directories import open_dropped
from penstock.ingest.directory_listing import list_files, table_of
from penstock.ingest.file_ingest import FileIngest, IngestResult
from penstock.ingest.watcher import Watcher, WatchSummary, watch
from penstock.registry import Registry
from penstock.storage import Home, RecordKind
from tests.examples import examples

STOCKS = "CREATE TABLE stocks (id BIGINT PRIMARY KEY, symbol VARCHAR, per DOUBLE)"
ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home.create(tmp_path / "home")
    with Registry(made) as registry:
        registry.define(STOCKS)
        registry.define("CREATE TABLE stocks_old (id BIGINT PRIMARY KEY)")
    return made


@pytest.fixture
def drop(tmp_path: Path) -> Path:
    (tmp_path / "drop").mkdir()
    return tmp_path / "drop"


def take_all(home: Home, drop: Path, **options: Any) -> WatchSummary:
    return watch(home, drop, once=True, settle_seconds=0.0, **options)


def take(home: Home, path: Path) -> IngestResult:
    with open_dropped(path.parent, path.name) as source:
        return FileIngest(home).take(source, path.name)


def events(home: Home) -> list[bytes]:
    return [record.body for record in home.log.read(0, kinds=frozenset({RecordKind.EVENT}))]


def line(number: int) -> bytes:
    return json.dumps({"table": "stocks", "row": {"id": number}}).encode()


def lines(*numbers: int) -> bytes:
    return b"".join(line(number) + b"\n" for number in numbers)


def test_every_kind_of_file(home: Home, drop: Path) -> None:
    (drop / "changes.jsonl").write_bytes(lines(1))
    payload = {"op": "c", "after": {"id": 2}, "source": {"table": "stocks"}}
    (drop / "debezium.json").write_text(json.dumps(payload))
    (drop / "stocks-2024.csv").write_text("id,symbol\n3,GOOG\n4,YHOO\n")
    (drop / "stocks").mkdir()
    table = pa.table({"id": [5], "per": [1.5]})
    pyarrow.parquet.write_table(table, drop / "stocks" / "any.parquet")
    assert take_all(home, drop) == WatchSummary(4, 5, 0)
    with Hub(home.path) as hub:
        assert sorted(str(row["id"]) for row in hub.rows("stocks")) == ["1", "2", "3", "4", "5"]
        assert hub.quarantine() == []
    assert list_files(drop) == []
    assert (drop / "taken" / "stocks" / "any.parquet").exists()


def test_files_are_taken_in_the_order_of_their_times(home: Home, drop: Path) -> None:
    for name, number, when in (("a.jsonl", 1, 30), ("b.jsonl", 2, 10), ("c.jsonl", 3, 10)):
        (drop / name).write_bytes(lines(number))
        os.utime(drop / name, (when, when))
    take_all(home, drop)
    assert events(home) == [line(2), line(3), line(1)]


def test_a_file_that_is_still_written_is_left_alone(home: Home, drop: Path) -> None:
    for name in (".hidden.jsonl", "_tmp.jsonl", "notes.txt", "x.jsonl.part"):
        (drop / name).write_bytes(lines(1))
    (drop / "fresh.jsonl").write_bytes(lines(2))
    watcher = Watcher(home, drop, settle_seconds=60)
    assert list(watcher.look()) == []
    assert watcher.waiting
    with mock.patch("penstock.ingest.watcher.time.monotonic", return_value=1e9):
        (drop / "fresh.jsonl").write_bytes(lines(2, 3))  # it has grown, so time starts again
        assert list(watcher.look()) == []
    with mock.patch("penstock.ingest.watcher.time.monotonic", return_value=1e9 + 60):
        assert [took.events for took in watcher.look()] == [2]
    watcher.close()
    assert not watcher.waiting


def test_the_same_file_again_is_not_taken_again(home: Home, drop: Path) -> None:
    for _ in range(2):
        (drop / "a.jsonl").write_bytes(lines(1, 2))
        take_all(home, drop)
    assert events(home) == [line(1), line(2)]
    (drop / "a.jsonl").write_bytes(lines(3))
    (drop / "b.jsonl").write_bytes(lines(1, 2))
    take_all(home, drop)
    assert len(events(home)) == 5
    assert sorted(path.name for path in (drop / "taken").iterdir()) == [
        "a.1.jsonl", "a.2.jsonl", "a.jsonl", "b.jsonl",
    ]  # fmt: skip


def test_files_that_stay_are_remembered(home: Home, drop: Path) -> None:
    (drop / "a.jsonl").write_bytes(lines(1))
    (drop / "stocks.csv").write_text("nonsense\n1\n")
    for _ in range(3):
        take_all(home, drop, keep=True)
    assert len(events(home)) == 2
    assert len(list_files(drop)) == 2


def test_an_empty_file(home: Home, drop: Path) -> None:
    (drop / "a.jsonl").write_bytes(b"")
    assert take_all(home, drop) == WatchSummary(1, 0, 0)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("nobody.csv", b"id\n1\n", "does not say which table"),
        ("stocks.csv", b"id,colour\n1,red\n", "colour"),
        ("stocks.parquet", b"PAR1 and then nothing", "cannot be read"),
    ],
)
def test_a_bad_file_is_put_aside_and_quarantined(
    home: Home, drop: Path, name: str, content: bytes, reason: str
) -> None:
    (drop / name).write_bytes(content)
    assert take_all(home, drop) == WatchSummary(1, 0, 1)
    assert (drop / "refused" / name).read_bytes() == content
    with Hub(home.path) as hub:
        (entry,) = hub.quarantine()
    assert reason in entry.primary + entry.detail
    assert name in entry.primary


def test_a_refused_file_can_be_dropped_again(home: Home, drop: Path) -> None:
    (drop / "bonds.csv").write_text("id\n1\n")
    take_all(home, drop)
    with Registry(home) as registry:
        registry.define("CREATE TABLE bonds (id BIGINT PRIMARY KEY)")
    (drop / "refused" / "bonds.csv").rename(drop / "bonds.csv")
    assert take_all(home, drop) == WatchSummary(1, 1, 0)
    with Hub(home.path) as hub:
        assert hub.rows("bonds") == [{"id": 1}]
        assert len(hub.quarantine()) == 1


def test_a_bad_row_is_quarantined_alone(home: Home, drop: Path) -> None:
    (drop / "stocks.csv").write_text("id,per\n1,2.5\nx,1\n2,1,7\n3,\n")
    take_all(home, drop)
    with Hub(home.path) as hub:
        assert sorted(str(row["id"]) for row in hub.rows("stocks")) == ["1", "3"]
        assert len(hub.quarantine()) == 2


def test_a_file_that_changes_while_it_is_read(home: Home, drop: Path) -> None:
    path = drop / "a.jsonl"
    path.write_bytes(lines(1))
    original = formats.read_open_file

    def read_and_write(*arguments: object) -> Iterator[object]:
        yield from original(*arguments)  # type: ignore[arg-type]
        path.write_bytes(lines(1, 2))

    with mock.patch("penstock.ingest.file_ingest.read_open_file", read_and_write):
        assert "changed while it was read" in take(home, path).refused
    with Hub(home.path) as hub:
        assert "changed while it was read" in hub.quarantine()[0].primary


def test_which_table_a_file_belongs_to(home: Home) -> None:
    catalog = Registry(home).catalog()
    names = {
        "stocks.csv": "stocks", "STOCKS-1.csv": "stocks", "stocks.7.csv": "stocks",
        "stocks_1.csv": "stocks", "stocks_old.csv": "stocks_old", "stocks_old-2.csv": "stocks_old",
        "stocks_old/x.csv": "stocks_old", "stocksx.csv": None, "nowhere/stocks.csv": None,
    }  # fmt: skip
    found = {name: table_of(name, catalog) for name in names}
    assert {name: relation and relation.name for name, relation in found.items()} == names


def test_two_who_take_the_same_file(home: Home, drop: Path) -> None:
    path = drop / "a.jsonl"
    path.write_bytes(lines(1, 2))
    original = formats.read_open_file

    def overtaken(*arguments: object) -> Iterator[object]:
        """Before this one has read anything, another process takes the whole file."""
        with mock.patch("penstock.ingest.file_ingest.read_open_file", original):
            take(home, path)
        yield from original(*arguments)  # type: ignore[arg-type]

    with (
        mock.patch("penstock.ingest.file_ingest.read_open_file", overtaken),
        pytest.raises(LockedError, match="another process"),
    ):
        take(home, path)
    assert events(home) == [line(1), line(2)]


def test_a_directory_that_is_not_there(home: Home, tmp_path: Path) -> None:
    with pytest.raises(HomeError, match="not a directory"):
        watch(home, tmp_path / "nowhere")


def test_it_ends_when_it_is_told_to(home: Home, drop: Path) -> None:
    stop = threading.Event()
    (drop / "a.jsonl").write_bytes(lines(1))
    summary = watch(home, drop, settle_seconds=0, on_file=lambda _: stop.set(), stop=stop)
    assert summary == WatchSummary(1, 1, 0)


def test_a_log_that_is_too_far_ahead(home: Home, drop: Path) -> None:
    """Nothing is lost or taken twice: the rest of a file waits until somebody has caught up."""
    (drop / "a.jsonl").write_bytes(lines(1, 2, 3))
    with (
        mock.patch("penstock.ingest.watcher.FileIngest", partial(FileIngest, max_backlog=4)),
        small_frames(1),
    ):
        with pytest.raises(BacklogError):
            take_all(home, drop)
        assert events(home) == [line(1), line(2)]
        with Hub(home.path):
            pass
        stop = threading.Event()
        watch(home, drop, settle_seconds=0, on_file=lambda _: stop.set(), stop=stop)
    assert events(home) == [line(1), line(2), line(3)]


def test_the_ledger_is_derived_from_the_log(home: Home, drop: Path) -> None:
    (drop / "a.jsonl").write_bytes(lines(1))
    take_all(home, drop, keep=True)
    home.sources_db.unlink()
    take_all(home, drop, keep=True)
    assert events(home) == [line(1)]


class Crash(BaseException):
    """The process is gone."""


@pytest.mark.slow
@settings(max_examples=examples(25))
@given(
    files=st.lists(st.lists(st.integers(0, 99), max_size=6), min_size=1, max_size=3),
    crashes=st.lists(st.tuples(st.integers(0, 8), st.booleans()), max_size=5),
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=3),
)
def test_crashes_anywhere(
    files: list[list[int]], crashes: list[tuple[int, bool]], sizes: list[int]
) -> None:
    """Killed before or after any append, and with frames cut in other places the next time."""
    with tempfile.TemporaryDirectory() as directory:
        home = Home.create(Path(directory) / "home")
        drop = Path(directory) / "drop"
        drop.mkdir()
        expected: list[bytes] = []
        for i, numbers in enumerate(files):
            (drop / f"{i}.jsonl").write_bytes(lines(*numbers))
            os.utime(drop / f"{i}.jsonl", (i, i))
            expected += [line(number) for number in numbers]
        for i, (countdown, written) in enumerate(crashes):
            frames, death = small_frames(sizes[i % len(sizes)]), crash_after(countdown, written)
            with frames, death, suppress(Crash):
                take_all(home, drop)
        take_all(home, drop)
        assert events(home) == expected


def small_frames(size: int) -> AbstractContextManager[object]:
    original = formats.read_open_file

    def read(*arguments: object) -> Iterator[object]:
        for batch in original(*arguments):  # type: ignore[arg-type]
            for start in range(0, len(batch.events), size):
                yield mock.Mock(events=batch.events[start : start + size])

    return mock.patch("penstock.ingest.file_ingest.read_open_file", read)


def crash_after(countdown: int, written: bool) -> AbstractContextManager[object]:
    """Die at an append: before it, or when it is on disk."""
    original = FileIngest._append
    left = [countdown]

    def append(self: FileIngest, *arguments: object) -> None:
        left[0] -= 1
        if left[0] >= 0:
            return original(self, *arguments)  # type: ignore[arg-type]
        if written:
            original(self, *arguments)  # type: ignore[arg-type]
        raise Crash

    return mock.patch.object(FileIngest, "_append", append)


KILLED = """
import os, signal, sys
from pathlib import Path
from penstock.storage import Home
from penstock.ingest import watcher
watcher.put_aside = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
watcher.watch(Home.open(sys.argv[1]), Path(sys.argv[2]), once=True, settle_seconds=0)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "content", "count"), [("a.jsonl", lines(1, 2), 2), ("nobody.csv", b"id\n1\n", 1)]
)
def test_killed_between_appending_and_putting_aside(
    home: Home, drop: Path, name: str, content: bytes, count: int
) -> None:
    """A real SIGKILL: the file is in the log, or refused, and still in the directory."""
    (drop / name).write_bytes(content)
    command = [sys.executable, "-c", KILLED, str(home.path), str(drop)]
    for _ in range(2):
        killed = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False)
        assert killed.returncode == -signal.SIGKILL
        assert len(list_files(drop)) == 1
        assert len(events(home)) == count
    assert take_all(home, drop).events == 0
    assert list_files(drop) == []
    assert len(events(home)) == count


@pytest.mark.parametrize("seconds", [-1.0, 86_401.0, float("inf"), float("nan")])
def test_a_file_settles_in_a_day_at_most(home: Home, drop: Path, seconds: float) -> None:
    """With NaN no file would ever be complete, and nobody would be told."""
    with pytest.raises(InputError, match="settles in 0 to 86,400 seconds"):
        watch(home, drop, once=True, settle_seconds=seconds)
