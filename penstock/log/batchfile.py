"""The bytes of a file that belongs to one batch: of the message log, or of the quarantine.

file header   16 bytes (what it is, version, crc)
start, end, active, body length   8 bytes each
body crc      4 bytes      header crc   4 bytes (of the 36 bytes before it)
body          msgpack (version 1), or 8 bytes, its length, and the same compressed (LZ4, version 2)
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TypeVar
from zlib import crc32

import msgspec

from penstock.log.disk import FileFormat, corrupt, os_errors
from penstock.log.interfaces import BatchHeader

T = TypeVar("T")

_FIELDS = struct.Struct("<QQQQI")
_CHECKSUM = struct.Struct("<I")
_LENGTH = struct.Struct("<Q")
_CODEC = "lz4"

COMPRESSED_VERSION = 2
COMPRESSED_FROM_BYTES = 64 << 10  # 64 KiB: less takes one write, however long it is
_BODY_START = FileFormat.SIZE + _FIELDS.size + _CHECKSUM.size  # 16 + 36 + 4


def batch_name(start: int, end: int, suffix: str) -> str:
    return f"{start:020d}-{end:020d}{suffix}"


def parse_batch_name(name: str, suffix: str) -> tuple[int, int] | None:
    """The (start, end) of a batch file's name; None for the names of other files."""
    start, dash, end = name.removesuffix(suffix).partition("-")
    if not (dash and start.isdecimal() and end.isdecimal()):
        return None
    place = (int(start), int(end))
    return place if batch_name(*place, suffix) == name else None


def encode_batch(
    file_format: FileFormat, header: BatchHeader, body: bytes | memoryview
) -> tuple[bytes, bytes | memoryview]:
    """The content of a file, in parts. Large bodies are compressed, if there is a version for it:
    writing and syncing all bytes takes longer."""
    version = 1
    if file_format.version >= COMPRESSED_VERSION and len(body) >= COMPRESSED_FROM_BYTES:
        version, body = COMPRESSED_VERSION, _compressed(body)
    fields = _FIELDS.pack(header.start, header.end, header.active, len(body), crc32(body))
    return file_format.header(version) + fields + _CHECKSUM.pack(crc32(fields)), body


def _compressed(body: bytes | memoryview) -> bytes:
    import pyarrow as pa  # most readers and writers do without

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


def read_header(file_format: FileFormat, path: Path) -> BatchHeader:
    with os_errors("read a batch", path), path.open("rb") as file:
        return _decode_header(file_format, path, file.read(_BODY_START))[0]


def read_batch(file_format: FileFormat, path: Path) -> tuple[BatchHeader, bytes]:
    """The header and the body; CorruptionError if a bit of either has changed."""
    with os_errors("read a batch", path):
        raw = path.read_bytes()
    version = file_format.check(raw, path)
    header, body_bytes, body_crc = _decode_header(file_format, path, raw[:_BODY_START])
    body = raw[_BODY_START:]
    if len(body) != body_bytes:
        raise corrupt(path, len(raw), f"it should have {body_bytes + _BODY_START} bytes")
    if crc32(body) != body_crc:
        raise corrupt(path, _BODY_START, "the checksum of its content is wrong")
    return header, _decompressed(body, path) if version == COMPRESSED_VERSION else body


def decoded(decoder: msgspec.msgpack.Decoder[T], body: bytes, path: Path) -> T:
    """What a body says; CorruptionError if it is not of the form that its file has."""
    try:
        return decoder.decode(body)
    except msgspec.DecodeError as error:
        raise corrupt(path, _BODY_START, f"its content cannot be read: {error}") from None


def _decode_header(file_format: FileFormat, path: Path, raw: bytes) -> tuple[BatchHeader, int, int]:
    file_format.check(raw, path)
    if len(raw) < _BODY_START:
        raise corrupt(path, len(raw), "its header is cut short")
    fields = raw[FileFormat.SIZE : FileFormat.SIZE + _FIELDS.size]
    (checksum,) = _CHECKSUM.unpack_from(raw, _BODY_START - _CHECKSUM.size)
    if crc32(fields) != checksum:
        raise corrupt(path, FileFormat.SIZE, "the checksum of its header is wrong")
    start, end, active, body_bytes, body_crc = _FIELDS.unpack(fields)
    if not path.name.startswith(batch_name(start, end, "")):
        raise corrupt(path, FileFormat.SIZE, f"its content is that of batch [{start}, {end})")
    return BatchHeader(start, end, active), body_bytes, body_crc
