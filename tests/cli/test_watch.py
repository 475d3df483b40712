"""watch, and run --watch: what they print, and that both take files."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.ingest import IngestResult
from penstock.ingest.watcher import Watcher
from penstock.pipeline import run as pipeline
from penstock.storage import Home
from tests.cli.conftest import Cli, insert, lines


@pytest.fixture
def drop(tmp_path: Path) -> Path:
    directory = tmp_path / "incoming"
    directory.mkdir()
    (directory / "a.jsonl").write_text(lines(insert("stocks", id=1, symbol="GOOG")))
    (directory / "nobody.csv").write_text("id\n1\n")
    for path in directory.iterdir():
        os.utime(path, (1, 1))  # long quiet
    return directory


def test_once(cli: Cli, home: Path, drop: Path) -> None:
    ran = cli("watch", home, drop, "--once")
    assert ran.code == 0
    assert ran.out == "ingested 1 event from 2 files, 1 file refused\n"
    first, second = ran.err.splitlines()
    assert first == "a.jsonl: 1 event"
    assert second.startswith("nobody.csv: 0 events; refused: nobody.csv does not say which table")
    assert cli("watch", home, drop, "--once", "--json").json == {
        "files": 0,
        "events": 0,
        "refused": 0,
        "left": 0,
    }


def test_a_damaged_list_of_files_is_named_and_rebuilt(cli: Cli, home: Path, drop: Path) -> None:
    cli("watch", home, drop, "--once", "--keep")
    end = Home.open(home).log.end
    for path in home.glob("sources.db*"):
        path.unlink()
    (home / "sources.db").write_bytes(b"no database at all" * 100)
    ran = cli("watch", home, drop, "--once", "--keep")
    assert ran.code == 7
    assert "penstock rebuild" in ran.err
    assert cli("rebuild", home).code == 0
    assert cli("watch", home, drop, "--once", "--keep", "--json").json["events"] == 0
    assert Home.open(home).log.end == end


def test_keep_and_op(cli: Cli, home: Path, drop: Path) -> None:
    (drop / "stocks.csv").write_text("id,symbol\n1,YHOO\n")
    cli("watch", home, drop, "--once", "--keep", "--op", "upsert", "--settle", 0)
    assert (drop / "a.jsonl").exists()
    (last,) = [r.body for r in Home.open(home).log.read(0) if b"YHOO" in r.body]
    assert b'"upsert"' in last


def test_ctrl_c_ends_it(cli: Cli, home: Path, drop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pressed when both files are taken, and it waits for more."""
    look = Watcher.look

    def press_when_idle(watcher: Watcher) -> Iterator[IngestResult]:
        took = list(look(watcher))
        if not took:
            os.kill(os.getpid(), signal.SIGINT)
        return iter(took)

    monkeypatch.setattr(Watcher, "look", press_when_idle)
    ran = cli("watch", home, drop)
    assert ran.code == 130
    assert "ingested 1 event" in ran.out


def test_usage(cli: Cli, home: Path, tmp_path: Path) -> None:
    assert cli("watch", home, tmp_path / "nowhere").code == 2
    assert cli("watch", tmp_path / "nowhere", tmp_path).code == 6


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A pipeline that waits until all files are in the log, or it is asked to stop."""
    ends: list[int] = []

    def run(home: Path, *, stop: threading.Event, **options: Any) -> pipeline.RunSummary:
        log = Home.open(home).log
        while log.end < 5 and not stop.wait(0.02):
            pass
        ends.append(log.end)
        return pipeline.RunSummary(0, 0, 0, 0, 0.0)

    monkeypatch.setattr(pipeline, "run", run)
    return ends


@pytest.mark.parametrize("once", [["--once"], []])
def test_run_takes_files_too(
    cli: Cli, home: Path, drop: Path, ended: list[int], once: list[str]
) -> None:
    ran = cli("run", home, "--watch", drop, *once)
    assert ran.code == 0
    assert "a.jsonl: 1 event" in ran.err
    assert ended[0] >= 5


def test_run_stops_when_watching_fails(
    cli: Cli, home: Path, drop: Path, ended: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr("penstock.ingest.watch", fail)
    ran = cli("run", home, "--watch", drop)
    assert ran.code == 1
    assert "the disk is gone" in ran.err
    assert len(ended) == 1
