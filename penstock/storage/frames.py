"""The bytes of the log: a segment is a file header and then frames.

A frame is a group of records that was appended as one:

    payload length  4 bytes     kinds         4 bytes (a bit for each kind of record inside)
    first offset    8 bytes     record count  4 bytes
    payload crc     4 bytes     header crc    4 bytes (of the 24 bytes before it)
    payload         msgpack list of [kind, body]

The header has a checksum of its own: without it, a flipped bit in a length would look like an
unfinished frame, and everything after it would silently be taken for a torn tail.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple
from zlib import crc32

import msgspec

from penstock.errors import HomeError
from penstock.storage.disk import FileFormat
from penstock.storage.interfaces import Entry, Record, RecordKind

SEGMENT_FORMAT = FileFormat("log segment", b"PENSTLOG", version=1)
COMPACTED_FORMAT = FileFormat("compacted log segment", b"PENSTCMP", version=1)
"""The header is followed by the offset at which the segment ends, the number of bytes of all its
frames, and a checksum of both. Frames may omit offsets whose records no longer matter."""

MAX_RECORD_BYTES = 64 << 20  # 64 MiB
MAX_FRAME_BYTES = 128 << 20  # 128 MiB: two of the largest records, and it must fit in memory
MAX_FRAME_RECORDS = 1 << 20  # about a million: offsets inside a frame stay small

_COMPACTED = struct.Struct("<QQI")
COMPACTED_BYTES = FileFormat.SIZE + _COMPACTED.size

_FIELDS = struct.Struct("<IIQII")
_CHECKSUM = struct.Struct("<I")
_HEADER = struct.Struct("<IIQIII")
HEADER_BYTES = _HEADER.size  # 24 + 4

RawEntry = tuple[int, bytes]

_KINDS = {int(kind): kind for kind in RecordKind}
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(list[tuple[int, bytes]])


class FrameHeader(NamedTuple):
    payload_bytes: int
    kinds: int
    first: int
    records: int
    payload_crc: int


def kind_bits(kinds: Iterable[int]) -> int:
    """A set of record kinds as the bits of one integer."""
    bits = 0
    for kind in kinds:
        bits |= 1 << kind
    return bits


def encode_frame(first: int, entries: Sequence[Entry]) -> bytes:
    """One frame with these records; HomeError if they exceed the limits."""
    if len(entries) > MAX_FRAME_RECORDS:
        raise HomeError(f"one append holds at most {MAX_FRAME_RECORDS} records, not {len(entries)}")
    for index, (_, body) in enumerate(entries):
        if len(body) > MAX_RECORD_BYTES:
            raise HomeError(
                f"a record holds at most {MAX_RECORD_BYTES} bytes, not {len(body)}",
                detail=f"record {index} of {len(entries)} in one append",
            )
    payload = _ENCODER.encode(entries)
    if len(payload) > MAX_FRAME_BYTES:
        raise HomeError(
            f"one append holds at most {MAX_FRAME_BYTES} bytes, not {len(payload)}",
            hint="append fewer records at once",
        )
    kinds = kind_bits({kind for kind, _ in entries})
    fields = _FIELDS.pack(len(payload), kinds, first, len(entries), crc32(payload))
    return fields + _CHECKSUM.pack(crc32(fields)) + payload


def compacted_header(end: int, frames_bytes: int) -> bytes:
    """The bytes before the frames of a compacted segment."""
    fields = struct.pack("<QQ", end, frames_bytes)
    return COMPACTED_FORMAT.header() + fields + _CHECKSUM.pack(crc32(fields))


def compacted_extent(raw: bytes) -> tuple[int, int] | None:
    """The end and the size of a compacted segment that begins with these bytes; None if they are
    damaged."""
    if len(raw) < COMPACTED_BYTES:
        return None
    end, frames_bytes, checksum = _COMPACTED.unpack_from(raw, FileFormat.SIZE)
    if crc32(raw[FileFormat.SIZE : COMPACTED_BYTES - _CHECKSUM.size]) != checksum:
        return None
    return end, COMPACTED_BYTES + frames_bytes


def decode_header(buffer: bytes, at: int) -> FrameHeader | None:
    """The header at this position of the buffer, or None if its checksum is wrong."""
    payload_bytes, kinds, first, records, payload_crc, checksum = _HEADER.unpack_from(buffer, at)
    if crc32(buffer[at : at + _FIELDS.size]) != checksum:
        return None
    return FrameHeader(payload_bytes, kinds, first, records, payload_crc)


def headers_in(block: bytes) -> Iterator[tuple[int, int, int, int] | None]:
    """The (payload length, kinds, first offset, record count) of the consecutive frames from the
    start of a block, as far as their headers are in it; ends with None at a header with a wrong
    checksum.

    `decode_header` as a plain loop: a segment has up to half a million frames, all of them are
    visited when it is opened, and this takes a third of the time.
    """
    at, last, fields_bytes, unpack = 0, len(block) - HEADER_BYTES, _FIELDS.size, _HEADER.unpack_from
    while at <= last:
        payload_bytes, kinds, first, records, _, checksum = unpack(block, at)
        if crc32(block[at : at + fields_bytes]) != checksum:
            yield None
            return
        yield payload_bytes, kinds, first, records
        at += HEADER_BYTES + payload_bytes


def decode_payload(header: FrameHeader, payload: bytes) -> list[RawEntry] | None:
    """The (kind, body) pairs of a frame, or None if the payload is not the one that was written."""
    if crc32(payload) != header.payload_crc:
        return None
    try:
        entries: list[RawEntry] = _DECODER.decode(payload)
    except msgspec.DecodeError:
        return None
    return entries


def record(offset: int, entry: RawEntry) -> Record:
    kind = _KINDS.get(entry[0])
    if kind is None:
        raise HomeError(
            f"the log holds a record of unknown kind {entry[0]} at offset {offset}",
            hint="it was written by a newer release: use that one",
        )
    return Record(offset, kind, entry[1])
