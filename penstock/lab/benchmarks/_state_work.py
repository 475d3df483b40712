"""The state accesses of a stage, without the stage: rows of join values that change.

The same changes for every layout, so that all must end with the same content.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from hashlib import blake2b
from typing import NamedTuple
from zlib import crc32

import msgspec
import numpy as np

from penstock.flow.stores import Entries
from penstock.packing import pack
from penstock.pipeline.buckets import bucket_labels
from penstock.storage import DEFAULT_BUCKETS

_BUCKETS = bucket_labels(DEFAULT_BUCKETS)

EDGE = blake2b(b"edge", digest_size=8).digest()

Change = tuple[bytes, bytes]


class Touch(IntEnum):
    """What is read for a change besides writing its row."""

    NOTHING = 0
    """As when loading a table."""
    ROW = 1
    """Its old row is read, as in the row stage."""
    GROUP = 2
    """All rows of its join value are read, as in the join stage."""
    SWEEP = 3
    """Everything is read, as for a new subscription; nothing is written."""


class Task(NamedTuple):
    """The changes of a batch for one state key, by join value."""

    touch: int
    changes: dict[bytes, list[Change]]

    @classmethod
    def from_bytes(cls, data: bytes) -> Task:
        return _decode_task(data)


_decode_task = msgspec.msgpack.Decoder(Task).decode


class Content(NamedTuple):
    """The result of a sweep."""

    rows: int = 0
    digest: int = 0

    def plus(self, other: Content) -> Content:
        return Content(self.rows + other.rows, self.digest + other.digest)


def perform(task: Task, entries: Entries) -> Content:
    if task.touch == Touch.SWEEP:
        found = [crc32(value, crc32(key)) for key, value in entries.scan(EDGE)]
        return Content(len(found), sum(found))
    for prefix, changes in task.changes.items():
        if task.touch == Touch.GROUP:
            for _ in entries.scan(prefix):
                pass
        for key, value in changes:
            if task.touch == Touch.ROW:
                entries.get(key)
            entries.put(key, value)
    return Content()


@dataclass(frozen=True)
class StateWork:
    """Join values with their rows, of about a hundred bytes each.

    The largest value has some `spread` times as many rows as the smallest, and few are large. Each
    has at least one.
    """

    values: int
    rows: int
    spread: int = 1

    @cached_property
    def firsts(self) -> np.ndarray:
        """The first row of each value, and the end of the last."""
        shares = 1 / (1 + (self.spread - 1) * np.arange(self.values) / self.values)
        more = np.round(np.cumsum(shares) / shares.sum() * (self.rows - self.values))
        return np.concatenate([[0], more + np.arange(1, self.values + 1)]).astype(np.int64)

    @cached_property
    def prefixes(self) -> list[bytes]:
        return [EDGE + blake2b(pack([v]), digest_size=16).digest() for v in range(self.values)]

    @cached_property
    def buckets(self) -> np.ndarray:
        return np.array([_BUCKETS[crc32(prefix) % len(_BUCKETS)] for prefix in self.prefixes])

    def loads(self, batch_rows: int) -> Iterator[np.ndarray]:
        """All rows, in batches that touch every value."""
        order = np.random.default_rng(0).permutation(self.rows)
        for first in range(0, self.rows, batch_rows):
            yield order[first : first + batch_rows]

    def evenly(self, count: int, seed: int) -> np.ndarray:
        """Rows to change; every value is equally likely."""
        return self._among(np.arange(self.values), count, seed)

    def hot(self, count: int, seed: int) -> np.ndarray:
        """Half of them of the largest value."""
        half = self._among(np.zeros(1, np.int64), count // 2, seed)
        return np.concatenate([half, self.evenly(count - len(half), seed)])

    def skewed(self, count: int, seed: int) -> np.ndarray:
        """All of them of one bucket."""
        return self._among(np.flatnonzero(self.buckets == self.buckets[0]), count, seed)

    def one_per_bucket(self) -> np.ndarray:
        _, values = np.unique(self.buckets, return_index=True)
        return self.firsts[values]

    def _among(self, values: np.ndarray, count: int, seed: int) -> np.ndarray:
        rng = np.random.default_rng(seed)
        chosen = values[rng.integers(0, len(values), count)]
        sizes = self.firsts[chosen + 1] - self.firsts[chosen]
        found: np.ndarray = self.firsts[chosen] + (rng.random(count) * sizes).astype(np.int64)
        return found

    def tasks(
        self, rows: np.ndarray, touch: Touch, seed: int, by_value: bool
    ) -> Iterator[tuple[int, bytes]]:
        """Changes of these rows by state key: a bucket, or a join value."""
        rng = random.Random(seed)
        values = np.searchsorted(self.firsts, rows, side="right") - 1
        grouped: dict[int, dict[bytes, list[Change]]] = defaultdict(lambda: defaultdict(list))
        for row, value in zip(rows.tolist(), values.tolist(), strict=True):
            prefix = self.prefixes[value]
            place = value if by_value else int(self.buckets[value])
            grouped[place][prefix].append(_change(prefix, value, row, rng))
        for place, changes in grouped.items():
            yield place, pack(Task(touch, changes))

    def sweeps(self, by_value: bool) -> Iterator[tuple[int, bytes]]:
        for place in range(self.values) if by_value else _BUCKETS:
            yield place, pack(Task(Touch.SWEEP, {}))


def _change(prefix: bytes, value: int, row: int, rng: random.Random) -> Change:
    price, volume = rng.randrange(100_000), rng.randrange(10_000)
    values = (row, f"value {value}", price, volume, "active", rng.randbytes(24).hex())
    return prefix + b"\x00" + pack((row,)), pack(((value,), (row,), values))
