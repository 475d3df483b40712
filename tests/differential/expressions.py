"""Expressions of one row for random stories: such as never fail on the values of `DOMAINS`."""

from __future__ import annotations

from hypothesis import strategies as st

# For each SQL type: an expression over a column {c}, and literals to compare its values with.
FORMS: dict[str, list[tuple[str, list[str]]]] = {
    "BIGINT": [
        ("{c} % 3", ["0", "1", "-1"]),
        ("{c} / 2", ["0", "0.5", "1"]),
        ("coalesce({c}, 0) // 2", ["0", "1"]),
        ("CAST({c} AS VARCHAR)", ["'1'", "'2'"]),
        ("CASE WHEN {c} > 0 THEN 1 ELSE {c} END", ["1", "-1", "0"]),
        ("greatest({c}, 1)", ["1", "2"]),
        ("nullif({c}, 1)", ["1", "2", "3"]),
        ("{c} IN (1, 2)", ["TRUE", "FALSE"]),
        ("CAST({c} AS DECIMAL(38,2)) * 2", ["2", "4.00"]),
    ],
    "DOUBLE": [
        ("{c} * 2", ["1", "5", "0"]),
        ("round({c}, 0)", ["0", "1", "'NaN'::DOUBLE"]),
        ("-abs({c})", ["-0.5", "0"]),
        ("floor({c} + 0.5)", ["0", "1"]),
        ("coalesce({c}, -1)", ["-1", "0.5"]),
        ("{c} IS NULL OR {c} > 0.25", ["TRUE", "FALSE"]),
    ],
    "DECIMAL(6,2)": [
        ("{c} * 2", ["2.5", "-3", "0.02"]),
        ("{c} + 1.555", ["1.555", "0.055"]),
        ("round({c}, 1)", ["0.0", "1.3", "-1.5"]),
        ("CAST({c} AS INTEGER)", ["0", "1", "-2"]),
        ("{c} / 3", ["0", "0.5"]),
        ("{c} * {c}", ["0.0001", "1.5625"]),
    ],
    "VARCHAR": [
        ("upper({c})", ["'A'", "'AB'"]),
        ("lower({c}) || 'x'", ["'ax'", "'bx'"]),
        ("length({c})", ["0", "1", "2"]),
        ("substring({c}, 2, 1)", ["'b'", "''"]),
        ("{c} LIKE '%b'", ["TRUE", "FALSE"]),
        ("{c} ILIKE 'A_'", ["TRUE", "FALSE"]),
        ("reverse({c})", ["'ba'", "'cba'"]),
        ("replace({c}, 'b', 'aa')", ["'aa'", "'aaa'"]),
        ("regexp_matches({c}, '^a.*b')", ["TRUE", "FALSE"]),
        ("strpos({c}, 'b')", ["0", "1", "2"]),
        ("concat({c}, 'y')", ["'y'", "'ay'"]),
        ("TRY_CAST({c} AS INTEGER)", ["5"]),
    ],
    "VARCHAR(9)": [
        ("TRY_CAST({c} AS INTEGER)", ["10115", "5", "-5", "100000"]),
        ("trim({c})", ["'5'", "'true'"]),
        ("left({c}, 1)", ["'1'", "'t'"]),
        ("{c} LIKE '%1%'", ["TRUE", "FALSE"]),
    ],
    "BOOLEAN": [
        ("NOT {c}", ["TRUE", "FALSE"]),
        ("CASE WHEN {c} THEN 'yes' WHEN NOT {c} THEN 'no' END", ["'yes'", "'no'"]),
        ("coalesce({c}, TRUE)", ["TRUE", "FALSE"]),
        ("({c} IS NULL) = ({c} IS NOT TRUE)", ["TRUE", "FALSE"]),
    ],
    "DATE": [
        ("year({c})", ["1969", "2024"]),
        ("{c} + INTERVAL 1 MONTH", ["TIMESTAMP '2024-03-29 00:00:00'"]),
        ("{c} + 1", ["DATE '1970-01-01'", "DATE '2024-03-01'"]),
        ("extract(month FROM {c})", ["2", "3", "12"]),
        ("{c} - DATE '2024-01-01'", ["59", "60"]),
        ("datediff('day', {c}, DATE '2024-03-01')", ["0", "1"]),
        ("date_trunc('month', {c})", ["TIMESTAMP '2024-02-01 00:00:00'"]),
    ],
    "TIMESTAMP": [
        ("hour({c})", ["0", "12"]),
        ("CAST({c} AS DATE)", ["DATE '2024-02-29'"]),
        ("{c} - INTERVAL 30 MINUTE", ["TIMESTAMP '2024-02-29 12:00:00.000001'"]),
        ("date_trunc('hour', {c})", ["TIMESTAMP '2024-02-29 12:00:00'"]),
    ],
    "TIMESTAMPTZ": [
        ("hour({c})", ["0", "23"]),
        ("{c} + INTERVAL 1 HOUR", ["TIMESTAMPTZ '2024-02-29 00:00:00+00'"]),
        ("date_trunc('day', {c})", ["TIMESTAMPTZ '2024-02-28 00:00:00+00'"]),
        ("CAST({c} AS VARCHAR)", ["'2024-02-29 00:00:00+00'"]),
    ],
}
TWO_COLUMNS = [
    "{t}.k = {t}.j",
    "{t}.k < {t}.j",
    "{t}.k + {t}.j > 1",
    "coalesce({t}.k, {t}.j) IS NOT DISTINCT FROM {t}.j",
    "CAST({t}.k AS VARCHAR) < CAST({t}.j AS VARCHAR)",
    "{t}.a IS NULL = ({t}.b IS NULL)",
    "CASE WHEN {t}.k IS NULL THEN {t}.j = 0 ELSE {t}.k = 1 END",
]
COMPARISONS = ["=", "<>", "<", "<=", ">", ">="]


@st.composite
def values(draw: st.DrawFn, table: str, types: dict[str, str]) -> tuple[str, list[str]]:
    """An expression over one column of a table, and literals to compare it with."""
    column = draw(st.sampled_from(["a", "a", "b"]))
    form, literals = draw(st.sampled_from(FORMS[types[column]]))
    return form.replace("{c}", f"{table}.{column}"), literals


@st.composite
def predicates(draw: st.DrawFn, table: str, types: dict[str, str]) -> str:
    """A condition that computes with the columns of a table."""
    if draw(st.integers(0, 2)) == 0:
        return draw(st.sampled_from(TWO_COLUMNS)).replace("{t}", table)
    text, literals = draw(values(table, types))
    literal, other = draw(st.sampled_from(literals)), draw(st.sampled_from(literals))
    kind = draw(st.sampled_from(["compare", "compare", "between", "in", "null", "mirrored"]))
    if kind == "between":
        return f"({text}) BETWEEN {literal} AND {other}"
    if kind == "in":
        return f"({text}) NOT IN ({literal}, {other})"
    if kind == "null":
        return f"({text}) IS NULL"
    sign = draw(st.sampled_from(COMPARISONS))
    return f"{literal} {sign} ({text})" if kind == "mirrored" else f"({text}) {sign} {literal}"


@st.composite
def outputs(draw: st.DrawFn, tables: list[tuple[str, dict[str, str]]]) -> str:
    """A few expressions for a SELECT list."""
    found = []
    for number in range(draw(st.integers(1, 3))):
        text, _ = draw(values(*draw(st.sampled_from(tables))))
        found.append(f"{text} AS e{number}")
    return ", ".join(found)
