"""The counts of a survey of the history, as mergeable partial results."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Generic, TypeVar

from penstock.catalog import Relation, Row
from penstock.packing import pack

SAMPLED_ROWS = 2_000
SKETCHED_HASHES = 256
"""The relative error of a count of distinct values is about 1 / sqrt of this: 6 %."""

_HASH_BYTES = 8
_HASHES = 1 << 8 * _HASH_BYTES

T = TypeVar("T")


def hash_of(plain: object) -> int:
    """The same in every process. Short hashes such as CRCs are not suitable: those of consecutive
    values are spread too evenly for estimating counts."""
    return int.from_bytes(blake2b(pack(plain), digest_size=_HASH_BYTES).digest())


@dataclass
class Smallest(Generic[T]):
    """The items with the smallest hashes: a uniform sample, however it was merged."""

    limit: int
    items: dict[int, T] = field(default_factory=dict)

    def add(self, hashed: int, item: T) -> None:
        self.items[hashed] = item
        if len(self.items) >= 2 * self.limit:
            self._prune()

    def update(self, other: Smallest[T]) -> None:
        self.items |= other.items
        self._prune()

    def _prune(self) -> None:
        kept = sorted(self.items)[: self.limit]
        self.items = {hashed: self.items[hashed] for hashed in kept}

    def in_order(self) -> list[tuple[int, T]]:
        self._prune()
        return sorted(self.items.items(), key=lambda pair: pair[0])

    def distinct(self) -> int:
        """The estimated number of distinct hashes added (Bar-Yossef et al., 2002)."""
        self._prune()
        if len(self.items) < self.limit:
            return len(self.items)
        return round((self.limit - 1) * _HASHES / max(self.items))


@dataclass
class TableSurvey:
    """Counts of some changes of a table, and of the rows they led to."""

    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    refused: int = 0
    rows: int = 0
    nulls: list[int] = field(default_factory=list)
    values: list[Smallest[None]] = field(default_factory=list)
    sample: Smallest[Row] = field(default_factory=lambda: Smallest(SAMPLED_ROWS))

    @classmethod
    def of(cls, relation: Relation) -> TableSurvey:
        width = len(relation.columns)
        values = [Smallest[None](SKETCHED_HASHES) for _ in range(width)]
        return cls(nulls=[0] * width, values=values)

    def note_change(self, offset: int, old: Row | None, new: Row | None) -> None:
        if old is None:
            self.inserts += 1
        elif new is None:
            self.deletes += 1
        else:
            self.updates += 1
        if new is not None:
            self.sample.add(hash_of(offset), new)

    def note_row(self, relation: Relation, row: Row) -> None:
        """Count a row that exists at the end."""
        self.rows += 1
        for i, (column, value) in enumerate(zip(relation.columns, row, strict=True)):
            if value is None:
                self.nulls[i] += 1
            else:
                self.values[i].add(hash_of(column.type.key(value)), None)

    def update(self, other: TableSurvey) -> None:
        self.inserts += other.inserts
        self.updates += other.updates
        self.deletes += other.deletes
        self.refused += other.refused
        self.rows += other.rows
        self.nulls = [a + b for a, b in zip(self.nulls, other.nulls, strict=True)]
        self.sample.update(other.sample)
        for mine, theirs in zip(self.values, other.values, strict=True):
            mine.update(theirs)


@dataclass
class EdgeSurvey:
    """Counts of some join values of an edge, by side."""

    rows: list[int] = field(default_factory=lambda: [0, 0])
    values: list[int] = field(default_factory=lambda: [0, 0])
    largest: list[int] = field(default_factory=lambda: [0, 0])
    pairs: int = 0

    def note_group(self, sizes: tuple[int, int]) -> None:
        for side, size in enumerate(sizes):
            self.rows[side] += size
            self.values[side] += size > 0
            self.largest[side] = max(self.largest[side], size)
        self.pairs += sizes[0] * sizes[1]

    def update(self, other: EdgeSurvey) -> None:
        for side in (0, 1):
            self.rows[side] += other.rows[side]
            self.values[side] += other.values[side]
            self.largest[side] = max(self.largest[side], other.largest[side])
        self.pairs += other.pairs

    @property
    def fan_out(self) -> tuple[float, float]:
        left, right = (self.pairs / max(1, rows) for rows in self.rows)
        return left, right


@dataclass
class Survey:
    """All counts, by table and by edge."""

    unreadable: int = 0
    tables: dict[str, TableSurvey] = field(default_factory=dict)
    edges: dict[str, EdgeSurvey] = field(default_factory=dict)

    def table(self, relation: Relation) -> TableSurvey:
        if relation.name not in self.tables:
            self.tables[relation.name] = TableSurvey.of(relation)
        return self.tables[relation.name]

    def edge(self, name: str) -> EdgeSurvey:
        return self.edges.setdefault(name, EdgeSurvey())

    @classmethod
    def of_parts(cls, parts: Iterable[Survey]) -> Survey:
        whole = cls()
        for part in parts:
            whole.unreadable += part.unreadable
            for name, table in part.tables.items():
                if name in whole.tables:
                    whole.tables[name].update(table)
                else:
                    whole.tables[name] = table
            for name, edge in part.edges.items():
                whole.edge(name).update(edge)
        return whole
