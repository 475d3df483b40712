"""The cache of a bucket: a memory-mapped copy on the machine of its workers.

Spark hands the buckets of a batch to any worker process, so what a worker keeps in its own memory
is of little use in the next batch. A mirror is a file that all workers of a machine map (LMDB):
reading an entry takes a microsecond. It carries the stamp of the state that it copies; a worker
that finds another stamp in Spark's store refills it. So nothing depends on it: it is never synced
to disk, and is deleted with the run.
"""

from __future__ import annotations

import os
import tempfile
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path

import lmdb

from penstock.errors import PipelineError
from penstock.pipeline.state.ledger import Entry

MAP_BYTES = 16 << 30  # address space, not memory; a bucket that needs more is refused by name

FEW_ENTRIES, SOME_ENTRIES, MANY_ENTRIES = 32, 256, 1 << 15
"""Entries per read: the first time, at most within a group, and at most in a scan."""
STRETCH_BYTES = 4 << 20  # large entries are read in smaller numbers

_STAMP = b"\x00stamp"
_opened: dict[Path, lmdb.Environment] = {}


class Mirror:
    """The copy of one bucket."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def batch(self) -> Iterator[MirrorBatch]:
        """Changes within the block are applied atomically at its end, or not at all."""
        try:
            environment = _environment(self._path)
            with environment.begin(write=True) as transaction:
                yield MirrorBatch(transaction, environment.open_db(txn=transaction))
        except lmdb.MapFullError as error:
            raise PipelineError(
                f"a bucket of the state has more than {MAP_BYTES >> 30} GiB",
                detail=str(self._path),
            ) from error
        except lmdb.Error as error:
            raise PipelineError(
                "the copy of the state on this machine cannot be used",
                detail=f"{self._path}: {error}",
                hint="is there space left on the disk of Spark's local directory?",
            ) from error


class MirrorBatch:
    """An ordered map from bytes to bytes."""

    def __init__(self, transaction: lmdb.Transaction, database: lmdb._Database) -> None:
        self._transaction = transaction
        self._database = database

    def get(self, key: bytes) -> bytes | None:
        return self._transaction.get(key)  # type: ignore[return-value]  # not without `buffers`

    def get_many(self, keys: list[bytes]) -> dict[bytes, bytes]:
        """The entries that exist, in the order of the keys."""
        with self._transaction.cursor() as cursor:
            return dict(cursor.getmulti(keys))  # type: ignore[arg-type]  # bytes, too

    @property
    def stamp(self) -> bytes:
        return bytes(self._transaction.get(_STAMP) or b"")

    @stamp.setter
    def stamp(self, stamp: bytes) -> None:
        self._transaction.put(_STAMP, stamp)

    def put_many(self, entries: Iterable[tuple[bytes, bytes]]) -> None:
        with self._transaction.cursor() as cursor:
            cursor.putmulti(entries)

    def drop_many(self, keys: Iterable[bytes]) -> None:
        """Missing keys are ignored."""
        deque(map(self._transaction.delete, keys), maxlen=0)

    def fill(self, entries: Iterable[Entry]) -> None:
        """Replace everything."""
        self._transaction.drop(self._database, delete=False)
        for key, value in entries:
            if value is None:
                self._transaction.delete(key)
            else:
                self._transaction.put(key, value)

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """The entries whose keys begin with the prefix; they must not change meanwhile."""
        return chain.from_iterable(self.stretches(prefix))

    def stretches(self, prefix: bytes) -> Iterator[list[tuple[bytes, bytes]]]:
        """The same in lists of many entries."""
        behind, size = _behind(prefix), FEW_ENTRIES
        with self._transaction.cursor() as cursor:
            entries = _entries_from(cursor, prefix)
            while stretch := list(islice(entries, size)):
                if behind is not None and stretch[-1][0] >= behind:
                    yield stretch[: bisect_left(stretch, (behind,))]
                    return
                yield stretch
                taken = sum(map(len, map(itemgetter(1), stretch)))
                size = max(1, min(2 * size, MANY_ENTRIES, size * STRETCH_BYTES // (taken + 1)))

    def groups(self, prefixes: Iterable[bytes]) -> tuple[list[tuple[bytes, bytes]], list[int]]:
        """The entries with each of these prefixes, and their count per prefix."""
        found: list[tuple[bytes, bytes]] = []
        counts: list[int] = []
        size = FEW_ENTRIES
        with self._transaction.cursor() as cursor:
            for prefix in prefixes:
                behind, first = _behind(prefix), len(found)
                entries = _entries_from(cursor, prefix)
                while stretch := list(islice(entries, size)):
                    if behind is not None and stretch[-1][0] >= behind:
                        found += stretch[: bisect_left(stretch, (behind,))]
                        break
                    found += stretch
                    size = SOME_ENTRIES
                counts.append(len(found) - first)
                # One more than the last group had: if the next has as many, its end is seen in one
                # read.
                size = min(counts[-1] + 1, SOME_ENTRIES)
        return found, counts

    def everything(self) -> Iterator[list[tuple[bytes, bytes]]]:
        """All entries, in lists of many."""
        for stretch in self.stretches(b""):
            place = bisect_left(stretch, (_STAMP,))
            if place < len(stretch) and stretch[place][0] == _STAMP:
                del stretch[place]
            yield stretch


def _entries_from(cursor: lmdb.Cursor, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Entries from the first one on that has the prefix or sorts after it."""
    if not cursor.set_range(prefix):
        return iter(())
    return cursor.iternext()  # type: ignore[return-value]  # bytes, without `buffers`


def _behind(prefix: bytes) -> bytes | None:
    """The smallest key after all keys with the prefix; None if there is none."""
    whole = prefix.rstrip(b"\xff")
    return whole[:-1] + bytes([whole[-1] + 1]) if whole else None


def mirror_directory(term: str) -> Path:
    """Where the workers of this machine keep the mirrors of one run: Spark's directory for local
    files, which Spark removes when it ends."""
    directories = os.environ.get("SPARK_LOCAL_DIRS", "") or tempfile.gettempdir()
    return Path(directories.split(",")[0]) / f"penstock-{term}"


def _environment(path: Path) -> lmdb.Environment:
    """LMDB lets a process open a file only once. Environments of other directories belong to
    finished runs and are closed."""
    if path not in _opened:
        for other in [other for other in _opened if other.parent != path.parent]:
            _opened.pop(other).close()
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _opened[path] = lmdb.open(
            str(path),
            map_size=MAP_BYTES,
            subdir=False,
            sync=False,
            metasync=False,
            readahead=False,
            max_readers=64,
        )
    return _opened[path]
