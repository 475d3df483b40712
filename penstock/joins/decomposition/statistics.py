"""Table statistics for choosing decompositions, maintained change by change.

For each table: its share of the changes, and samples of its rows, by key and by the columns of each
join. A table that is read only by queries without a choice costs one counter per change.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from itertools import islice
from typing import TypeAlias

from penstock.catalog import Relation, Row, RowKey
from penstock.joins.accounting import row_bytes
from penstock.joins.decomposition.samples import ByValue, Sample
from penstock.predicates.boxes import Box, contains
from penstock.predicates.intervals import Cut, below
from penstock.query import Query
from penstock.spaces import Side, edge_of, has_choice

RATE_CHANGES = 20_000
"""When a table reaches this many changes, all counts are halved: rates follow recent changes."""

KNOWN_CHANGES = 256
"""Changes for which values computed from samples stay cached."""

SCANNED_ROWS = 128
"""Sampled rows that are tested for conditions on several columns."""

Rows: TypeAlias = Callable[[Relation], Iterable[tuple[RowKey, Row]]]
"""Returns the current rows of a table."""


class Statistics:
    """Notified of every change; not thread-safe."""

    def __init__(self) -> None:
        self._changes: dict[str, float] = {}
        self._relations: dict[str, Relation] = {}
        self._by_key: dict[str, Sample] = {}
        self._by_join: dict[Side, Sample] = {}
        self._samples_of: dict[str, list[Sample]] = {}
        self._known: dict[Hashable, float] = {}
        self._columns: dict[tuple[str, int], list[Cut]] = {}
        self._noted = 0

    def watch(self, query: Query, rows: Rows) -> None:
        """Maintain what the choice among the decompositions of a query needs, if it has several."""
        if not has_choice(query):
            return
        for node in query.nodes:
            relation = node.relation
            if relation.name not in self._by_key:
                self._relations[relation.name] = relation
                self._by_key[relation.name] = self._filled(Sample(relation, None), relation, rows)
        for join in query.joins:
            edge, _ = edge_of(query, join)
            for side in edge.sides:
                if side not in self._by_join:
                    relation = self._relations[side.table]
                    sample = Sample(relation, side.columns)
                    self._by_join[side] = self._filled(sample, relation, rows)

    @property
    def watched(self) -> Collection[Relation]:
        """The relations that a query with a choice reads."""
        return self._relations.values()

    def _filled(self, sample: Sample, relation: Relation, rows: Rows) -> Sample:
        self._forget()
        sample.fill(rows(relation))
        self._samples_of.setdefault(relation.name, []).append(sample)
        return sample

    def note(self, table: str, key: RowKey, old: Row | None, new: Row | None) -> None:
        """A row was inserted, changed or deleted."""
        self._noted += 1
        if self._noted % KNOWN_CHANGES == 0:
            self._forget()
        self._changes[table] = self._changes.get(table, 0.0) + 1.0
        if self._changes[table] >= RATE_CHANGES:
            self._changes = {name: count / 2 for name, count in self._changes.items()}
        for sample in self._samples_of.get(table, ()):
            if old is not None:
                sample.remove(key, old)
            if new is not None:
                sample.add(key, new)

    def refresh(self, rows: Rows) -> None:
        """Refill the samples that deletes have shrunk too far."""
        self._forget()
        for table, samples in self._samples_of.items():
            for sample in samples:
                if sample.is_worn:
                    sample.fill(rows(self._relations[table]))

    # Queries of cost models

    def rate(self, table: str) -> float:
        """The share of this table in all changes, with add-one smoothing."""
        total = sum(self._changes.get(name, 0.0) + 1.0 for name in self._relations)
        return (self._changes.get(table, 0.0) + 1.0) / (total or 1.0)

    def partners(self, base: Side, other: Side) -> float:
        """How many rows of the other side a row of the base side joins, on average."""
        return self._once((base, other), lambda: self._partners(base, other))

    def _partners(self, base: Side, other: Side) -> float:
        mine, theirs = self.together(base, other)
        rows = sum(one.count for one in mine.values())
        pairs = sum(one.count * theirs[v].count for v, one in mine.items() if v in theirs)
        return pairs / rows if rows else 0.0

    def together(self, base: Side, other: Side) -> tuple[ByValue, ByValue]:
        """The samples of both sides of a join, restricted to the same join values."""
        mine, theirs = self._by_join.get(base), self._by_join.get(other)
        if mine is None or theirs is None:
            return {}, {}
        level = max(mine.level, theirs.level)
        return mine.at(level), theirs.at(level)

    def selectivity(self, table: str, box: Box) -> float:
        """The share of a table's rows that a box contains; smoothed, so only no box gives 1."""
        return self._once((table, box), lambda: self._selectivity(table, box))

    def _selectivity(self, table: str, box: Box) -> float:
        relation = self._relations.get(table)
        if not box or relation is None:
            return 1.0 if not box else 0.5
        if len(box) == 1:
            column, interval = box[0]
            values = self._sorted(relation, column)
            found = bisect_left(values, interval.high) - bisect_left(values, interval.low)
            return (max(0, found) + 0.5) / (len(values) + 1.0)
        rows = list(islice(self.sampled(table), SCANNED_ROWS))
        found = sum(contains(box, relation, row) for row in rows)
        return (found + 0.5) / (len(rows) + 1.0)

    def _sorted(self, relation: Relation, column: int) -> list[Cut]:
        """The sampled values of a column, as the cuts below them."""
        place = (relation.name, column)
        if place not in self._columns:
            kind = relation.columns[column].type
            values = (row[column] for row in self.sampled(relation.name))
            cuts = (below(None if value is None else kind.key(value)) for value in values)
            self._columns[place] = sorted(cuts)
        return self._columns[place]

    def row_bytes(self, table: str) -> float:
        """The mean size of a row in a message."""
        return self._once(table, lambda: self._row_bytes(table))

    def _row_bytes(self, table: str) -> float:
        sizes = [row_bytes(row) for row in self.sampled(table)]
        return sum(sizes) / len(sizes) if sizes else 16.0

    def _forget(self) -> None:
        self._known.clear()
        self._columns.clear()

    def _once(self, asked: Hashable, answer: Callable[[], float]) -> float:
        if asked not in self._known:
            self._known[asked] = answer()
        return self._known[asked]

    def sampled(self, table: str) -> Iterator[Row]:
        """A uniform sample of the rows of a table."""
        sample = self._by_key.get(table)
        for one in () if sample is None else sample.values.values():
            yield from one.rows.values()
