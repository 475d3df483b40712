"""Bound queries as bytes, so that a subscription is bound once and not at every start."""

from __future__ import annotations

from penstock.catalog import Catalog
from penstock.packing import pack, unpack
from penstock.query import Query, plain_query, query_from_plain
from penstock.spaces import Decomposition, decomposition_from_plain, plain_decomposition


def encode_plan(query: Query) -> bytes:
    return pack(plain_query(query))


def decode_plan(plan: bytes, catalog: Catalog) -> Query:
    return query_from_plain(unpack(plan), catalog)


def encode_decomposition(chosen: Decomposition | None) -> bytes | None:
    return None if chosen is None else pack(plain_decomposition(chosen))


def decode_decomposition(stored: bytes | None) -> Decomposition | None:
    return None if stored is None else decomposition_from_plain(unpack(stored))
