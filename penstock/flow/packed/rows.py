"""Changes, applied to the packed rows of a bucket: the fast gear of `RowStage`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any, NamedTuple, Protocol

import numpy as np

from penstock.catalog import Catalog, Relation
from penstock.catalog.derived import extended_base_name, extended_named, is_extended
from penstock.catalog.payload_split import is_split
from penstock.errors import ChangeError
from penstock.flow.changes import Delta, refusal
from penstock.flow.columnar.columns import PlainColumns
from penstock.flow.columnar.json_kernels import OPS
from penstock.flow.columnar.layout import ColumnLayout, form_of
from penstock.flow.packed.change_table import (
    ChangeTable,
    following_values,
    pack_entries,
    read_changes,
    resolve,
)
from penstock.flow.packed.project import columns_of
from penstock.flow.per_catalog import per_catalog
from penstock.kernels.arrays import Bytes8, Flags, Ints
from penstock.kernels.byte_spans import NOWHERE, Spans, concat, gather, number_values, to_bytes_list
from penstock.packing import unpack, unpack_tuple


class PackedRows(Protocol):
    """The rows of the tables (or of one partition of them), each packed together with its key."""

    def packed(self, relation: Relation, keys: list[bytes]) -> tuple[list[bytes], Flags]:
        """The stored entries of these packed keys, and which of the keys have one."""

    def keep(self, relation: Relation, keys: Iterable[bytes], entries: Iterable[bytes]) -> None: ...

    def drop(self, relation: Relation, keys: Iterable[bytes]) -> None: ...


@dataclass(frozen=True, slots=True)
class PackedDeltas:
    """Changes of packed rows of one relation, as spans in a heap; see `Delta`."""

    relation: Relation
    form: ColumnLayout
    heap: Bytes8
    offsets: Ints
    keys: Spans
    old: Spans
    new: Spans

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def sizes(self) -> Ints:
        """The size of each change in bytes."""
        spans = (self.keys, self.old, self.new)
        return sum((one.end - one.begin for one in spans), np.zeros(len(self), np.int64))

    def objects(self) -> list[Delta]:
        """The changes as objects, for the plain gear."""
        keys = map(unpack_tuple, self._each(self.keys))
        old, new = (self._rows(spans) for spans in (self.old, self.new))
        return [
            Delta(offset, self.relation, key, before, after)
            for offset, key, before, after in zip(
                self.offsets.tolist(), keys, old, new, strict=True
            )
        ]

    def _rows(self, spans: Spans) -> list[tuple[Any, ...] | None]:
        is_there = spans.begin != NOWHERE
        rows: list[tuple[Any, ...] | None] = [None] * len(is_there)
        found = map(unpack_tuple, self._each(spans.take(is_there)))
        for i, row in zip(np.flatnonzero(is_there).tolist(), found, strict=True):
            rows[i] = row
        return rows

    def packed(self) -> PackedDeltas:
        return self

    def take(self, chosen: Ints) -> PackedDeltas:
        """The chosen changes."""
        return PackedDeltas(
            self.relation,
            self.form,
            self.heap,
            self.offsets[chosen],
            self.keys.take(chosen),
            self.old.take(chosen),
            self.new.take(chosen),
        )

    def _each(self, spans: Spans) -> list[bytes]:
        return to_bytes_list(*gather(self.heap, spans))


@dataclass(frozen=True, slots=True)
class EventDeltas:
    """Changes by events of a keyless stream, which are identified by their offsets: each is a new
    row. They are still parsed columns, so only those that are needed are packed."""

    events: PlainColumns

    @property
    def relation(self) -> Relation:
        return self.events.relation

    def __len__(self) -> int:
        return len(self.events)

    def objects(self) -> list[Delta]:
        return self.packed().objects()

    def packed(self, chosen: Ints | None = None) -> PackedDeltas:
        """All changes, or the chosen ones, packed."""
        events = self.events
        which = np.arange(len(events), dtype=np.int64) if chosen is None else chosen
        data, ends = events.packed_keyed(which)
        begin = np.concatenate([np.zeros(1, np.int64), ends[:-1]])[: len(ends)]
        keys = following_values(data, begin)
        rows = following_values(data, keys)
        nothing = np.full(len(which), NOWHERE)
        return PackedDeltas(
            events.relation,
            events.sheet.form,
            data,
            events.offsets[which],
            Spans(keys, rows),
            Spans(nothing, nothing),
            Spans(rows, ends),
        )


class Refused(NamedTuple):
    """A change that cannot be applied, and why."""

    offset: int
    why: ChangeError


@dataclass(frozen=True, slots=True)
class PackedForms:
    """The relations of a catalog, as kernels see them. Rows are identified by their packed keys,
    which are equal exactly if their bytes are."""

    relations: dict[str, Relation]
    """Declared relations, and relations with derived columns that were looked up."""
    forms: dict[str, ColumnLayout]

    def __contains__(self, name: str) -> bool:
        return name in self.forms or self._is_derived(name)

    def __getitem__(self, name: str) -> ColumnLayout:
        return self.forms[name]

    def read(self, table: str, heap: Bytes8, rows: Ints, columns: Collection[int]) -> PlainColumns:
        """These columns of the packed rows that begin at `rows`."""
        return columns_of(self.relations[table], self.forms[table], heap, rows, columns)

    def _is_derived(self, name: str) -> bool:
        """Whether rows of this relation are those of a known one with values appended."""
        base = self.relations.get(extended_base_name(name))
        if base is None or is_split(name) or not is_extended(name):
            return False
        relation = extended_named(name, base)
        if relation.lazy_columns:
            return False
        self.relations[name], self.forms[name] = relation, form_of(relation)
        return True


@per_catalog
def packed_forms(catalog: Catalog) -> PackedForms:
    relations = {relation.name: relation for relation in catalog}
    return PackedForms(relations, {name: form_of(one) for name, one in relations.items()})


class SentChanges:
    """The received changes of a batch."""

    def __init__(self, chunks: Sequence[tuple[int, bytes]]) -> None:
        """`chunks` are pairs of the number of changes and the packed bytes."""
        self._data, begin = concat(chunk for _, chunk in chunks)
        count = sum(count for count, _ in chunks)
        changes = read_changes(self._data, begin[:-1], count)
        self._changes = changes.take(np.argsort(changes.offsets, kind="stable"))
        tables = self._changes.tables
        self._tables, first = number_values(self._data, tables, np.zeros(count, np.int64))
        names = to_bytes_list(*gather(self._data, tables.take(first)))
        self.tables: list[str] = [unpack(name) for name in names]
        """The names of the changed tables."""

    def carry_out(
        self, known: PackedForms, store: PackedRows
    ) -> Iterator[tuple[PackedDeltas, list[Refused]]]:
        """Apply the changes of known relations to the rows in a store, relation by relation."""
        for number, name in enumerate(self.tables):
            if name in known:
                mine = self._changes.take(self._tables == number)
                yield _carry_out(known.relations[name], known[name], self._data, mine, store)


def _carry_out(
    relation: Relation, form: ColumnLayout, data: Bytes8, changes: ChangeTable, store: PackedRows
) -> tuple[PackedDeltas, list[Refused]]:
    numbers, first = number_values(data, changes.keys, np.zeros(len(changes.offsets), np.int64))
    spans = changes.keys.take(first)
    keys = to_bytes_list(*gather(data, spans))
    entries, was_there = store.packed(relation, keys)
    stored, begin = concat(entries)
    now = Spans(np.full(len(keys), NOWHERE), np.full(len(keys), NOWHERE))
    now.begin[was_there] = following_values(stored, begin[:-1] + 1) + len(data)
    now.end[was_there] = begin[1:] + len(data)
    heap, made, old, new, refused = resolve(np.concatenate([data, stored]), changes, numbers, now)
    changed = np.zeros(len(keys), np.bool_)
    changed[numbers[made]] = True
    kept = changed & (now.begin != NOWHERE)
    packed = pack_entries(heap, spans.take(kept), now.take(kept))
    store.keep(relation, compress(keys, kept), to_bytes_list(*packed))
    store.drop(relation, compress(keys, changed & was_there & ~kept))
    deltas = PackedDeltas(
        relation, form, heap, changes.offsets[made], changes.keys.take(made), old, new
    )
    return deltas, _refused(relation, data, changes.take(refused))


def _refused(relation: Relation, data: Bytes8, changes: ChangeTable) -> list[Refused]:
    """The reasons for changes that cannot be applied, of which there are few."""
    keys = to_bytes_list(*gather(data, changes.keys))
    return [
        Refused(offset, refusal(relation, OPS[op], unpack_tuple(key)))
        for offset, op, key in zip(changes.offsets.tolist(), changes.ops, keys, strict=True)
    ]
