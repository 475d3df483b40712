"""Bounded samples of a table's rows, maintained change by change.

A sample keeps the rows whose value in some columns has a hash that ends in `level` zeros, and
raises the level when it grows too large (distinct sampling, Gibbons 2001). So it holds whole join
values: all partners of a sampled row are counted, and two tables sampled by the columns that join
them hold the same values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias
from zlib import crc32

from penstock.catalog import Relation, Row, RowKey
from penstock.packing import pack
from penstock.spaces import JoinValue, join_value

MAX_ROWS = 512
"""Above this size the number of values held is halved. A share estimated from half as many rows is
accurate to a few percent, and a sample takes some 100 kB."""
MAX_ROWS_OF_VALUE = 64
"""Rows held per join value; further ones are only counted."""


@dataclass(slots=True)
class Sampled:
    """The rows of one join value: how many there are, and some of them."""

    count: int = 0
    rows: dict[RowKey, Row] = field(default_factory=dict)


ByValue: TypeAlias = Mapping[JoinValue, Sampled]


class Sample:
    """Some rows of a table, by their values in some columns; without columns, by their keys."""

    def __init__(self, relation: Relation, columns: tuple[int, ...] | None) -> None:
        self._relation = relation
        self._columns = columns
        self.level = 0
        self.held = 0
        self.values: dict[JoinValue, Sampled] = {}

    def fill(self, rows: Iterable[tuple[RowKey, Row]]) -> None:
        """Replace the content by a sample of these rows."""
        self.level, self.held, self.values = 0, 0, {}
        for key, row in rows:
            self.add(key, row)

    def add(self, key: RowKey, row: Row) -> None:
        value = self._value(key, row)
        if value is None or not is_sampled(value, self.level):
            return
        sampled = self.values.setdefault(value, Sampled())
        sampled.count += 1
        if len(sampled.rows) < MAX_ROWS_OF_VALUE:
            sampled.rows[key] = row
            self.held += 1
        while self.held > MAX_ROWS:
            self._thin_out()

    def remove(self, key: RowKey, row: Row) -> None:
        value = self._value(key, row)
        sampled = None if value is None else self.values.get(value)
        if sampled is None or value is None:
            return
        sampled.count -= 1
        self.held -= sampled.rows.pop(key, None) is not None
        if not sampled.count:
            del self.values[value]

    @property
    def is_worn(self) -> bool:
        """Whether so many rows were removed that the sample should be refilled."""
        return self.level > 0 and self.held < MAX_ROWS // 8

    def at(self, level: int) -> ByValue:
        """The values that a sample of a higher level would hold."""
        if level <= self.level:
            return self.values
        return {value: one for value, one in self.values.items() if is_sampled(value, level)}

    def _value(self, key: RowKey, row: Row) -> JoinValue | None:
        return key if self._columns is None else join_value(self._relation, self._columns, row)

    def _thin_out(self) -> None:
        self.level += 1
        kept = ((value, one) for value, one in self.values.items() if is_sampled(value, self.level))
        self.values = dict(kept)
        self.held = sum(len(one.rows) for one in self.values.values())


def is_sampled(value: JoinValue, level: int) -> bool:
    return level == 0 or not crc32(pack(value)) & ((1 << level) - 1)
