"""Joins mean what they mean in DuckDB: the same columns in the same order, and the same rows.

The bound query is run here in the plainest way there is: all combinations of rows, one by one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import duckdb
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from penstock.catalog import Catalog
from penstock.errors import SqlError
from penstock.predicates import boxes
from penstock.sql import Query, bind, parse_relation
from tests.examples import examples

TABLES = {"r": ["id", "x", "y"], "s": ["id", "Y", "x", "z"], "t": ["z", "x", "w"], "u": ["v", "w"]}
ROWS: dict[str, list[list[int | None]]] = {
    "r": [[1, 1, 1], [2, 1, 2], [3, 2, 2], [4, None, 1]],
    "s": [[1, 1, 1, 1], [2, 2, 1, 2], [3, 2, 2, None], [4, 1, None, 1]],
    "t": [[1, 1, 1], [2, 2, 2], [None, 1, 2]],
    "u": [[1, 1], [2, 2], [2, 1]],
}
REFUSED = ("ambiguous", "nothing joins", "two columns are called", "under OR", "of one table")
"""Where we may be stricter than DuckDB, which joins without conditions and shows names twice."""


def create(name: str) -> str:
    return f"CREATE STREAM {name} ({', '.join(f'{column} INTEGER' for column in TABLES[name])})"


CATALOG = Catalog()
for offset, table in enumerate(TABLES):
    CATALOG.add(parse_relation(create(table)), offset)


@pytest.fixture(scope="module")
def oracle() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        for name, rows in ROWS.items():
            connection.execute(create(name).replace("STREAM", "TABLE"))
            marks = ", ".join("?" for _ in rows[0])
            connection.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
        yield connection


def run(query: Query) -> list[tuple[object, ...]]:
    """All combinations of rows that satisfy every join and any branch."""
    found: list[tuple[object, ...]] = []
    for rows in itertools.product(*(ROWS[node.relation.name] for node in query.nodes)):
        joined = all(
            rows[join.left][a] is not None and rows[join.left][a] == rows[join.right][b]
            for join in query.joins
            for a, b in join.columns
        )
        if joined and any(
            all(
                boxes.contains(box, node.relation, tuple(row))
                for box, node, row in zip(branch, query.nodes, rows, strict=True)
            )
            for branch in query.branches
        ):
            found.append(tuple(rows[output.node][output.column] for output in query.outputs))
    return found


@st.composite
def selects(draw: st.DrawFn) -> str:
    """Up to four tables, connected in all the ways there are."""
    names: list[str] = []
    text = ""
    where: list[str] = []
    for i in range(draw(st.integers(2, 4))):
        name = draw(st.sampled_from(sorted(TABLES)))
        alias = name if name not in names else f"{name}{i}"
        item = name if alias == name else f"{name} AS {alias}"
        there = draw(st.sampled_from(names)) if names else ""
        columns = TABLES[name], TABLES[there[:1]] if there else []
        equality = ""
        if there:
            one, other = (draw(st.sampled_from(side)) for side in columns)
            equality = f"{alias}.{one} = {there}.{other}"
        how = draw(st.sampled_from(["using", "using", "natural", "on", "comma", "cross"]))
        if not there:
            text = item
        elif how == "using":
            some = st.lists(st.sampled_from(columns[0]), min_size=1, max_size=2, unique=True)
            text += f" JOIN {item} USING ({', '.join(draw(some))})"
        elif how == "natural":
            text += f" NATURAL JOIN {item}"
        elif how == "on":
            text += f" JOIN {item} ON {equality}"
        else:
            text += f", {item}" if how == "comma" else f" CROSS JOIN {item}"
            where.append(equality)
        names.append(alias)
    local = f"{draw(st.sampled_from(names))}.{draw(st.sampled_from(['x', 'w', 'id']))}"
    either = f"({local} = 2 OR {local} IS NULL)"
    where += draw(st.sampled_from([[], [], [f"{local} < 2"], [either]]))
    last = f"{names[-1]}.*"
    chosen = draw(st.sampled_from(["*", "*", "*", last, f"{last}, {names[0]}.*"]))
    return f"SELECT {chosen} FROM {text}" + (f" WHERE {' AND '.join(where)}" if where else "")


@settings(max_examples=examples(150))
@given(selects())
def test_the_same_columns_and_rows(oracle: duckdb.DuckDBPyConnection, sql: str) -> None:
    try:
        result = oracle.execute(sql)
    except duckdb.BinderException:
        with pytest.raises(SqlError):
            bind(sql, CATALOG)
        return
    names, expected = [column[0] for column in result.description], result.fetchall()
    try:
        query = bind(sql, CATALOG)
    except SqlError as error:
        if not any(reason in error.primary for reason in REFUSED):
            raise
        assume(False)
        raise
    labels = [output.label.split(".")[-1] for output in query.outputs]
    assert [label.lower() for label in labels] == [name.lower() for name in names]
    assert sorted(run(query), key=repr) == sorted(expected, key=repr)
