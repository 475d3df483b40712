"""Relations as kernels see them: flat arrays that describe the columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from penstock.catalog import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    Relation,
    StringType,
    TimestampType,
    ValueType,
    XmlType,
)
from penstock.kernels.arrays import Bytes8, Codes8, Flags, Ints

WIDE, INTEGER, DECIMAL, DOUBLE, BOOLEAN, TEXT, DATE, TIMESTAMP, ZONED = range(9)
"""Kinds of columns. `WIDE` are decimals that may not fit 64 bits."""

MAX_DIGITS = 18
"""Decimal digits that fit 64 bits."""

_NO_LIMIT = (1 << 63) - 1


class Names(NamedTuple):
    """Concatenated names; name `i` ends at `ends[i]`."""

    letters: Bytes8
    ends: Ints


class ColumnLayout(NamedTuple):
    """The columns of one relation."""

    names: Names
    kinds: Codes8
    most: Ints
    """By column: the largest magnitude of stored numbers; for `WIDE` numbers, the maximum number of
    digits; for texts, the maximum number of characters."""
    scale: Ints
    nullable: Flags
    is_key: Flags
    key: Ints
    is_stream: bool


def names_of(names: list[str]) -> Names:
    encoded = [name.encode() for name in names]
    letters = np.frombuffer(b"".join(encoded), np.uint8)
    return Names(letters, np.cumsum([len(name) for name in encoded], dtype=np.int64))


def form_of(relation: Relation) -> ColumnLayout:
    columns = relation.columns
    read = [_kernel_column(column.type) for column in columns]
    return ColumnLayout(
        names_of([column.name for column in columns]),
        np.array([one.kind for one in read], np.int8),
        np.array([one.most for one in read], np.int64),
        np.array([one.scale for one in read], np.int64),
        np.array([column.nullable for column in columns], np.bool_),
        np.array([i in relation.key for i in range(len(columns))], np.bool_),
        np.array(relation.key, np.int64),
        relation.is_stream,
    )


class KernelColumn(NamedTuple):
    """How kernels read the values of a column type."""

    kind: int
    most: int = _NO_LIMIT
    scale: int = 0


def _decimal(one: DecimalType) -> KernelColumn:
    if one.precision > MAX_DIGITS:
        return KernelColumn(WIDE, one.precision, one.scale)
    return KernelColumn(DECIMAL, int(10**one.precision) - 1, one.scale)


KERNEL_COLUMNS: dict[type[ValueType], Callable[[Any], KernelColumn]] = {
    IntegerType: lambda one: KernelColumn(INTEGER, one.highest),
    DecimalType: _decimal,
    DoubleType: lambda _: KernelColumn(DOUBLE),
    BooleanType: lambda _: KernelColumn(BOOLEAN),
    StringType: lambda one: KernelColumn(TEXT, one.max_length or _NO_LIMIT),
    DateType: lambda _: KernelColumn(DATE),
    TimestampType: lambda one: KernelColumn(ZONED if one.zoned else TIMESTAMP),
    # Maximum length -1: documents are parsed by the plain reader, kernels only pack stored ones.
    XmlType: lambda _: KernelColumn(TEXT, -1),
}


def _kernel_column(value_type: ValueType) -> KernelColumn:
    return KERNEL_COLUMNS[type(value_type)](value_type)
