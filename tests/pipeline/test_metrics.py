"""Metrics of batches: lines, totals over runs, the text for Prometheus; a run writes them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from penstock.pipeline.metrics import (
    LINES_NAME,
    OLD_LINES_NAME,
    PROMETHEUS_NAME,
    BatchMetrics,
    MetricsFiles,
    Totals,
    batch_metrics,
    prometheus_text,
)
from penstock.registry import Registry
from penstock.storage import Home


def progress(batch: int, start: int | None, end: int, messages: int | None = 3) -> dict[str, Any]:
    """As Spark reports it, with what is of use."""
    return {
        "batchId": batch,
        "timestamp": "2026-11-16T01:09:39.802Z",
        "batchDuration": 1500,
        "durationMs": {"addBatch": 1000, "walCommit": 50, "triggerExecution": 1500},
        "stateOperators": [
            {"numRowsTotal": 5, "memoryUsedBytes": 100},
            {"numRowsTotal": 2, "memoryUsedBytes": 11},
        ],
        "sources": [
            {
                "startOffset": None if start is None else {"position": start},
                "endOffset": {"position": end},
            }
        ],
        "counted": {} if messages is None else {"messages": messages, "bad": 1},
    }


def some(batch: int, before: Totals | None = None) -> BatchMetrics:
    told = progress(batch, batch * 10, batch * 10 + 10)
    return batch_metrics(told, log_end=40, message_bytes=70, before=before or Totals())


def test_what_spark_says_as_metrics() -> None:
    found = some(2, Totals(1, 10, 1, 30, 0, 0.5))
    assert (found.start, found.end, found.records, found.lag) == (20, 30, 10, 10)
    assert found.phases == {"addBatch": 1.0, "walCommit": 0.05}
    assert (found.state_rows, found.state_bytes) == (7, 111)
    assert found.totals == Totals(2, 20, 4, 100, 1, 2.0)


def test_the_first_batch_and_one_that_counted_nothing() -> None:
    told = progress(0, None, 4, messages=None)
    found = batch_metrics(told, log_end=2, message_bytes=0, before=Totals())
    assert (found.start, found.messages, found.bad, found.lag) == (0, 0, 0, 0)


def test_prometheus_text() -> None:
    lines = prometheus_text(some(1)).splitlines()
    sample = re.compile(r'[a-z_]+(\{phase="\w+"\})? -?[0-9.e+-]+')
    assert all(line.startswith("# ") or sample.fullmatch(line) for line in lines)
    assert "penstock_lag_records 20" in lines
    assert 'penstock_phase_seconds{phase="addBatch"} 1.0' in lines
    assert "# TYPE penstock_messages_total counter" in lines
    assert "penstock_busy_seconds_total 1.5" in lines
    names = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(names) == len(set(names))


def test_files_are_bounded_and_read_from_the_end(tmp_path: Path) -> None:
    files = MetricsFiles(tmp_path / "metrics", max_bytes=2000)
    assert files.recent(5) == []
    written = [some(i) for i in range(30)]
    for one in written:
        files.write(one)
    assert files.recent(3) == written[-3:]
    kept = files.recent(1000)
    assert kept == written[-len(kept) :]
    assert 4 < len(kept) < 30
    sizes = {path.name: path.stat().st_size for path in (tmp_path / "metrics").iterdir()}
    assert sizes.keys() == {LINES_NAME, OLD_LINES_NAME, PROMETHEUS_NAME}
    assert max(sizes.values()) < 4000


def test_a_line_that_was_cut_short(tmp_path: Path) -> None:
    files = MetricsFiles(tmp_path)
    files.write(some(0))
    with (tmp_path / LINES_NAME).open("ab") as file:
        file.write(b'{"at": "2026\n\xff\xfe\n')
    files.write(some(1))
    assert [one.batch for one in files.recent(10)] == [0, 1]


@pytest.mark.spark
@pytest.mark.slow
def test_a_run_writes_metrics(tmp_path: Path) -> None:
    from penstock.maintenance.findings import Severity
    from penstock.maintenance.home_status import status_of
    from penstock.maintenance.verification import verify
    from penstock.pipeline.run import run
    from tests.maintenance.test_verify import silent

    home = Home.create(tmp_path / "home")
    with Registry(home) as registry:
        registry.define("CREATE TABLE t (id BIGINT PRIMARY KEY)")
        registry.subscribe("SELECT * FROM t")
        run(home.path, once=True)
        registry.define("CREATE TABLE u (id BIGINT PRIMARY KEY)")
    run(home.path, once=True)
    lines = MetricsFiles(home.metrics).recent(100)
    assert lines[0].start == 0
    assert lines[-1].end == home.log.end
    assert [one.totals.batches for one in lines] == list(range(1, len(lines) + 1))
    assert lines[-1].totals.records == home.log.end
    assert f"penstock_processed_offset {home.log.end}\n" in (
        home.metrics / PROMETHEUS_NAME
    ).read_text(encoding="utf-8")
    status = status_of(home)
    assert (status.lag, status.subscriptions, status.waiting) == (0, 1, 0)
    # Spark's checkpoint as it really is: whole, or named.
    assert verify(home, silent).findings == []
    (changes, *_) = sorted(home.checkpoint.glob("state/0/0/*.changelog"))
    changes.write_bytes(changes.read_bytes()[:-1])
    (finding, *_) = verify(home, silent).findings
    assert (finding.severity, finding.where) == (Severity.DAMAGE, str(changes))
