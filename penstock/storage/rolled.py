"""The bytes of a rolled file: many consecutive batches in one file (docs/notes/rolling.md).

file header   16 bytes (what it is, version, crc)
count, first start, first end, last start, last end, last active   8 bytes each
index crc     4 bytes      head crc   4 bytes (of the 52 bytes before it)
index         for each batch: start, end, active, position, length   8 bytes each
batches       the files of the batches, concatenated, byte for byte

The head identifies the last batch; the index lists all batches. Each batch keeps the checksums it
had in a file of its own.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from penstock.storage.batch_codec import (
    Place,
    StoredBatch,
    check_batch,
    decode_batch,
    read_checksum,
)
from penstock.storage.disk import FileFormat, corrupt
from penstock.storage.file_store import LOCAL_FILES, FileStore
from penstock.storage.interfaces import BatchHeader

# Lazy: a home with few batches has no rolled files, and commands that only append or look should
# not spend 0.1 s on loading NumPy.
if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

ROLLED_SUFFIX = ".rolled"

_FIELDS = struct.Struct("<QQQQQQI")
_CHECKSUM = struct.Struct("<I")
_INDEX_START = FileFormat.SIZE + _FIELDS.size + _CHECKSUM.size  # 16 + 52 + 4
_WIDTH = 5
_ENTRY_BYTES = 8 * _WIDTH
_READ_AHEAD_BYTES = 1 << 20  # 1 MiB: most readers read sequentially


class Extent(NamedTuple):
    """The batches of a file according to its name: one, or several consecutive ones."""

    first: Place
    last: Place
    batches: int
    name: str


def rolled_name(first: Place, last: Place, batches: int) -> str:
    return "-".join(f"{n:020d}" for n in (*first, *last)) + f"-{batches:08d}{ROLLED_SUFFIX}"


def parse_rolled_name(name: str) -> Extent | None:
    """None for the names of other files."""
    parts = name.removesuffix(ROLLED_SUFFIX).split("-")
    if len(parts) != 5 or not all(map(str.isdecimal, parts)):
        return None
    a, b, c, d, batches = map(int, parts)
    extent = Extent((a, b), (c, d), batches, name)
    return extent if rolled_name(*extent[:3]) == name else None


def encode_rolled(
    file_format: FileFormat, batches: Sequence[StoredBatch]
) -> tuple[str, list[bytes]]:
    """The name and the content, in parts, of a file that holds these batches."""
    lengths = [len(raw) for _, raw in batches]
    bodies_start = _INDEX_START + _ENTRY_BYTES * len(batches)
    positions = accumulate(lengths[:-1], initial=bodies_start)
    entries = [
        (header.start, header.end, header.active, position, length)
        for (header, _), position, length in zip(batches, positions, lengths, strict=True)
    ]
    import numpy as np

    index = np.array(entries, "<u8").tobytes()
    first, last = batches[0].header, batches[-1].header
    places = ((first.start, first.end), (last.start, last.end))
    fields = _FIELDS.pack(len(batches), *places[0], *places[1], last.active, crc32(index))
    head = file_format.header() + fields + _CHECKSUM.pack(crc32(fields))
    return rolled_name(*places, len(batches)), [head, index, *(raw for _, raw in batches)]


class RolledFile:
    """A file of many batches. OSError if it cannot be read, CorruptionError if it is damaged.

    No file is kept open, so it may be removed at any time; reading then raises FileNotFoundError,
    and the batch is in the file that replaced it.
    """

    def __init__(
        self,
        rolled_format: FileFormat,
        batch_format: FileFormat,
        path: Path,
        store: FileStore = LOCAL_FILES,
    ) -> None:
        self._formats = (rolled_format, batch_format)
        self._path = path
        self._store = store
        self._ahead = (0, b"")

    @cached_property
    def _head(self) -> _Head:
        return _read_head(self._formats[0], self._store, self._path)

    @cached_property
    def _index(self) -> npt.NDArray[np.uint64]:
        count, index_crc, _ = self._head
        size = _INDEX_START + _ENTRY_BYTES * count
        raw = self._store.read(self._path, 0, size)
        if len(raw) < size or crc32(raw[_INDEX_START:]) != index_crc:
            raise corrupt(self._path, _INDEX_START, "the checksum of its index is wrong")
        import numpy as np

        return np.frombuffer(raw, "<u8", offset=_INDEX_START).reshape(count, _WIDTH)

    @cached_property
    def _starts(self) -> npt.NDArray[np.uint64]:
        import numpy as np

        return np.ascontiguousarray(self._index[:, 0])

    @property
    def last(self) -> BatchHeader:
        """The last batch, without reading the index."""
        return self._head.last

    def headers(self) -> list[BatchHeader]:
        return [BatchHeader(*entry) for entry in self._index[:, :3].tolist()]

    def find(self, place: Place) -> int | None:
        """The number of the batch at this place."""
        import numpy as np

        number = int(np.searchsorted(self._starts, np.uint64(place[0])))
        # A batch without records starts where the next one starts, so there may be two.
        for one in range(number, min(number + 2, len(self._index))):
            if tuple(self._index[one, :2].tolist()) == place:
                return one
        return None

    def bytes_of(self, number: int) -> int:
        return int(self._index[number, 4])

    def checksum(self, number: int) -> tuple[BatchHeader, int]:
        return read_checksum(self._formats[1], self._store, self._path, *self._where(number))

    def read(self, number: int) -> tuple[BatchHeader, bytes]:
        """A batch and its content; CorruptionError if a bit of it has changed."""
        return decode_batch(self._formats[1], self._raw(number), self._path, *self._where(number))

    def stored_batches(self) -> Iterator[StoredBatch]:
        """All batches as stored, with checksums verified."""
        for number, header in enumerate(self.headers()):
            raw = self._raw(number)
            found, _ = check_batch(self._formats[1], raw, self._path, *self._where(number))
            if found != header:
                what = f"it holds {found!r} where its index has {header!r}"
                raise corrupt(self._path, _INDEX_START, what)
            yield StoredBatch(header, raw)

    def _where(self, number: int) -> tuple[Place, int]:
        start, end, _, position, _ = self._index[number].tolist()
        return (start, end), position

    def _raw(self, number: int) -> bytes:
        position, length = self._index[number, 3:].tolist()
        begin, ahead = self._ahead
        if not begin <= position <= position + length <= begin + len(ahead):
            size = max(length, _READ_AHEAD_BYTES)
            begin, ahead = position, self._store.read(self._path, position, size)
            self._ahead = (begin, ahead)
        return ahead[position - begin : position - begin + length]


class _Head(NamedTuple):
    batches: int
    index_crc: int
    last: BatchHeader


def _read_head(file_format: FileFormat, store: FileStore, path: Path) -> _Head:
    raw = store.read(path, 0, _INDEX_START)
    file_format.check(raw, path)
    if len(raw) < _INDEX_START:
        raise corrupt(path, len(raw), "its head is cut short")
    fields = raw[FileFormat.SIZE : FileFormat.SIZE + _FIELDS.size]
    (checksum,) = _CHECKSUM.unpack_from(raw, _INDEX_START - _CHECKSUM.size)
    if crc32(fields) != checksum:
        raise corrupt(path, FileFormat.SIZE, "the checksum of its head is wrong")
    count, a, b, start, end, active, index_crc = _FIELDS.unpack(fields)
    if path.name != rolled_name((a, b), (start, end), count):
        raise corrupt(path, FileFormat.SIZE, f"its content is that of batches [{a}, {end})")
    return _Head(count, index_crc, BatchHeader(start, end, active))


def extents_in_order(found: Iterable[Extent]) -> list[Extent]:
    """The valid files. One whose batches are in a larger one is left over from a crash, or about to
    be removed."""
    kept: list[Extent] = []
    for one in sorted(found, key=lambda e: (e.first, -e.last[0], -e.last[1])):
        if not kept or one.last > kept[-1].last:
            kept.append(one)
    return kept
