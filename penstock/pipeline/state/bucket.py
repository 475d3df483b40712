"""The entries of one bucket in one batch: read from the mirror, written to mirror and ledger."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from penstock.pipeline.state.ledger import Ledger, StoredMap
from penstock.pipeline.state.mirror import Mirror, MirrorBatch


class BucketState:
    """A map from bytes to bytes. Nothing is stored before the batch succeeds."""

    def __init__(self, mirror: MirrorBatch) -> None:
        self._mirror = mirror
        self._changed: dict[bytes, bytes] = {}
        self._gone: set[bytes] = set()

    @classmethod
    @contextmanager
    def opened(
        cls, stored: StoredMap, mirror: Mirror, rewrite_ratio: float = 1.0
    ) -> Iterator[BucketState]:
        """The bucket for the duration of a batch."""
        ledger = Ledger(stored, rewrite_ratio)
        with mirror.batch() as batch:
            if batch.stamp != ledger.stamp:
                batch.fill(ledger.entries())
                batch.stamp = ledger.stamp
            state = cls(batch)
            yield state
            state._store(ledger)

    def aside(self) -> BucketState:
        """The bucket as it was before the batch, for an attempt that may fail."""
        return BucketState(self._mirror)

    def take(self, other: BucketState) -> None:
        """Adopt the changes of an attempt."""
        self._changed, self._gone = other._changed, other._gone

    def get(self, key: bytes) -> bytes | None:
        if key in self._gone:
            return None
        changed = self._changed.get(key)
        return self._mirror.get(key) if changed is None else changed

    def get_many(self, keys: list[bytes]) -> dict[bytes, bytes]:
        """The entries that exist, in the order of the keys."""
        if self._changed.keys().isdisjoint(keys) and self._gone.isdisjoint(keys):
            return self._mirror.get_many(keys)
        found = ((key, self.get(key)) for key in keys)
        return {key: value for key, value in found if value is not None}

    def put(self, key: bytes, value: bytes | None) -> None:
        if value is None:
            self._gone.add(key)
            self._changed.pop(key, None)
        else:
            self._changed[key] = value
            self._gone.discard(key)

    def put_many(self, entries: Iterable[tuple[bytes, bytes]]) -> None:
        new = dict(entries)
        self._changed |= new
        self._gone -= new.keys()

    def drop_many(self, keys: Iterable[bytes]) -> None:
        gone = set(keys)
        self._gone |= gone
        for key in gone & self._changed.keys():
            del self._changed[key]

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """The entries with this prefix, as they were when the batch began."""
        return self._mirror.scan(prefix)

    def groups(self, prefixes: Iterable[bytes]) -> tuple[list[tuple[bytes, bytes]], list[int]]:
        """The entries with each of these prefixes, as they were when the batch began, and their
        count per prefix."""
        return self._mirror.groups(prefixes)

    @classmethod
    @contextmanager
    def temporary(cls) -> Iterator[BucketState]:
        """An empty bucket that is discarded at the end of the block."""
        with (
            TemporaryDirectory(prefix="penstock-state-") as directory,
            Mirror(Path(directory) / "bucket").batch() as batch,
        ):
            yield cls(batch)

    def settle(self) -> None:
        """End a batch of a bucket that is not durable: its changes are visible in the next one."""
        self._mirror.put_many(sorted(self._changed.items()))
        self._mirror.drop_many(self._gone)
        self._changed, self._gone = {}, set()

    def _store(self, ledger: Ledger) -> None:
        changed = sorted(self._changed.items())
        gone = list(self._mirror.get_many(sorted(self._gone)))
        if not changed and not gone:
            return
        self._mirror.put_many(changed)
        self._mirror.drop_many(gone)
        ledger.append(changed, gone)
        if ledger.is_heavy:
            ledger.rewrite(self._mirror.everything())
        self._mirror.stamp = ledger.seal()
