"""Statements of one shape: bound quickly, and as if each were the first."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog import Catalog
from penstock.errors import SqlError
from penstock.sql import Query, ShapeBinder, bind, parse_declaration, parse_relation, shapes
from tests.examples import examples
from tests.sql import conditions

CATALOG = Catalog()
CATALOG.add(conditions.relation(), 0)
CATALOG.add(parse_relation("CREATE TABLE other (id BIGINT PRIMARY KEY, big BIGINT, x DOUBLE)"), 1)
CATALOG.add(parse_declaration("CREATE OPERATOR isNear (n BIGINT, place BIGINT)"), 2)
CATALOG.add(
    parse_declaration("CREATE OPERATOR factors (n BIGINT, least BIGINT) RETURNS (f BIGINT)"), 3
)

NUMBERS = ["0", "1", "5", "127", "128", "2147483648", "999999999999999999", "0.5", "1.50", "127.5"]
STRINGS = ["''", "'a'", "'ab%'", "'%'", "'2020-02-29'", "'2020-02-29 12:30:00'", "'NaN'", "'é'"]
ALL_NUMBERS = [*NUMBERS, "129", "32768", "9223372036854775", "0.0005", "999999999999999.999", "007"]


def outcome(binding: object, sql: str) -> Query | str:
    try:
        return binding(sql)  # type: ignore[operator, no-any-return]
    except SqlError as error:
        return f"{error} {error.position} {error.length}"


@st.composite
def siblings(draw: st.DrawFn) -> list[str]:
    """Statements that differ in nothing but numbers and strings."""
    sql = f"SELECT id FROM t WHERE {draw(conditions.conditions)}"
    found = [sql]
    for _ in range(3):

        def other(match: object) -> str:
            kind = STRINGS if match.group().startswith("'") else NUMBERS  # type: ignore[attr-defined]
            return draw(st.sampled_from(kind))

        found.append(shapes._LITERAL.sub(other, sql))
    return found


@settings(max_examples=examples(100))
@given(siblings())
def test_every_statement_is_bound_as_by_itself(statements: list[str]) -> None:
    binder = ShapeBinder(CATALOG)
    for sql in [*statements, *statements]:
        assert outcome(binder.bind, sql) == outcome(lambda text: bind(text, CATALOG), sql)


COMPUTED = (
    "SELECT id FROM t WHERE int * 2 > 5",
    "SELECT id, big + int AS total FROM t WHERE big + int > 5 AND int * 3 < 7 OR tiny = 1",
    "SELECT id FROM t WHERE text LIKE '%a%' AND lower(text) <> 'b'",
    "SELECT id FROM t WHERE length(text) + 1 > int AND coalesce(text, 'x') = 'y'",
    "SELECT id FROM t WHERE int * 2 > 5 OR int * 2 <= 5",
    "SELECT id FROM t WHERE dec * 1.5 > 2 AND round(double, 2) = 1",
    "SELECT id FROM t WHERE date_trunc('month', day) = DATE '2020-01-01'",
    "SELECT id FROM t WHERE isNear(int, 5) AND NOT isNear(big, 7) AND tiny > 1",
    "SELECT id FROM t WHERE factors(int, 3, :x) AND :x > 2 * 4 AND factors(big, 1, :y)",
    "SELECT t.id FROM t JOIN other ON t.big = other.big AND x * 2 > 1 WHERE isNear(t.int, 5)",
)


@st.composite
def computed_siblings(draw: st.DrawFn) -> list[str]:
    sql = draw(st.sampled_from(COMPUTED))
    numbers, strings = st.sampled_from(ALL_NUMBERS), st.sampled_from([*STRINGS, "'day'", "'a_b'"])

    def other(match: re.Match[str]) -> str:
        return draw(strings if match.group().startswith("'") else numbers)

    return [sql, *(shapes._LITERAL.sub(other, sql) for _ in range(3))]


@settings(max_examples=examples(60))
@given(computed_siblings())
def test_literals_inside_of_what_is_computed(statements: list[str]) -> None:
    binder = ShapeBinder(CATALOG)
    for sql in [*statements, *statements]:
        assert outcome(binder.bind, sql) == outcome(lambda text: bind(text, CATALOG), sql)


@pytest.mark.parametrize("sql", COMPUTED)
def test_what_is_computed_has_a_shape(sql: str) -> None:
    binder = ShapeBinder(CATALOG)
    binder.bind(sql)
    (shape,) = binder._shapes.values()
    if "2 * 4" in sql or "'month'" in sql:  # a value, and a keyword, in the eyes of the parser
        return
    assert shape is not None
    for text in (sql.replace("5", "4"), sql.replace("'a'", "'c'"), sql.replace("2", "6"), sql):
        assert shape.bind(text, shapes._LITERAL.findall(text)) == bind(text, CATALOG)


COLUMNS = [column.name for column in conditions.relation().columns]


@st.composite
def conjunctions(draw: st.DrawFn) -> list[str]:
    """Columns of every type compared with literals, all of which must hold; four times, with other
    literals. Each literal fits its column more often than not."""
    columns = draw(st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=4))
    forms = [draw(st.sampled_from(["=", "<", "<=", ">", ">=", "BETWEEN"])) for _ in columns]
    quoted = [name in ("text", "day", "moment", "zoned") for name in columns]
    signs = [draw(st.sampled_from(["", "", "-"])) if not one else "" for one in quoted]

    def condition(i: int) -> str:
        kind = st.sampled_from(STRINGS if quoted[i] else ALL_NUMBERS)
        if forms[i] == "BETWEEN":
            return f"{columns[i]} BETWEEN {signs[i]}{draw(kind)} AND {draw(kind)}"
        return f"{columns[i]} {forms[i]} {signs[i]}{draw(kind)}"

    parts = [[condition(i) for i in range(len(columns))] for _ in range(4)]
    return [f"SELECT id, text FROM t WHERE {' AND '.join(mine)}" for mine in parts]


@settings(max_examples=examples(200))
@given(conjunctions())
def test_conjunctions_are_bound_as_by_themselves(statements: list[str]) -> None:
    binder = ShapeBinder(CATALOG)
    for sql in [*statements, *statements]:
        assert outcome(binder.bind, sql) == outcome(lambda text: bind(text, CATALOG), sql)


def test_usual_conjunctions_take_the_short_way() -> None:
    sql = "SELECT id FROM t WHERE tiny = 5 AND double BETWEEN -1.5 AND 2 AND text = 'a' AND dec < 7"
    binder = ShapeBinder(CATALOG)
    binder.bind(sql)
    (shape,) = binder._shapes.values()
    assert shape is not None
    assert shape.conjunction is not None
    for text in (sql, sql.replace("7", "0.1234"), sql.replace("'a'", "''")):
        found = shape.conjunction.branches(shapes._LITERAL.findall(text))
        assert found == bind(text, CATALOG).branches
    never = sql.replace("2 AND", "-2 AND").replace("--", "-")
    assert shape.conjunction.branches(["5", "1.5", "0", "'a'", "7"]) is not None
    assert bind(never, CATALOG).branches == ()
    assert shape.conjunction.branches(["200", "1.5", "2", "'a'", "7"]) is None  # none is so large


def test_digits_of_other_scripts_are_no_numbers() -> None:
    binder = ShapeBinder(CATALOG)
    for sql in ("SELECT id FROM t WHERE tiny = 3", "SELECT id FROM t WHERE tiny = \u0663"):
        assert outcome(binder.bind, sql) == outcome(lambda text: bind(text, CATALOG), sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT t.id FROM t JOIN other USING (big) WHERE x BETWEEN 1 AND 2.5 AND tiny >= 3",
        "SELECT t.id FROM t JOIN other ON t.big = other.big AND x < 7 WHERE text = 'a'",
        "SELECT id FROM t WHERE tiny IN (1, 2, 3) OR NOT (int > 5 AND day < DATE '2020-01-01')",
        "SELECT id FROM t WHERE dec = -5 AND wide <> 1.50::DECIMAL(5,2)",
    ],
)
def test_usual_statements_have_a_shape(sql: str) -> None:
    binder = ShapeBinder(CATALOG)
    assert binder.bind(sql) == bind(sql, CATALOG)
    (shape,) = binder._shapes.values()
    assert shape is not None
    for text in (sql.replace("5", "4"), sql.replace("2", "1")):
        assert shape.bind(text, shapes._LITERAL.findall(text)) == bind(text, CATALOG)


@pytest.mark.parametrize(
    "sql",
    [
        'SELECT id AS "a 5" FROM t WHERE tiny = 1',
        "SELECT id FROM t /* 5 */ WHERE tiny = 1",
        "SELECT id FROM t WHERE text = 'it''s 5' AND tiny = 1",
        "SELECT id FROM t WHERE double = 1e5 AND text = 'x' -- 'y'",
        "SELECT /*+ payload(text) */ id, text FROM t WHERE tiny = 1 AND text = '5'",
    ],
)
def test_what_only_looks_like_a_literal_is_left_alone(sql: str) -> None:
    binder = ShapeBinder(CATALOG)
    for text in (sql, sql.replace("5", "6"), sql.replace("1", "2"), sql):
        assert binder.bind(text) == bind(text, CATALOG)


def test_errors_point_at_their_own_place() -> None:
    binder = ShapeBinder(CATALOG)
    binder.bind("SELECT id FROM t WHERE tiny = 100000 AND day = '2020-01-01'")
    with pytest.raises(SqlError) as error:
        binder.bind("SELECT id FROM t WHERE tiny = 1 AND day = 'tomorrow'")
    assert error.value.position == len("SELECT id FROM t WHERE tiny = 1 AND ")


def test_the_number_of_shapes_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shapes, "MAX_SHAPES", 2)
    binder = ShapeBinder(CATALOG)
    for name in ("tiny", "small", "int", "big"):
        assert binder.bind(f"SELECT id FROM t WHERE {name} = 5").branches
    assert len(binder._shapes) == 2
