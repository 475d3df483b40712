"""Packed steps of groups, as sent from the row stage to the group stage: encoder and decoder.

A run of steps is an array of the name of its edge, the join value of its group, and an array of
steps; a step is an array of offset, number, side, key, old row and new row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from penstock.kernels.arrays import Bytes8, Ints
from penstock.kernels.byte_spans import NOWHERE, Spans, concat, gather, number_values, to_bytes_list
from penstock.kernels.byte_strings import put_bytes
from penstock.kernels.compiled import njit
from penstock.kernels.msgpack_read import NIL, array_start, integer_at, value_end
from penstock.kernels.msgpack_write import MOST_BYTES, put_array, put_integer, put_nil
from penstock.packing import unpack

_LEAST_BYTES = 7
"""Minimum size of a packed step: the array start and six values of at least one byte."""


LEAVES, ENTERS, CHANGES = 0, 1, 2
"""What happens to a row in its group."""


class DeltaRows(NamedTuple):
    """Changes of packed rows, as spans in `heap`."""

    heap: Bytes8
    offsets: Ints
    keys: Spans
    old: Spans
    new: Spans


class DeltaSteps(NamedTuple):
    """Steps of groups; `deltas[s]` is the change in `DeltaRows` that step `s` comes from."""

    deltas: Ints
    sides: Ints
    kinds: Ints
    """`LEAVES`, `ENTERS` or `CHANGES`."""
    numbers: Ints
    """The step number in the position of a message."""
    data: Bytes8
    values: Spans
    """The packed join values of the groups, as spans in `data`."""


class StepTable(NamedTuple):
    """Steps; keys and rows as spans in a buffer, rows that are absent begin NOWHERE."""

    runs: Ints
    """By step: the run that contains it."""
    offsets: Ints
    steps: Ints
    sides: Ints
    keys: Spans
    old: Spans
    new: Spans

    def take(self, which: npt.NDArray[np.generic]) -> StepTable:
        return StepTable(
            self.runs[which],
            self.offsets[which],
            self.steps[which],
            self.sides[which],
            self.keys.take(which),
            self.old.take(which),
            self.new.take(which),
        )


class StepRuns(NamedTuple):
    """Runs of steps, each of one group, as spans in a buffer."""

    names: Spans
    """By run: the name of its edge."""
    values: Spans
    """By run: the join value of its group."""


class SentSteps:
    """The received steps of a batch."""

    def __init__(self, chunks: Sequence[tuple[int, bytes]]) -> None:
        """`chunks` are pairs of the number of runs and the packed bytes."""
        self.data, begin = concat(chunk for _, chunk in chunks)
        count = sum(count for count, _ in chunks)
        runs, self._steps = read_steps(self.data, begin[:-1], count)
        edges, named = number_values(self.data, runs.names, np.zeros(count, np.int64))
        self.edges: list[str] = [unpack(name) for name in self._each(runs.names.take(named))]
        """The names of the edges, by number."""
        groups, first = number_values(self.data, runs.values, edges)
        self._groups, self._values = groups[self._steps.runs], runs.values.take(first)
        self._edges = edges[first][self._groups]

    def of_edge(self, number: int) -> tuple[Spans, Ints, StepTable]:
        """The join values of an edge's groups that have steps; and the steps, in order within each
        group, with the numbers of their groups."""
        steps, mine = self._steps, np.flatnonzero(self._edges == number)
        order = mine[np.lexsort((steps.steps[mine], steps.offsets[mine], self._groups[mine]))]
        present, groups = np.unique(self._groups[order], return_inverse=True)
        return self._values.take(present), groups, steps.take(order)

    def _each(self, spans: Spans) -> list[bytes]:
        return to_bytes_list(*gather(self.data, spans))


@njit
def read_steps(data: Bytes8, chunks: Ints, count: int) -> tuple[StepRuns, StepTable]:
    """The steps of the chunks that begin at `chunks`, with `count` runs in total.

    A step takes at least `_LEAST_BYTES`, which bounds the number of steps."""
    most = data.shape[0] // _LEAST_BYTES + 1
    runs = StepRuns(_spans(count), _spans(count))
    found = StepTable(
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        _spans(most),
        _spans(most),
        _spans(most),
    )
    run = i = 0
    for chunk in chunks:
        left, at = array_start(data, chunk)
        for _ in range(left):
            value = value_end(data, at + 1)
            steps = value_end(data, value)
            runs.names.begin[run], runs.names.end[run] = at + 1, value
            runs.values.begin[run], runs.values.end[run] = value, steps
            taken, at = array_start(data, steps)
            for _ in range(taken):
                found.runs[i] = run
                at = _read_step(data, at, found, i)
                i += 1
            run += 1
    return runs, StepTable(
        found.runs[:i].copy(),
        found.offsets[:i].copy(),
        found.steps[:i].copy(),
        found.sides[:i].copy(),
        _first(found.keys, i),
        _first(found.old, i),
        _first(found.new, i),
    )


@njit
def _read_step(data: Bytes8, at: int, found: StepTable, i: int) -> int:
    """Read one step, an array of offset, step, side, key, old and new row; returns its end."""
    step = value_end(data, at + 1)
    side = value_end(data, step)
    key = value_end(data, side)
    old = value_end(data, key)
    new = value_end(data, old)
    end = value_end(data, new)
    found.offsets[i], found.steps[i] = integer_at(data, at + 1), integer_at(data, step)
    found.sides[i] = integer_at(data, side)
    found.keys.begin[i], found.keys.end[i] = key, old
    found.old.begin[i], found.old.end[i] = old, new
    found.new.begin[i], found.new.end[i] = new, end
    if data[old] == NIL:
        found.old.begin[i] = found.old.end[i] = NOWHERE
    if data[new] == NIL:
        found.new.begin[i] = found.new.end[i] = NOWHERE
    return end


@njit
def _spans(count: int) -> Spans:
    return Spans(np.empty(count, np.int64), np.empty(count, np.int64))


@njit
def _first(spans: Spans, count: int) -> Spans:
    return Spans(spans.begin[:count].copy(), spans.end[:count].copy())


@njit
def pack_steps(
    rows: DeltaRows, steps: DeltaSteps, order: Ints, runs: Ints, name: Bytes8
) -> tuple[Bytes8, Ints]:
    """Packed runs of steps, each with the name of its edge and the join value of its group,
    concatenated; and where each run ends.

    Run `r` has the steps `order[runs[r] : runs[r + 1]]`. `size` is an upper bound: per run three
    headers and the name; per step at most 36 bytes of header and integers, and the bytes of the
    key, both rows and the join value.
    """
    heap, keys, old, new = rows.heap, rows.keys, rows.old, rows.new
    count = runs.shape[0] - 1
    size = count * (name.shape[0] + 3 * MOST_BYTES)
    for k in range(order.shape[0]):
        i = steps.deltas[order[k]]
        size += 4 * MOST_BYTES + (keys.end[i] - keys.begin[i])
        size += (old.end[i] - old.begin[i]) + (new.end[i] - new.begin[i])
        size += steps.values.end[order[k]] - steps.values.begin[order[k]]
    out, ends, at = np.empty(size, np.uint8), np.empty(count, np.int64), 0
    for run in range(count):
        first = order[runs[run]]
        value, length = steps.values.begin[first], steps.values.end[first]
        at = put_bytes(out, put_array(out, at, 3), name, 0, name.shape[0])
        at = put_bytes(out, at, steps.data, value, length - value)
        at = put_array(out, at, runs[run + 1] - runs[run])
        for k in range(runs[run], runs[run + 1]):
            step = order[k]
            i, side, kind = steps.deltas[step], steps.sides[step], steps.kinds[step]
            at = put_integer(out, put_array(out, at, 6), rows.offsets[i])
            at = put_integer(out, at, steps.numbers[step])
            at = put_integer(out, at, side)
            at = put_bytes(out, at, heap, keys.begin[i], keys.end[i] - keys.begin[i])
            at = _put_row(out, at, heap, old.begin[i], old.end[i], kind != ENTERS)
            at = _put_row(out, at, heap, new.begin[i], new.end[i], kind != LEAVES)
        ends[run] = at
    return out[:at], ends


@njit
def _put_row(out: Bytes8, at: int, heap: Bytes8, begin: int, end: int, is_there: bool) -> int:
    return put_bytes(out, at, heap, begin, end - begin) if is_there else put_nil(out, at)
