"""The bytes of a file that belongs to one batch: of the message log, or of the quarantine.

file header   16 bytes (what it is, version, crc)
start, end, active, body length   8 bytes each
body crc      4 bytes      header crc   4 bytes (of the 36 bytes before it)
body          msgpack (version 1), or 8 bytes, its length, and the same compressed (LZ4, version 2)
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import NamedTuple, TypeAlias, TypeVar
from zlib import crc32

import msgspec

from penstock.storage.disk import FileFormat, corrupt, os_errors
from penstock.storage.file_store import LOCAL_FILES, FileStore
from penstock.storage.interfaces import BatchHeader

T = TypeVar("T")

_FIELDS = struct.Struct("<QQQQI")
_CHECKSUM = struct.Struct("<I")
_LENGTH = struct.Struct("<Q")
_CODEC = "lz4"

COMPRESSED_VERSION = 2
COMPRESSED_FROM_BYTES = 64 << 10  # 64 KiB: less takes one write, whatever its length
_BODY_START = FileFormat.SIZE + _FIELDS.size + _CHECKSUM.size  # 16 + 36 + 4


Place: TypeAlias = tuple[int, int]
"""The (start, end) of a batch."""


class StoredBatch(NamedTuple):
    """A batch as stored in its file."""

    header: BatchHeader
    raw: bytes


def batch_name(start: int, end: int, suffix: str) -> str:
    return f"{start:020d}-{end:020d}{suffix}"


def parse_batch_name(name: str, suffix: str) -> Place | None:
    """The (start, end) of a batch file's name; None for the names of other files."""
    start, dash, end = name.removesuffix(suffix).partition("-")
    if not (dash and start.isdecimal() and end.isdecimal()):
        return None
    place = (int(start), int(end))
    return place if batch_name(*place, suffix) == name else None


def encode_batch(
    file_format: FileFormat, header: BatchHeader, body: bytes | memoryview
) -> tuple[bytes, bytes | memoryview]:
    """The content of a file, in parts. Large bodies are compressed if the format has a version for
    it: writing and syncing all bytes would take longer."""
    version = 1
    if file_format.version >= COMPRESSED_VERSION and len(body) >= COMPRESSED_FROM_BYTES:
        version, body = COMPRESSED_VERSION, _compressed(body)
    fields = _FIELDS.pack(header.start, header.end, header.active, len(body), crc32(body))
    return file_format.header(version) + fields + _CHECKSUM.pack(crc32(fields)), body


def _compressed(body: bytes | memoryview) -> bytes:
    import pyarrow as pa  # lazy: most readers and writers do not need it

    compressed: bytes = pa.compress(body, codec=_CODEC, asbytes=True)
    return _LENGTH.pack(len(body)) + compressed


def _decompressed(body: bytes, path: Path) -> bytes:
    import pyarrow as pa

    try:
        (length,) = _LENGTH.unpack_from(body)
        compressed = memoryview(body)[_LENGTH.size :]
        content: bytes = pa.decompress(compressed, length, codec=_CODEC, asbytes=True)
    except (struct.error, pa.ArrowException, OSError) as error:
        raise corrupt(path, _BODY_START, f"it cannot be decompressed: {error}") from None
    return content


def read_batch(
    file_format: FileFormat, path: Path, store: FileStore = LOCAL_FILES
) -> tuple[BatchHeader, bytes]:
    """The header and the body; CorruptionError if a bit of either has changed."""
    with os_errors("read a batch", path):
        raw = store.read(path)
    return decode_batch(file_format, raw, path, _place_of(path))


def decode_batch(
    file_format: FileFormat, raw: bytes, path: Path, place: Place | None, at: int = 0
) -> tuple[BatchHeader, bytes]:
    """The header and the body of a batch at this position of a file; CorruptionError if it is
    damaged, or is another batch than `place`."""
    header, body = check_batch(file_format, raw, path, place, at)
    if file_format.check(raw, path) == COMPRESSED_VERSION:
        return header, _decompressed(body, path)
    return header, body


def check_batch(
    file_format: FileFormat, raw: bytes, path: Path, place: Place | None, at: int = 0
) -> tuple[BatchHeader, bytes]:
    """The same, with the body as stored, possibly compressed."""
    header, body_bytes, body_crc = _decode_header(file_format, path, raw[:_BODY_START], place, at)
    body = raw[_BODY_START:]
    if len(body) != body_bytes:
        raise corrupt(path, at + len(raw), f"it should have {body_bytes + _BODY_START} bytes")
    if crc32(body) != body_crc:
        raise corrupt(path, at + _BODY_START, "the checksum of its content is wrong")
    return header, body


def decode_body(decoder: msgspec.msgpack.Decoder[T], body: bytes, path: Path) -> T:
    """The decoded body; CorruptionError if it does not have the form of its file."""
    try:
        return decoder.decode(body)
    except msgspec.DecodeError as error:
        raise corrupt(path, _BODY_START, f"its content cannot be read: {error}") from None


def read_checksum(
    file_format: FileFormat, store: FileStore, path: Path, place: Place | None, at: int = 0
) -> tuple[BatchHeader, int]:
    """The header of a batch at this position of a file, and the checksum of its stored body."""
    raw = store.read(path, at, _BODY_START)
    header, _, body_crc = _decode_header(file_format, path, raw, place, at)
    return header, body_crc


def _decode_header(
    file_format: FileFormat, path: Path, raw: bytes, place: Place | None, at: int
) -> tuple[BatchHeader, int, int]:
    file_format.check(raw, path)
    if len(raw) < _BODY_START:
        raise corrupt(path, at + len(raw), "its header is cut short")
    fields = raw[FileFormat.SIZE : FileFormat.SIZE + _FIELDS.size]
    (checksum,) = _CHECKSUM.unpack_from(raw, _BODY_START - _CHECKSUM.size)
    if crc32(fields) != checksum:
        raise corrupt(path, at + FileFormat.SIZE, "the checksum of its header is wrong")
    start, end, active, body_bytes, body_crc = _FIELDS.unpack(fields)
    if (start, end) != place:
        raise corrupt(path, at + FileFormat.SIZE, f"its content is that of batch [{start}, {end})")
    return BatchHeader(start, end, active), body_bytes, body_crc


def _place_of(path: Path) -> Place | None:
    return parse_batch_name(path.name, path.suffix)


class SingleFile:
    """A file of one batch. OSError if it cannot be read, CorruptionError if it is damaged."""

    def __init__(self, file_format: FileFormat, path: Path, store: FileStore = LOCAL_FILES) -> None:
        self._format = file_format
        self._path = path
        self._store = store

    @property
    def last(self) -> BatchHeader:
        return read_checksum(self._format, self._store, self._path, _place_of(self._path))[0]

    def headers(self) -> list[BatchHeader]:
        return [self.last]

    def find(self, place: Place) -> int | None:
        return 0 if place == _place_of(self._path) else None

    def bytes_of(self, _: int) -> int:
        return self._store.size(self._path)

    def checksum(self, _: int) -> tuple[BatchHeader, int]:
        return read_checksum(self._format, self._store, self._path, _place_of(self._path))

    def read(self, _: int) -> tuple[BatchHeader, bytes]:
        return decode_batch(
            self._format, self._store.read(self._path), self._path, _place_of(self._path)
        )

    def stored_batches(self) -> list[StoredBatch]:
        raw = self._store.read(self._path)
        header, _ = check_batch(self._format, raw, self._path, _place_of(self._path))
        return [StoredBatch(header, raw)]
