"""Directories in which anything may lie: nothing outside of them is touched, and nothing stops."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest

from penstock import Hub
from penstock.errors import HomeError
from penstock.ingest import IngestResult, watcher
from penstock.ingest.directories import open_dropped
from penstock.ingest.directory_listing import HOME, list_directory, list_files
from penstock.ingest.ingest_ledger import ledger_name
from penstock.ingest.watcher import Watcher, WatchSummary, watch
from penstock.registry import Registry
from penstock.storage import Home, RecordKind

LINE = b'{"table": "stocks", "row": {"id": %d}}\n'


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home.create(tmp_path / "home")
    with Registry(made) as registry:
        registry.define("CREATE TABLE stocks (id BIGINT PRIMARY KEY, symbol VARCHAR)")
    return made


@pytest.fixture
def drop(tmp_path: Path) -> Path:
    (tmp_path / "drop").mkdir()
    return tmp_path / "drop"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Somebody else's directory."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "private.jsonl").write_bytes(LINE % 666)
    return tmp_path / "outside"


def take_all(home: Home, drop: Path) -> tuple[WatchSummary, list[IngestResult]]:
    told: list[IngestResult] = []
    return watch(home, drop, once=True, settle_seconds=0.0, on_file=told.append), told


def ids(home: Home) -> list[object]:
    with Hub(home.path) as hub:
        return sorted(row["id"] for row in hub.rows("stocks"))  # type: ignore[type-var]


def link_to_file(drop: Path, outside: Path) -> str:
    (drop / "x.jsonl").symlink_to(outside / "private.jsonl")
    return "x.jsonl"


def link_to_directory(drop: Path, outside: Path) -> str:
    (drop / "stocks").symlink_to(outside)
    return "stocks"


def link_below(drop: Path, outside: Path) -> str:
    (drop / "stocks").mkdir()
    (drop / "stocks" / "x.jsonl").symlink_to(outside / "private.jsonl")
    return "stocks/x.jsonl"


def dangling_link(drop: Path, outside: Path) -> str:
    (drop / "x.jsonl").symlink_to(outside / "nothing")
    return "x.jsonl"


def fifo(drop: Path, _outside: Path) -> str:
    os.mkfifo(drop / "x.jsonl")
    return "x.jsonl"


def unix_socket(drop: Path, _outside: Path) -> str:
    here = Path.cwd()
    os.chdir(drop)  # the path of a socket must be short
    try:
        socket.socket(socket.AF_UNIX).bind("x.jsonl")
    finally:
        os.chdir(here)
    return "x.jsonl"


@pytest.mark.parametrize(
    "put", [link_to_file, link_to_directory, link_below, dangling_link, fifo, unix_socket]
)
def test_what_is_no_file_is_left_alone_and_told_once(
    home: Home, drop: Path, outside: Path, put: Callable[[Path, Path], str]
) -> None:
    name = put(drop, outside)
    (drop / "good.jsonl").write_bytes(LINE % 1)
    summary, told = take_all(home, drop)
    assert summary == WatchSummary(files=1, events=1, left=1)
    assert [(took.name, bool(took.left)) for took in told] == [(name, True), ("good.jsonl", False)]
    assert os.path.lexists(drop / name)
    assert (outside / "private.jsonl").read_bytes() == LINE % 666
    assert ids(home) == [1]
    watcher = Watcher(home, drop, settle_seconds=0)
    assert [len(list(watcher.look())) for _ in range(3)] == [1, 0, 0]
    watcher.close()


def test_a_file_that_becomes_a_link_before_it_is_opened(
    home: Home, drop: Path, outside: Path
) -> None:
    (drop / "x.jsonl").write_bytes(LINE % 1)
    (drop / "stocks").mkdir()
    (drop / "stocks" / "private.jsonl").write_bytes(LINE % 2)

    def swapped(root: Path, name: str) -> object:
        (drop / name).unlink(missing_ok=True)
        if name == "x.jsonl":
            link_to_file(drop, outside)
        else:
            (drop / "stocks").rmdir()
            link_to_directory(drop, outside)
        return open_dropped(root, name)

    with mock.patch.object(watcher, "open_dropped", swapped):
        summary, told = take_all(home, drop)
    assert (summary.files, summary.events) == (0, 0)
    assert {took.name for took in told if took.left} >= {"x.jsonl", "stocks/private.jsonl"}
    assert (outside / "private.jsonl").exists()
    assert ids(home) == []


def test_a_directory_that_becomes_a_link_before_the_file_is_moved(
    home: Home, drop: Path, outside: Path
) -> None:
    (drop / "stocks").mkdir()
    (drop / "stocks" / "private.jsonl").write_bytes(LINE % 1)
    original = watcher.put_aside

    def swapped(*arguments: object) -> None:
        (drop / "stocks").rename(drop / "_old")
        link_to_directory(drop, outside)
        original(*arguments)  # type: ignore[arg-type]

    with mock.patch.object(watcher, "put_aside", swapped):
        take_all(home, drop)
    assert (outside / "private.jsonl").read_bytes() == LINE % 666
    assert ids(home) == [1]


def test_where_files_are_put_is_no_link_either(home: Home, drop: Path, outside: Path) -> None:
    (drop / "taken").symlink_to(outside)
    (drop / "x.jsonl").write_bytes(LINE % 1)
    for _ in range(2):
        _, (took,) = take_all(home, drop)
        assert "could not be moved" in took.left
    assert ids(home) == [1]
    assert [path.name for path in outside.iterdir()] == ["private.jsonl"]


def test_a_file_that_is_replaced_while_it_is_taken_is_taken_too(home: Home, drop: Path) -> None:
    (drop / "x.jsonl").write_bytes(LINE % 1)
    original = watcher.put_aside

    def replaced(*arguments: object) -> None:
        (drop / "new").write_bytes(LINE % 2)
        (drop / "new").rename(drop / "x.jsonl")
        with mock.patch.object(watcher, "put_aside", original):
            original(*arguments)  # type: ignore[arg-type]
        patched.stop()

    patched = mock.patch.object(watcher, "put_aside", replaced)
    patched.start()
    take_all(home, drop)
    assert ids(home) == [1, 2]
    assert list_files(drop) == []


ODD_NAMES = [
    b"\xff\xfe.jsonl",
    b"a\\xff.jsonl",
    b"a\xff.jsonl",
    b"new\nline.jsonl",
    b"\x1b[31mred.jsonl",
    "späße.jsonl".encode(),
    b"x" * 249 + b".jsonl",
    b" .jsonl",
    b"-rf.jsonl",
]


def test_names_may_be_any_bytes(home: Home, drop: Path) -> None:
    for number, name in enumerate(ODD_NAMES):
        Path(os.fsdecode(os.fsencode(drop) + b"/" + name)).write_bytes(LINE % number)
    summary, told = take_all(home, drop)
    assert summary == WatchSummary(len(ODD_NAMES), len(ODD_NAMES))
    assert all(took.name.isprintable() and took.name.encode() for took in told)
    assert ids(home) == list(range(len(ODD_NAMES)))
    assert {os.fsencode(name) for name in os.listdir(drop / "taken")} == set(ODD_NAMES)
    # The same again: known, and put aside under names of their own.
    for number, name in enumerate(ODD_NAMES):
        Path(os.fsdecode(os.fsencode(drop) + b"/" + name)).write_bytes(LINE % number)
    assert take_all(home, drop)[0].events == 0
    assert len(os.listdir(drop / "taken")) == 2 * len(ODD_NAMES)
    assert len({ledger_name(os.fsdecode(name)) for name in ODD_NAMES}) == len(ODD_NAMES)


def test_an_odd_name_of_a_bad_file(home: Home, drop: Path) -> None:
    Path(os.fsdecode(os.fsencode(drop) + b"/no\xffbody.csv")).write_bytes(b"id\n1\n")
    summary, _ = take_all(home, drop)
    assert summary.refused == 1
    with Hub(home.path) as hub:
        (entry,) = hub.quarantine()
    assert "no\\xffbody.csv" in entry.primary


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(home: Home, drop: Path) -> None:
    (drop / "x.jsonl").write_bytes(LINE % 1)
    (drop / "x.jsonl").chmod(0)
    (drop / "closed").mkdir(mode=0)
    assert take_all(home, drop)[0] == WatchSummary(left=2)


def test_a_file_that_cannot_be_read_is_told_once_and_taken_later(home: Home, drop: Path) -> None:
    (drop / "x.jsonl").write_bytes(LINE % 1)
    (drop / "y.jsonl").write_bytes(LINE % 2)
    original = os.open

    def denied(path: object, *arguments: object, **options: object) -> int:
        if path == "x.jsonl":
            raise PermissionError(13, "Permission denied")
        return original(path, *arguments, **options)  # type: ignore[arg-type]

    watcher = Watcher(home, drop, settle_seconds=0)
    with mock.patch("os.open", denied):
        told = [took for _ in range(3) for took in watcher.look()]
        assert not watcher.waiting
    assert [(took.name, took.events, took.left[-17:]) for took in told] == [
        ("x.jsonl", 0, "Permission denied"),
        ("y.jsonl", 1, ""),
    ]
    assert [took.events for took in watcher.look()] == [1]
    watcher.close()
    assert ids(home) == [1, 2]


def test_files_that_vanish_before_they_are_read(home: Home, drop: Path) -> None:
    for number in range(3):
        (drop / f"{number}.jsonl").write_bytes(LINE % number)

    def vanish(root: Path, name: str) -> object:
        (drop / "1.jsonl").unlink(missing_ok=True)
        return open_dropped(root, name)

    with mock.patch.object(watcher, "open_dropped", vanish):
        assert take_all(home, drop)[0] == WatchSummary(2, 2)
    assert ids(home) == [0, 2]


def test_a_file_that_vanishes_before_it_is_moved(home: Home, drop: Path) -> None:
    (drop / "x.jsonl").write_bytes(LINE % 1)
    original = watcher.put_aside

    def vanish(*arguments: object) -> None:
        (drop / "x.jsonl").unlink()
        original(*arguments)  # type: ignore[arg-type]

    with mock.patch.object(watcher, "put_aside", vanish):
        assert take_all(home, drop)[0] == WatchSummary(1, 1)


def test_wrong_suffixes_and_empty_files(home: Home, drop: Path) -> None:
    (drop / "stocks.parquet").write_bytes(b"id,symbol\n1,A\n")
    (drop / "stocks.csv").write_bytes(b"PAR1" + bytes(100) + b"PAR1")
    (drop / "stocks-empty.csv").write_bytes(b"")
    (drop / "stocks-empty.parquet").write_bytes(b"")
    (drop / "empty.jsonl").write_bytes(b"")
    (drop / "rows.jsonl").write_bytes(b"id,symbol\n1,A\n")
    (drop / "directory.csv").mkdir()
    summary, _ = take_all(home, drop)
    assert (summary.files, summary.refused) == (6, 4)
    with Hub(home.path) as hub:
        assert len(hub.quarantine()) == 4 + 2
    kinds = frozenset({RecordKind.EVENT})
    assert len(list(home.log.read(0, kinds=kinds))) == 6


def test_a_home_is_not_watched(tmp_path: Path) -> None:
    """Its marker looks like a file of events; without it a home is none."""
    home = Home.create(tmp_path / "shop")
    for directory in (home.path, home.path / "log"):
        with pytest.raises(HomeError, match="belongs to the home"):
            Watcher(home, directory)
    assert list_directory(tmp_path).left == {"shop": HOME}
    assert list_directory(tmp_path).files == []
