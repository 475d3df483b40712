"""The durable form of a bucket: numbered blobs in Spark's state store.

Every access to the store is a round trip between Python and Java of a fifth of a millisecond,
whatever its size. So a batch writes all changed entries as one blob, and blobs are read only by a
worker without a copy of the bucket. Applied in the order of their numbers they give the bucket;
when the changes outweigh the bucket, it is rewritten as a whole and they are dropped.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat
from typing import Protocol, TypeAlias

import msgspec
import numpy as np

from penstock.packing import pack, unpack

Entry: TypeAlias = tuple[bytes, bytes | None]
"""A key and its value; None if it was removed."""

BLOB_BYTES = 4 << 20  # payload of one round trip
SMALL_BYTES = 1 << 20  # minimum size assumed when deciding on a rewrite

_HEAD = ("head", b"")
_decode = msgspec.msgpack.Decoder(list[tuple[bytes, bytes | None]]).decode


class StoredMap(Protocol):
    """The part of Spark's MapState that is used here."""

    def getValue(self, key: tuple[str, bytes]) -> tuple[bytes] | None: ...  # noqa: N802

    def updateValue(self, key: tuple[str, bytes], value: tuple[bytes]) -> None: ...  # noqa: N802

    def removeKey(self, key: tuple[str, bytes]) -> None: ...  # noqa: N802

    def iterator(self) -> Iterator[tuple[tuple[str, bytes], tuple[bytes]]]: ...


@dataclass(frozen=True, slots=True)
class _Head:
    """Which blobs are valid, and a stamp unique among all states of all buckets."""

    stamp: bytes = b""
    first: int = 0
    following: int = 0
    whole_bytes: int = 0
    changed_bytes: int = 0

    def to_bytes(self) -> bytes:
        return pack([self.stamp, self.first, self.following, self.whole_bytes, self.changed_bytes])


class Ledger:
    """The blobs of one bucket, as of one batch."""

    def __init__(self, stored: StoredMap, rewrite_ratio: float = 1.0) -> None:
        """`rewrite_ratio`: by how much changes may outweigh the bucket. With different ratios,
        buckets are not all rewritten in the same batch."""
        self._stored = stored
        self._rewrite_ratio = rewrite_ratio
        found = stored.getValue(_HEAD)
        self._head = _Head() if found is None else _Head(*unpack(bytes(found[0])))

    @property
    def stamp(self) -> bytes:
        """Identifies this state of this bucket. Empty: nothing was ever written."""
        return self._head.stamp

    def entries(self) -> Iterator[Entry]:
        """All entries in the order of writing; later ones replace earlier ones."""
        blobs = {}
        for (name, key), (blob,) in self._stored.iterator():
            if name != _HEAD[0]:
                blobs[int.from_bytes(bytes(key))] = bytes(blob)
        for number in range(self._head.first, self._head.following):
            yield from _decode(blobs.pop(number))

    def append(self, changed: Sequence[tuple[bytes, bytes]], gone: Iterable[bytes]) -> None:
        *parts, last = _parts(changed) if changed else [changed]
        written, following = self._write([*parts, [*last, *zip(gone, repeat(None))]])
        self._head = replace(
            self._head, following=following, changed_bytes=self._head.changed_bytes + written
        )

    @property
    def is_heavy(self) -> bool:
        """Whether the bucket should be rewritten."""
        whole = max(SMALL_BYTES, self._head.whole_bytes)
        return self._head.changed_bytes > self._rewrite_ratio * whole

    def rewrite(self, everything: Iterable[Sequence[tuple[bytes, bytes]]]) -> None:
        """Replace all blobs by the current content of the bucket, given in parts."""
        old = range(self._head.first, self._head.following)
        written, following = self._write(chain.from_iterable(map(_parts, everything)))
        self._head = _Head(b"", old.stop, following, written, 0)
        for number in old:
            self._stored.removeKey(_blob(number))

    def seal(self) -> bytes:
        """Stamp the state, after everything is written."""
        self._head = replace(self._head, stamp=os.urandom(16))
        self._stored.updateValue(_HEAD, (self._head.to_bytes(),))
        return self._head.stamp

    def _write(self, parts: Iterable[Sequence[Entry]]) -> tuple[int, int]:
        """Write entries as blobs; returns their bytes and the next free number."""
        written, number = 0, self._head.following
        for part in parts:
            blob = pack(part)
            self._stored.updateValue(_blob(number), (blob,))
            written += len(blob)
            number += 1
        return written, number


def _blob(number: int) -> tuple[str, bytes]:
    return "blob", number.to_bytes(8)


def _parts(
    entries: Sequence[tuple[bytes, bytes]],
) -> Iterator[Sequence[tuple[bytes, bytes]]]:
    """Entries in parts of limited size; an entry above the limit is a part of its own."""
    sizes = np.fromiter(map(len, chain.from_iterable(entries)), np.int64, 2 * len(entries))
    ends = np.cumsum(sizes.reshape(-1, 2).sum(axis=1))
    first = 0
    while first < len(entries):
        before = ends[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + BLOB_BYTES, side="right")))
        yield entries[first:last]
        first = last
