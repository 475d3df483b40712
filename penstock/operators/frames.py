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
"""The exit status of a worker that had no memory left to report it."""


def frame(message: Sequence[object]) -> bytes:
    return _with_length(pack(list(message)))


def frame_of_rows(packed_rows: Sequence[bytes]) -> bytes:
    """`frame((ROWS, rows))` for rows already packed."""
    rows = array_header(len(packed_rows)) + b"".join(packed_rows)
    return _with_length(array_header(2) + pack(ROWS) + rows)


def frame_length(header: bytes) -> int:
    """ValueError if it is not the header of a frame."""
    length = int.from_bytes(header)
    if length > MAX_FRAME_BYTES:
        raise ValueError(f"a frame of {length:,} bytes")
    return length


def _with_length(data: bytes) -> bytes:
    return len(data).to_bytes(LENGTH_BYTES) + data
