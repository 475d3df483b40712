"""The sink: workers stage what they have, one commit publishes it to the message log.

A batch gives the same file whenever it is run: messages are put in order by position and bytes,
whichever worker computed them. Publishing is one rename, and doing it again changes nothing.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from penstock.errors import HomeError
from penstock.log import BatchHeader, Home, QuarantinedEvent, RecordKind, RecordLog
from penstock.pipeline.rows import (
    ARROW_SCHEMA,
    CHUNK_SCHEMA,
    Inbox,
    Reason,
    RowKind,
    Span,
    StageRow,
)
from penstock.pipeline.workers import settle, without_garbage

if TYPE_CHECKING:
    from penstock.log import BatchLog

SINK_NAME = "penstock_messages"
STAGED_SUFFIX = ".arrow"


@dataclass(frozen=True)
class Staged(WriterCommitMessage):
    """What one task has for the batch."""

    path: str


class MessageSink(DataSource):
    """Options: `path` (of the home), `term` (of the run that holds its processing lock)."""

    @classmethod
    def name(cls) -> str:
        return SINK_NAME

    def schema(self) -> str:
        return CHUNK_SCHEMA

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        return MessageWriter(self.options["path"], self.options["term"])


class MessageWriter(DataSourceStreamArrowWriter):
    def __init__(self, path: str, term: str) -> None:
        self._path = path
        self._term = term

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """In a worker: put the rows into a file that nobody else writes."""
        path = Home.open(self._path).staging / f"{uuid.uuid4().hex}{STAGED_SUFFIX}"
        settle("write")
        stage(path, iterator)
        return Staged(str(path))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        settle("commit")
        home = Home.open(self._path)
        paths = [Path(one.path) for one in messages if isinstance(one, Staged)]
        with without_garbage(), home.publishing(self._term):
            publish(home.log, home.messages, gather(paths))
            # Not only what was told: workers that were killed leave files that nobody knows of.
            sweep_staging(home.staging)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        _remove([Path(one.path) for one in messages if isinstance(one, Staged)])


def stage(path: Path, batches: Iterator[pa.RecordBatch]) -> None:
    # Not synced: until the batch is published, a crash only means that it is computed again.
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, ARROW_SCHEMA) as writer:
        for batch in batches:
            writer.write_batch(batch.cast(ARROW_SCHEMA))


def sweep_staging(directory: Path) -> None:
    """Remove what killed runs and workers left; only for the holder of the processing lock, and
    when no task is under way."""
    _remove(list(directory.glob(f"*{STAGED_SUFFIX}")))


def _remove(paths: Sequence[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


@dataclass
class Outcome:
    """All that a batch gave, in the order in which it is published."""

    span: Span
    messages: list[bytes] = field(default_factory=list)
    bad: list[StageRow] = field(default_factory=list)

    @property
    def header(self) -> BatchHeader:
        return BatchHeader(self.span.start, self.span.end, self.span.active)


def gather(paths: Sequence[Path]) -> Outcome:
    """Read what the tasks of a batch have staged."""
    inbox = Inbox.of_batches(_staged(paths))
    headers = inbox.rows(RowKind.HEADER)
    if len(headers) != 1:
        raise HomeError(f"a batch came with {len(headers)} headers instead of one")
    return Outcome(
        Span.from_bytes(headers[0].body),
        inbox.messages(),
        inbox.rows(RowKind.BAD),
    )


def _staged(paths: Sequence[Path]) -> Iterator[pa.RecordBatch]:
    for path in paths:
        with pa.memory_map(os.fspath(path)) as file, pa.ipc.open_file(file) as reader:
            for i in range(reader.num_record_batches):
                yield reader.get_batch(i)


def publish(log: RecordLog, published: BatchLog, outcome: Outcome) -> None:
    """Add the batch to the message log, unless its records were published before."""
    header = outcome.header
    if not is_published(log, header, published.frontier):
        published.publish(header, outcome.messages, list(quarantined(log, outcome)))


def is_published(log: RecordLog, header: BatchHeader, frontier: BatchHeader | None) -> bool:
    """Whether what a batch covers has been published: by itself before a crash, by a Hub, or by a
    run before the checkpoint was lost.

    What is published counts. A batch that is replayed gives the same messages; if a newer release
    replays it, they may say the same in other words.
    """
    frontier = frontier or BatchHeader(0, 0, 0)
    if header.start > frontier.end:
        return False
    if header.start == header.end == frontier.end:
        return not _anybody_new(log, frontier.active, header.active)
    if header.start < frontier.end < header.end:
        raise HomeError(
            f"batch {header} was begun, and then another process published up to {frontier.end}",
            detail="subscriptions that were added in between cannot be served by half a batch",
            hint="remove what is in the home's checkpoint directory; the next run rebuilds it "
            "from the log",
        )
    return frontier.end >= header.end


def _anybody_new(log: RecordLog, told: int, active: int) -> bool:
    """Whether a batch without records makes points active that were not before."""
    if active <= told:
        return False
    arriving = frozenset({RecordKind.SUBSCRIBE, RecordKind.REPLAN})
    return next(log.read(told, active, arriving), None) is not None


def quarantined(log: RecordLog, outcome: Outcome) -> Iterator[QuarantinedEvent]:
    """The bad events with their bytes, which only the log has."""
    reasons = {row.offset: Reason.from_bytes(row.body) for row in outcome.bad}
    if not reasons:
        return
    events = log.frames(min(reasons), max(reasons) + 1, frozenset({RecordKind.EVENT}))
    for first, entries in events:
        for offset, (_, body) in enumerate(entries, first):
            if offset in reasons:
                yield QuarantinedEvent(offset, body, *reasons[offset])
