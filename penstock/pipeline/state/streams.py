"""The events of streams: kept many in one entry, because they come and are read in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from penstock.catalog import Row
from penstock.packing import pack, read_extension

_Values = tuple[Any, ...]
_decode = msgspec.msgpack.Decoder(
    tuple[str, list[tuple[int, _Values]]], ext_hook=read_extension
).decode


def pack_events(stream: str, events: Sequence[tuple[int, Row]]) -> bytes:
    """Events of one stream with their offsets."""
    return pack((stream, events))


def packed_events(stream: str, events: bytes) -> bytes:
    """The same of an array of them that is packed already."""
    return pack((stream, msgspec.Raw(events)))


def unpack_events(data: bytes) -> Iterator[tuple[int, Row]]:
    return iter(_decode(data)[1])


def stream_of(data: bytes) -> str:
    """The name of the stream whose events these are."""
    name: str = _decode(data)[0]
    return name
