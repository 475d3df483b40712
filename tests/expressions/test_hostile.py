"""Expressions that a hostile or careless subscriber writes: refused by name, or a value; never an
event that others lose, a process without memory, or an alarm of `verify`."""

from __future__ import annotations

import logging
from datetime import date, datetime
from pathlib import Path

import pytest

from penstock import Hub
from penstock.catalog import BooleanType, Column, Relation, Row, StringType
from penstock.catalog.derived import Definition
from penstock.errors import PenstockError, SqlError
from penstock.expressions import compute
from penstock.maintenance.verification import verify
from penstock.storage import Home
from tests.maintenance.test_verify import silent

TABLE = (
    "CREATE TABLE t (id BIGINT PRIMARY KEY, i INTEGER, d DOUBLE, s VARCHAR, p VARCHAR, "
    "da DATE, ts TIMESTAMP)"
)
ROW = {
    "id": 1,
    "i": 2**31 - 1,
    "d": -0.0,
    "s": "a!",
    "p": "[",
    "da": date(9999, 12, 31),
    "ts": datetime(1, 1, 1),
}


@pytest.mark.parametrize(
    "condition",
    [
        "1 // (i - i) = 1",
        "CAST(s AS INTEGER) = 1",
        "substring(s, i, i) = 'a'",
        "left(s, -i - 1) = 'a'",
        "round(d, i) = 1",
    ],
)
def test_a_condition_that_fails_on_every_row_keeps_none_from_others(condition: str) -> None:
    with Hub() as hub:
        hub.execute(TABLE)
        others = hub.subscribe("SELECT id FROM t WHERE s LIKE 'a%' AND i + 0 > 1")
        failing = hub.subscribe(f"SELECT id FROM t WHERE {condition}")
        hub.insert("t", ROW)
        hub.update("t", {"id": 1, "s": "aa"})
        assert others.content() == [{"id": 1}]
        assert failing.content() == []


@pytest.mark.parametrize(
    "condition",
    [
        "s LIKE 'a!' ESCAPE '!'",
        "s LIKE 'a!!!' ESCAPE '!'",
        "s LIKE 'a' ESCAPE '!!'",
        "s LIKE 'a' ESCAPE 'ä'",
        "s NOT ILIKE 'x!' ESCAPE '!'",
        "s LIKE p || '!' ESCAPE '!'",
        "s LIKE lower('A!') ESCAPE '!'",
        "s LIKE 'a' ESCAPE p",
        "s LIKE 'a' ESCAPE NULL",
        "CASE WHEN s LIKE 'a!' ESCAPE '!' THEN 1 END = 1",
    ],
)
def test_patterns_that_nobody_can_read_are_refused(condition: str) -> None:
    """DuckDB stops at them only when it meets a row."""
    with Hub() as hub:
        hub.execute(TABLE)
        with pytest.raises(SqlError, match=r"LIKE|ESCAPE"):
            hub.subscribe(f"SELECT id FROM t WHERE {condition}")
        fine = hub.subscribe("SELECT id FROM t WHERE s LIKE 'a!!' ESCAPE '!'")
        hub.insert("t", ROW)
        assert fine.content() == [{"id": 1}]


def test_an_expression_that_stops_duckdb_is_null() -> None:
    """As subscriptions of an earlier release may have it."""
    table = Relation("t", (Column("s", StringType()),), ())
    stops = Definition("s LIKE 'a!' ESCAPE '!'", BooleanType(), (0,))
    fine = Definition("reverse(s)", StringType(), (0,))
    rows: list[Row] = [("a!",), ("b",), (None,)]
    assert compute([stops, fine], table, rows) == [
        (None, "!a"),
        (False, "b"),
        (None, None),
    ]


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("replace(s, 'a', s)", "the replacement of replace must be a constant"),
        ("replace(s, 'a', CASE WHEN i > 1 THEN s END)", "must be a constant"),
        ("regexp_replace(s, 'a', p, 'g')", "the replacement of regexp_replace must be a constant"),
        ("regexp_replace(s, p, 'a')", "the pattern of regexp_replace must be a constant"),
        ("regexp_extract(s, p)", "the pattern of regexp_extract must be a constant"),
        ("CAST(regexp_matches(s, p) AS VARCHAR)", "pattern of regexp_matches must be a constant"),
        ("CAST(s SIMILAR TO p AS VARCHAR)", "the pattern of SIMILAR TO must be a constant"),
        ("CAST(s ~ lower(p) AS VARCHAR)", "pattern of regexp_matches must be a constant"),
        (
            "replace(" * 5 + "s" + f", 'a', '{'a' * 60}')" * 5,
            "256 times as long",
        ),
        ("regexp_replace(" * 3 + "s" + r", '.', '\0\0\0\0\0', 'g')" * 3, "256 times as long"),
        ("||".join(["s"] * 300), "256 times as long"),
        ("replace(" * 10 + "'a'" + f", 'a', '{'a' * 60}')" * 10 + " || s", "1,048,576 characters"),
    ],
)
def test_texts_that_grow_are_refused(expression: str, reason: str) -> None:
    with Hub() as hub:
        hub.execute(TABLE)
        for sql in (
            f"SELECT id, {expression} AS x FROM t",
            f"SELECT id FROM t WHERE {expression} = 'x'",
            f"SELECT id FROM t WHERE length({expression}) > 5 OR i = 1",
        ):
            with pytest.raises(SqlError) as refused:
                hub.subscribe(sql)
            assert reason in str(refused.value)


def test_constants_that_grow_are_refused() -> None:
    with Hub() as hub:
        hub.execute(TABLE)
        huge = "replace(" * 10 + "'a'" + f", 'a', '{'a' * 60}')" * 10
        with pytest.raises(SqlError, match="characters"):
            hub.subscribe(f"SELECT id FROM t WHERE s > {huge}")


@pytest.mark.parametrize(
    "expression",
    [
        "replace(replace(replace(s, '&', '&amp;'), '<', '&lt;'), '>', '&gt;')",
        "replace(s, p, 'x')",
        "regexp_replace(s, '[a-z]+', 'x', 'g')",
        "upper(s) || ' ' || lower(p) || ' ' || s",
    ],
)
def test_usual_texts_are_not(expression: str) -> None:
    with Hub() as hub:
        hub.execute(TABLE)
        hub.subscribe(f"SELECT id, {expression} AS x FROM t")


@pytest.mark.parametrize(
    "condition",
    [
        "da < DATE '9999-12-31' + 5",
        "ts > TIMESTAMP '0001-01-01' - INTERVAL 1 DAY",
        "da IN (DATE '2024-01-01', DATE '9999-12-31' + 1)",
    ],
)
def test_a_constant_that_no_column_holds_is_refused(condition: str) -> None:
    """It is larger or smaller than all values, not NULL."""
    with Hub() as hub:
        hub.execute(TABLE)
        with pytest.raises(SqlError, match="calendar"):
            hub.subscribe(f"SELECT id FROM t WHERE {condition}")


AT_THE_EDGES = [
    "SELECT id FROM t WHERE da + 5 <> DATE '2024-02-29'",
    "SELECT id FROM t WHERE NOT (da + 5 = DATE '2024-02-29')",
    "SELECT id FROM t WHERE DATE '2024-02-29' < da + 5",
    "SELECT id FROM t WHERE da + INTERVAL 1 YEAR NOT BETWEEN DATE '2024-02-29' AND DATE '2025-1-1'",
    "SELECT id FROM t WHERE ts - INTERVAL 1 DAY NOT IN (DATE '2024-02-29', DATE '2024-03-01')",
    "SELECT id FROM t WHERE da + 5 > ts OR da + 5 IS NULL",
    "SELECT id, da + 5 AS x, ts - INTERVAL 1 DAY AS y, da AS z FROM t",
    "SELECT id FROM t WHERE 2 * i <> 0",
    "SELECT id FROM t WHERE i + 1 > 0 OR 2 * i > i - 1",
    "SELECT id, CAST(s AS BOOLEAN) AND id < 0 AS x FROM t",
    "SELECT id, 1 / d AS x, d FROM t",
    "SELECT id FROM t WHERE 1 / d > 0",
    "SELECT id FROM t WHERE nullif(1 // (i - i), 2) IS NULL",
    "SELECT a.id FROM t AS a JOIN t AS b ON a.i = b.i AND b.da + 5 <> DATE '2024-02-29'",
]


def test_verify_knows_what_expressions_do_at_the_edges(tmp_path: Path) -> None:
    """Beyond the calendar and the integers, and with -0.0."""
    with Hub(tmp_path / "home") as hub:
        hub.execute(TABLE)
        hub.insert("t", ROW)
        for sql in AT_THE_EDGES:
            hub.subscribe(sql)
        hub.insert("t", ROW | {"id": 2, "d": 0.0, "s": None})
        hub.insert("t", ROW | {"id": 3, "i": 5, "da": date(2024, 2, 24), "d": 2.0})
    verdict = verify(Home.open(tmp_path / "home"), silent)
    assert verdict.findings == []
    assert len(verdict.compared) == len(AT_THE_EDGES)


def test_the_parser_says_nothing_by_itself(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), Hub() as hub:
        hub.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, tz TIMESTAMP WITH TIME ZONE)")
        hub.subscribe("SELECT id, extract(hour FROM tz) AS h FROM t WHERE extract(day FROM tz) = 1")
        with pytest.raises(PenstockError):
            hub.subscribe("SELECT id FROM t WHERE tz AT TIME ZONE 'UTC' IS NULL")
    assert caplog.messages == []
