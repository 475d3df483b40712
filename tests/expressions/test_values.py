"""Expressions mean what DuckDB says; what it cannot compute is NULL."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime

import duckdb
import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from penstock import Hub
from penstock.catalog import Row
from penstock.catalog.derived import ExtendedRelation
from penstock.errors import SqlError
from penstock.expressions import compute
from penstock.expressions.evaluation import _compute_each, _run
from penstock.maintenance.oracle import Oracle, comparable
from penstock.sql import Query, bind
from penstock.sql.tried import with_try
from tests.examples import examples
from tests.expressions.expression_texts import (
    KINDS,
    ROWS,
    any_expression,
    catalog,
    common_expressions,
    expressions,
)
from tests.expressions.expression_texts import table as declared

CATALOG = catalog()


def bound(sql: str) -> Query:
    """The query; of others there is nothing to compare."""
    try:
        return bind(sql, CATALOG)
    except SqlError as error:
        event(f"refused: {error.primary}"[:60])
        assume(False)
        raise


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    with Oracle() as found:
        yield found


def answers(sql: str, rows: list[Row]) -> object:
    with Oracle() as oracle:
        oracle.load(declared(), rows)
        try:
            return oracle.content(with_try(sql))
        except (duckdb.Error, ValueError, OverflowError):
            assume(False)  # dates beyond the calendar of Python


def is_on_the_calendar(rows: object) -> bool:
    """DuckDB's calendar is longer; what no column holds is NULL here."""
    assert isinstance(rows, dict)
    values = [value for row in rows for value in row]
    return all(not isinstance(one, date | datetime) or 1 < one.year < 9999 for one in values)


@settings(max_examples=examples(300))
@given(st.lists(any_expression(), min_size=1, max_size=3), st.lists(ROWS, min_size=1, max_size=6))
def test_values_in_the_select_list(texts: list[str], rows: list[Row]) -> None:
    texts = [text for text in texts if text.startswith("(")]
    assume(texts)
    items = ", ".join(f"{text} AS e{i}" for i, text in enumerate(texts))
    query = bound(f"SELECT {items} FROM t")
    relation = query.nodes[0].relation
    assert isinstance(relation, ExtendedRelation)
    derived = compute(relation.definitions, relation.base, rows)
    shown = [relation.show_row((*row, *values)) for row, values in zip(rows, derived, strict=True)]
    names = [relation.columns[one.column].name for one in query.outputs]
    expected = answers(query.sql, rows)
    assert is_on_the_calendar(expected)
    assert comparable([row[name] for name in names] for row in shown) == expected


@settings(max_examples=examples(600))
@given(
    st.sampled_from(["number", "text", "truth"]).flatmap(common_expressions) | any_expression(),
    st.lists(ROWS, min_size=1, max_size=3),
)
def test_closures_give_what_duckdb_gives(text: str, rows: list[Row]) -> None:
    assume(text.startswith("("))
    relation = bound(f"SELECT {text} AS e FROM t").nodes[0].relation
    assert isinstance(relation, ExtendedRelation)
    found = _compute_each(relation.definitions, relation.base, rows)
    event("DuckDB" if found is None else "Python")
    if found is not None:
        expected = _run(relation.definitions, relation.base, rows)
        assert found == expected
        assert [type(v) for r in found for v in r] == [type(v) for r in expected for v in r]


@pytest.mark.slow
@settings(max_examples=examples(150))
@given(
    expressions("truth", 3),
    st.sampled_from(KINDS).flatmap(expressions),
    st.lists(ROWS, min_size=1, max_size=6, unique_by=lambda row: row[0]),
)
def test_contents(condition: str, text: str, rows: list[Row]) -> None:
    """Through a Hub: insert, update of one column, delete."""
    item = f"{text} AS e" if text.startswith("(") else "id AS e"
    sql = f"SELECT id, {item} FROM t WHERE {condition}"
    bound(sql)
    relation = declared()
    with Hub() as hub:
        hub.execute(f"CREATE TABLE t ({_columns()}, PRIMARY KEY (id))")
        early = hub.subscribe(sql)
        for row in rows:
            hub.insert("t", relation.show_row(row))
        late = hub.subscribe(sql)
        expected = answers(sql, rows)
        assert is_on_the_calendar(expected)
        for one in (early, late):
            assert comparable(row.values() for row in one.content()) == expected
        names = [column.name for column in relation.columns]
        changed = [(row[0], *rows[0][1:7], *row[7:]) for row in rows]
        for row in changed:
            shown = relation.show_row(row)
            hub.update("t", {name: shown[name] for name in names[:7]})
        assert comparable(row.values() for row in early.content()) == answers(sql, changed)
        hub.delete("t", {"id": rows[0][0]})
        assert comparable(row.values() for row in late.content()) == answers(sql, changed[1:])


def _columns() -> str:
    return ", ".join(f"{one.name} {one.type}" for one in declared().columns)
