"""Random conditions over a table with every type, and rows whose values they often hit."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime
from decimal import Context, Decimal

from hypothesis import strategies as st

from penstock.catalog import Relation
from penstock.sql import parse_relation

WIDE = Context(prec=60)

CREATE = """
CREATE TABLE t (
  id BIGINT PRIMARY KEY, tiny TINYINT, small SMALLINT, int INTEGER, big BIGINT,
  double DOUBLE, dec DECIMAL(18,3), wide DECIMAL(38,10), text VARCHAR, flag BOOLEAN,
  day DATE, moment TIMESTAMP, zoned TIMESTAMP WITH TIME ZONE,
  always INTEGER NOT NULL, sure BOOLEAN NOT NULL
)
"""

_NAN, _INF = float("nan"), float("inf")
_LAST = "\U0010ffff"
_VALUES: dict[str, list[object]] = {
    "tiny": [-128, -1, 0, 1, 2, 5, 127],
    "small": [-32768, -1, 0, 1, 2, 5, 32767],
    "int": [-(1 << 31), -1, 0, 1, 2, 5, (1 << 31) - 1],
    "big": [-(1 << 63), -(1 << 53) - 1, -1, 0, 1, 2, 5, (1 << 53) + 1, (1 << 63) - 1],
    "double": [-_INF, -1e300, -1.5, -0.0, 0.0, 5e-324, 0.1, 1.0, 2.0, 5.5, 1e300, _INF, _NAN],
    "dec": list(map(Decimal, ("-999999999999999.999", "-0.001", "0", "0.1", "1.5", "2", "5.125"))),
    "wide": list(map(Decimal, ("-1234567890.0123456789", "-0.1", "0", "1.5", "2", "5.0000000001"))),
    "text": [
        *("", "a", "ab", "abc", "abd", "b", "A", "it's", "é", "\ud7ff", "\ue000", "😀", _LAST),
        *("10115", " 5 ", "-5", "1_000", "٣", "1e5", "nan", "0x10", "true"),
    ],
    "flag": [True, False],
    "day": [date(1, 1, 1), date(1969, 12, 31), date(2020, 2, 29), date(2020, 3, 1), date.max],
    "moment": [
        datetime(1, 1, 1),
        datetime(1969, 12, 31, 23, 59, 59, 999999),
        datetime(2020, 2, 29),
        datetime(2020, 2, 29, 12, 30),
        datetime(2020, 3, 1),
    ],
    "always": [-1, 0, 1, 2, 5],
    "sure": [True, False],
}
_VALUES["zoned"] = [value.replace(tzinfo=UTC) for value in _VALUES["moment"]]  # type: ignore[attr-defined]

_INTEGERS = ["-129", "-128", "-1", "0", "1", "2", "5", "127", "128", "2147483648"]
_INTEGERS += ["9007199254740992", "9223372036854775807"]
_INTEGERS += ["-9223372036854775809", "100000000000000000000", "5::TINYINT", "CAST(2 AS BIGINT)"]
_DECIMALS = ["-0.5", "0.0", ".1", "0.1", "1.5", "1.50", "2.", "5.125", "5.1251", "127.5"]
_DECIMALS += ["-999999999999999.999"]
_DECIMALS += ["1.50::DECIMAL(5,2)", "CAST('5' AS DECIMAL)", "5.0000000001", "- 1.5", "(-(1.5))"]
_DOUBLES = ["0e0", "-0e0", "1e0", "1e-1", "1.5e0", "-1.5e0", "5.5e0", "1e2", "1e15", "1e30"]
_DOUBLES += ["-1e300", "5e-324"]
_DOUBLES += ["'NaN'::DOUBLE", "'Infinity'::DOUBLE", "CAST('-inf' AS DOUBLE)", "2::DOUBLE"]
_NUMBERS = [*_INTEGERS, *_DECIMALS, *_DOUBLES]
_TEXTS = ["''", "'a'", "'ab'", "'abb'", "'abc'", "'b'", "'it''s'", "'é'", "'\ud7ff'", "'\ue000'"]
_TEXTS += ["'10115'", "' 5 '", "'-5'", "'1_000'", "'٣'", "'1e5'", "'nan'", "'0x10'", "'true'"]
_TEXTS += ["'😀'", f"'{_LAST}'", "'a'::VARCHAR"]
_DAYS = ["DATE '2020-02-29'", "'2020-02-29'::DATE", "DATE '1969-12-31'", "DATE '0001-01-01'"]
_DAYS += ["CAST('2020-3-1' AS DATE)", "DATE '9999-12-31'"]
_MOMENTS = ["TIMESTAMP '2020-02-29 00:00:00'", "TIMESTAMP '2020-02-29 12:30'"]
_MOMENTS += ["'1969-12-31 23:59:59.999999'::TIMESTAMP", "CAST(DATE '2020-03-01' AS TIMESTAMP)"]
_MOMENTS += ["TIMESTAMPTZ '2020-02-29 12:30:00+00'", "TIMESTAMPTZ '2020-02-29 14:30:00+02:00'"]
_PLAIN_DAYS = ["'2020-02-29'", "'2020-03-01'", "'1969-12-31'"]
_PLAIN_MOMENTS = [*_PLAIN_DAYS, "'2020-02-29 12:30:00'", "'2020-02-29T00:00:00'"]
_PLAIN_ZONED = [*_PLAIN_MOMENTS, "'2020-02-29 14:30:00+02'", "'2020-02-29 12:30:00Z'"]

_CONSTANTS: dict[str, list[str]] = {
    **dict.fromkeys(("tiny", "small", "int", "big", "double", "dec", "wide", "always"), _NUMBERS),
    "text": _TEXTS,
    "flag": ["TRUE", "FALSE"],
    "sure": ["TRUE", "FALSE"],
    "day": [*_DAYS, *_MOMENTS, *_PLAIN_DAYS],
    "moment": [*_DAYS, *_MOMENTS, *_PLAIN_MOMENTS],
    "zoned": [*_DAYS, *_MOMENTS, *_PLAIN_ZONED],
}
_PATTERNS = ["'a'", "'a%'", "'ab%'", "'ab%%'", "'%'", "''", "'é%'", "'\ud7ff%'", f"'{_LAST}%'"]
_OPERATORS = ["=", "<>", "!=", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]


def relation() -> Relation:
    return parse_relation(CREATE)


def rows(count: int, seed: int) -> list[dict[str, object]]:
    """Rows that mix the values above, with a NULL in every fifth place that allows it."""
    chance = random.Random(seed)
    made = []
    for number in range(count):
        row: dict[str, object] = {"id": number}
        for name, values in _VALUES.items():
            nothing = name not in ("always", "sure") and chance.random() < 0.2
            row[name] = None if nothing else chance.choice(values)
        made.append(row)
    return made


def _constants(name: str) -> st.SearchStrategy[str]:
    return st.sampled_from([*_CONSTANTS[name], *_CONSTANTS[name], "NULL"])


@st.composite
def _leaf(draw: st.DrawFn) -> str:
    name = draw(st.sampled_from(sorted(_VALUES)))
    constant = _constants(name)
    forms = ["compare", "compare", "mirror", "between", "in", "null"]
    forms += {"text": ["like", "like"], "flag": ["bool"], "sure": ["bool"]}.get(name, [])
    form = draw(st.sampled_from(forms))
    negation = draw(st.sampled_from(["", "", "NOT "]))
    if form == "compare":
        return f"{name} {draw(st.sampled_from(_OPERATORS))} {draw(constant)}"
    if form == "mirror":
        return f"{draw(constant)} {draw(st.sampled_from(_OPERATORS[:7]))} {name}"
    if form == "between":
        return f"{name} {negation}BETWEEN {draw(constant)} AND {draw(constant)}"
    if form == "in":
        members = ", ".join(draw(st.lists(constant, min_size=1, max_size=4)))
        return f"{name} {negation}IN ({members})"
    if form == "like":
        return f"{name} {negation}LIKE {draw(st.sampled_from(_PATTERNS))}"
    if form == "bool":
        return name + draw(st.sampled_from(["", " IS TRUE", " IS NOT TRUE", " IS NOT FALSE"]))
    return f"{name} IS {negation}NULL"


def _grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    joined = st.lists(inner, min_size=2, max_size=4)
    return st.one_of(
        joined.map(lambda parts: "(" + " AND ".join(parts) + ")"),
        joined.map(lambda parts: "(" + " OR ".join(parts) + ")"),
        inner.map(lambda part: f"NOT ({part})"),
        inner.map(lambda part: f"NOT {part}"),
    )


_SIMPLE = st.one_of(
    _leaf(), _leaf(), st.sampled_from(["TRUE", "FALSE", "NULL", "1 = 1", "2 < 1.5"])
)

conditions = st.recursive(st.one_of(_leaf(), _leaf(), _leaf(), _SIMPLE), _grown, max_leaves=12)
