"""The oracle: DuckDB over the same rows, which every content must equal.

Nobody here wrote DuckDB, and nothing of Penstock's own evaluation is used: tables are declared from
their columns, changes become INSERT, UPDATE and DELETE statements, and subscriptions run as they
were written.
"""

from __future__ import annotations

import atexit
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from itertools import count
from types import TracebackType
from typing import Any, ClassVar

import duckdb
import pyarrow as pa

from penstock.catalog import Outside, Relation, Row
from penstock.flow.changes import Change, Op
from penstock.matching.arrow import arrow_type


class Oracle:
    """A DuckDB schema in memory that is told what Penstock is told.

    All oracles of a process share one database, since opening one takes longer than most stories.
    """

    _shared: ClassVar[duckdb.DuckDBPyConnection | None] = None
    _numbers: ClassVar[Iterator[int]] = count()

    def __init__(self) -> None:
        if Oracle._shared is None:
            Oracle._shared = duckdb.connect(config={"threads": 1})
            atexit.register(Oracle._close)
        self._schema = f"oracle_{next(self._numbers)}"
        self._database = Oracle._shared.cursor()
        self._database.execute("SET TimeZone = 'UTC'")
        self._database.execute(f"CREATE SCHEMA {self._schema}; USE {self._schema}")
        self._relations: dict[str, Relation] = {}
        self._answers: dict[str, Counter[tuple[object, ...]]] = {}

    @classmethod
    def _close(cls) -> None:
        """Before the interpreter goes: DuckDB's bindings complain of what is left behind."""
        if cls._shared is not None:
            cls._shared.close()
            cls._shared = None

    def __enter__(self) -> Oracle:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._database.execute(f"USE main; DROP SCHEMA {self._schema} CASCADE")
        self._database.close()

    def define(self, relation: Relation) -> None:
        columns = ", ".join(f'"{c.name}" {c.type}' for c in relation.columns)
        self._database.execute(f'CREATE TABLE "{relation.name}" ({columns})')
        self._relations[relation.name.lower()] = relation

    def apply(self, change: Change) -> None:
        """Carry out a change that is known to be valid."""
        relation = self._relations[change.table.lower()]
        keys = [relation.columns[i].name for i in relation.key]
        where = " AND ".join(f'"{key}" = ?' for key in keys)
        key_values = [change.row.get(key) for key in keys]
        if change.op in (Op.DELETE, Op.REMOVE, Op.UPSERT):
            self._run(f'DELETE FROM "{relation.name}" WHERE {where}', key_values)
        if change.op in (Op.INSERT, Op.UPSERT):
            names = ", ".join(f'"{name}"' for name in change.row)
            marks = ", ".join("?" for _ in change.row)
            values = list(change.row.values())
            self._run(f'INSERT INTO "{relation.name}" ({names}) VALUES ({marks})', values)
        if change.op is Op.UPDATE:
            changed = {k: v for k, v in change.row.items() if k not in keys}
            if changed:
                sets = ", ".join(f'"{name}" = ?' for name in changed)
                values = [*changed.values(), *key_values]
                self._run(f'UPDATE "{relation.name}" SET {sets} WHERE {where}', values)

    def load(self, relation: Relation, rows: Iterable[Row]) -> None:
        """Declare a table and fill it at once with rows in stored form."""
        self.define(relation)
        stored = list(rows)
        if not stored:
            return
        columns = [
            pa.array(
                [None if value is None else column.type.show(value) for value in values],
                arrow_type(column.type),
            )
            for column, values in zip(relation.columns, zip(*stored, strict=True), strict=True)
        ]
        names = [str(number) for number in range(len(columns))]
        self._database.register("loaded", pa.table(columns, names=names))
        self._run(f'INSERT INTO "{relation.name}" SELECT * FROM loaded', [])
        self._database.unregister("loaded")

    def content(self, sql: str) -> Counter[tuple[object, ...]]:
        """What the query returns now, as a multiset of comparable rows."""
        if sql not in self._answers:
            self._answers[sql] = comparable(self._database.execute(sql).fetchall())
        return Counter(self._answers[sql])

    def _run(self, sql: str, parameters: list[Any]) -> None:
        """Change rows. Until then a query is not asked twice: that takes longer than a change."""
        self._answers.clear()
        self._database.execute(sql, parameters)


def comparable(rows: Iterable[Iterable[Outside]]) -> Counter[tuple[object, ...]]:
    """Rows as a multiset in which equal SQL values are equal."""
    return Counter(tuple(_comparable(value) for value in row) for row in rows)


def _comparable(value: Outside) -> object:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, Decimal):
        return value.normalize()
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    return value
