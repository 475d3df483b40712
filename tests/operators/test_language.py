"""What conditions may say of operators and variables, and how they are refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from penstock import Hub
from penstock.errors import OperatorError, PenstockError, SqlError
from tests.operators.evaluating import Call
from tests.operators.samples import BINDING, PREDICATES, is_odd

REFUSED = {
    "isOdd(k + 1)": "given columns, constants and variables only",
    "isOdd(:x)": "argument n of isOdd cannot be the variable :x",
    "isOdd()": "takes 1 arguments and binds 0 variables, not 0",
    "isOdd(s)": "argument n of isOdd is a BIGINT, and s is a VARCHAR",
    "isOdd(1.5)": "is not a BIGINT",
    "isOdd(NULL)": "NULL is not supported here",
    "atLeast(n, k)": "argument least of atLeast is a constant, not the column k",
    "nope(n)": "there is no function or operator nope",
    ":x > 3": ":x is bound by no operator",
    "divisors(n, :x) AND :x > :y": ":y is bound by no predicate",
    "divisors(n, k)": "output divisor of divisors is a variable or a constant",
    "NOT divisors(n, :x)": "the variable :x is used under NOT",
    "NOT divisors(n, 3)": r"NOT divisors\(...\) is not supported",
    "divisors(n, :x) AND NOT :x > 3": "the variable :x is used under NOT",
    "NOT (divisors(n, :x) OR k = 1)": "the variable :x is used under NOT",
    "divisors(n, :x) AND (:x > 3 OR k = 1)": ":x is used inside and outside of an OR",
    "(divisors(n, :x) OR k = 1) AND (divisors(k, :x) OR k = 2)": "inside and outside of an OR",
    "lettersOf(s, 2, :l, :n) AND :l > 3": "3 is not a VARCHAR",
    "lettersOf(s, 2, :l, :n) AND divisors(n, :l)": ":l is a VARCHAR, and output divisor",
    "divisors(n, :x) AND :x IN (1, 2)": "variables are compared with =",
}


@pytest.fixture
def hub(calls: Counter[Call]) -> Iterator[Hub]:
    with Hub() as made:
        for one in (*PREDICATES, *BINDING):
            made.register_operator(one)
        for name in "tu":
            columns = "id BIGINT PRIMARY KEY, k INTEGER, n BIGINT, s VARCHAR"
            made.execute(f"CREATE TABLE {name} ({columns})")
        yield made


@pytest.mark.parametrize("condition", REFUSED)
def test_refused(condition: str, hub: Hub) -> None:
    with pytest.raises(SqlError, match=REFUSED[condition]):
        hub.subscribe(f"SELECT id FROM t WHERE {condition}")


@pytest.mark.parametrize(
    ("condition", "error"),
    [
        ("near(t.n, u.n)", "one operator over several tables"),
        ("divisors(t.n, :x) AND divisors(u.n, :x)", "operators that share variables over several"),
        ("divisors(t.n, :x) AND :x > u.n", "over several tables"),
    ],
)
def test_several_tables(condition: str, error: str, hub: Hub) -> None:
    with pytest.raises(SqlError, match=error):
        hub.subscribe(f"SELECT t.id FROM t JOIN u ON t.k = u.k WHERE {condition}")


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("DIVISORS(n, :X) AND :x = 3", [3, 6]),
        ("(divisors(n, :x) AND :x = 5) OR (divisors(n, :x) AND :x = 4)", [4, 5]),
        ("divisors(n, :x) AND (isOdd(n) OR n = 6) AND :x BETWEEN 3 AND 4", [3, 6]),
        ("splits(n, :x, :x) AND :x > 1", [4, 6]),
        ("divisors(n, 3)", [3, 6]),
        ("NOT isOdd(n) AND NOT (n = 2 OR isLucky(k))", [4, 6]),
        ("divisors(n, :x) AND 2 * :x = n AND -:x < -2", [6]),
    ],
)
def test_understood(condition: str, expected: list[int], hub: Hub) -> None:
    made = hub.subscribe(f"SELECT id FROM t WHERE {condition}")
    for number in range(1, 7):
        hub.insert("t", {"id": number, "k": 0, "n": number, "s": "ab"})
    assert sorted(int(str(row["id"])) for row in made.content()) == expected


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("CREATE OPERATOR f AS 'no.such.module:f'", "cannot be imported"),
        ("CREATE OPERATOR f AS 'tests.operators.samples'", "does not name an operator"),
        ("CREATE OPERATOR f", "no parameters and no implementation"),
        ("CREATE OPERATOR isOdd (n BIGINT)", "already exists"),
        ("CREATE OPERATOR abs (n BIGINT)", "built-in function"),
        ("CREATE OPERATOR f (n BIGINT) CONSTANT (m)", "has no argument m"),
        ("CREATE OPERATOR f (n NOTHING)", "NOTHING"),
        ("CREATE OPERATOR f (n BIGINT) RETURNS", "ends too early"),
        ("CREATE OPERATOR f (n BIGINT) AS 3", "a place is expected here"),
    ],
)
def test_declarations_that_are_refused(sql: str, error: str, hub: Hub) -> None:
    with pytest.raises(PenstockError, match=error):
        hub.execute(sql)


def test_a_declaration_that_its_implementation_does_not_fit(calls: Counter[Call]) -> None:
    with Hub() as hub:
        hub.execute("CREATE OPERATOR isOdd (s VARCHAR)")
        with pytest.raises(OperatorError, match="is declared as"):
            hub.register_operator(is_odd)
