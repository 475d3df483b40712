"""Bound queries as bytes, so that a subscription is bound once and not at every start."""

from __future__ import annotations

import msgspec

from penstock.catalog import Catalog
from penstock.sql.query import Query, plain_query, query_from_plain

_BIG_INTEGER = 1
"""The msgpack extension for integers beyond 64 bits: keys of DECIMAL columns have up to 127."""


def encode_plan(query: Query) -> bytes:
    plain = plain_query(query)
    try:
        return msgspec.msgpack.encode(plain)
    except OverflowError:
        return msgspec.msgpack.encode(_with_big_integers(plain))


def decode_plan(plan: bytes, catalog: Catalog) -> Query:
    return query_from_plain(msgspec.msgpack.decode(plan, ext_hook=_read_extension), catalog)


def _with_big_integers(plain: object) -> object:
    if isinstance(plain, list | tuple):
        return [_with_big_integers(item) for item in plain]
    if isinstance(plain, int) and not -(1 << 63) <= plain < 1 << 64:
        raw = plain.to_bytes(plain.bit_length() // 8 + 1, "big", signed=True)
        return msgspec.msgpack.Ext(_BIG_INTEGER, raw)
    return plain


def _read_extension(code: int, raw: memoryview) -> int:
    if code != _BIG_INTEGER:
        raise ValueError(f"unknown extension {code} in a stored plan")
    return int.from_bytes(raw, "big", signed=True)
