"""Relations as the kernels see them: flat arrays that say how the values of each column look."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from penstock.catalog import (
    Column,
    DecimalType,
    IntegerType,
    Relation,
    StringType,
    TimestampType,
)
from penstock.kernels.arrays import Bytes8, Codes8, Flags, Ints

OTHER, INTEGER, DECIMAL, DOUBLE, BOOLEAN, TEXT, DATE, TIMESTAMP, ZONED = range(9)
"""Kinds of columns. Of `OTHER` the kernel reads only NULL."""

MAX_DIGITS = 18
"""So many digits fit 64 bits."""

_KEY_KINDS = frozenset({INTEGER, DECIMAL, TEXT, DATE, TIMESTAMP, ZONED})
"""Kinds whose stored values are their own keys."""

_KINDS = {
    "integer": INTEGER,
    "double": DOUBLE,
    "boolean": BOOLEAN,
    "string": TEXT,
    "date": DATE,
}
_NO_LIMIT = (1 << 63) - 1


class Names(NamedTuple):
    """Some names, one behind the other."""

    letters: Bytes8
    ends: Ints


class ColumnLayout(NamedTuple):
    """The columns of one relation."""

    names: Names
    kinds: Codes8
    most: Ints
    """How large stored numbers may be, with any sign; how many characters a text may have."""
    scale: Ints
    nullable: Flags
    is_key: Flags
    key: Ints
    is_stream: bool


def names_of(names: list[str]) -> Names:
    encoded = [name.encode() for name in names]
    letters = np.frombuffer(b"".join(encoded), np.uint8)
    return Names(letters, np.cumsum([len(name) for name in encoded], dtype=np.int64))


def form_of(relation: Relation) -> ColumnLayout | None:
    """None if the keys of the relation are not for the kernels."""
    columns = relation.columns
    kinds = [_kind(column) for column in columns]
    if any(kinds[i] not in _KEY_KINDS for i in relation.key):
        return None
    return ColumnLayout(
        names_of([column.name for column in columns]),
        np.array(kinds, np.int8),
        np.array([_most(column) for column in columns], np.int64),
        np.array([c.type.scale if isinstance(c.type, DecimalType) else 0 for c in columns]),
        np.array([column.nullable for column in columns], np.bool_),
        np.array([i in relation.key for i in range(len(columns))], np.bool_),
        np.array(relation.key, np.int64),
        relation.is_stream,
    )


def _kind(column: Column) -> int:
    if isinstance(column.type, DecimalType):
        return DECIMAL if column.type.precision <= MAX_DIGITS else OTHER
    if isinstance(column.type, TimestampType):
        return ZONED if column.type.zoned else TIMESTAMP
    return _KINDS.get(column.type.kind, OTHER)


def _most(column: Column) -> int:
    if isinstance(column.type, IntegerType):
        return column.type.highest
    if isinstance(column.type, DecimalType):
        return int(10 ** min(column.type.precision, MAX_DIGITS)) - 1
    if isinstance(column.type, StringType) and column.type.max_length is not None:
        return column.type.max_length
    return _NO_LIMIT
