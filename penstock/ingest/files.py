"""Files and pipes of events, and how they get into the log.

Events are appended as they come, unread: whether one can be carried out is found out where it is
processed, and the quarantine keeps it if not. Input is read in pieces, each a frame of the log, so
files may be larger than memory and a reader at the end of a pipe is not kept waiting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Protocol

from penstock.catalog import Relation
from penstock.errors import BacklogError, EventError
from penstock.flow.changes import Op
from penstock.ingest.inputs import InputBatch, InputFile, open_input, shown_name
from penstock.storage.frames import MAX_RECORD_BYTES
from penstock.storage.interfaces import AnyHome, RecordKind

__all__ = [
    "MAX_BACKLOG",
    "Format",
    "InputBatch",
    "Published",
    "append_events",
    "check_backlog",
    "format_of",
    "leave_out",
    "publish",
    "read_file",
    "read_lines",
    "read_open_file",
]

CHUNK_BYTES = 512 << 10  # 512 KiB: about 5,000 lines of 100 bytes in one frame

MAX_BACKLOG = 10_000_000
"""Records that may wait to be processed before publishers are asked to wait."""

LINE_SUFFIXES = frozenset({".jsonl", ".ndjson", ".json"})
CSV_SUFFIXES = frozenset({".csv"})
PARQUET_SUFFIXES = frozenset({".parquet", ".pq"})


class Format(StrEnum):
    """How events are written in a file."""

    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"


_FORMATS = (
    (LINE_SUFFIXES, Format.JSONL),
    (CSV_SUFFIXES, Format.CSV),
    (PARQUET_SUFFIXES, Format.PARQUET),
)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class ByteSource(Protocol):
    def read1(self, size: int, /) -> bytes:
        """Some bytes as soon as there are any; none at the end."""


@dataclass(slots=True)
class Published:
    """How much of an input is in the log by now. Others may have appended in between."""

    events: int = 0
    first: int = 0
    """The offset of the first of them."""
    end: int = 0
    """The offset behind the last of them."""

    def add(self, offset: int, events: int) -> None:
        self.first = self.first if self.events else offset
        self.events += events
        self.end = offset + events


def publish(
    home: AnyHome,
    batches: Iterable[InputBatch],
    published: Published | None = None,
    *,
    append: Callable[[list[bytes]], int] | None = None,
    progress: Callable[[InputBatch], None] | None = None,
    max_backlog: int = MAX_BACKLOG,
) -> Published:
    """Append all events to the log; `published` says how many there are, after an error too.

    Each batch is on disk before the next one is read. BacklogError says that the log is so far
    ahead of its processing that the rest must wait (never, if `max_backlog` is 0). Who has more to
    say than the events does the appending himself; `append` returns the offset of the first event.
    """
    published = Published() if published is None else published
    append = append or partial(append_events, home)
    for batch in batches:
        if batch.events:
            check_backlog(home, max_backlog)
            published.add(append(batch.events), len(batch.events))
        if progress is not None:
            progress(batch)
    return published


def append_events(home: AnyHome, events: list[bytes]) -> int:
    """Append events as one frame; the offset of the first."""
    return home.log.append([(RecordKind.EVENT, event) for event in events])


def leave_out(batches: Iterable[InputBatch], count: int, name: str) -> Iterator[InputBatch]:
    """The batches without their first events, of which there must be so many."""
    left = count
    for batch in batches:
        gone = min(left, len(batch.events))
        left -= gone
        yield replace(batch, events=batch.events[gone:], numbers=batch.numbers[gone:])
    if left:
        raise EventError(f"{name} has no {count} events to leave out, but {count - left}")


def check_backlog(home: AnyHome, most: int) -> None:
    """BacklogError if more records than `most` wait to be processed."""
    frontier = home.messages.frontier
    waiting = home.log.end - (0 if frontier is None else frontier.end)
    if most and waiting > most:
        raise BacklogError(
            f"{waiting:,} records wait to be processed; no more than {most:,} may",
            detail="nothing was lost",
            hint="run the pipeline, or publish again when it has caught up",
        )


def read_file(
    path: Path,
    relation: Relation | None = None,
    op: Op = Op.INSERT,
    format_: Format | None = None,
) -> Iterator[InputBatch]:
    """The events of a file. CSV and Parquet files hold rows of one relation, which must be given;
    all other files hold one event per line. Which it is, the end of its name says, unless it is
    given."""
    format_ = format_ or format_of(path)
    if format_ is Format.JSONL:
        return _opened(path, read_line_file)
    if relation is None:
        raise nobodys(path)
    return _opened(path, lambda source: read_open_file(source, relation, op, format_))


def read_open_file(
    source: InputFile,
    relation: Relation | None = None,
    op: Op = Op.INSERT,
    format_: Format | None = None,
) -> Iterator[InputBatch]:
    """The same of a file that is open."""
    format_ = format_ or format_of(source.path)
    if format_ is Format.JSONL:
        return read_line_file(source)
    if relation is None:
        raise nobodys(source.path)
    return _row_reader(format_)(source, relation, op)


def nobodys(path: Path) -> EventError:
    name = shown_name(path.name)
    return EventError(f"{name} does not say which table its rows belong to", hint="name the table")


def _opened(path: Path, read: Callable[[InputFile], Iterator[InputBatch]]) -> Iterator[InputBatch]:
    with open_input(path) as source:
        yield from read(source)


def format_of(path: Path) -> Format:
    """What the end of a file's name says that it holds."""
    suffix = path.suffix.lower()
    for suffixes, format_ in _FORMATS:
        if suffix in suffixes:
            return format_
    known = sorted(LINE_SUFFIXES | CSV_SUFFIXES | PARQUET_SUFFIXES)
    raise EventError(
        f"{shown_name(path.name)} has no name that says what it holds",
        hint=f"known: {', '.join(known)}",
    )


def _row_reader(format_: Format) -> Callable[[InputFile, Relation, Op], Iterator[InputBatch]]:
    # Arrow takes a moment to load, and lines do not need it.
    if format_ is Format.CSV:
        from penstock.ingest.csv_files import read_csv

        return read_csv
    from penstock.ingest.parquet_files import read_parquet

    return read_parquet


def read_line_file(source: InputFile) -> Iterator[InputBatch]:
    """One event per line."""
    with source.errors():
        yield from read_lines(source.file, source.name, source.size)


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
            yield _batch(lines, line_number, done, total_bytes)
            line_number += len(lines)
        unfinished.append(tail)
        unfinished_bytes += len(tail)
        if unfinished_bytes > MAX_RECORD_BYTES:
            raise _too_long(line_number, name)
    if unfinished_bytes:
        yield _batch([b"".join(unfinished)], line_number, done, total_bytes)


def _batch(lines: list[bytes], first: int, done: int, total: int | None) -> InputBatch:
    events = [line.rstrip(b"\r") for line in lines if line and not line.isspace()]
    numbers: Sequence[int] = range(first, first + len(lines))
    if len(events) < len(lines):
        numbers = [n for n, line in enumerate(lines, first) if line and not line.isspace()]
    return InputBatch(events, done, total, numbers)


def _check_lengths(lines: list[bytes], first_number: int, name: str) -> None:
    if len(lines[0]) > MAX_RECORD_BYTES:  # all others lie within one chunk
        raise _too_long(first_number, name)


def _too_long(line_number: int, name: str) -> EventError:
    return EventError(
        f"line {line_number} of {name} is longer than {MAX_RECORD_BYTES} bytes",
        hint="is this a file with one event per line?",
    )
