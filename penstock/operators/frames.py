"""Frames between an evaluator and its worker process: a length, then packed plain data."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.packing import array_header, pack

LENGTH_BYTES = 4
MAX_FRAME_BYTES = 512 << 20
"""A part of 256 rows with a megabyte of bindings each, and the reasons of failures."""

START, ROWS = "start", "rows"
READY, RESULTS, FAILED = "ready", "results", "failed"
EXIT_OUT_OF_MEMORY = 77
"""The exit status of a worker that had not even the memory to say so."""


def frame(message: Sequence[object]) -> bytes:
    return _with_length(pack(list(message)))


def frame_of_rows(packed_rows: Sequence[bytes]) -> bytes:
    """`frame((ROWS, rows))`, of rows that are packed already."""
    rows = array_header(len(packed_rows)) + b"".join(packed_rows)
    return _with_length(array_header(2) + pack(ROWS) + rows)


def frame_length(header: bytes) -> int:
    """ValueError if no frame begins like this."""
    length = int.from_bytes(header)
    if length > MAX_FRAME_BYTES:
        raise ValueError(f"a frame of {length:,} bytes")
    return length


def _with_length(data: bytes) -> bytes:
    return len(data).to_bytes(LENGTH_BYTES) + data
