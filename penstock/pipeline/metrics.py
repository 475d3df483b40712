"""Metrics of the pipeline: one line of JSON per batch, and a text for Prometheus.

Lines carry totals over all runs, so the last line has them all, and a new run continues from it.
There are at most two files: a full one replaces the previous old one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from penstock.storage import make_directory, open_appending, open_new, os_errors

MAX_FILE_BYTES = 4 << 20  # 4 MiB: about 5,000 batches, hours of a busy pipeline
LINES_NAME = "batches.jsonl"
OLD_LINES_NAME = "batches.1.jsonl"
PROMETHEUS_NAME = "penstock.prom"

_ALL_PHASES = "triggerExecution"


class Totals(msgspec.Struct, frozen=True):
    """Counts over all runs on a home."""

    batches: int = 0
    records: int = 0
    messages: int = 0
    message_bytes: int = 0
    bad: int = 0
    seconds: float = 0.0
    skipped: int = 0

    def __add__(self, other: Totals) -> Totals:
        return Totals(
            self.batches + other.batches,
            self.records + other.records,
            self.messages + other.messages,
            self.message_bytes + other.message_bytes,
            self.bad + other.bad,
            round(self.seconds + other.seconds, 3),
            self.skipped + other.skipped,
        )


class BatchMetrics(msgspec.Struct, frozen=True):
    """One batch that is done."""

    at: str
    """When it began, in UTC."""
    batch: int
    start: int
    end: int
    log_end: int
    seconds: float
    phases: dict[str, float]
    """Seconds by phase of Spark: planning, writing ahead, computing, committing."""
    messages: int
    message_bytes: int
    bad: int
    state_rows: int
    state_bytes: int
    totals: Totals
    skipped: int = 0
    """Events that ask for no change."""

    def __post_init__(self) -> None:
        # ValueError for a damaged line, which is then skipped.
        if datetime.fromisoformat(self.at).tzinfo is None:
            raise ValueError(f"{self.at} is of no time zone")

    @property
    def records(self) -> int:
        return self.end - self.start

    @property
    def lag(self) -> int:
        """Records of the log that were not processed when the batch was done."""
        return self.log_end - self.end


def batch_metrics(
    progress: Mapping[str, Any], *, log_end: int, message_bytes: int, before: Totals
) -> BatchMetrics:
    """The metrics of a batch from the reports of Spark and the sink."""
    (source,) = progress["sources"]
    start = (source["startOffset"] or {"position": 0})["position"]
    end = source["endOffset"]["position"]
    counted = progress["counted"]
    messages, bad, skipped = (counted.get(name, 0) for name in ("messages", "bad", "skipped"))
    seconds = progress["batchDuration"] / 1000
    durations = progress.get("durationMs", {})
    operators = progress.get("stateOperators", [])
    return BatchMetrics(
        at=progress["timestamp"],
        batch=progress["batchId"],
        start=start,
        end=end,
        log_end=max(log_end, end),
        seconds=seconds,
        phases={name: ms / 1000 for name, ms in durations.items() if name != _ALL_PHASES},
        messages=messages,
        message_bytes=message_bytes,
        bad=bad,
        state_rows=sum(operator["numRowsTotal"] for operator in operators),
        state_bytes=sum(operator["memoryUsedBytes"] for operator in operators),
        totals=before + Totals(1, end - start, messages, message_bytes, bad, seconds, skipped),
        skipped=skipped,
    )


_GAUGES = (
    ("lag_records", "Records of the log that are not processed yet."),
    ("log_end_offset", "The first offset of the log not yet written."),
    ("processed_offset", "The first offset not yet processed."),
    ("batch_seconds", "How long the last batch took."),
    ("state_rows", "Entries of Spark's state store."),
    ("state_bytes", "Memory of Spark's state store."),
)
_COUNTERS = (
    ("batches", "Batches done."),
    ("records", "Records of the log processed."),
    ("messages", "Messages put into the message log."),
    ("message_bytes", "Bytes of message files."),
    ("quarantined", "Events that could not be applied."),
    ("busy_seconds", "Time spent on batches."),
    ("skipped", "Events that ask for no change, such as tombstones."),
)


def prometheus_text(last: BatchMetrics) -> str:
    """The state after a batch in the text format of Prometheus, version 0.0.4."""
    gauges = (last.lag, last.log_end, last.end, last.seconds, last.state_rows, last.state_bytes)
    totals = msgspec.structs.astuple(last.totals)
    lines: list[str] = []
    for (name, meaning), value in zip(_GAUGES, gauges, strict=True):
        lines += _metric(f"penstock_{name}", meaning, "gauge", {"": value})
    phases = {f'{{phase="{phase}"}}': took for phase, took in sorted(last.phases.items())}
    lines += _metric("penstock_phase_seconds", "The last batch by phase.", "gauge", phases)
    for (name, meaning), value in zip(_COUNTERS, totals, strict=True):
        lines += _metric(f"penstock_{name}_total", meaning, "counter", {"": value})
    return "\n".join(lines) + "\n"


def _metric(name: str, meaning: str, kind: str, values: Mapping[str, float]) -> list[str]:
    samples = [f"{name}{labels} {value}" for labels, value in values.items()]
    return [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}", *samples]


class MetricsFiles:
    """The metrics files of a home: one writer, any number of readers. Nothing is synced: metrics
    lost in a crash of the machine do not matter."""

    def __init__(self, directory: Path, max_bytes: int = MAX_FILE_BYTES) -> None:
        self.directory = directory
        self._max_bytes = max_bytes

    def write(self, last: BatchMetrics) -> None:
        make_directory(self.directory)
        lines = self.directory / LINES_NAME
        if lines.exists() and lines.stat().st_size >= self._max_bytes:
            lines.replace(self.directory / OLD_LINES_NAME)
        with open_appending(lines) as file:
            file.write(msgspec.json.encode(last) + b"\n")
        aside = self.directory / f"{PROMETHEUS_NAME}.tmp"
        with open_new(aside) as file:
            file.write(prometheus_text(last).encode())
        aside.replace(self.directory / PROMETHEUS_NAME)

    def recent(self, count: int) -> list[BatchMetrics]:
        """The last batches, oldest first. Truncated lines are skipped."""
        found: list[BatchMetrics] = []
        for line in self._backwards():
            if len(found) == count:
                break
            try:
                found.append(msgspec.json.decode(line, type=BatchMetrics))
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue
        return found[::-1]

    def _backwards(self) -> Iterator[bytes]:
        for name in (LINES_NAME, OLD_LINES_NAME):
            path = self.directory / name
            with os_errors("read metrics", path):
                if not path.exists():
                    continue
                content = path.read_bytes()
            yield from reversed(content.splitlines())
