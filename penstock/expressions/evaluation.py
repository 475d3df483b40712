"""Computes expressions with DuckDB, in memory and in this process.

The texts come from the binder, which accepts only deterministic functions of one row
(`penstock.sql.expressions`). A value that cannot be computed (a bad cast, an overflow) is NULL, as
with TRY(...): one subscriber's expression must not block a row for the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import duckdb
import numpy as np
import pyarrow as pa

from penstock.catalog import Column, Relation, Row, Stored, ValueType
from penstock.catalog.derived import Definition
from penstock.errors import SqlError
from penstock.expressions.closures import NotSureError, compiled
from penstock.expressions.columns import from_arrow, to_arrow
from penstock.expressions.database import DATABASE, FAILURES_OF_ROWS, first_line


@lru_cache(10_000)
def type_name(text: str, columns: tuple[Column, ...] = ()) -> str:
    """DuckDB's name for the type of an expression over some columns; SqlError if it has none."""
    names = ", ".join(f"CAST(NULL AS {one.type}) AS {quote(one.name)}" for one in columns)
    source = f"(SELECT {names})" if names else "(SELECT NULL)"
    try:
        with DATABASE.connection() as connection:
            described = connection.execute(
                f"DESCRIBE SELECT {text} AS x FROM {source} AS t"
            ).fetchall()
    except duckdb.Error as error:
        raise SqlError("this expression is not valid", detail=first_line(error)) from None
    return str(described[0][1])


def constant_value(text: str, value_type: ValueType) -> Stored:
    """The value of an expression without columns; SqlError if it has none."""
    try:
        (row,) = _run([Definition(text, value_type, ())], _NO_COLUMNS, [()], strict=True)
    except duckdb.Error as error:
        raise SqlError("this expression has no value", detail=first_line(error)) from None
    return row[0]


_NO_COLUMNS = Relation("", (), ())


def compute(
    definitions: Sequence[Definition], relation: Relation, rows: Sequence[Row]
) -> list[Row]:
    """The values of expressions over a relation, row by row."""
    if not rows or not definitions:
        return [()] * len(rows)
    found = _compute_each(definitions, relation, rows)
    if found is not None:
        return found
    try:
        return _run(definitions, relation, rows)
    except FAILURES_OF_ROWS:
        return _compute_apart(definitions, relation, rows)


def _compute_each(
    definitions: Sequence[Definition], relation: Relation, rows: Sequence[Row]
) -> list[Row] | None:
    """The same without DuckDB; None if that is not certain."""
    functions = [compiled(one, relation) for one in definitions]
    if None in functions:
        return None
    try:
        return [tuple([one(row) for one in functions if one is not None]) for row in rows]
    except NotSureError:
        return None


def _compute_apart(
    definitions: Sequence[Definition], relation: Relation, rows: Sequence[Row]
) -> list[Row]:
    """The same where TRY does not help, because memory is short: one row, and finally one
    definition, at a time. A value that cannot be computed by itself is NULL."""
    if len(rows) > 1:
        half = len(rows) // 2
        return [
            *compute(definitions, relation, rows[:half]),
            *compute(definitions, relation, rows[half:]),
        ]
    if len(definitions) > 1:
        return [tuple(compute([one], relation, rows)[0][0] for one in definitions)]
    return [(None,)]


def _run(
    definitions: Sequence[Definition],
    relation: Relation,
    rows: Sequence[Row],
    *,
    strict: bool = False,
) -> list[Row]:
    reads = sorted({column for one in definitions for column in one.reads})
    columns = [relation.columns[i] for i in reads]
    given = {
        column.name: to_arrow(column.type, [row[i] for row in rows])
        for i, column in zip(reads, columns, strict=True)
    }
    found = compute_columns(definitions, given, len(rows), strict=strict)
    values = [from_arrow(one.type, array) for one, array in zip(definitions, found, strict=True)]
    return list(zip(*values, strict=True))


def compute_columns(
    definitions: Sequence[Definition],
    given: Mapping[str, pa.Array],
    count: int,
    *,
    strict: bool = False,
) -> list[pa.Array]:
    """The values of expressions over columns of one length, column by column. A duckdb.Error if
    TRY does not help; see `compute`."""
    # A table needs a column, even if the expressions read none.
    columns = {"\1row": pa.array(np.arange(count)), **given}
    with DATABASE.connection() as connection:
        connection.register("given", pa.table(columns))
        found = connection.sql(_select(definitions, strict)).to_arrow_table()
        connection.unregister("given")
    return [column.combine_chunks() for column in found.columns]


def _select(definitions: Sequence[Definition], strict: bool) -> str:
    # TRY is outermost: a value that does not fit its type cannot be computed.
    values = (f"CAST({one.text} AS {one.type})" for one in definitions)
    listed = ", ".join(one if strict else f"TRY({one})" for one in values)
    return f"SELECT {listed} FROM given"


def quote(name: str) -> str:
    """A quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'
