"""Files and pipes of events, and how they get into the log.

Events are appended as they come, unread: whether one can be carried out is found out where it is
processed, and the quarantine keeps it if not. Input is read in pieces, each a frame of the log, so
files may be larger than memory and a reader at the end of a pipe is not kept waiting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from penstock.catalog import Relation
from penstock.engine.changes import Op
from penstock.errors import BacklogError, EventError, PenstockError
from penstock.log.disk import os_errors
from penstock.log.frames import MAX_RECORD_BYTES
from penstock.log.interfaces import AnyHome, RecordKind

CHUNK_BYTES = 512 << 10  # 512 KiB: about 5,000 lines of 100 bytes in one frame

MAX_BACKLOG = 10_000_000
"""Records that may wait to be processed before publishers are asked to wait."""

LINE_SUFFIXES = frozenset({".jsonl", ".ndjson", ".json"})
CSV_SUFFIXES = frozenset({".csv"})
PARQUET_SUFFIXES = frozenset({".parquet", ".pq"})

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class InputBatch:
    """Some events, and how far into the input they end. A pipe has no known length."""

    events: list[bytes]
    done_bytes: int
    total_bytes: int | None


class ByteSource(Protocol):
    def read1(self, size: int, /) -> bytes:
        """Some bytes as soon as there are any; none at the end."""


def publish(
    home: AnyHome,
    batches: Iterable[InputBatch],
    progress: Callable[[InputBatch], None] | None = None,
    max_backlog: int = MAX_BACKLOG,
) -> int:
    """Append all events to the log; how many there were. Each batch is on disk before the next
    one is read. An error says how many events were appended before it; BacklogError, that the log
    is so far ahead of its processing that the rest must wait (never, if `max_backlog` is 0)."""
    count = 0
    try:
        for batch in batches:
            check_backlog(home, max_backlog)
            home.log.append([(RecordKind.EVENT, event) for event in batch.events])
            count += len(batch.events)
            if progress is not None:
                progress(batch)
    except PenstockError as error:
        before = f"{count} events before it are in the log"
        error.detail = f"{error.detail}; {before}" if error.detail else before
        raise
    return count


def check_backlog(home: AnyHome, most: int) -> None:
    """BacklogError if more records than `most` wait to be processed."""
    frontier = home.messages.frontier
    waiting = home.log.end - (0 if frontier is None else frontier.end)
    if most and waiting > most:
        raise BacklogError(
            f"{waiting:,} records wait to be processed; no more than {most:,} may",
            detail="nothing was lost, and nothing of this was appended",
            hint="run the pipeline, or publish again when it has caught up",
        )


def read_file(
    path: Path, relation: Relation | None = None, op: Op = Op.INSERT
) -> Iterator[InputBatch]:
    """The events of a file. CSV and Parquet files hold rows of one relation, which must be given;
    all other files hold one event per line."""
    suffix = path.suffix.lower()
    if suffix in LINE_SUFFIXES:
        return read_line_file(path)
    if suffix not in CSV_SUFFIXES | PARQUET_SUFFIXES:
        known = sorted(LINE_SUFFIXES | CSV_SUFFIXES | PARQUET_SUFFIXES)
        raise EventError(
            f"{path.name} has no name that says what it holds", hint=f"known: {', '.join(known)}"
        )
    if relation is None:
        raise EventError(
            f"{path.name} does not say which table its rows belong to", hint="name the table"
        )
    from penstock.log import tabular  # Arrow takes a moment to load, and lines do not need it

    reader = tabular.read_csv if suffix in CSV_SUFFIXES else tabular.read_parquet
    return reader(path, relation, op)


def read_line_file(path: Path) -> Iterator[InputBatch]:
    """One event per line."""
    with os_errors("read the file", path), path.open("rb") as file:
        yield from read_lines(file, path.name, path.stat().st_size)


def read_lines(
    source: ByteSource, name: str, total_bytes: int | None = None
) -> Iterator[InputBatch]:
    """One event per line, blank lines left out. For standard input, pass `sys.stdin.buffer`."""
    done, line_number = 0, 1
    unfinished: list[bytes] = []
    unfinished_bytes = 0
    while chunk := source.read1(CHUNK_BYTES):
        if done == 0:
            chunk = chunk.removeprefix(_BYTE_ORDER_MARK)
        done += len(chunk)
        head, newline, tail = chunk.rpartition(b"\n")
        if newline:
            lines = b"".join((*unfinished, head)).split(b"\n")
            unfinished, unfinished_bytes = [], 0
            _check_lengths(lines, line_number, name)
            line_number += len(lines)
            yield InputBatch(_events(lines), done, total_bytes)
        unfinished.append(tail)
        unfinished_bytes += len(tail)
        if unfinished_bytes > MAX_RECORD_BYTES:
            raise _too_long(line_number, name)
    if unfinished_bytes:
        yield InputBatch(_events([b"".join(unfinished)]), done, total_bytes)


def _events(lines: list[bytes]) -> list[bytes]:
    return [line.rstrip(b"\r") for line in lines if line and not line.isspace()]


def _check_lengths(lines: list[bytes], first_number: int, name: str) -> None:
    if len(lines[0]) > MAX_RECORD_BYTES:  # all others lie within one chunk
        raise _too_long(first_number, name)


def _too_long(line_number: int, name: str) -> EventError:
    return EventError(
        f"line {line_number} of {name} is longer than {MAX_RECORD_BYTES} bytes",
        hint="is this a file with one event per line?",
    )
