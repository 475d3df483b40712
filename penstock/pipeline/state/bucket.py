"""The entries of one bucket in one batch: read from the mirror, written to mirror and ledger."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from penstock.pipeline.state.ledger import Entry, Ledger, StoredMap
from penstock.pipeline.state.mirror import Mirror, MirrorBatch


class BucketState:
    """A map from bytes to bytes. Nothing is stored before the batch ends well."""

    def __init__(self, mirror: MirrorBatch) -> None:
        self._mirror = mirror
        self._changed: dict[bytes, bytes | None] = {}

    @classmethod
    @contextmanager
    def opened(
        cls, stored: StoredMap, mirror: Mirror, patience: float = 1.0
    ) -> Iterator[BucketState]:
        """The bucket, for the length of a batch."""
        ledger = Ledger(stored, patience)
        with mirror.batch() as batch:
            if batch.stamp != ledger.stamp:
                batch.fill(ledger.entries())
                batch.stamp = ledger.stamp
            state = cls(batch)
            yield state
            state._store(ledger)

    def get(self, key: bytes) -> bytes | None:
        if key in self._changed:
            return self._changed[key]
        return self._mirror.get(key)

    def put(self, key: bytes, value: bytes | None) -> None:
        self._changed[key] = value

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """The entries with this prefix, as they were when the batch began."""
        return self._mirror.scan(prefix)

    def _store(self, ledger: Ledger) -> None:
        changed: list[Entry] = [
            (key, value)
            for key, value in sorted(self._changed.items())
            if value is not None or self._mirror.get(key) is not None
        ]
        if not changed:
            return
        self._mirror.apply(changed)
        ledger.append(changed)
        if ledger.is_heavy:
            ledger.rewrite(self._mirror.everything())
        self._mirror.stamp = ledger.seal()
