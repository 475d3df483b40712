"""Decoding columns of packed rows in a kernel."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from penstock.catalog import Relation
from penstock.flow.columnar.columns import PlainColumns
from penstock.flow.columnar.json_kernels import GIVEN, NULL, Cells, ParsedEvents, empty_cells
from penstock.flow.columnar.layout import DOUBLE, TEXT, WIDE, ColumnLayout
from penstock.kernels.arrays import Bytes8, Codes8, Ints
from penstock.kernels.compiled import njit
from penstock.kernels.msgpack_read import (
    NIL,
    array_start,
    big_endian,
    integer_at,
    text_start,
    value_end,
)
from penstock.kernels.wide_integers import wide_at


def columns_of(
    relation: Relation, form: ColumnLayout, heap: Bytes8, rows: Ints, columns: Collection[int]
) -> PlainColumns:
    """These columns of the rows that begin at `rows`."""
    fields = empty_cells(len(rows), form)
    _read_columns(heap, rows, np.array(sorted(columns), np.int64), form.kinds, fields)
    unknown = np.zeros(len(rows), np.int8)
    return PlainColumns(relation, ParsedEvents(heap, form, rows, unknown, fields))


@njit
def _read_columns(heap: Bytes8, rows: Ints, columns: Ints, kinds: Codes8, fields: Cells) -> None:
    """Fill `fields`, one row per entry of `rows`; `columns` ascend, so one pass reads a row."""
    for i in range(rows.shape[0]):
        at, passed = array_start(heap, rows[i])[1], 0
        for column in columns:
            for _ in range(passed, column):
                at = value_end(heap, at)
            end, passed = value_end(heap, at), column + 1
            if heap[at] == NIL:
                fields.states[i, column] = NULL
            else:
                fields.states[i, column] = GIVEN
                if kinds[column] == TEXT:
                    fields.values[i, column] = text_start(heap, at)
                    fields.lengths[i, column] = end - text_start(heap, at)
                elif kinds[column] == DOUBLE:
                    fields.values[i, column] = big_endian(heap, at + 1, 8)
                elif kinds[column] == WIDE:
                    fields.high[i, column], fields.values[i, column] = wide_at(heap, at)
                else:
                    fields.values[i, column] = integer_at(heap, at)
            at = end
