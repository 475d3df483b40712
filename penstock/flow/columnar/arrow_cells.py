"""Conversion between parsed columns and Arrow arrays, in both directions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.catalog import Column, Relation, ValueType
from penstock.catalog.arrow_types import exact_arrow_type
from penstock.flow.columnar.columns import PlainColumns
from penstock.flow.columnar.json_kernels import GIVEN, NULL, ParsedEvents, empty_cells
from penstock.flow.columnar.layout import (
    BOOLEAN,
    DATE,
    DECIMAL,
    DOUBLE,
    INTEGER,
    TEXT,
    WIDE,
    form_of,
)
from penstock.flow.columnar.pack_rows import gather_texts
from penstock.kernels.arrays import Bytes8, Flags, Ints


def to_arrow(columns: PlainColumns, column: int) -> pa.Array:
    """The values of one column, as the Arrow type that DuckDB uses for it."""
    sheet = columns.sheet
    wanted = exact_arrow_type(columns.relation.columns[column].type)
    kind, is_null = sheet.form.kinds[column], sheet.fields.states[:, column] != GIVEN
    if kind == TEXT:
        data, ends = gather_texts(sheet, column)
        buffers = [_validity(is_null), pa.py_buffer(ends), pa.py_buffer(data)]
        return pa.Array.from_buffers(pa.large_string(), len(columns), buffers)
    values = np.where(is_null, 0, sheet.fields.values[:, column])
    if kind in (DECIMAL, WIDE):
        high = sheet.fields.high[:, column] if kind == WIDE else values >> 63
        words = np.stack([values, high], axis=1)
        return pa.Array.from_buffers(
            wanted, len(columns), [_validity(is_null), pa.py_buffer(words)]
        )
    if kind == DOUBLE:
        # Columns treat -0.0 as 0.0: see `penstock.expressions.columns`.
        return pa.array(values.view(np.float64) + 0.0, wanted, mask=is_null)
    if kind == BOOLEAN:
        return pa.array(values != 0, wanted, mask=is_null)
    if kind == INTEGER:
        return pa.array(values, pa.int64(), mask=is_null).cast(wanted)
    held = values.astype(np.int32) if kind == DATE else values
    return pa.array(held, mask=is_null).view(wanted)


def _validity(is_null: Flags) -> pa.Buffer:
    return pa.array(~is_null).buffers()[1]


def to_cells(columns: Sequence[Column], arrays: Sequence[pa.Array], count: int) -> ParsedEvents:
    """Rows of these columns only, in the form of parsed events. Values that the column cannot hold
    become NULL."""
    form = form_of(Relation("", tuple(columns), (), is_stream=True))
    fields, texts, used = empty_cells(count, form), [np.empty(0, np.uint8)], 0
    for i, (column, array) in enumerate(zip(columns, arrays, strict=True)):
        is_null = np.asarray(array.is_null())
        if form.kinds[i] == TEXT:
            data, ends = _texts(array)
            fields.values[:, i], fields.lengths[:, i] = ends[:-1] + used, np.diff(ends)
            texts.append(data)
            used += len(data)
        elif form.kinds[i] in (DECIMAL, WIDE):
            words = _words(array.cast(exact_arrow_type(column.type)))
            fields.values[:, i] = words[:, 0]
            if form.kinds[i] == WIDE:
                fields.high[:, i] = words[:, 1]
        else:
            fields.values[:, i], is_null = _numbers(array, column.type, is_null)
        fields.states[:, i] = np.where(is_null, NULL, GIVEN)
    unknown, nowhere = np.zeros(count, np.int8), np.zeros(count, np.int64)
    return ParsedEvents(np.concatenate(texts), form, nowhere, unknown, fields)


def _texts(array: pa.Array) -> tuple[Bytes8, Ints]:
    array = array.cast(pa.large_string())
    _, ends, data = array.buffers()
    places = np.frombuffer(ends, np.int64)[array.offset : array.offset + len(array) + 1]
    letters = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    return letters, places


def _words(array: pa.Array) -> Ints:
    """128-bit decimals: the low words and the high words."""
    words = np.frombuffer(array.buffers()[1], np.int64).reshape(-1, 2)
    return words[array.offset : array.offset + len(array)]


def _numbers(array: pa.Array, value_type: ValueType, is_null: Flags) -> tuple[Ints, Flags]:
    array = array.cast(exact_arrow_type(value_type))
    if pa.types.is_boolean(array.type):
        return np.asarray(array.fill_null(False)).astype(np.int64), is_null
    if pa.types.is_floating(array.type):
        doubles = array.fill_null(0.0).to_numpy(zero_copy_only=False)
        return np.where(np.isnan(doubles), np.nan, doubles).view(np.int64), is_null
    if not pa.types.is_integer(array.type):
        array = array.view(pa.int32() if pa.types.is_date32(array.type) else pa.int64())
    numbers: npt.NDArray[np.int64] = array.fill_null(0).to_numpy(zero_copy_only=False)
    lowest, highest = value_type.key_range
    assert isinstance(lowest, int)
    assert isinstance(highest, int)
    outside = (numbers < lowest) | (numbers > highest)
    return numbers.astype(np.int64), is_null | outside
