"""From changes of packed rows to packed steps of groups; see `penstock.flow.group_steps`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from penstock.flow.columnar.layout import BOOLEAN, DECIMAL, DOUBLE, WIDE, ColumnLayout
from penstock.flow.group_steps import FIRST_STEP
from penstock.flow.packed.rows import PackedDeltas
from penstock.joins.packed.steps_codec import (
    CHANGES,
    ENTERS,
    LEAVES,
    DeltaRows,
    DeltaSteps,
    pack_steps,
)
from penstock.kernels.arrays import Bytes8, Codes8, Ints
from penstock.kernels.byte_spans import NOWHERE, Spans, number_values
from penstock.kernels.byte_strings import put_bytes
from penstock.kernels.compiled import njit
from penstock.kernels.crc32 import CRC_START, update_crc
from penstock.kernels.double_keys import double_key
from penstock.kernels.msgpack_read import NIL, big_endian, column_at, integer_at, is_same, value_end
from penstock.kernels.msgpack_write import MOST_BYTES, put_array, put_integer
from penstock.kernels.packed_values import Packed
from penstock.kernels.wide_integers import MOST_DECIMAL_BYTES, put_decimal_text, wide_at
from penstock.packing import pack
from penstock.spaces import Edge, Side

STEPS_AT_ONCE = 256
BYTES_AT_ONCE = 4 << 20
"""Maximum bytes per run: a group may have all steps of a batch, and row size must be bounded."""


class JoinColumns(NamedTuple):
    """The join columns of one side of an edge."""

    numbers: Ints
    kinds: Codes8
    scales: Ints
    decimals: int
    """The number of decimal columns, which are joined by their text form."""
    copies: int
    """How often one column occurs at most: a.x = b.y AND a.x = b.z joins a.x twice."""


def _join_columns(side: Side, form: ColumnLayout) -> JoinColumns:
    numbers = np.array(side.columns, np.int64)
    kinds = form.kinds[numbers]
    decimals = int(np.isin(kinds, (DECIMAL, WIDE)).sum())
    copies = int(np.bincount(numbers).max())
    return JoinColumns(numbers, kinds, form.scale[numbers], decimals, copies)


class PackedSteps(NamedTuple):
    """Packed steps of the groups of one edge."""

    rows: Packed
    """Runs: the name of the edge, a join value, and steps of that group."""
    places: npt.NDArray[np.uint32]
    """By run, ascending: the CRC-32 of edge and join value, modulo the number of places."""


def packed_steps(deltas: PackedDeltas, edge: Edge, places: int) -> PackedSteps:
    """The steps of changes in the groups of an edge, sorted by place (of `places`) of the group."""
    name = np.frombuffer(pack(edge.name), np.uint8)
    steps = _both_sides(deltas, edge)
    groups = number_values(steps.data, steps.values, np.zeros(len(steps.deltas), np.int64))
    hashes = hash_values(name, steps.data, steps.values.take(groups.first))
    place_of = hashes % np.uint32(places)
    # Changes and the steps of each side are in order, but a change may have two steps in a group.
    order = np.lexsort((steps.numbers, steps.deltas, groups.numbers, place_of[groups.numbers]))
    begin = _runs(groups.numbers[order], deltas.sizes[steps.deltas[order]])
    rows = DeltaRows(deltas.heap, deltas.offsets, deltas.keys, deltas.old, deltas.new)
    packed = Packed(*pack_steps(rows, steps, order, begin, name))
    return PackedSteps(packed, place_of[groups.numbers[order[begin[:-1]]]])


def _both_sides(deltas: PackedDeltas, edge: Edge) -> DeltaSteps:
    """The steps of all sides that the relation feeds: in a self-join both."""
    found = [
        side_steps(deltas.heap, deltas.old, deltas.new, _join_columns(side, deltas.form), number)
        for number, side in enumerate(edge.sides)
        if side.table == deltas.relation.name
    ]
    if len(found) == 1:
        return found[0]
    shift = len(found[0].data)
    left, right = found
    values = Spans(right.values.begin + shift, right.values.end + shift)
    return DeltaSteps(
        np.concatenate([left.deltas, right.deltas]),
        np.concatenate([left.sides, right.sides]),
        np.concatenate([left.kinds, right.kinds]),
        np.concatenate([left.numbers, right.numbers]),
        np.concatenate([left.data, right.data]),
        Spans(*(np.concatenate(ends) for ends in zip(left.values, values, strict=True))),
    )


def _runs(groups: Ints, sizes: Ints) -> Ints:
    """Where runs of bounded size begin, each of one group; and where the last ends."""
    if not len(groups):
        return np.zeros(1, np.int64)
    first = np.flatnonzero(np.diff(groups, prepend=groups[0] - 1))
    counts = np.diff(first, append=len(groups))
    before = np.cumsum(sizes) - sizes
    within = np.arange(len(groups)) - np.repeat(first, counts)
    bytes_within = before - np.repeat(before[first], counts)
    parts = np.stack([groups, within // STEPS_AT_ONCE, bytes_within // BYTES_AT_ONCE])
    is_other = (np.diff(parts, prepend=-1) != 0).any(axis=0)
    return np.append(np.flatnonzero(is_other), len(groups))


@njit
def side_steps(heap: Bytes8, old: Spans, new: Spans, columns: JoinColumns, side: int) -> DeltaSteps:
    """The steps of changes of rows on one side of an edge. A change has at most two steps."""
    count = old.begin.shape[0]
    # A row has room for all its columns once. Beside what is copied of it: the start of an array,
    # and decimals, whose texts are longer.
    size = count * 2 * (MOST_BYTES + columns.decimals * MOST_DECIMAL_BYTES)
    for i in range(count):
        size += columns.copies * ((old.end[i] - old.begin[i]) + (new.end[i] - new.begin[i]))
    data, at, found = np.empty(size, np.uint8), 0, 0
    deltas, kinds = np.empty(2 * count, np.int64), np.empty(2 * count, np.int64)
    values = Spans(np.empty(2 * count, np.int64), np.empty(2 * count, np.int64))
    for i in range(count):
        middle = _put_join_value(heap, old.begin[i], columns, data, at)
        end = _put_join_value(heap, new.begin[i], columns, data, middle)
        is_in_place = middle > at and is_same(data, at, middle, middle, end)
        if middle > at:
            deltas[found], kinds[found] = i, CHANGES if is_in_place else LEAVES
            values.begin[found], values.end[found] = at, middle
            found += 1
        if end > middle and not is_in_place:
            deltas[found], kinds[found] = i, ENTERS
            values.begin[found], values.end[found] = middle, end
            found += 1
        at = end
    spans = Spans(values.begin[:found], values.end[:found])
    sides = np.full(found, side, np.int64)
    numbers = FIRST_STEP + 2 * sides + (kinds[:found] != LEAVES)
    return DeltaSteps(deltas[:found], sides, kinds[:found], numbers, data[:at], spans)


@njit
def _put_join_value(heap: Bytes8, row: int, columns: JoinColumns, out: Bytes8, at: int) -> int:
    """Write the join value of a row, see `penstock.spaces.spaces.join_value`; nothing if there is
    no row, or if a join column is NULL."""
    if row == NOWHERE:
        return at
    start, at = at, put_array(out, at, columns.numbers.shape[0])
    for i in range(columns.numbers.shape[0]):
        value, kind = column_at(heap, row, columns.numbers[i]), columns.kinds[i]
        if heap[value] == NIL:
            return start
        if kind in (DECIMAL, WIDE):
            high, low = wide_at(heap, value)
            at = put_decimal_text(out, at, high, low, columns.scales[i])
        elif kind == DOUBLE:
            at = put_integer(out, at, double_key(big_endian(heap, value + 1, 8)))
        elif kind == BOOLEAN:
            at = put_integer(out, at, integer_at(heap, value))
        else:
            at = put_bytes(out, at, heap, value, value_end(heap, value) - value)
    return at


@njit
def hash_values(name: Bytes8, data: Bytes8, values: Spans) -> npt.NDArray[np.uint32]:
    """For each packed value, the CRC-32 of the packed array of the name and the value."""
    start = np.empty(1, np.uint8)
    put_array(start, 0, 2)
    before = update_crc(update_crc(CRC_START, start, 0, 1), name, 0, name.shape[0])
    found = np.empty(values.begin.shape[0], np.uint32)
    for i in range(found.shape[0]):
        found[i] = ~update_crc(before, data, values.begin[i], values.end[i])
    return found
