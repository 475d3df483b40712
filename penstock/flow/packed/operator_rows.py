"""Changed packed rows that must become objects: those that may need operators, and those with
documents.

Kernels rule out most rows, which have no candidates for operators.
"""

from __future__ import annotations

import numpy as np

from penstock.flow.candidates import Candidates
from penstock.flow.changes import Delta
from penstock.flow.derivation import Derivation, Derived
from penstock.flow.derived_index import DerivedIndex
from penstock.flow.packed.project import columns_of
from penstock.flow.packed.rows import EventDeltas, PackedDeltas, PackedRows
from penstock.flow.state import RowStore
from penstock.kernels.arrays import Flags
from penstock.kernels.byte_spans import NOWHERE, Spans
from penstock.packing import pack


def derive_apart(
    deltas: PackedDeltas | EventDeltas,
    index: DerivedIndex,
    derivation: Derivation,
    store: RowStore | None,
) -> Derived:
    """Changes of packed rows, translated to relations whose rows are always objects."""
    candidates = index.candidates(deltas.relation)
    asked: list[Delta] = []
    if candidates is not None:
        all_of_them = derivation.needs_all_rows(deltas.relation)
        asked = deltas.objects() if all_of_them else deltas_with_candidates(deltas, candidates)
    has_documents = index.unnested(deltas.relation) is not None
    return derivation.derive_apart(asked, deltas.objects() if has_documents else [], store)


def deltas_with_candidates(
    deltas: PackedDeltas | EventDeltas, candidates: Candidates
) -> list[Delta]:
    """The changes of rows that some branch may select, before or after."""
    if isinstance(deltas, EventDeltas):
        found = candidates.any_in(deltas.events.batch(candidates.declared_columns))
        return deltas.packed(np.flatnonzero(found)).objects()
    found = _any_candidates(deltas, deltas.new, candidates)
    found |= _any_candidates(deltas, deltas.old, candidates)
    return deltas.take(np.flatnonzero(found)).objects()


def _any_candidates(deltas: PackedDeltas, rows: Spans, candidates: Candidates) -> Flags:
    found: Flags = rows.begin != NOWHERE
    there = rows.begin[found]
    if len(there):
        columns = candidates.declared_columns
        read = columns_of(deltas.relation, deltas.form, deltas.heap, there, columns)
        found[found] = candidates.any_in(read.batch(columns))
    return found


def take_back(deltas: PackedDeltas, store: PackedRows) -> None:
    """Roll the rows in a store back to before the changes."""
    before: dict[bytes, bytes | None] = {}
    for _, _, key, old, _ in deltas.objects():
        before.setdefault(pack(key), None if old is None else pack((key, old)))
    kept = {key: entry for key, entry in before.items() if entry is not None}
    store.keep(deltas.relation, kept.keys(), kept.values())
    store.drop(deltas.relation, [key for key, entry in before.items() if entry is None])
