"""Kernels that decode packed changes and apply them to packed rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from penstock.flow.columnar.json_kernels import DELETE, INSERT, OP_NAMES, REMOVE, UPDATE
from penstock.flow.columnar.json_scan import find_name
from penstock.kernels.arrays import Bytes8, Codes8, Ints
from penstock.kernels.byte_spans import NOWHERE, Spans, ensure_room
from penstock.kernels.byte_strings import put_bytes
from penstock.kernels.compiled import njit
from penstock.kernels.msgpack_read import (
    DOUBLE,
    array_start,
    big_endian,
    integer_at,
    is_same,
    text_start,
    value_end,
)
from penstock.kernels.msgpack_write import put_array

_MAGNITUDE, _INFINITY = (1 << 63) - 1, 0x7FF << 52
_FEW = 5  # maximum bytes of the start of an array


class ChangeTable(NamedTuple):
    """Changes; tables, keys and rows as spans in a buffer."""

    offsets: Ints
    tables: Spans
    ops: Codes8
    """Positions of operations in `penstock.flow.columnar.json_kernels.OPS`."""
    keys: Spans
    rows: Spans
    given: Ints
    """Where the array of given columns begins."""

    def take(self, which: npt.NDArray[np.generic]) -> ChangeTable:
        return ChangeTable(
            self.offsets[which],
            self.tables.take(which),
            self.ops[which],
            self.keys.take(which),
            self.rows.take(which),
            self.given[which],
        )


@njit
def read_changes(data: Bytes8, chunks: Ints, count: int) -> ChangeTable:
    """The changes of the chunks that begin at `chunks`, `count` in total: each is an array of
    offset, table, operation, key, row and given columns."""
    offsets, given = np.empty(count, np.int64), np.empty(count, np.int64)
    ops = np.empty(count, np.int8)
    tables = Spans(np.empty(count, np.int64), np.empty(count, np.int64))
    keys = Spans(np.empty(count, np.int64), np.empty(count, np.int64))
    rows = Spans(np.empty(count, np.int64), np.empty(count, np.int64))
    i = 0
    for chunk in chunks:
        left, at = array_start(data, chunk)
        for _ in range(left):
            at = array_start(data, at)[1]
            offsets[i] = integer_at(data, at)
            name = value_end(data, at)
            op = value_end(data, name)
            key = value_end(data, op)
            tables.begin[i], tables.end[i] = name, op
            ops[i] = find_name(data, text_start(data, op), key, OP_NAMES, 0)
            row = value_end(data, key)
            end = value_end(data, row)
            keys.begin[i], keys.end[i], rows.begin[i], rows.end[i] = key, row, row, end
            given[i] = end
            at = value_end(data, end)
            i += 1
    return ChangeTable(offsets, tables, ops, keys, rows, given)


class Resolved(NamedTuple):
    """The result of applying changes."""

    heap: Bytes8
    """All rows: those stored before, those sent, and those that updates combine from both."""
    made: Ints
    """The changes that have an effect."""
    old: Spans
    new: Spans
    """By entry of `made`: the rows before and after."""
    refused: Ints
    """The changes that cannot be applied."""


@njit
def resolve(heap: Bytes8, changes: ChangeTable, numbers: Ints, now: Spans) -> Resolved:
    """Apply changes, in order, to the rows of keys; `numbers[i]` is the key of change `i`.

    `now` has the current row of each key, and is updated to the state after the changes. An updated
    row takes each column from the old row or from the change, so it is no longer than both together
    and the start of an array.
    """
    count, used = changes.offsets.shape[0], heap.shape[0]
    made, refused = np.empty(count, np.int64), np.empty(count, np.int64)
    old = Spans(np.empty(count, np.int64), np.empty(count, np.int64))
    new = Spans(np.empty(count, np.int64), np.empty(count, np.int64))
    found = bad = 0
    for i in range(count):
        op, key = changes.ops[i], numbers[i]
        begin, end = now.begin[key], now.end[key]
        row, row_end = changes.rows.begin[i], changes.rows.end[i]
        is_there = begin != NOWHERE
        if (op == INSERT and is_there) or (op in (UPDATE, DELETE) and not is_there):
            refused[bad] = i
            bad += 1
            continue
        if op == REMOVE and not is_there:
            continue
        if op in (DELETE, REMOVE):
            row, row_end = NOWHERE, NOWHERE
        elif op == UPDATE:
            heap = ensure_room(heap, used, used + (end - begin) + (row_end - row) + _FEW)
            row, row_end = used, _put_updated(heap, used, begin, row, changes.given[i])
        if is_there and row != NOWHERE and is_same_row(heap, begin, row):
            continue
        used = max(used, row_end)
        made[found] = i
        old.begin[found], old.end[found] = begin, end
        new.begin[found], new.end[found] = row, row_end
        now.begin[key], now.end[key] = row, row_end
        found += 1
    return Resolved(
        heap[:used],
        made[:found],
        Spans(old.begin[:found], old.end[:found]),
        Spans(new.begin[:found], new.end[:found]),
        refused[:bad],
    )


@njit
def _put_updated(heap: Bytes8, at: int, row: int, changed: int, given: int) -> int:
    """Write the row at `row` with the `given` columns of the one at `changed`; returns its end."""
    width, mine = array_start(heap, row)
    theirs = array_start(heap, changed)[1]
    left, next_given = array_start(heap, given)
    at = put_array(heap, at, width)
    for column in range(width):
        my_end, their_end = value_end(heap, mine), value_end(heap, theirs)
        if left > 0 and integer_at(heap, next_given) == column:
            at = put_bytes(heap, at, heap, theirs, their_end - theirs)
            next_given = value_end(heap, next_given)
            left -= 1
        else:
            at = put_bytes(heap, at, heap, mine, my_end - mine)
        mine, theirs = my_end, their_end
    return at


@njit
def is_same_row(data: Bytes8, row: int, other: int) -> bool:
    """Whether two rows are equal; see `penstock.flow.changes.is_same_row`."""
    width, at = array_start(data, row)
    there = array_start(data, other)[1]
    for _ in range(width):
        end, other_end = value_end(data, at), value_end(data, there)
        if not is_same(data, at, end, there, other_end) and not (
            data[at] == DOUBLE and data[there] == DOUBLE and _is_same_double(data, at, there)
        ):
            return False
        at, there = end, other_end
    return True


@njit
def _is_same_double(data: Bytes8, at: int, there: int) -> bool:
    """Whether doubles with different bytes are equal: two zeros, or two NaNs."""
    mine = big_endian(data, at + 1, 8) & _MAGNITUDE
    theirs = big_endian(data, there + 1, 8) & _MAGNITUDE
    return (mine == 0 and theirs == 0) or (mine > _INFINITY and theirs > _INFINITY)


@njit
def pack_entries(heap: Bytes8, keys: Spans, rows: Spans) -> tuple[Bytes8, Ints]:
    """Each row with its key, in the stored form; and where each ends. Sizes are exact."""
    count = keys.begin.shape[0]
    sizes = (keys.end - keys.begin) + (rows.end - rows.begin) + 1
    ends = np.cumsum(sizes)
    out = np.empty(ends[-1] if count else 0, np.uint8)
    for i in range(count):
        at = put_array(out, ends[i] - sizes[i], 2)
        at = put_bytes(out, at, heap, keys.begin[i], keys.end[i] - keys.begin[i])
        put_bytes(out, at, heap, rows.begin[i], rows.end[i] - rows.begin[i])
    return out, ends


@njit
def following_values(data: Bytes8, begin: Ints) -> Ints:
    """The end of each value that begins at `begin`, where the next one begins."""
    found = np.empty(begin.shape[0], np.int64)
    for i in range(begin.shape[0]):
        found[i] = value_end(data, begin[i])
    return found
