"""Caches of results: an operator is not evaluated twice for the same arguments.

A result is keyed by a digest of the operator's name and version and of all arguments, constants and
column values alike. By the operator's contract it never becomes stale; a cache evicts the least
recently used. Failures are not cached: the next attempt may succeed.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol

from penstock.operators.evaluation import Evaluator
from penstock.operators.failures import OperatorFailure
from penstock.operators.interface import Operator, Result, StoredRow
from penstock.operators.limits import Evaluation, Outcome
from penstock.operators.result_codec import pack_result, unpack_result
from penstock.packing import pack

KEY_BYTES = 20
"""Digest size: two of 10**12 results collide with a probability of 10**-24."""
DEFAULT_CACHE_BYTES = 64 << 20
ENTRY_OVERHEAD_BYTES = 200
"""Python's overhead for a short result in memory: key, entry, headers."""
_CHECKSUM_BYTES = 4


@dataclass(slots=True)
class CacheCounts:
    hits: int = 0
    misses: int = 0
    dropped: int = 0


class ResultCache(Protocol):
    """Results by key, bounded in bytes. A cache affects only the amount of work."""

    counts: CacheCounts

    def find(self, keys: Sequence[bytes]) -> dict[bytes, Result]:
        """The keys found, with their results."""
        ...

    def keep(self, results: Mapping[bytes, Result]) -> None: ...

    def close(self) -> None: ...


def result_keys(
    operator: Operator, rows: Iterable[StoredRow], version: str | None = None
) -> list[bytes]:
    """`version`: another one than the operator's current version."""
    said_by = pack([operator.name.lower(), version or operator.version])
    prefix = blake2b(said_by, digest_size=KEY_BYTES)
    keys = []
    for row in rows:
        digest = prefix.copy()
        digest.update(pack(row))
        keys.append(digest.digest())
    return keys


def entry_of(key: bytes, result: Result) -> bytes:
    """A result in the form of cache entries, with a checksum."""
    packed = pack_result(result)
    return zlib.crc32(packed, zlib.crc32(key)).to_bytes(_CHECKSUM_BYTES) + packed


def read_entry(key: bytes, entry: bytes) -> Result:
    """ValueError if the entry is damaged."""
    packed = entry[_CHECKSUM_BYTES:]
    if zlib.crc32(packed, zlib.crc32(key)).to_bytes(_CHECKSUM_BYTES) != entry[:_CHECKSUM_BYTES]:
        raise ValueError("a result whose checksum is wrong")
    return unpack_result(packed)


class MemoryResults:
    """A cache in this process. For one thread at a time."""

    def __init__(self, max_bytes: int = DEFAULT_CACHE_BYTES) -> None:
        self.counts = CacheCounts()
        self.bytes = 0
        self._max_bytes = max_bytes
        self._entries: OrderedDict[bytes, bytes] = OrderedDict()

    def find(self, keys: Sequence[bytes]) -> dict[bytes, Result]:
        found = {}
        for key in dict.fromkeys(keys):
            entry = self._entries.get(key)
            if entry is not None:
                self._entries.move_to_end(key)
                found[key] = read_entry(key, entry)
        self.counts.hits += len(found)
        self.counts.misses += len(set(keys)) - len(found)
        return found

    def keep(self, results: Mapping[bytes, Result]) -> None:
        for key, result in results.items():
            self._drop(key)
            self._entries[key] = entry_of(key, result)
            self.bytes += len(self._entries[key]) + ENTRY_OVERHEAD_BYTES
        while self.bytes > self._max_bytes:
            self._drop(next(iter(self._entries)))
            self.counts.dropped += 1

    def _drop(self, key: bytes) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self.bytes -= len(entry) + ENTRY_OVERHEAD_BYTES

    def __len__(self) -> int:
        return len(self._entries)

    def close(self) -> None:
        self._entries.clear()
        self.bytes = 0


class CachedEvaluator:
    """An evaluator behind caches: equal rows, and rows found in a cache, are not evaluated again.

    Caches are queried in order, the nearest first; a hit is added to those before it.
    """

    def __init__(self, evaluator: Evaluator, caches: Sequence[ResultCache]) -> None:
        self._evaluator = evaluator
        self._caches = tuple(caches)

    def evaluate(self, operator: Operator, rows: Sequence[StoredRow]) -> Evaluation:
        keys = result_keys(operator, rows)
        known: dict[bytes, Outcome] = {**self._find(keys)}
        missing = {key: row for key, row in zip(keys, rows, strict=True) if key not in known}
        done = Evaluation([])
        if missing:
            done = self._evaluator.evaluate(operator, list(missing.values()))
            evaluated = dict(zip(missing, done.outcomes, strict=True))
            known.update(evaluated)
            results = {
                key: one for key, one in evaluated.items() if not isinstance(one, OperatorFailure)
            }
            for cache in self._caches:
                cache.keep(results)
        return Evaluation([known[key] for key in keys], done.evaluated_rows, done.seconds)

    def recall(
        self, operator: Operator, version: str, rows: Sequence[StoredRow]
    ) -> dict[int, Result]:
        """The known results of a version of an operator, by row number."""
        keys = result_keys(operator, rows, version)
        found = self._find(keys)
        return {number: found[key] for number, key in enumerate(keys) if key in found}

    def _find(self, keys: Sequence[bytes]) -> dict[bytes, Result]:
        found: dict[bytes, Result] = {}
        wanted: Sequence[bytes] = list(dict.fromkeys(keys))
        for depth, cache in enumerate(self._caches):
            here = cache.find(wanted)
            for nearer in self._caches[:depth]:
                nearer.keep(here)
            found.update(here)
            wanted = [key for key in wanted if key not in here]
            if not wanted:
                break
        return found

    def close(self) -> None:
        self._evaluator.close()
        for cache in self._caches:
            cache.close()
