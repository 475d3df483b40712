"""The oracle: DuckDB over the same rows, which every content must equal.

DuckDB is independent, and nothing of Penstock's own evaluation is used: tables are declared from
their columns, changes become INSERT, UPDATE and DELETE statements, and subscriptions run as they
were written.
"""

from __future__ import annotations

import atexit
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from inspect import Parameter, Signature
from itertools import count
from types import TracebackType
from typing import Any, ClassVar, TypeAlias

import duckdb
import pyarrow as pa
from duckdb.func import FunctionNullHandling

from penstock.catalog import Outside, Relation, Row
from penstock.catalog.arrow_types import arrow_type
from penstock.catalog.types import ValueType
from penstock.expressions.database import DISABLED_OPTIMIZERS
from penstock.flow.changes import Change, Op
from penstock.maintenance.document_oracle import CalledTable, called_tables
from penstock.operators.interface import Operator

Function: TypeAlias = Callable[[tuple[Outside, ...]], object]


class Oracle:
    """An in-memory DuckDB schema that gets the same changes as Penstock.

    All oracles of a process share one database, since opening one takes longer than most tests.
    """

    _shared: ClassVar[duckdb.DuckDBPyConnection | None] = None
    _numbers: ClassVar[Iterator[int]] = count()
    _functions: ClassVar[dict[str, Function]] = {}  # they belong to the whole database

    def __init__(self) -> None:
        if Oracle._shared is None:
            Oracle._shared = duckdb.connect(
                config={"threads": 1, "disabled_optimizers": DISABLED_OPTIMIZERS}
            )
            atexit.register(Oracle._close)
        self._schema = f"oracle_{next(self._numbers)}"
        self._database = Oracle._shared.cursor()
        self._database.execute("SET TimeZone = 'UTC'")
        self._database.execute(f"CREATE SCHEMA {self._schema}; USE {self._schema}")
        self._relations: dict[str, Relation] = {}
        self._answers: dict[str, Counter[tuple[object, ...]]] = {}

    @classmethod
    def _close(cls) -> None:
        """Called before the interpreter exits: DuckDB's bindings complain about open objects."""
        if cls._shared is not None:
            cls._shared.close()
            cls._shared = None
            cls._functions.clear()

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
        columns = ", ".join(
            f'"{c.name}" {"VARCHAR" if c.type.is_opaque else c.type}' for c in relation.columns
        )
        self._database.execute(f'CREATE TABLE "{relation.name}" ({columns})')
        self._relations[relation.name.lower()] = relation

    def define_operator(self, operator: Operator) -> None:
        """Define an operator without outputs as a DuckDB function. Another one of the same name
        must have the same arguments; it replaces the first for all oracles."""
        types = [one.type for one in operator.arguments]
        self.define_function(operator.name, types, partial(_evaluate, operator))

    def define_function(self, name: str, types: Sequence[ValueType], function: Function) -> None:
        """Define a condition as a DuckDB function of outside values. Another one of the same name
        must have the same arguments; it replaces the first for all oracles."""
        if name.lower() not in self._functions:
            assert Oracle._shared is not None
            Oracle._shared.create_function(
                name,
                _called(self._functions, name.lower(), len(types)),
                list(map(str, types)),
                "BOOLEAN",
                null_handling=FunctionNullHandling.SPECIAL,
            )
        self._functions[name.lower()] = function
        self._answers.clear()

    def apply(self, change: Change) -> None:
        """Apply a change that is known to be valid."""
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
        """Declare a table and bulk-load rows in stored form."""
        self.define(relation)
        stored = list(rows)
        if not stored:
            return
        columns = [
            pa.array(
                [
                    None if value is None else _plain_zero(column.type.show(value))
                    for value in values
                ],
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
            text = self.with_documents(sql)
            self._answers[sql] = comparable(self._database.execute(text).fetchall())
        return Counter(self._answers[sql])

    def with_documents(self, sql: str) -> str:
        """A query with tables in place of XMLTABLEs, filled from all current documents."""
        called = called_tables(sql) if "XMLTABLE" in sql.upper() else ()
        documents = self._documents() if called else set()
        written, at = [], 0
        for one in called:
            name = self._load_xml_table(one, documents)
            written += [sql[at : one.start], one.read_from(name)]
            at = one.end
        return "".join([*written, sql[at:]])

    def _documents(self) -> set[str]:
        """All documents of all tables."""
        found: set[str] = set()
        for relation in self._relations.values():
            for column in relation.columns:
                if column.type.is_opaque:
                    rows = self._database.execute(
                        f'SELECT DISTINCT "{column.name}" FROM "{relation.name}"'
                    ).fetchall()
                    found |= {text for (text,) in rows if text is not None}
        return found

    def _load_xml_table(self, called: CalledTable, documents: set[str]) -> str:
        """Create a table with the rows of an XMLTABLE; returns its name. Documents that it extracts
        are added, for later XMLTABLEs."""
        relation = called.relation(f"xmltable_{next(self._numbers)}")
        rows = [(text, *row) for text in sorted(documents) for row in called.rows(text)]
        self.load(relation, rows)
        del self._relations[relation.name]
        for i, column in enumerate(relation.columns):
            if column.type.is_opaque:
                documents |= {text for row in rows if isinstance(text := row[i], str)}
        return relation.name

    def _run(self, sql: str, parameters: list[Any]) -> None:
        """Change rows. Results of queries are cached until then: a query takes longer than a
        change."""
        self._answers.clear()
        self._database.execute(sql, [_plain_zero(one) for one in parameters])


def _called(functions: Mapping[str, Function], name: str, arguments: int) -> Callable[..., object]:
    """Calls the function that has this name at that time."""

    def function(*row: Outside) -> object:
        return functions[name](row)

    # DuckDB reads the number of arguments from here.
    function.__signature__ = Signature(  # type: ignore[attr-defined]
        [Parameter(f"value{i}", Parameter.POSITIONAL_ONLY) for i in range(arguments)]
    )
    return function


def _evaluate(operator: Operator, row: tuple[Outside, ...]) -> object:
    if None in row and not operator.takes_null:
        return None
    (found,) = operator.evaluate([row])
    if isinstance(found, Exception):
        raise found
    return found


def _plain_zero(value: Any) -> Any:
    """In expressions -0.0 is 0.0: which of them a row has depends on the changes that made it."""
    return value + 0.0 if isinstance(value, float) else value


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
