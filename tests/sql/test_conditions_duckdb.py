"""Conditions select the same rows as DuckDB, whatever their types, NULLs and extremes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal

import duckdb
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from penstock.catalog import Catalog, Row
from penstock.errors import ChangeError, SqlError
from penstock.predicates import boxes
from penstock.sql import Query, bind, parse_relation
from tests.examples import examples
from tests.sql import conditions

RELATION = conditions.relation()
ROWS = conditions.rows(150, seed=7)
STORED: list[Row] = [RELATION.store_row(row) for row in ROWS]
CATALOG = Catalog()
CATALOG.add(RELATION, 0)

REFUSED = ("cannot be compared exactly", "without rounding", "digits", "too complex")
"""What may be refused although DuckDB runs it: comparisons that it rounds, or that it can run only
as long as values are small, and long ones."""


@pytest.fixture(scope="module")
def oracle() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(conditions.CREATE)
        marks = ", ".join("?" for _ in RELATION.columns)
        values = [[row[column.name] for column in RELATION.columns] for row in ROWS]
        connection.executemany(f"INSERT INTO t VALUES ({marks})", values)
        yield connection


def bound(sql: str, catalog: Catalog) -> Query:
    """The query; an example that is refused for a good reason is not one."""
    try:
        return bind(sql, catalog)
    except SqlError as error:
        if not any(reason in error.primary for reason in REFUSED):
            raise
        assume(False)
        raise


def answer(oracle: duckdb.DuckDBPyConnection, sql: str) -> list[tuple[object, ...]]:
    return oracle.execute(sql).fetchall()


@example("double > 'Infinity'::DOUBLE OR double <= 'Infinity'::DOUBLE")
@example("NOT (big IN (1, NULL) OR tiny > NULL)")
@example("big BETWEEN 1 AND 1e2")
@settings(max_examples=examples(250))
@given(conditions.conditions)
def test_the_same_rows(oracle: duckdb.DuckDBPyConnection, condition: str) -> None:
    sql = f"SELECT id FROM t WHERE {condition}"
    query = bound(sql, CATALOG)
    expected = {row[0] for row in answer(oracle, sql)}
    found = {
        row["id"]
        for row, stored in zip(ROWS, STORED, strict=True)
        if any(boxes.contains(branch[0], RELATION, stored) for branch in query.branches)
    }
    assert found == expected
    assert not any(boxes.is_empty(branch[0]) for branch in query.branches)


NUMERIC = ["TINYINT", "INTEGER", "BIGINT", "DOUBLE"]
NUMERIC += ["DECIMAL(9,0)", "DECIMAL(18,3)", "DECIMAL(30,8)"]
OPERATORS = ["=", "<>", "<", "<=", ">", ">="]

numbers = st.one_of(
    st.integers(-(10**19), 10**19).map(str),
    st.integers(-(10**38) + 1, 10**38 - 1).map(str),
    st.integers(-300, 300).map(str),
    st.decimals(-(10**12), 10**12, places=6).map(lambda d: f"{d:f}"),
    st.decimals(-200, 200, places=2).map(lambda d: f"{d:f}"),
    st.floats(-1e20, 1e20).map(lambda f: f"{f:.17e}"),
    st.floats(-200, 200).map(lambda f: f"{f:.3e}"),
)


def near(text: str, type_name: str) -> list[object]:
    """Values of a type around a number, as far as they fit."""
    value_type = parse_relation(f"CREATE STREAM s (x {type_name})").columns[0].type
    if type_name == "DOUBLE":
        middle = float(text)
        return [math.nextafter(middle, -math.inf), middle, math.nextafter(middle, math.inf)]
    step = Decimal(1).scaleb(-getattr(value_type, "scale", 0))
    middle_number = Decimal(text).quantize(step, context=conditions.WIDE)
    found: list[object] = []
    for number in (middle_number - step, middle_number, middle_number + step):
        outside = number if "DECIMAL" in type_name else int(number)
        try:
            value_type.store(outside)
        except ChangeError:
            continue
        found.append(outside)
    return found


@settings(max_examples=examples(200))
@given(numbers, st.sampled_from(NUMERIC), st.sampled_from(OPERATORS))
def test_any_number_compares_as_in_duckdb(
    oracle: duckdb.DuckDBPyConnection, number: str, type_name: str, operator: str
) -> None:
    values = near(number, type_name)
    assume(values)
    relation = parse_relation(f"CREATE STREAM s (x {type_name})")
    catalog = Catalog()
    catalog.add(relation, 0)
    query = bound(f"SELECT x FROM s WHERE x {operator} {number}", catalog)
    stored = [relation.store_row({"x": value}) for value in values]
    found = [
        any(boxes.contains(branch[0], relation, row) for branch in query.branches) for row in stored
    ]
    rows = ", ".join(f"(CAST('{value}' AS {type_name}))" for value in values)
    expected = answer(oracle, f"SELECT x {operator} {number} FROM (VALUES {rows}) AS s(x)")
    assert found == [row[0] for row in expected], values
