"""Hostile and broken statements are refused at once, with a clear reason."""

from __future__ import annotations

import gc
import inspect
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog import Catalog
from penstock.errors import SqlError
from penstock.sql import MAX_DEPTH, MAX_TOKENS, bind, parse_relation
from penstock.sql.source import Source
from tests.examples import examples
from tests.sql.fixture_files import case_files, read_cases, read_schema

CATALOG = read_schema()


def where(condition: str) -> str:
    return f"SELECT id FROM stocks WHERE {condition}"


def outcome(sql: str, catalog: Catalog) -> str:
    """What comes of a statement; any error but a SqlError goes through."""
    try:
        parse_relation(sql) if sql.startswith("CREATE") else bind(sql, catalog)
    except SqlError as error:
        return str(error)
    return "understood"


HOSTILE = {
    "parentheses": (where("(" * 10_000 + "per > 5" + ")" * 10_000), "levels deep"),
    "open parentheses": (where("(" * 10_000), "levels deep"),
    "brackets": (where("per = " + "[" * 10_000), "levels deep"),
    "NOTs": (where("NOT " * 10_000 + "halted"), "levels deep"),
    "NOTs and parentheses": (where("NOT (" * 5_000 + "halted" + ")" * 5_000), "levels deep"),
    "NOTs on the right": (where("halted = NOT " * 5_000 + "halted"), "levels deep"),
    "minus signs": (where("per = " + "- " * 100_000 + "5"), "words and signs"),
    "fewer minus signs": (where("per = " + "- " * 40_000 + "5"), "levels deep"),
    "comments": (where("per = " + "-" * 100_000 + "5"), "something is missing"),
    "CASEs": (where("CASE WHEN " * 5_000), "levels deep"),
    "functions": (where("f(" * 5_000 + "per" + ")" * 5_000), "levels deep"),
    "subqueries": (where("per IN (SELECT id FROM stocks WHERE " * 2_000), "levels deep"),
    "a literal of a megabyte": (where(f"symbol = '{'x' * (1 << 20)}'"), "too long"),
    "a number of a hundred thousand digits": (where("per < " + "9" * 100_000), "38 digits"),
    "a name of a hundred thousand letters": (where("x" * 100_000 + " = 1"), "255 characters"),
    "a string where none belongs": (where("per '" + "x" * 100_000 + "'"), "syntax error"),
    "a long string": (where("per < '" + "x" * 100_000 + "'"), "cannot be compared"),
    "tokens": ("SELECT " + "id, " * MAX_TOKENS + "id FROM stocks", "words and signs"),
    "a NUL": (where("symbol = 'a\0b'"), "NUL"),
    "a lone surrogate": (where("symbol = '\ud800'"), "surrogate"),
    "dots": (where("a" + ".a" * 20_000 + " = 1"), "not supported"),
    "arithmetic": (where("per > " + "1 + " * 10_000 + "1"), "2,000 characters"),
    "casts": (where("per > 1" + "::DOUBLE" * 5_000), "too deep"),
    "concatenation": (where("symbol = 'a'" + " || 'a'" * 5_000), "2,000 characters"),
    "unions": (" UNION ".join(["SELECT id FROM stocks"] * 3_000), "UNION"),
    "joins": ("SELECT 1 FROM stocks" + " NATURAL JOIN stocks" * 5_000, "used for two tables"),
    "columns of a list": (where("per IN (" + "1, " * 20_000 + "id)"), "2,000 characters"),
    "ORs under AND": (
        where(" AND ".join(f"(id = {i} OR per = {i})" for i in range(999))),
        "understood",
    ),
    "forty pairs": (
        "SELECT a.id FROM "
        + ", ".join(f"stocks t{i}" for i in range(30))
        + ", stocks a WHERE "
        + " AND ".join(f"t{i}.id = a.id AND (t{i}.per < 1 OR t{i}.shares = 1)" for i in range(30)),
        "too complex",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_statements_are_refused_quickly(name: str) -> None:
    sql, reason = HOSTILE[name]
    start = time.process_time()
    message = outcome(sql, CATALOG)
    assert time.process_time() - start < 10  # seconds of work, however busy the machine
    assert reason in message
    assert len(message) < 1_500


@pytest.mark.parametrize("name", ["parentheses", "NOTs", "a literal of a megabyte", "a NUL"])
def test_the_same_guard_stands_before_create(name: str) -> None:
    with pytest.raises(SqlError):
        parse_relation(HOSTILE[name][0].replace("SELECT", "CREATE"))


def test_many_columns_are_refused() -> None:
    columns = ", ".join(f"c{i} INT" for i in range(1_001))
    with pytest.raises(SqlError, match="at most 1,000 columns"):
        parse_relation(f"CREATE STREAM s ({columns})")
    parse_relation(f"CREATE STREAM s ({columns.removesuffix(', c1000 INT')})")


@pytest.mark.slow
def test_long_chains_are_fine() -> None:
    terms = [f"per <> {i}" for i in range(1_000)]
    assert len(bind(where(" AND ".join(terms)), CATALOG).branches) == 1_001
    ands = " AND ".join(f"per > {i}" for i in range(5_000))
    assert len(bind(where(ands), CATALOG).branches) == 1
    ors = " OR ".join(f"per < {i}" for i in range(1_000))
    assert len(bind(where(ors), CATALOG).branches) == 1
    members = ", ".join(f"'{i:04}'" for i in range(1_000))
    assert len(bind(where(f"symbol IN ({members})"), CATALOG).branches) == 1_000


def test_too_many_members_are_refused() -> None:
    members = ", ".join(f"'{i:04}'" for i in range(1_025))
    with pytest.raises(SqlError, match="1,025 alternatives"):
        bind(where(f"symbol IN ({members})"), CATALOG)


def test_the_deepest_statement_is_understood() -> None:
    depth = MAX_DEPTH
    assert bind(where("(" * depth + "per > 5" + ")" * depth), CATALOG).branches
    with pytest.raises(SqlError, match="levels deep"):
        bind(where("(" * (depth + 1) + "per > 5" + ")" * (depth + 1)), CATALOG)
    many = " AND ".join(["(NOT (NOT (halted)))"] * 50)
    assert bind(where(many), CATALOG).branches


def test_quotes_and_comments_do_not_count() -> None:
    inside = "(" * 100
    sql = where(f"symbol = '{inside} -- ; /*' /* ; {inside} ' */ AND per > 5 -- {inside} '")
    assert bind(sql, CATALOG).branches


def test_a_stack_that_is_nearly_full_gives_a_clear_error() -> None:
    sql = where("(" * MAX_DEPTH + "per > 5" + ")" * MAX_DEPTH)

    def deeper(levels: int) -> None:
        if levels:
            deeper(levels - 1)
        else:
            bind(sql, CATALOG)

    used = len(inspect.stack(0))
    with pytest.raises(SqlError, match="nested too deeply"):
        deeper(sys.getrecursionlimit() - used - 200)


CHAINS = ["[1]", "['a']", ".f(1)", ".f(1, 2)", "[1].x", ".f()[1]"]


@pytest.mark.parametrize("link", CHAINS)
def test_chains_are_refused_before_they_are_parsed(
    link: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The parser takes a second for 400 links, and three minutes for 3,200."""

    def parse(*_: object) -> None:
        raise AssertionError("it was parsed")

    monkeypatch.setattr(Source, "parse", parse)
    with pytest.raises(SqlError, match=r"nested more than|brackets"):
        bind(where("per" + link * 3_200 + " = 1"), CATALOG)
    with pytest.raises(SqlError, match=r"nested more than|brackets"):
        bind(where("per" + link * 20 + " = 1"), CATALOG)


def test_many_lists_are_refused_before_they_are_parsed() -> None:
    many = " OR ".join("per[1] = 1" for _ in range(1_001))
    with pytest.raises(SqlError, match="1,001 brackets; lists are not supported"):
        bind(where(many), CATALOG)


def test_a_condition_that_takes_too_many_steps_says_so() -> None:
    pairs = " AND ".join(f"(per <> {i} OR id <> {i})" for i in range(50))
    with pytest.raises(SqlError) as caught:
        bind(where(pairs), CATALOG)
    assert caught.value.primary.startswith("the condition is too complex: its alternatives overlap")
    assert caught.value.hint


@pytest.mark.slow
def test_a_long_statement_leaves_fewer_steps_for_its_condition() -> None:
    """Reading it took some already: a condition that is granted alone is refused with it."""
    pairs = " AND ".join(f"(per <> {i} OR id <> {i})" for i in range(8))
    padding = " OR ".join(["per < 0"] * 11_000)
    assert bind(where(pairs), CATALOG).branches
    with pytest.raises(SqlError, match="too complex: its alternatives overlap"):
        bind(where(f"({pairs}) OR {padding}"), CATALOG)


@pytest.mark.slow
@pytest.mark.parametrize(
    "condition",
    [
        "id IN (" + ", ".join(map(str, range(10_000))) + ")",
        " OR ".join(f"id = {i}" for i in range(12_400)),
        " OR ".join(f"id BETWEEN {i} AND {i + 1}" for i in range(8_000)),
    ],
    ids=["IN", "OR", "BETWEEN"],
)
def test_long_conditions_on_one_column_are_no_bombs(condition: str) -> None:
    """Nearly all that fits into a statement; and the collector of garbage is not run meanwhile."""
    collections: list[str] = []

    def note(phase: str, _: object) -> None:
        collections.append(phase)

    gc.collect()
    gc.callbacks.append(note)
    try:
        query = bind(where(condition), CATALOG)
    finally:
        gc.callbacks.remove(note)
    assert len(query.branches) == 1
    assert len(collections) <= 4  # before and after
    assert gc.isenabled()


@pytest.mark.parametrize(("sign", "searches"), [("-", 0), (":", 1)])
def test_a_long_statement_is_searched_for_variables_once(sign: str, searches: int) -> None:
    """Not once for each of its parts, and for the parts of these; only if there may be any."""
    pairs = " AND ".join(f"(per <> {i} OR id <> {i})" for i in range(8))
    with mock.patch("penstock.sql.conditions.has_variables", return_value=False) as search:
        bind(where(f"{pairs} /* {sign} */"), CATALOG)
    assert search.call_count == searches


MANY_VALUES = " OR ".join(f"per = {i}" for i in range(2_000))
MANY_COLUMNS = ", ".join(f"c{i} INTEGER" for i in range(900))


@pytest.mark.slow
@pytest.mark.parametrize(
    "read",
    [
        lambda: bind(where(f"{MANY_VALUES} OR nothing = 1"), CATALOG),
        lambda: parse_relation(f"CREATE TABLE t ({MANY_COLUMNS}, c0 INTEGER, PRIMARY KEY (c0))"),
    ],
    ids=["a subscription", "a declaration"],
)
def test_a_refused_statement_leaves_no_garbage(read: Callable[[], object]) -> None:
    """Trees of parsed statements are full of cycles: a few long ones that wait for the collector
    take it seconds, within whatever comes next."""
    gc.collect()
    with suppress(SqlError):
        read()
        pytest.fail("it should be refused")
    assert gc.collect() < 1_000


STATEMENTS = sorted(case.sql for path in case_files() for case in read_cases(path))
WORDS = sorted({word for sql in STATEMENTS for word in sql.split()})
BITS = ["--", "/*", "*/", "$$", "::", *"(),;.[]{}@\\'\""]


@settings(max_examples=examples(150))
@given(st.lists(st.one_of(st.sampled_from(WORDS), st.sampled_from(BITS)), max_size=25))
def test_no_other_error_ever_comes_out(words: list[str]) -> None:
    for start in ("SELECT * FROM stocks WHERE", "SELECT", "CREATE TABLE t ("):
        assert outcome(" ".join([start, *words]), CATALOG)


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """A statement of the fixtures with some words lost, doubled or replaced."""
    words = draw(st.sampled_from(STATEMENTS)).split()
    for _ in range(draw(st.integers(1, 3))):
        i = draw(st.integers(0, len(words)))
        instead = draw(st.lists(st.sampled_from([*WORDS, *BITS]), max_size=2))
        words[i : i + draw(st.integers(0, 2))] = instead
    return " ".join(words)


@settings(max_examples=examples(150))
@given(damaged())
def test_damaged_statements_are_refused_or_understood(sql: str) -> None:
    assert outcome(sql, CATALOG)


@settings(max_examples=examples(150))
@given(st.text(max_size=60))
def test_any_text_is_refused_or_understood(text: str) -> None:
    for sql in (text, where(text), f"CREATE STREAM s ({text})"):
        assert outcome(sql, CATALOG)
