"""Kernels that pack parsed events as MessagePack, byte for byte as `penstock.packing` would.

Packed rows are not decoded again on their way into messages, stored events and row buckets.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from penstock.flow.columnar.json_kernels import ABSENT, GIVEN, INSERT, UPSERT, Cells, ParsedEvents
from penstock.flow.columnar.layout import BOOLEAN, DOUBLE, TEXT, WIDE
from penstock.kernels.arrays import Bytes8, Ints
from penstock.kernels.byte_strings import put_bytes
from penstock.kernels.compiled import inlined, njit
from penstock.kernels.crc32 import CRC_START, update_crc
from penstock.kernels.double_keys import double_key
from penstock.kernels.msgpack_write import (
    MOST_BYTES,
    put_array,
    put_integer,
    put_marked,
    put_text,
)
from penstock.kernels.wide_integers import MOST_WIDE_BYTES, put_wide

_NIL, _FALSE, _DOUBLE = 0xC0, 0xC2, 0xCB


@inlined
def put_value(out: Bytes8, at: int, sheet: ParsedEvents, i: int, column: int) -> int:
    fields, kind = sheet.fields, sheet.form.kinds[column]
    value = fields.values[i, column]
    if fields.states[i, column] != GIVEN:
        out[at] = _NIL
        return at + 1
    if kind == TEXT:
        return put_text(out, at, sheet.data, value, fields.lengths[i, column])
    if kind == DOUBLE:
        return put_marked(out, at, _DOUBLE, value, 8)
    if kind == BOOLEAN:
        out[at] = _FALSE + value
        return at + 1
    if kind == WIDE:
        return put_wide(out, at, fields.high[i, column], value)
    return put_integer(out, at, value)


@inlined
def put_key_value(out: Bytes8, at: int, sheet: ParsedEvents, i: int, column: int) -> int:
    """The comparable form of a non-NULL value: equal values have equal bytes."""
    kind, value = sheet.form.kinds[column], sheet.fields.values[i, column]
    if kind == DOUBLE:
        return put_integer(out, at, double_key(value))
    if kind == BOOLEAN:
        return put_integer(out, at, value)
    return put_value(out, at, sheet, i, column)


@inlined
def put_row(out: Bytes8, at: int, sheet: ParsedEvents, i: int) -> int:
    width = len(sheet.form.kinds)
    at = put_array(out, at, width)
    for column in range(width):
        at = put_value(out, at, sheet, i, column)
    return at


@inlined
def put_key(out: Bytes8, at: int, sheet: ParsedEvents, i: int) -> int:
    at = put_array(out, at, len(sheet.form.key))
    for column in sheet.form.key:
        at = put_key_value(out, at, sheet, i, column)
    return at


@inlined
def _put_given(out: Bytes8, at: int, sheet: ParsedEvents, i: int) -> int:
    """The positions of the columns that an event contains; all, if it has a whole row."""
    states, op = sheet.fields.states[i], sheet.ops[i]
    is_whole = op in (INSERT, UPSERT)
    count = 0
    for state in states:
        count += is_whole or state != ABSENT
    at = put_array(out, at, count)
    for column in range(len(states)):
        if is_whole or states[column] != ABSENT:
            at = put_integer(out, at, column)
    return at


@njit
def pack_events(
    sheet: ParsedEvents,
    chosen: Ints,
    before: Bytes8,
    with_key: bool,
) -> tuple[Bytes8, Ints]:
    """For each chosen event: the bytes `before`, its offset, its offset as a key (optional) and its
    row. Concatenated, and where each ends."""
    fixed = len(before) + 3 * MOST_BYTES
    out = np.empty(most_bytes(sheet, chosen, fixed), np.uint8)
    ends = np.empty(len(chosen), np.int64)
    at = 0
    for k in range(len(chosen)):
        i = chosen[k]
        at = put_bytes(out, at, before, 0, len(before))
        at = put_integer(out, at, sheet.offsets[i])
        if with_key:
            at = put_integer(out, put_array(out, at, 1), sheet.offsets[i])
        at = put_row(out, at, sheet, i)
        ends[k] = at
    return out[:at], ends


@njit
def pack_changes(
    sheet: ParsedEvents, chosen: Ints, name: Bytes8, packed_ops: Bytes8, op_ends: Ints
) -> tuple[Bytes8, Ints]:
    """The chosen events as changes: offset, name of the table, operation, key, row, and the columns
    that are given. Concatenated, and where each ends."""
    width = len(sheet.form.kinds)
    fixed = len(name) + len(packed_ops) + MOST_BYTES * (width + 5)
    # Twice the bound of the rows, because a key repeats values of its row.
    out = np.empty(2 * most_bytes(sheet, chosen, fixed), np.uint8)
    ends = np.empty(len(chosen), np.int64)
    at = 0
    for k in range(len(chosen)):
        i = chosen[k]
        at = put_integer(out, put_array(out, at, 6), sheet.offsets[i])
        at = put_bytes(out, at, name, 0, len(name))
        first = op_ends[sheet.ops[i] - 1] if sheet.ops[i] else 0
        at = put_bytes(out, at, packed_ops, first, op_ends[sheet.ops[i]] - first)
        at = put_key(out, at, sheet, i)
        at = put_row(out, at, sheet, i)
        at = _put_given(out, at, sheet, i)
        ends[k] = at
    return out[:at], ends


@njit
def most_bytes(sheet: ParsedEvents, chosen: Ints, fixed: int) -> int:
    """An upper bound of the packed size of rows, with `fixed` more bytes for each."""
    width = len(sheet.form.kinds)
    most = len(chosen) * (fixed + MOST_BYTES * (width + 1))
    for column in range(width):
        if sheet.form.kinds[column] == TEXT:
            for i in chosen:
                most += _letters(sheet.fields, i, column)
        elif sheet.form.kinds[column] == WIDE:
            most += len(chosen) * MOST_WIDE_BYTES
    return most


@njit
def _letters(fields: Cells, i: int, column: int) -> int:
    """The length of a text in bytes, 0 if there is none."""
    return int(fields.lengths[i, column]) if fields.states[i, column] == GIVEN else 0


@njit
def hash_keys(sheet: ParsedEvents, before: Bytes8) -> npt.NDArray[np.uint32]:
    """For each event, the CRC-32 of the bytes `before` followed by the packed key."""
    count = len(sheet.offsets)
    found = np.empty(count, np.uint32)
    packed = np.empty(_most_key_bytes(sheet), np.uint8)
    start = update_crc(CRC_START, before, 0, len(before))
    for i in range(count):
        found[i] = ~update_crc(start, packed, 0, put_key(packed, 0, sheet, i))
    return found


@njit
def _most_key_bytes(sheet: ParsedEvents) -> int:
    most = MOST_WIDE_BYTES * (len(sheet.form.key) + 1)
    for column in sheet.form.key:
        longest = 0
        if sheet.form.kinds[column] == TEXT:
            for i in range(len(sheet.offsets)):
                longest = max(longest, _letters(sheet.fields, i, column))
        most += longest
    return most


@njit
def gather_texts(sheet: ParsedEvents, column: int) -> tuple[Bytes8, Ints]:
    """The texts of a column, concatenated, and where each begins and ends; empty where there is
    none."""
    count = len(sheet.offsets)
    ends = np.zeros(count + 1, np.int64)
    for i in range(count):
        ends[i + 1] = ends[i] + _letters(sheet.fields, i, column)
    out = np.empty(ends[count], np.uint8)
    for i in range(count):
        first, length = sheet.fields.values[i, column], ends[i + 1] - ends[i]
        put_bytes(out, ends[i], sheet.data, first, length)
    return out, ends
