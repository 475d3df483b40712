"""Kernels that pack what was read as MessagePack, byte for byte as `penstock.packing` would.

A packed row goes on as it is: into a message, to where events are kept, to the bucket of its row.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from penstock.flow.columnar.json_kernels import ABSENT, GIVEN, INSERT, UPSERT, Cells, ParsedEvents
from penstock.flow.columnar.layout import BOOLEAN, DOUBLE, TEXT, Bytes8, Ints
from penstock.kernels.compiled import inlined, njit

MOST_BYTES = 9
"""Of a packed number; of a text, without its letters."""

_NIL, _FALSE, _DOUBLE = 0xC0, 0xC2, 0xCB
_FIX_ARRAY, _ARRAY_16, _ARRAY_32 = 0x90, 0xDC, 0xDD
_FIX_TEXT, _TEXT_8, _TEXT_16, _TEXT_32 = 0xA0, 0xD9, 0xDA, 0xDB
_UINT_8, _UINT_16, _UINT_32, _UINT_64 = 0xCC, 0xCD, 0xCE, 0xCF
_INT_8, _INT_16, _INT_32, _INT_64 = 0xD0, 0xD1, 0xD2, 0xD3


@njit
def _put_big(out: Bytes8, at: int, value: int, count: int) -> int:
    """The last bytes of a number, the highest first."""
    for i in range(count):
        out[at + i] = (value >> 8 * (count - 1 - i)) & 0xFF
    return at + count


@njit
def _put_marked(out: Bytes8, at: int, mark: int, value: int, count: int) -> int:
    out[at] = mark
    return _put_big(out, at + 1, value, count)


@njit
def put_integer(out: Bytes8, at: int, value: int) -> int:
    if -32 <= value < 128:
        out[at] = value & 0xFF
        return at + 1
    if value >= 0:
        if value < 1 << 8:
            return _put_marked(out, at, _UINT_8, value, 1)
        if value < 1 << 16:
            return _put_marked(out, at, _UINT_16, value, 2)
        if value < 1 << 32:
            return _put_marked(out, at, _UINT_32, value, 4)
        return _put_marked(out, at, _UINT_64, value, 8)
    if value >= -(1 << 7):
        return _put_marked(out, at, _INT_8, value, 1)
    if value >= -(1 << 15):
        return _put_marked(out, at, _INT_16, value, 2)
    if value >= -(1 << 31):
        return _put_marked(out, at, _INT_32, value, 4)
    return _put_marked(out, at, _INT_64, value, 8)


@njit
def put_array(out: Bytes8, at: int, length: int) -> int:
    """What stands before so many values."""
    if length < 16:
        out[at] = _FIX_ARRAY | length
        return at + 1
    if length < 1 << 16:
        return _put_marked(out, at, _ARRAY_16, length, 2)
    return _put_marked(out, at, _ARRAY_32, length, 4)


@njit
def _put_text(out: Bytes8, at: int, data: Bytes8, first: int, length: int) -> int:
    if length < 32:
        out[at] = _FIX_TEXT | length
        at += 1
    elif length < 1 << 8:
        at = _put_marked(out, at, _TEXT_8, length, 1)
    elif length < 1 << 16:
        at = _put_marked(out, at, _TEXT_16, length, 2)
    else:
        at = _put_marked(out, at, _TEXT_32, length, 4)
    return put_bytes(out, at, data, first, length)


@njit
def put_bytes(out: Bytes8, at: int, data: Bytes8, first: int, length: int) -> int:
    for i in range(length):
        out[at + i] = data[first + i]
    return at + length


@inlined
def put_value(out: Bytes8, at: int, sheet: ParsedEvents, i: int, column: int) -> int:
    fields, kind = sheet.fields, sheet.form.kinds[column]
    value = fields.values[i, column]
    if fields.states[i, column] != GIVEN:
        out[at] = _NIL
        return at + 1
    if kind == TEXT:
        return _put_text(out, at, sheet.data, value, fields.lengths[i, column])
    if kind == DOUBLE:
        return _put_marked(out, at, _DOUBLE, value, 8)
    if kind == BOOLEAN:
        out[at] = _FALSE + value
        return at + 1
    return put_integer(out, at, value)


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
        at = put_value(out, at, sheet, i, column)
    return at


@inlined
def _put_given(out: Bytes8, at: int, sheet: ParsedEvents, i: int) -> int:
    """The numbers of the columns that an event gives; all, if it gives a whole row."""
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
    between: Bytes8,
    behind: Bytes8,
    with_key: bool,
) -> tuple[Bytes8, Ints]:
    """For each chosen event: some bytes, its offset, more bytes, its offset as a key (if wanted),
    its row, and some bytes again. All in one, and where each ends."""
    fixed = len(before) + len(between) + len(behind) + 3 * MOST_BYTES
    out = np.empty(_most_bytes(sheet, chosen, fixed), np.uint8)
    ends = np.empty(len(chosen), np.int64)
    at = 0
    for k in range(len(chosen)):
        i = chosen[k]
        at = put_bytes(out, at, before, 0, len(before))
        at = put_integer(out, at, sheet.offsets[i])
        at = put_bytes(out, at, between, 0, len(between))
        if with_key:
            at = put_integer(out, put_array(out, at, 1), sheet.offsets[i])
        at = put_row(out, at, sheet, i)
        at = put_bytes(out, at, behind, 0, len(behind))
        ends[k] = at
    return out[:at], ends


@njit
def pack_changes(
    sheet: ParsedEvents, chosen: Ints, name: Bytes8, packed_ops: Bytes8, op_ends: Ints
) -> tuple[Bytes8, Ints]:
    """What the chosen events ask for: offset, name of the table, operation, key, row, and the
    columns that are given. All in one, and where each ends."""
    width = len(sheet.form.kinds)
    fixed = len(name) + len(packed_ops) + MOST_BYTES * (width + 5)
    # A key repeats values of its row.
    out = np.empty(2 * _most_bytes(sheet, chosen, fixed), np.uint8)
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
def _most_bytes(sheet: ParsedEvents, chosen: Ints, fixed: int) -> int:
    """How much some rows take at most, with so many bytes beside each."""
    width = len(sheet.form.kinds)
    most = len(chosen) * (fixed + MOST_BYTES * (width + 1))
    for column in range(width):
        if sheet.form.kinds[column] == TEXT:
            for i in chosen:
                most += _letters(sheet.fields, i, column)
    return most


@njit
def _letters(fields: Cells, i: int, column: int) -> int:
    """The bytes of a text, if there is one."""
    return int(fields.lengths[i, column]) if fields.states[i, column] == GIVEN else 0


def _crc_table() -> npt.NDArray[np.uint32]:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0xEDB88320), table >> 1)
    return table


_CRC = _crc_table()
CRC_START = np.uint32(0xFFFFFFFF)


@njit
def hash_keys(sheet: ParsedEvents, before: Bytes8) -> npt.NDArray[np.uint32]:
    """The CRC-32 of some bytes followed by the packed key, for each event."""
    count = len(sheet.offsets)
    found = np.empty(count, np.uint32)
    packed = np.empty(_most_key_bytes(sheet), np.uint8)
    start = update_crc(CRC_START, before, 0, len(before))
    for i in range(count):
        found[i] = ~update_crc(start, packed, 0, put_key(packed, 0, sheet, i))
    return found


@njit
def _most_key_bytes(sheet: ParsedEvents) -> int:
    most = MOST_BYTES * (len(sheet.form.key) + 1)
    for column in sheet.form.key:
        longest = 0
        if sheet.form.kinds[column] == TEXT:
            for i in range(len(sheet.offsets)):
                longest = max(longest, _letters(sheet.fields, i, column))
        most += longest
    return most


@njit
def update_crc(crc: np.uint32, data: Bytes8, at: int, end: int) -> np.uint32:
    """Go on with a CRC-32, from `CRC_START` on; its complement is what zlib gives."""
    for i in range(at, end):
        crc = _CRC[(crc ^ data[i]) & 0xFF] ^ (crc >> np.uint32(8))
    return crc


@njit
def gather_texts(sheet: ParsedEvents, column: int) -> tuple[Bytes8, Ints]:
    """The texts of a column one behind the other, and where each begins and ends; nothing where
    there is none."""
    count = len(sheet.offsets)
    ends = np.zeros(count + 1, np.int64)
    for i in range(count):
        ends[i + 1] = ends[i] + _letters(sheet.fields, i, column)
    out = np.empty(ends[count], np.uint8)
    for i in range(count):
        first, length = sheet.fields.values[i, column], ends[i + 1] - ends[i]
        put_bytes(out, ends[i], sheet.data, first, length)
    return out, ends
