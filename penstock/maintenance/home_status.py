"""Status of a home: from its files, and from the metrics that the pipeline writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from penstock.maintenance.file_sizes import files_below, total_bytes
from penstock.pipeline.metrics import BatchMetrics, MetricsFiles
from penstock.registry import Registry, rows_left_out
from penstock.storage import Home

RECENT_BATCHES = 100
"""Number of batches over which rates and times are averaged."""


@dataclass(frozen=True, slots=True)
class ProcessingRates:
    """Throughput of recent batches, per second of processing."""

    batches: int
    records_per_s: float
    messages_per_s: float
    batch_seconds: float
    """Average time of a batch."""
    phases: dict[str, float]
    """The same by phase."""


@dataclass(frozen=True, slots=True)
class Status:
    processed_by: str | None
    log_end: int
    offset: int
    subscriptions: int
    waiting: int
    """Subscriptions that no batch has made active yet."""
    suspended: int
    """Subscriptions that get no messages, because processing them failed."""
    set_aside: int
    """Records that are not processed, because processing them failed."""
    lacking_rows: int
    """Subscriptions that lack some rows on which operators failed when they began."""
    default_lease_seconds: float | None
    log_bytes: int
    message_bytes: int
    quarantine_bytes: int
    checkpoint_bytes: int
    last: BatchMetrics | None
    """The last batch of a pipeline."""
    rates: ProcessingRates | None

    @property
    def lag(self) -> int:
        return self.log_end - self.offset


def status_of(home: Home) -> Status:
    frontier = home.messages.frontier
    active = 0 if frontier is None else frontier.active
    with Registry(home) as registry:
        known, waiting = registry.count(), registry.count(active)
        suspended, set_aside = len(registry.suspended()), registry.count_set_aside()
        lacking_rows = len(rows_left_out(home.path, registry))
    recent = MetricsFiles(home.metrics).recent(RECENT_BATCHES)
    return Status(
        processed_by=home.processed_by(),
        log_end=home.log.end,
        offset=0 if frontier is None else frontier.end,
        subscriptions=known,
        waiting=waiting,
        suspended=suspended,
        set_aside=set_aside,
        lacking_rows=lacking_rows,
        default_lease_seconds=home.default_lease_seconds,
        log_bytes=total_bytes(files_below(home.log.directory)),
        message_bytes=total_bytes(files_below(home.messages.directory)),
        quarantine_bytes=total_bytes(files_below(home.quarantine.directory)),
        checkpoint_bytes=total_bytes(files_below(home.checkpoint)),
        last=recent[-1] if recent else None,
        rates=rates_of(recent),
    )


def rates_of(recent: Sequence[BatchMetrics]) -> ProcessingRates | None:
    """None without batches. Idle time does not count."""
    if not recent:
        return None
    seconds = max(sum(one.seconds for one in recent), 0.001)
    phases: dict[str, float] = {}
    for one in recent:
        for phase, took in one.phases.items():
            phases[phase] = phases.get(phase, 0.0) + took / len(recent)
    return ProcessingRates(
        batches=len(recent),
        records_per_s=sum(one.records for one in recent) / seconds,
        messages_per_s=sum(one.messages for one in recent) / seconds,
        batch_seconds=seconds / len(recent),
        phases=phases,
    )


def seconds_since(batch: BatchMetrics, now: datetime) -> float:
    """How long ago a batch ended."""
    began = datetime.fromisoformat(batch.at.replace("Z", "+00:00"))
    return max(0.0, (now - began).total_seconds() - batch.seconds)
