"""The messages of changed packed rows for subscriptions over their table only; see
`penstock.flow.plain.selection_messages`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from penstock.flow.group_steps import FIRST_STEP
from penstock.flow.packed.project import columns_of
from penstock.flow.packed.rows import EventDeltas, PackedDeltas
from penstock.joins.selections import Selections
from penstock.kernels.arrays import Bytes8, Flags, Ints
from penstock.kernels.byte_spans import NOWHERE, Spans
from penstock.kernels.byte_strings import put_bytes
from penstock.kernels.compiled import njit
from penstock.kernels.message_parts import put_old, put_start
from penstock.kernels.msgpack_write import MOST_BYTES, put_array, put_integer, put_nil
from penstock.kernels.packed_values import Packed
from penstock.messages import EVERYONE, packed_region
from penstock.packing import pack


def packed_selection_messages(
    deltas: PackedDeltas | EventDeltas, points: Selections
) -> tuple[Ints, Packed]:
    """The messages that some subscription needs, and their offsets, in order."""
    columns = np.array(sorted(points.mentioned_columns), np.int64)
    heap, selected = (
        _select_events(deltas, points)
        if isinstance(deltas, EventDeltas)
        else _select_changes(deltas, points)
    )
    space, everyone = (np.frombuffer(p, np.uint8) for p in (pack(points.space.id), _EVERYONE))
    packed = _pack_messages(heap, selected, columns, space, everyone)
    return selected.offsets, Packed(*packed)


def _select_events(deltas: EventDeltas, points: Selections) -> tuple[Bytes8, _Selected]:
    batch = deltas.events.batch(points.mentioned_columns)
    mine = deltas.packed(np.flatnonzero(points.any_match_in(batch)))
    every, none = np.ones(len(mine), np.bool_), np.zeros(len(mine), np.bool_)
    return mine.heap, _Selected(mine.offsets, mine.keys, mine.old, mine.new, every, none)


def _select_changes(deltas: PackedDeltas, points: Selections) -> tuple[Bytes8, _Selected]:
    upserted = _any_selects(deltas, deltas.new, points)
    removed = _any_selects(deltas, deltas.old, points)
    chosen = np.flatnonzero(upserted | removed)
    return deltas.heap, _Selected(
        deltas.offsets[chosen],
        deltas.keys.take(chosen),
        deltas.old.take(chosen),
        deltas.new.take(chosen),
        upserted[chosen],
        removed[chosen],
    )


_EVERYONE = packed_region(EVERYONE)


def _any_selects(deltas: PackedDeltas, rows: Spans, points: Selections) -> Flags:
    found: Flags = rows.begin != NOWHERE
    columns = points.mentioned_columns
    there = rows.begin[found]
    if len(there):
        read = columns_of(deltas.relation, deltas.form, deltas.heap, there, columns)
        found[found] = points.any_match_in(read.batch(columns))
    return found


class _Selected(NamedTuple):
    """Changes whose rows some subscription selects, and whether after and before the change."""

    offsets: Ints
    keys: Spans
    old: Spans
    new: Spans
    upserted: Flags
    removed: Flags


@njit
def _pack_messages(
    heap: Bytes8, changes: _Selected, columns: Ints, space: Bytes8, everyone: Bytes8
) -> tuple[Bytes8, Ints]:
    """All messages, concatenated, and where each ends. A message has at most its rows and key, both
    regions, the space, a number per old column, and four more numbers or array starts."""
    offsets, keys, old, new, upserted, removed = changes
    count, size = offsets.shape[0], 0
    for i in range(count):
        size += (keys.end[i] - keys.begin[i]) + (old.end[i] - old.begin[i])
        size += (new.end[i] - new.begin[i]) + 2 * everyone.shape[0] + space.shape[0]
        size += MOST_BYTES * (columns.shape[0] + 4)
    out, ends, at = np.empty(size, np.uint8), np.empty(count, np.int64), 0
    for i in range(count):
        at = put_integer(out, put_start(out, at), offsets[i])
        at = put_bytes(out, put_integer(out, at, FIRST_STEP), space, 0, space.shape[0])
        at = put_bytes(out, at, heap, keys.begin[i], keys.end[i] - keys.begin[i])
        if upserted[i]:
            at = put_bytes(out, at, heap, new.begin[i], new.end[i] - new.begin[i])
            at = put_bytes(out, at, everyone, 0, everyone.shape[0])
        else:
            at = put_array(out, put_nil(out, at), 0)
        if removed[i]:
            at = put_old(out, at, heap, old.begin[i], columns)
            at = put_bytes(out, at, everyone, 0, everyone.shape[0])
        else:
            at = put_array(out, put_nil(out, at), 0)
        at = put_array(out, at, 0)
        ends[i] = at
    return out[:at], ends
