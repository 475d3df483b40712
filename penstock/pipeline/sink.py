"""The sink: workers stage their output, one commit publishes it to the message log.

A batch gives the same file whenever it is run: messages are ordered by position and bytes,
whichever worker computed them. Publishing is one rename, and repeating it changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.errors import HomeError
from penstock.flow.exchange import StageInput
from penstock.flow.kinds import Kind, Reason, Span, StageRow
from penstock.garbage import without_garbage
from penstock.pipeline.chunks import staged_names
from penstock.pipeline.fault_rows import FaultsFoundError, check_faults
from penstock.pipeline.offsets import is_anybody_new
from penstock.pipeline.staging import STAGED_SUFFIX, merged
from penstock.storage import BatchHeader, Home, QuarantinedEvent, RecordKind, RecordLog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.storage import BatchLog


class MessageSink:
    """Handles each batch in the process that runs the query, as `foreachBatch`.

    A custom data source could do the same, but Spark starts a Python process for each of its
    commits, which takes longer than a small batch.
    """

    def __init__(self, home: Home, term: str) -> None:
        """For the run that holds the home's processing lock in this term."""
        self._home = home
        self._term = term
        self.failure: Exception | None = None
        """Why a batch could not be computed. The error that Spark returns through Java only wraps
        it."""
        self._counted: dict[int, dict[str, int]] = {}
        self._found_faults = False

    def take(self, batch: DataFrame, batch_id: int) -> None:
        """Compute the batch and publish it."""
        try:
            rows = batch.collect()
        except Exception as failure:
            self.failure = failure
            raise
        given = StageInput.of_chunks(rows)
        self._counted[batch_id] = {
            "messages": given.count(Kind.MESSAGE),
            "bad": given.count(Kind.BAD),
            "skipped": given.count(Kind.SKIPPED),
        }
        try:
            self.commit(given)
        except FaultsFoundError:
            self._found_faults = True
            raise

    def has_found_faults(self) -> bool:
        """Whether the query ended because records were set aside, and can be restarted; resets the
        flag."""
        found, self._found_faults = self._found_faults, False
        return found

    def counted(self, batch_id: int) -> dict[str, int]:
        """How many messages, bad and skipped events a batch had; removes the entry."""
        return self._counted.pop(batch_id, {})

    def commit(self, given: StageInput) -> None:
        home = self._home
        with without_garbage(), home.publishing(self._term):
            check_faults(given, home)
            publish(home.log, home.messages, gather(given, home.staging))
            # Not only the files that were reported: killed workers leave unreported ones.
            sweep_staging(home.staging)


def sweep_staging(directory: Path) -> None:
    """Remove what killed runs and workers left. Only for the holder of the processing lock, while
    no task is running."""
    for path in directory.glob(f"*{STAGED_SUFFIX}"):
        path.unlink(missing_ok=True)


@dataclass
class Outcome:
    """The output of a batch, in the order in which it is published."""

    span: Span
    messages: Sequence[bytes] = ()
    bad: list[StageRow] = field(default_factory=list)

    @property
    def header(self) -> BatchHeader:
        return BatchHeader(self.span.start, self.span.end, self.span.active)


def gather(given: StageInput, staging: Path) -> Outcome:
    """The reports of the workers on a batch, and the messages they have staged."""
    if not given.has_span():
        raise HomeError("a batch came without its span, or with several")
    return Outcome(
        given.span,
        merged([staging / name for name in staged_names(given)]),
        given.rows(Kind.BAD),
    )


def publish(log: RecordLog, published: BatchLog, outcome: Outcome) -> None:
    """Add the batch to the message log, unless its records were published before."""
    header = outcome.header
    if not is_published(log, header, published.frontier):
        published.publish(header, outcome.messages, list(quarantined(log, outcome)))


def is_published(log: RecordLog, header: BatchHeader, frontier: BatchHeader | None) -> bool:
    """Whether the records of a batch have been published: by the same batch before a crash, by a
    Hub, or by a run before the checkpoint was lost.

    The published batch counts. A replay gives the same messages; under a newer release they may be
    equivalent but not identical.
    """
    frontier = frontier or BatchHeader(0, 0, 0)
    if header.start > frontier.end:
        return False
    if header.start == header.end == frontier.end:
        return not is_anybody_new(log, frontier.active, header.active)
    if header.start < frontier.end < header.end:
        raise HomeError(
            f"batch {header} was begun, and then another process published up to {frontier.end}",
            detail="subscriptions that were added in between cannot be served by half a batch",
            hint="remove what is in the home's checkpoint directory; the next run rebuilds it "
            "from the log",
        )
    return frontier.end >= header.end


def quarantined(log: RecordLog, outcome: Outcome) -> Iterator[QuarantinedEvent]:
    """The bad events with their bytes, which only the log has."""
    reasons = {row.offset: Reason.read(row.body) for row in outcome.bad}
    if not reasons:
        return
    events = log.frames(min(reasons), max(reasons) + 1, frozenset({RecordKind.EVENT}))
    for first, entries in events:
        for offset, (_, body) in enumerate(entries, first):
            if offset in reasons:
                yield QuarantinedEvent(offset, body, *reasons[offset])
