"""Random expressions over columns of all types; some of them fail on some values."""

from __future__ import annotations

from hypothesis import strategies as st

from penstock.catalog import Catalog, Relation
from penstock.sql import parse_relation

TABLE = """CREATE TABLE t (id BIGINT PRIMARY KEY, tiny TINYINT, num INTEGER, big BIGINT, x DOUBLE,
price DECIMAL(9,2), wide DECIMAL(38,4), name VARCHAR, word VARCHAR(9), flag BOOLEAN, day DATE,
at TIMESTAMP, seen TIMESTAMPTZ)"""


def table() -> Relation:
    return parse_relation(TABLE)


def catalog() -> Catalog:
    found = Catalog()
    found.add(table(), 0)
    return found


def _or_null(values: list[object]) -> st.SearchStrategy[object]:
    return st.sampled_from([*values, None])


_DAY_MICROS = 86_400_000_000

STORED: dict[str, st.SearchStrategy[object]] = {
    "tiny": _or_null([-128, -1, 0, 1, 7, 127]),
    "num": _or_null([-(2**31), -3, 0, 1, 2, 100, 2**31 - 1]),
    "big": _or_null([-(2**63), -1, 0, 1, 5, 2**63 - 1]),
    "x": _or_null([float("nan"), float("-inf"), float("inf"), -0.0, 0.0, 0.1, -2.5, 1e300]),
    "price": _or_null([-(10**9) + 1, -150, 0, 1, 99, 10**9 - 1]),
    "wide": _or_null([-(10**38) + 1, -15_000, 0, 1, 2**63, 10**38 - 1]),
    "name": _or_null(["", "a", "Ab%_c", "é", "ß", "İ", "10", "\U0001f600x", "a\u0301", "x" * 300]),
    "word": _or_null(["1", " 2 ", "-7", "1e3", "nan", "2024-2-9", "true", "x"]),
    "flag": _or_null([True, False]),
    "day": _or_null([-25_567, -1, 0, 19_782, 40_000]),
    "at": _or_null([-1, 0, 19_782 * _DAY_MICROS + 45_000_000_001, 40_000 * _DAY_MICROS]),
    "seen": _or_null([-1, 0, 19_782 * _DAY_MICROS + 3_600_000_000]),
}
ROWS = st.tuples(st.integers(0, 5), *STORED.values())

_LEAVES = {
    "number": ["tiny", "num", "big", "x", "price", "wide", "0", "1", "-3", "2.5", "1e2", "100000"],
    "text": ["name", "word", "'a'", "'%b_'", "''", "'é'"],
    "truth": ["flag", "TRUE", "name IS NULL"],
    "time": ["day", "at", "seen", "DATE '2024-02-29'", "TIMESTAMP '2024-02-29 12:30:00'"],
}
_FORMS = {
    "number": [
        "{number} + {number}",
        "{number} - {number}",
        "{number} * {number}",
        "{number} / {number}",
        "{number} // {number}",
        "{number} % {number}",
        "-{number}",
        "abs({number})",
        "round({number}, 1)",
        "floor({number})",
        "sign({number})",
        "length({text})",
        "strpos({text}, {text})",
        "CAST({text} AS INTEGER)",
        "TRY_CAST({text} AS DOUBLE)",
        "CAST({number} AS TINYINT)",
        "CAST({number} AS DECIMAL(5,1))",
        "year({time})",
        "extract(day FROM {time})",
        "coalesce({number}, {number})",
        "CASE WHEN {truth} THEN {number} ELSE {number} END",
        "nullif({number}, {number})",
        "greatest({number}, {number})",
        "sqrt({number})",
    ],
    "text": [
        "lower({text})",
        "upper({text})",
        "{text} || {text}",
        "concat({text}, {text})",
        "substring({text}, 2, 2)",
        "left({text}, 1)",
        "replace({text}, 'a', 'bb')",
        "trim({text})",
        "reverse({text})",
        "CAST({number} AS VARCHAR)",
        "CAST({time} AS VARCHAR)",
        "coalesce({text}, {text})",
        "CASE WHEN {truth} THEN {text} END",
    ],
    "truth": [
        "{number} < {number}",
        "{number} = {number}",
        "{text} >= {text}",
        "{time} < {time}",
        "{truth} AND {truth}",
        "{truth} OR {truth}",
        "NOT {truth}",
        "{text} LIKE {text}",
        "{text} ILIKE {text}",
        "{text} IN ('a', {text})",
        "{number} BETWEEN {number} AND {number}",
        "{number} IS NULL",
        "{truth} IS NOT TRUE",
        "{text} IS DISTINCT FROM {text}",
        "CAST({text} AS BOOLEAN)",
    ],
    "time": [
        "{time} + INTERVAL 1 MONTH",
        "{time} - INTERVAL 1 DAY",
        "date_trunc('month', {time})",
        "CAST({time} AS DATE)",
        "CAST({text} AS DATE)",
        "coalesce({time}, {time})",
    ],
}
KINDS = sorted(_FORMS)


@st.composite
def expressions(draw: st.DrawFn, kind: str, depth: int = 2) -> str:
    """Always in parentheses, unless it is a leaf: what belongs together is for another test."""
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        return draw(st.sampled_from(_LEAVES[kind]))
    form = draw(st.sampled_from(_FORMS[kind]))
    for name in KINDS:
        while f"{{{name}}}" in form:
            form = form.replace(f"{{{name}}}", draw(expressions(name, depth - 1)), 1)
    return f"({form})"


def any_expression() -> st.SearchStrategy[str]:
    return st.sampled_from(KINDS).flatmap(expressions)


_COMMON_FORMS = {
    "number": [
        "{number} + {number}",
        "{number} - {number}",
        "{number} * {number}",
        "length({text})",
    ],
    "text": ["lower({text})", "upper({text})", "{text} || {text}"],
    "truth": [
        *("{number} < {number}", "{number} = {number}", "{text} >= {text}", "{text} <> {text}"),
        *("{truth} AND {truth}", "{truth} OR {truth}", "NOT {truth}", "{number} IS NULL"),
    ],
}
_COMMON_LEAVES = {
    "number": ["tiny", "num", "big", "price", "wide", "1", "2.5", "300"],
    "text": ["name", "word", "'a'"],
    "truth": ["flag", "(num > 1)"],
}


@st.composite
def common_expressions(draw: st.DrawFn, kind: str, depth: int = 3) -> str:
    """Such as are computed without DuckDB where there are a few rows."""
    if depth == 0 or draw(st.integers(0, 5)) == 0:
        return draw(st.sampled_from(_COMMON_LEAVES[kind]))
    form = draw(st.sampled_from(_COMMON_FORMS[kind]))
    for name in _COMMON_FORMS:
        while f"{{{name}}}" in form:
            form = form.replace(f"{{{name}}}", draw(common_expressions(name, depth - 1)), 1)
    return f"({form})"
