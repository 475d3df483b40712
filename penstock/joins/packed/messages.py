"""The effects of steps of packed groups on the points of a space, as packed messages.

`penstock.joins.group_batch` builds the same messages as objects.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc

from penstock.joins.kernels.gap_steps import BEGIN, END, NEW, NONE, OLD
from penstock.joins.kernels.gap_steps_many import HIDDEN, LOWER, SHOWN, UPPER, VALUE, ManyEffects
from penstock.joins.packed.coding import RankedValues
from penstock.joins.packed.groups import GroupRun, RowTable
from penstock.joins.packed.interface import PositionedMessages
from penstock.joins.packed.steps_codec import StepTable
from penstock.kernels.arrays import Bytes8, Ints
from penstock.kernels.byte_spans import ensure_room, gather
from penstock.kernels.byte_strings import put_bytes
from penstock.kernels.compiled import njit
from penstock.kernels.message_parts import put_old, put_start
from penstock.kernels.msgpack_write import MOST_BYTES, put_array, put_integer, put_nil
from penstock.kernels.packed_values import Packed
from penstock.packing import pack
from penstock.predicates.codes import NULL_CODE

_NEITHER = 0
_KEY = 2  # first entry of a packed cut next to a value that is not NULL


class _Wanted(NamedTuple):
    """Messages to write, in order: the step of each; the row of the other side that it carries; and
    whether that is `SHOWN` or `HIDDEN`, or `_NEITHER` if it carries the step's own row."""

    steps: Ints
    rows: Ints
    marks: Ints


class FilterValues(NamedTuple):
    """The filter values of rows, for writing cuts next to them."""

    codes: Ints
    values: RankedValues


def space_messages(
    run: GroupRun, space: int, columns: Sequence[int], found: ManyEffects, filters: FilterValues
) -> PositionedMessages:
    """The messages of one space, given the effects of the steps on its points. `columns` are those
    that conditions mention."""
    wanted = _in_order(run, found)
    packed = _pack_messages(
        run.heap,
        run.steps,
        run.table,
        found,
        filters,
        wanted,
        np.array(columns, np.int64),
        np.frombuffer(pack(space), np.uint8),
    )
    steps = run.steps
    return PositionedMessages(
        steps.offsets[wanted.steps], steps.steps[wanted.steps], Packed(*packed)
    )


def _in_order(run: GroupRun, found: ManyEffects) -> _Wanted:
    """The messages by position, then by the bytes of their keys, the first bytes in which messages
    of one position and space differ."""
    spans = found.regions
    own = np.flatnonzero((spans[..., END] > spans[..., BEGIN]).any(axis=1))
    steps = np.concatenate([own, found.steps])
    rows = np.concatenate([np.full(len(own), NONE), found.rows])
    marks = np.concatenate([np.full(len(own), _NEITHER), found.marks])
    ranks = np.concatenate([np.zeros(len(own), np.int64), _key_ranks(run, found.rows)])
    order = np.lexsort((ranks, run.steps.steps[steps], run.steps.offsets[steps]))
    return _Wanted(steps[order], rows[order], marks[order])


def _key_ranks(run: GroupRun, rows: Ints) -> Ints:
    """Numbers in the order of the packed keys of rows."""
    distinct, place = np.unique(rows, return_inverse=True)
    keys = Packed(*gather(run.heap, run.table.keys.take(distinct))).to_arrow()
    ranks = np.empty(len(distinct), np.int64)
    ranks[pc.array_sort_indices(keys).to_numpy()] = np.arange(len(distinct))
    return ranks[place]


@njit
def _pack_messages(
    heap: Bytes8,
    steps: StepTable,
    table: RowTable,
    found: ManyEffects,
    filters: FilterValues,
    wanted: _Wanted,
    columns: Ints,
    space: Bytes8,
) -> tuple[Bytes8, Ints]:
    """The concatenated messages, and where each ends."""
    count = wanted.steps.shape[0]
    out, ends, at = np.empty(256 * count, np.uint8), np.empty(count, np.int64), 0
    most_of_key = MOST_BYTES
    for i in range(filters.values.begin.shape[0] - 1):
        most_of_key = max(most_of_key, filters.values.begin[i + 1] - filters.values.begin[i])
    # A cut is a key and three bytes (`_put_cut`). A reach is two cuts and three bytes
    # (`_put_region`), of which each cut is charged two.
    most_of_cut = most_of_key + 5
    # Beside rows and cuts: position, space, and the starts of arrays; per column of an old row, its
    # number. Two regions of n reaches have 2 n cuts; `_put_alone` has four.
    fixed = space.shape[0] + MOST_BYTES * (columns.shape[0] + 8)
    for i in range(count):
        step, row, mark = wanted.steps[i], wanted.rows[i], wanted.marks[i]
        upserted, removed = found.regions[step, NEW], found.regions[step, OLD]
        cuts = 8 + 2 * (upserted[END] - upserted[BEGIN] + removed[END] - removed[BEGIN])
        if mark == _NEITHER:
            size = (steps.new.end[step] - steps.new.begin[step]) + (
                steps.old.end[step] - steps.old.begin[step]
            )
            size += steps.keys.end[step] - steps.keys.begin[step]
        else:
            size = table.keys.end[row] - table.keys.begin[row]
            size += table.rows.end[row] - table.rows.begin[row]
        out = ensure_room(out, at, at + fixed + size + cuts * most_of_cut)
        at = put_integer(out, put_start(out, at), steps.offsets[step])
        at = put_bytes(out, put_integer(out, at, steps.steps[step]), space, 0, space.shape[0])
        if mark == _NEITHER:
            at = _put_own_row(out, at, heap, steps, found, filters, columns, step)
        else:
            around = found.around[step]
            at = _put_other_row(out, at, heap, table, around, filters, columns, row, mark)
        at = put_array(out, at, 0)
        ends[i] = at
    return out[:at], ends


@njit
def _put_own_row(
    out: Bytes8,
    at: int,
    heap: Bytes8,
    steps: StepTable,
    found: ManyEffects,
    filters: FilterValues,
    columns: Ints,
    step: int,
) -> int:
    """The row that a step changes, and the regions that upsert and remove it."""
    upserted, removed = found.regions[step, NEW], found.regions[step, OLD]
    at = put_bytes(
        out, at, heap, steps.keys.begin[step], steps.keys.end[step] - steps.keys.begin[step]
    )
    if upserted[BEGIN] < upserted[END]:
        begin = steps.new.begin[step]
        at = put_bytes(out, at, heap, begin, steps.new.end[step] - begin)
    else:
        at = put_nil(out, at)
    at = _put_region(out, at, found, filters, upserted[BEGIN], upserted[END])
    if removed[BEGIN] < removed[END]:
        at = put_old(out, at, heap, steps.old.begin[step], columns)
    else:
        at = put_nil(out, at)
    return _put_region(out, at, found, filters, removed[BEGIN], removed[END])


@njit
def _put_other_row(
    out: Bytes8,
    at: int,
    heap: Bytes8,
    table: RowTable,
    around: Ints,
    filters: FilterValues,
    columns: Ints,
    row: int,
    mark: int,
) -> int:
    """A row of the other side that a step shows or hides, and the regions concerned."""
    key, begin = table.keys.begin[row], table.rows.begin[row]
    at = put_bytes(out, at, heap, key, table.keys.end[row] - key)
    if mark & SHOWN:
        at = put_bytes(out, at, heap, begin, table.rows.end[row] - begin)
        at = put_nil(out, _put_alone(out, at, filters, around[NEW]))
    else:
        at = put_array(out, put_nil(out, at), 0)
        at = put_old(out, at, heap, begin, columns)
    return _put_alone(out, at, filters, around[OLD]) if mark & HIDDEN else put_array(out, at, 0)


@njit
def _put_region(
    out: Bytes8, at: int, found: ManyEffects, filters: FilterValues, begin: int, end: int
) -> int:
    """The region of a base row, one reach per run; see `penstock.joins.visibility.reaches`."""
    at = put_array(out, at, end - begin)
    for run in range(begin, end):
        at = put_nil(out, put_array(out, at, 4))
        at = _put_cut(out, at, filters, found.last[run], 0)
        at = _put_cut(out, at, filters, found.first[run], 1)
        at = put_nil(out, at)
    return at


@njit
def _put_alone(out: Bytes8, at: int, filters: FilterValues, around: Ints) -> int:
    """The region of the intervals that contain a value and neither of its neighbours; see
    `penstock.joins.visibility.alone`."""
    at = put_array(out, put_array(out, at, 1), 4)
    at = _put_cut(out, at, filters, around[LOWER], 1)
    at = _put_cut(out, at, filters, around[VALUE], 0)
    at = _put_cut(out, at, filters, around[VALUE], 1)
    return _put_cut(out, at, filters, around[UPPER], 0)


@njit
def _put_cut(out: Bytes8, at: int, filters: FilterValues, row: int, is_above: int) -> int:
    """The cut just below or above the filter value of a row, nil if there is no row; see
    `penstock.predicates.intervals`."""
    if row == NONE:
        return put_nil(out, at)
    if filters.codes[row] == NULL_CODE:
        return put_integer(out, put_array(out, at, 1), is_above)
    values = filters.values
    key = values.keys[row]
    at = put_integer(out, put_array(out, at, 3), _KEY)
    if values.begin.shape[0] > 1:
        begin = values.begin[key]
        at = put_bytes(out, at, values.words, begin, values.begin[key + 1] - begin)
    else:
        at = put_integer(out, at, key)
    return put_integer(out, at, is_above)
