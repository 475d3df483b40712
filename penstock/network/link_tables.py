"""The entries that a node has from one link, adverts and interests, with digests for comparison.

Entries are identified by a digest of their value, so two sides compare tables by one number, then
by 64, and send only what differs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from penstock.network.frames import BUCKETS
from penstock.packing import pack
from penstock.routing.interests import NAME_BYTES, Interest


class Entry(NamedTuple):
    """An advertisement of a source, or, without one, an interest."""

    source: str
    interest: Interest


def entry_name(entry: Entry) -> int:
    digest = hashlib.blake2b(pack(entry), digest_size=NAME_BYTES).digest()
    return int.from_bytes(digest)


class LinkTable:
    """Entries by name, and incrementally updated digests of them."""

    def __init__(self) -> None:
        self._entries: dict[int, Entry] = {}
        self._refused: set[int] = set()
        """Names of entries that the other side has sent and this side cannot use. They count when
        tables are compared: otherwise they would be sent again for ever."""
        self._buckets = [0] * BUCKETS

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name: int) -> bool:
        return name in self._entries or name in self._refused

    @property
    def has_refused(self) -> bool:
        return bool(self._refused)

    def __iter__(self) -> Iterator[tuple[int, Entry]]:
        return iter(list(self._entries.items()))

    def get(self, name: int) -> Entry | None:
        return self._entries.get(name)

    def add(self, entry: Entry) -> bool:
        """Add an entry; False if it was held already."""
        name = entry_name(entry)
        if name in self._entries:
            return False
        self._entries[name] = entry
        self._buckets[name % BUCKETS] ^= name
        return True

    def refuse(self, entry: Entry) -> None:
        name = entry_name(entry)
        if name not in self:
            self._refused.add(name)
            self._buckets[name % BUCKETS] ^= name

    def forget_refused(self) -> None:
        """Drop the refused names, so that their entries are requested again."""
        for name in list(self._refused):
            self.remove(name)

    def remove(self, name: int) -> Entry | None:
        """Remove a name; returns its entry, if it was held and not refused."""
        if name in self:
            self._buckets[name % BUCKETS] ^= name
        self._refused.discard(name)
        return self._entries.pop(name, None)

    @property
    def digest(self) -> int:
        digest = (len(self._entries) + len(self._refused)) & 0xFFFF
        for number, bucket in enumerate(self._buckets):
            digest ^= bucket * (2 * number + 1) & _MASK
        return digest

    def digests(self) -> tuple[int, ...]:
        return tuple(self._buckets)

    def names_where_different(
        self, digests: Iterable[int]
    ) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """All names in the buckets whose digests differ from these."""
        different = [
            bucket
            for bucket, (mine, its) in enumerate(zip(self._buckets, digests, strict=True))
            if mine != its
        ]
        found: dict[int, list[int]] = {bucket: [] for bucket in different}
        for name in self._names():
            if name % BUCKETS in found:
                found[name % BUCKETS].append(name)
        return tuple((bucket, tuple(sorted(names))) for bucket, names in found.items())

    def not_among(self, bucket: int, names: Iterable[int]) -> list[int]:
        """The names in a bucket that are not among these."""
        kept = set(names)
        return [n for n in self._names() if n % BUCKETS == bucket and n not in kept]

    def _names(self) -> Iterator[int]:
        return chain(self._entries, self._refused)


_MASK = (1 << 64) - 1
