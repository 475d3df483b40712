"""JSON lines: one event per line, in any of the forms of `penstock.flow.events`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from penstock.catalog import Relation
from penstock.errors import EventError
from penstock.flow.changes import Op
from penstock.ingest.input_files import InputBatch, InputFile
from penstock.storage import MAX_RECORD_BYTES

CHUNK_BYTES = 512 << 10  # 512 KiB: about 5,000 lines of 100 bytes in one frame

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class ByteSource(Protocol):
    def read1(self, size: int, /) -> bytes:
        """Available bytes as soon as there are any; none at the end."""


class JsonLines:
    name = "jsonl"
    suffixes = frozenset({".jsonl", ".ndjson", ".json"})
    holds_rows = False

    def read(self, source: InputFile, relation: Relation | None, op: Op) -> Iterator[InputBatch]:
        with source.errors():
            yield from read_lines(source.file, source.name, source.size)


FORMAT = JsonLines()


def read_lines(
    source: ByteSource, name: str, total_bytes: int | None = None
) -> Iterator[InputBatch]:
    """One event per line, blank lines skipped. For standard input, pass `sys.stdin.buffer`."""
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
