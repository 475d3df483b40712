"""Changes of packed rows, with derived columns appended to those of their table.

The fast gear of `penstock.flow.derived`: the columns that expressions read are decoded from the
packed rows, DuckDB computes the values of all rows at once, and each row is copied with its values
appended. A packed row is an array, so only its start changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from penstock.catalog.derived import Definition, ExtendedRelation
from penstock.flow.columnar.arrow_cells import to_arrow, to_cells
from penstock.flow.columnar.json_kernels import ParsedEvents
from penstock.flow.columnar.layout import form_of
from penstock.flow.columnar.pack_rows import most_bytes, put_value
from penstock.flow.packed.project import columns_of
from penstock.flow.packed.rows import PackedDeltas
from penstock.kernels.arrays import Bytes8, Ints
from penstock.kernels.byte_spans import NOWHERE, Spans
from penstock.kernels.byte_strings import put_bytes
from penstock.kernels.compiled import njit
from penstock.kernels.msgpack_read import array_start
from penstock.kernels.msgpack_write import put_array


def extended_packed(
    deltas: PackedDeltas, relations: Sequence[ExtendedRelation]
) -> Iterator[PackedDeltas]:
    """Changes of one table, translated to relations that extend it; duckdb.Error if their values
    cannot be computed in one batch."""
    was, is_ = deltas.old.begin != NOWHERE, deltas.new.begin != NOWHERE
    rows = Spans(
        np.concatenate([deltas.old.begin[was], deltas.new.begin[is_]]),
        np.concatenate([deltas.old.end[was], deltas.new.end[is_]]),
    )
    numbers: dict[Definition, int] = {}
    for one in (one for relation in relations for one in relation.definitions):
        numbers.setdefault(one, len(numbers))
    values = _values(deltas, rows.begin, list(numbers))
    for relation in relations:
        mine = [values[numbers[one]] for one in relation.definitions]
        cells = to_cells(relation.columns[relation.first_derived :], mine, len(rows.begin))
        heap, extended = _appended(deltas.heap, rows, cells)
        old, new = _placed(was, extended, 0), _placed(is_, extended, int(was.sum()))
        yield PackedDeltas(relation, form_of(relation), heap, deltas.offsets, deltas.keys, old, new)


def _values(deltas: PackedDeltas, rows: Ints, definitions: list[Definition]) -> list[pa.Array]:
    """The values of definitions for the rows that begin at `rows`."""
    from penstock.expressions import compute_columns

    reads = sorted({column for one in definitions for column in one.reads})
    read = columns_of(deltas.relation, deltas.form, deltas.heap, rows, reads)
    names = [deltas.relation.columns[column].name for column in reads]
    given = {name: to_arrow(read, column) for name, column in zip(names, reads, strict=True)}
    return compute_columns(definitions, given, len(rows))


def _appended(heap: Bytes8, rows: Spans, cells: ParsedEvents) -> tuple[Bytes8, Spans]:
    """The heap followed by the rows with the cells appended, and the spans of these rows."""
    out, ends = _append_values(heap, rows, cells)
    ends += len(heap)
    begin = np.concatenate([np.full(1, len(heap), np.int64), ends[:-1]])[: len(ends)]
    return np.concatenate([heap, out]), Spans(begin, ends)


def _placed(is_there: np.typing.NDArray[np.bool_], found: Spans, first: int) -> Spans:
    """Spans of all changes; those with a row take the spans `found`, in order from `first` on."""
    count = int(is_there.sum())
    placed = Spans(np.full(len(is_there), NOWHERE), np.full(len(is_there), NOWHERE))
    placed.begin[is_there] = found.begin[first : first + count]
    placed.end[is_there] = found.end[first : first + count]
    return placed


@njit
def _append_values(heap: Bytes8, rows: Spans, cells: ParsedEvents) -> tuple[Bytes8, Ints]:
    """Each row with the values of its cells appended, concatenated, and where each ends."""
    count, width = rows.begin.shape[0], len(cells.form.kinds)
    size = most_bytes(cells, np.arange(count), 0)  # includes the start of an array for each
    for i in range(count):
        size += rows.end[i] - rows.begin[i]
    out, ends, at = np.empty(size, np.uint8), np.empty(count, np.int64), 0
    for i in range(count):
        values, first = array_start(heap, rows.begin[i])
        at = put_array(out, at, values + width)
        at = put_bytes(out, at, heap, first, rows.end[i] - first)
        for column in range(width):
            at = put_value(out, at, cells, i, column)
        ends[i] = at
    return out[:at], ends
