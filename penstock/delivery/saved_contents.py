"""Saved contents: a cache of subscriptions' contents at the ends of batches.

A reader that had to examine many messages saves the content it built; the next reader starts from
there. A saved content is used only if it is intact and was made from this message log: its last
batch must exist with the same checksum, and the last records before its end must be those of the
log. Everything works without saved contents, so errors in loading or saving one are ignored.
`penstock verify` reports damage.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import msgspec

from penstock.client import ChangesOnlyClient, Content, Initial
from penstock.client.saving import plain_content, restored_content
from penstock.delivery.batches import SubscriptionBatches
from penstock.delivery.registration import Registration
from penstock.errors import PenstockError
from penstock.packing import pack, unpack
from penstock.storage import (
    COMPRESSED_VERSION,
    BatchHeader,
    FileFormat,
    Home,
    batch_name,
    encode_batch,
    make_directory,
    parse_batch_name,
    read_batch,
    write_aside,
)

CONTENT_FORMAT = FileFormat("saved content", b"PENSTCON", COMPRESSED_VERSION)
DIRECTORY = "contents"
SUFFIX = ".content"

SAVED_FROM = 5_000
"""Minimum number of examined batches and messages for saving a content: about 0.1 s of work."""
MAX_FILE_BYTES = 64 << 20  # 64 MiB
MAX_FILES = 64
MAX_BYTES = 256 << 20  # 256 MiB: beyond one of these limits, the least recently used are removed

_LAYOUT = 1
"""Version of the plain data; others are not read."""
_RECORDS = 64
"""Records before the cursor that must be equal."""


class SavedContent(NamedTuple):
    content: Content
    last: BatchHeader
    """The batch after which it was saved."""


class SavedContents:
    """The saved contents of a home. Any number of processes may load and save."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self.directory = home.path / DIRECTORY

    def load(self, registration: Registration, before: int | None = None) -> SavedContent | None:
        """The newest one of a subscription; with an offset, the newest at or before it."""
        for path, (_, end) in reversed(self._of(registration.id)):
            if before is not None and end > before:
                continue
            with suppress(PenstockError, msgspec.DecodeError, TypeError, ValueError, LookupError):
                found = self._read(path, registration)
                if found is not None:
                    with suppress(OSError):
                        os.utime(path)  # for the least-recently-used order
                    return found
        return None

    def save_if_worth_it(
        self, client: Content | ChangesOnlyClient, batches: SubscriptionBatches
    ) -> None:
        """Save the content that a client has built, if many messages had to be examined."""
        if (
            isinstance(client, ChangesOnlyClient)
            or batches.last is None
            or batches.examined < SAVED_FROM
        ):
            return
        self.save(client, batches.last)
        batches.examined = 0

    def save(self, content: Content, last: BatchHeader) -> None:
        """Save a content as of the end of a batch and remove older ones of its subscription; does
        nothing if that is not possible."""
        with suppress(OSError, PenstockError):
            evidence = self._evidence(last)
            cursor = (last.start, last.end, last.active)
            body = pack([_LAYOUT, cursor, evidence, content.query.sql, plain_content(content)])
            if evidence is None or len(body) > MAX_FILE_BYTES:
                return
            older = self._of(content.subscription)
            make_directory(self.directory)
            path = self.directory / batch_name(content.subscription, last.end, SUFFIX)
            header = BatchHeader(content.subscription, last.end, last.active)
            write_aside(path, *encode_batch(CONTENT_FORMAT, header, body))
            for old, (_, end) in older:
                if end < last.end:
                    old.unlink(missing_ok=True)
            self._keep_within_limits()

    def _read(self, path: Path, registration: Registration) -> SavedContent | None:
        query, quiet = registration.query, registration.initial is Initial.SILENT
        _, body = read_batch(CONTENT_FORMAT, path)
        layout, cursor, evidence, sql, plain = unpack(body)
        last = BatchHeader(*cursor)
        if (layout, sql) != (_LAYOUT, query.sql) or evidence != self._evidence(last):
            return None
        return SavedContent(restored_content(plain, registration.id, query, quiet=quiet), last)

    def _evidence(self, last: BatchHeader) -> int | None:
        """A checksum of what a content at the end of a batch derives from; None if the batch does
        not exist."""
        checksum = self._home.messages.checksum(last)
        if checksum is None:
            return None
        for record in self._home.log.read(max(0, last.end - _RECORDS), last.end):
            checksum = crc32(pack([record.offset, record.kind, record.body]), checksum)
        return checksum

    def _of(self, subscription: int) -> list[tuple[Path, tuple[int, int]]]:
        return [(path, place) for path, place in self._files() if place[0] == subscription]

    def _files(self) -> list[tuple[Path, tuple[int, int]]]:
        """The existing files, by subscription and offset."""
        return sorted(_saved_files(self.directory), key=lambda found: found[1])

    def _keep_within_limits(self) -> None:
        """Remove the least recently used ones."""
        found = [(path.stat(), path) for path, _ in self._files()]
        found.sort(key=lambda one: one[0].st_mtime_ns, reverse=True)
        size = 0
        for number, (stat, path) in enumerate(found):
            size += stat.st_size
            if number >= MAX_FILES or size > MAX_BYTES:
                path.unlink(missing_ok=True)


def _saved_files(directory: Path) -> Iterator[tuple[Path, tuple[int, int]]]:
    with suppress(FileNotFoundError):
        for name in os.listdir(directory):
            place = parse_batch_name(name, SUFFIX) if name.endswith(SUFFIX) else None
            if place is not None:
                yield directory / name, place
