"""Plain data as bytes: MessagePack, with integers of any size.

Rows, keys and cuts are lists of None, bool, int, float and str. MessagePack is limited to 64 bits,
and a scaled DECIMAL(38) is not, so larger integers are encoded as an extension.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

BIG_INTEGER = 1
"""The code of the extension: a signed big-endian integer."""

_encoder = msgspec.msgpack.Encoder()


def pack(plain: object) -> bytes:
    try:
        return _encoder.encode(plain)
    except OverflowError:
        return _encoder.encode(_with_extensions(plain))


def array_header(length: int) -> bytes:
    """The header that turns this many packed values into one packed array."""
    if length < 16:
        return bytes([0x90 | length])
    return b"\xdc" + length.to_bytes(2) if length < 1 << 16 else b"\xdd" + length.to_bytes(4)


def unpack(data: bytes | memoryview) -> Any:
    """Sequences are decoded as lists. msgspec.DecodeError if the bytes are invalid."""
    return _decoder.decode(data)


def _with_extensions(plain: object) -> object:
    if isinstance(plain, list | tuple):
        return [_with_extensions(item) for item in plain]
    if isinstance(plain, int) and not -(1 << 63) <= plain < 1 << 64:
        size = plain.bit_length() // 8 + 1
        return msgspec.msgpack.Ext(BIG_INTEGER, plain.to_bytes(size, signed=True))
    return plain


def read_extension(code: int, data: memoryview) -> int:
    if code != BIG_INTEGER:
        raise msgspec.DecodeError(f"extension {code} is not known")
    return int.from_bytes(data, signed=True)


_decoder = msgspec.msgpack.Decoder(ext_hook=read_extension)
unpack_tuple: Callable[[bytes], tuple[Any, ...]] = msgspec.msgpack.Decoder(
    tuple[Any, ...], ext_hook=read_extension
).decode
"""Decodes a packed row or key to a tuple."""
