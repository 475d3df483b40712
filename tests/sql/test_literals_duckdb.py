"""Literals of every form against columns of every type: DuckDB's truth for every row, or a refusal.

What DuckDB itself refuses, or stops at on the way, is refused too: its contents could not be
compared with anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal

import duckdb
import pytest

from penstock.catalog import Catalog
from penstock.errors import SqlError
from penstock.predicates import boxes
from penstock.sql import ShapeBinder, bind, parse_relation
from tests.sql.literals import LITERALS

INF, NAN = float("inf"), float("nan")
LAST = datetime(9999, 12, 31, 23, 59, 59, 999999)
MOMENTS = [datetime(1, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(1970, 1, 1)]
MOMENTS += [datetime(2020, 2, 29), datetime(2020, 2, 29, 12, 30), LAST]
MOMENTS += [datetime(2020, 2, 29, 12, 30, 0, 1)]


def decimals(*texts: str) -> list[Decimal]:
    return list(map(Decimal, texts))


VALUES: dict[str, list[object]] = {
    "TINYINT": [-128, -5, -1, 0, 1, 2, 5, 16, 127],
    "INTEGER": [-(2**31), -5, -1, 0, 1, 2, 5, 16, 1000, 2**31 - 1],
    "BIGINT": [-(2**63), -(2**53) - 1, -5, 0, 1, 2, 5, 16, 1000, 2**53, 2**53 + 1, 2**63 - 1],
    "DOUBLE": [
        *(-INF, -1e300, -(2.0**63), -5.0, -1.5, -0.0, 5e-324, 0.1, 0.5, 1.0, 1.5, 2.0, 5.0),
        *(2.0**53, 2.0**63, 2.0**64, 1e19, 1e20, 1e38, 1e39, 1e300, INF, NAN),
    ],
    "DECIMAL(5,2)": [*decimals("-999.99", "-5", "-0.01", "0", "0.1", "1", "1.5", "5", "999.99")],
    "DECIMAL(18,3)": [
        *decimals("-999999999999999.999", "-5", "-0.001", "0", "0.1", "1.5", "5", "1000")
    ],
    "DECIMAL(38,10)": [
        *decimals("-9999999999999999999999999999.9999999999", "0", "0.1", "5", "1000"),
        *decimals("9223372036854775808", "9999999999999999999999999999.9999999999"),
    ],
    "DECIMAL(38,0)": [
        *decimals("-99999999999999999999999999999999999999", "-5", "0", "5", "1000"),
        *decimals("9223372036854775808", "99999999999999999999999999999999999999"),
    ],
    "VARCHAR": [
        *("", "a", "ab", "A", "it's", "10115", " 5 ", "5", "-5", "1_000", "٣", "1e5", "nan", "inf"),
        *("0x10", "true", "1", "0", "2020-02-29", "\n", "\\n", "a\\b", "é", "e\u0301", "😀", "a%"),
    ],
    "BOOLEAN": [True, False],
    "DATE": [date(1, 1, 1), date(1969, 12, 31), date(1970, 1, 1), date(2020, 2, 29), date.max],
    "TIMESTAMP": [*MOMENTS],
    "TIMESTAMP WITH TIME ZONE": [moment.replace(tzinfo=UTC) for moment in MOMENTS],
}

FORMS = ["x = {}", "x < {}", "{} <= x", "NOT x = {}", "x IN ({}, NULL)", "x IS DISTINCT FROM {}"]
FORMS += ["x NOT IN ({}, {other})", "x BETWEEN {} AND {other}", "x <=> {}"]
OTHERS = {
    "VARCHAR": "'ab'",
    "BOOLEAN": "TRUE",
    "DATE": "DATE '2020-03-01'",
    "TIMESTAMP": "TIMESTAMP '2020-03-01 00:00:00'",
    "TIMESTAMP WITH TIME ZONE": "TIMESTAMPTZ '2020-03-01 00:00:00+00'",
}
UNDERSTOOD = {
    ("BIGINT", "integers"),
    ("BOOLEAN", "booleans"),
    ("DATE", "dates"),
    ("DECIMAL(5,2)", "decimals"),
    ("DOUBLE", "exponents"),
    ("TIMESTAMP", "moments"),
    ("VARCHAR", "texts"),
}
"""Where at least some literals must be understood, lest the test be about nothing."""


class Table:
    """The values of one type, here and in DuckDB."""

    def __init__(self, type_name: str, oracle: duckdb.DuckDBPyConnection) -> None:
        create = f"(n BIGINT, x {type_name})"
        self.relation = parse_relation(f"CREATE STREAM s {create}")
        self.catalog = Catalog()
        self.catalog.add(self.relation, 0)
        self.shapes = ShapeBinder(self.catalog)
        values = [*VALUES[type_name], None]
        self.rows = [self.relation.store_row({"n": n, "x": x}) for n, x in enumerate(values)]
        self.oracle = oracle
        oracle.execute(f"CREATE OR REPLACE TABLE s {create}")
        oracle.executemany("INSERT INTO s VALUES (?, ?)", [[n, x] for n, x in enumerate(values)])

    def disagreement(self, condition: str) -> str | None:
        """What is wrong, if anything; empty if it is refused."""
        sql = f"SELECT n FROM s WHERE {condition}"
        try:
            query = bind(sql, self.catalog)
        except SqlError:
            return ""
        found = {
            row[0]
            for row in self.rows
            if any(boxes.contains(branch[0], self.relation, row) for branch in query.branches)
        }
        try:
            expected = {row[0] for row in self.oracle.execute(sql).fetchall()}
        except duckdb.Error as error:
            return f"{condition} was understood, and DuckDB says: {error}"
        assert self.shapes.bind(sql).branches == query.branches
        return None if found == expected else f"{condition}: {found} instead of {expected}"


@pytest.fixture(scope="module")
def oracle() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


@pytest.mark.slow
@pytest.mark.parametrize("type_name", sorted(VALUES))
@pytest.mark.parametrize("kind", sorted(LITERALS))
def test_literals_are_as_in_duckdb_or_refused(
    oracle: duckdb.DuckDBPyConnection, type_name: str, kind: str
) -> None:
    table, other = Table(type_name, oracle), OTHERS.get(type_name, "1.5")
    found = [
        table.disagreement(form.replace("{}", literal).replace("{other}", other))
        for literal in LITERALS[kind]
        for form in FORMS
    ]
    assert [one for one in found if one] == []
    assert None in found or (type_name, kind) not in UNDERSTOOD


@pytest.mark.parametrize(
    ("type_name", "condition", "reason"),
    [
        ("DOUBLE", "x = 30776184813550139081", "cannot be written as DOUBLE without rounding"),
        ("BIGINT", "x IN (30776184813550139081, 1e0)", "DOUBLE without rounding"),
        ("DECIMAL(38,0)", "x = 1.5", "takes 39 digits, 38 of them before the point"),
        ("BIGINT", "x > 0.12345678901234567890", "takes 39 digits"),
        ("INTEGER", "x IN (99999999999999999999999999999999999999, 0.1)", "takes 39 digits"),
        ("DOUBLE", "x < 0.11111111111111111111111111111111111111", "at most 38 digits"),
        ("BIGINT", "x <=> 5", "IS NOT DISTINCT FROM"),
        ("BIGINT", "x = NULL::VARCHAR", "a NULL of type VARCHAR"),
        ("BIGINT", "x = '\u00a05'::BIGINT", "cannot be written as BIGINT"),
        ("TIMESTAMP", "x = '2020-02-29 '", "is not a timestamp"),
    ],
)
def test_refusals_name_the_thing(type_name: str, condition: str, reason: str) -> None:
    catalog = Catalog()
    catalog.add(parse_relation(f"CREATE STREAM s (x {type_name})"), 0)
    for binder in (bind, lambda sql, catalog: ShapeBinder(catalog).bind(sql)):
        with pytest.raises(SqlError) as caught:
            binder(f"SELECT x FROM s WHERE {condition}", catalog)
        assert reason in caught.value.primary
