"""run: what the command does around the pipeline, and once with Spark itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.interruptible import run_interruptible
from penstock.errors import PipelineError
from penstock.pipeline import run as pipeline
from tests.cli.conftest import Cli, insert, lines


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """A pipeline that says it has processed two batches, and remembers what it was asked for."""
    asked: list[dict[str, Any]] = []

    def run(home: Path, **options: Any) -> pipeline.RunSummary:
        asked.append({"home": home, **options})
        for batch in (0, 1):
            options["on_progress"](pipeline.Progress(batch, 5 * (batch + 1), 10, 3, batch, 0.25))
        return pipeline.RunSummary(2, 10, 6, 1, 1.234)

    monkeypatch.setattr(pipeline, "run", run)
    return asked


def test_summary(cli: Cli, home: Path, calls: list[dict[str, Any]]) -> None:
    ran = cli("run", home, "--once")
    assert ran.code == 0
    assert ran.out.splitlines()[-1].split() == ["2", "10", "6", "1", "1.2"]
    assert ran.err.splitlines() == [
        "batch 0: 5 of 10 records processed, 3 messages, 0.2 s",
        "batch 1: 10 of 10 records processed, 3 messages, 1 event into quarantine, 0.2 s",
    ]
    assert cli("run", home, "--once", "--json").json == {
        "batches": 2,
        "offset": 10,
        "messages": 6,
        "quarantined": 1,
        "seconds": 1.2,
        "skipped": 0,
    }


def test_options(cli: Cli, home: Path, calls: list[dict[str, Any]]) -> None:
    cli("run", home)
    cli(
        "run", home, "--once", "--master", "local[1]", "--conf", "a.b=c=d", "--conf", "e=",
        "--batch-rows", 7, "--ui",
    )  # fmt: skip
    names = ("once", "master", "conf", "batch_rows", "ui")
    assert [[asked[name] for name in names] for asked in calls] == [
        [False, "local[*]", {}, pipeline.BATCH_ROWS, False],
        [True, "local[1]", {"a.b": "c=d", "e": ""}, 7, True],
    ]


def test_usage(cli: Cli, home: Path, calls: list[dict[str, Any]]) -> None:
    assert cli("run", home, "--conf", "nonsense").code == 2
    assert cli("run", home, "--batch-rows", 0).code == 2
    assert not calls


def test_failure(cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: object, **__: object) -> None:
        raise PipelineError("Spark cannot run here.", hint="Install Java.")

    monkeypatch.setattr(pipeline, "run", run)
    ran = cli("run", home)
    assert ran.code == 9
    assert "Install Java." in ran.err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_stops_in_good_order(
    cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch, number: int, code: int
) -> None:
    def run(*_: object, stop: threading.Event, **__: object) -> pipeline.RunSummary:
        os.kill(os.getpid(), number)
        assert stop.wait(10)
        return pipeline.RunSummary(1, 2, 3, 0, 0.5)

    monkeypatch.setattr(pipeline, "run", run)
    ran = cli("run", home)
    assert ran.code == code
    assert ran.out.splitlines()[-1].split() == ["1", "2", "3", "0", "0.5"]


def test_second_interrupt_does_not_wait() -> None:
    def stubborn(stop: threading.Event) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        stop.wait()
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)

    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        run_interruptible(stubborn)
    assert signal.getsignal(signal.SIGINT) is handler


@pytest.mark.spark
@pytest.mark.slow
def test_with_spark(cli: Cli, home: Path) -> None:
    """As people call it: in a process of its own, which is told to stop by Ctrl-C."""
    cli("subscribe", home, "SELECT id FROM stocks WHERE per < 20")
    cli("publish", home, "-", input=lines(insert("stocks", id=1, symbol="GOOG", per=12.5)))
    command = [sys.executable, "-c", "from penstock.cli.main import main; main()", "run", str(home)]
    process = subprocess.Popen(
        [*command, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    deadline = time.monotonic() + 240
    while not cli("content", home, 2, "--json").json["complete"]:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.5)
    # To the whole group, as a terminal does it: Java must not end before we have told it to.
    os.killpg(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 130
    assert b'"messages": 1' in out
    assert cli("content", home, 2, "--json").json["rows"] == [{"id": 1}]
