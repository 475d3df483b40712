"""The end of a log for whoever holds its append lock, on disk and in memory alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from penstock.errors import HomeError
from penstock.storage.interfaces import Entry


class LogTail:
    """The end of a log while nobody else can append to it."""

    def __init__(self, write: Callable[[Sequence[Entry]], int], end: int) -> None:
        """`write` appends a frame and returns the offset of its first record."""
        self._write: Callable[[Sequence[Entry]], int] | None = write
        self._end = end

    @property
    def end(self) -> int:
        return self._end

    def append(self, entries: Sequence[Entry]) -> int:
        if self._write is None:
            raise HomeError("append after the log's append lock was given back")
        if not entries:
            return self._end
        first = self._write(entries)
        self._end = first + len(entries)
        return first

    def close(self) -> None:
        self._write = None


@contextmanager
def held_tail(write: Callable[[Sequence[Entry]], int], end: int) -> Iterator[LogTail]:
    """A tail that appends nothing any more when the lock is given back."""
    tail = LogTail(write, end)
    try:
        yield tail
    finally:
        tail.close()
