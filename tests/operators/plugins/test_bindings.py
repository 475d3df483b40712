"""Groups of predicates that share variables: against brute force, DuckDB, and by example."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import OperatorError
from penstock.operators import DATE, TIMESTAMP, VARCHAR, FailureKind, OperatorFailure, decimal_type
from penstock.operators.bindings import MAX_COMBINATIONS, GroupEvaluation
from penstock.operators.functions import operator
from penstock.operators.groups import (
    GroupDefinition,
    Predicate,
    check_group,
    read_group,
)
from penstock.operators.interface import Argument, Operator, Output, Result
from penstock.operators.terms import (
    Arithmetic,
    ColumnTerm,
    Comparison,
    Constant,
    Term,
    Variable,
    plain_term,
    read_term,
    satisfies,
)
from tests.examples import examples
from tests.operators.plugins.group_worlds import (
    COLUMNS,
    OPERATORS,
    ROW,
    GroupWorld,
    brute_force,
    group_worlds,
    terms,
)

SUBJECT = ColumnTerm("subject")
X, Y, Z = Variable("x"), Variable("y"), Variable("z")


def count(variable: Variable | Constant) -> Predicate:
    return Predicate("count", (SUBJECT,), (variable,))


def pair(one: Variable | Constant, other: Variable | Constant) -> Predicate:
    return Predicate("pair", (SUBJECT,), (one, other))


def evaluated(
    predicates: list[Predicate], results: list[Result], *constraints: Comparison
) -> bool | OperatorFailure | None:
    group = check_group(GroupDefinition(tuple(predicates), constraints), OPERATORS, COLUMNS)
    return GroupEvaluation(group, OPERATORS).evaluate(results, ROW)


@settings(max_examples=examples(150))
@given(group_worlds())
def test_groups_mean_what_brute_force_finds(world: GroupWorld) -> None:
    group = check_group(world.group, OPERATORS, COLUMNS)
    assert GroupEvaluation(group, OPERATORS).evaluate(world.results, ROW) is brute_force(world)


def test_one_substitution_for_all() -> None:
    assert evaluated([count(X), count(X)], [((1,), (2,)), ((2,), (3,))]) is True
    assert evaluated([count(X), count(X)], [((1,), (2,)), ((3,),)]) is False
    assert evaluated([count(X), count(Y)], [((1,),), ((3,),)]) is True


def test_a_variable_twice_in_one_predicate() -> None:
    assert evaluated([pair(X, X)], [((1, 2), (3, 3))]) is True
    assert evaluated([pair(X, X)], [((1, 2), (3, 4))]) is False
    assert evaluated([pair(X, X)], [((1, 2), (3, None))]) is None
    assert evaluated([pair(X, Constant(2))], [((1, 2), (3, 4))]) is True


def test_constraints_over_several_variables() -> None:
    """The boats of the paper's fifth subscription."""
    more = Comparison(">", Y, Arithmetic("*", Constant(2), Z))
    assert evaluated([count(Y), count(Z)], [((5,),), ((2,),)], more) is True
    assert evaluated([count(Y), count(Z)], [((4,),), ((2,),)], more) is False
    assert evaluated([count(Y), count(Z)], [((4,), (9,)), ((2,), (4,))], more) is True
    assert evaluated([count(Y), count(Z)], [((4,), (9,)), ((None,),)], more) is None


def test_unknown_results() -> None:
    test = Predicate("test", (SUBJECT,))
    assert evaluated([test, count(X)], [None, ((1,),)]) is None
    assert evaluated([test, count(X)], [None, ()]) is False
    assert evaluated([test, count(X)], [False, None]) is False
    assert evaluated([count(X)], [((None,),)]) is True  # it is bound, though nobody knows to what
    above = Comparison(">", X, Constant(1))
    assert evaluated([count(X)], [None], above) is None
    assert evaluated([count(X)], [((None,), (1,))], above) is None
    assert evaluated([count(X)], [((None,), (2,))], above) is True


def test_a_constraint_waits_for_what_is_known_later() -> None:
    """In whichever order: x is unknown to one predicate, and 0 to the other."""
    never = Comparison("<", X, X)
    assert evaluated([count(X), count(X)], [None, ((0,),)], never) is False
    assert evaluated([count(X), count(X)], [((0,),), None], never) is False


def test_too_many_combinations() -> None:
    many: Result = tuple((n,) for n in range(1_000))
    never = Comparison("<", Arithmetic("+", X, Y), Constant(0))
    failed = evaluated([count(X), count(Y)], [many, many], never)
    assert isinstance(failed, OperatorFailure)
    assert failed.kind is FailureKind.JOIN
    assert f"{MAX_COMBINATIONS:,} combinations" in failed.reason
    # What shares variables, and what nothing else needs, costs no combinations.
    assert evaluated([count(X), count(X), count(Y), count(Z)], [many] * 4) is True


def test_variables_of_different_scale() -> None:
    cents = operator(
        "cents", [Argument("subject", VARCHAR)], outputs=[Output("p", decimal_type(9, 3))]
    )(bool)
    known = {**OPERATORS, "cents": cents}
    group = GroupDefinition(
        (
            Predicate("price", (SUBJECT,), (X, Variable("n"))),
            Predicate("cents", (SUBJECT,), (X,)),
        )
    )
    evaluation = GroupEvaluation(check_group(group, known, COLUMNS), known)
    assert evaluation.evaluate([((150, 1),), ((1500,),)], ROW) is True
    assert evaluation.evaluate([((150, 1),), ((150,),)], ROW) is False


# Arithmetic and comparisons, against DuckDB.

ORACLE = duckdb.connect()

NUMBERS = st.one_of(
    st.integers(-1_000, 1_000),
    st.integers(-1_000, 1_000).map(lambda n: Decimal(n).scaleb(-2)),
    st.sampled_from([0.0, -0.0, 0.1, 1.5, -2.25, 1e10, math.inf, -math.inf, math.nan]),
    st.none(),
)


def sql_of(term: Term | Comparison, values: dict[str, object]) -> str:
    if isinstance(term, Arithmetic | Comparison):
        return f"({sql_of(term.left, values)} {term.sign} {sql_of(term.right, values)})"
    value = term.value if isinstance(term, Constant) else values[term.name]
    if value is None:
        return "NULL::BIGINT"
    if isinstance(value, float):
        return f"'{value}'::DOUBLE"
    return f"({value})::{'BIGINT' if isinstance(value, int) else 'DECIMAL(9,2)'}"


@settings(max_examples=examples(150))
@given(
    st.sampled_from(["<", "<=", "=", "<>", ">", ">="]),
    terms(["a", "b"]),
    terms(["a", "b"]),
    NUMBERS,
    NUMBERS,
)
def test_arithmetic_is_that_of_duckdb(
    sign: str, left: Term, right: Term, a: object, b: object
) -> None:
    constraint = Comparison(sign, left, right)
    bound = {"a": a, "b": b}
    sql = sql_of(constraint, {**bound, **ROW})
    try:
        expected = ORACLE.execute(f"SELECT {sql}").fetchone()
    except duckdb.OutOfRangeException:
        return  # ours is exact
    assert expected is not None
    assert satisfies(constraint, bound, ROW) is expected[0]


def test_exactness_beyond_the_types_of_duckdb() -> None:
    large = Constant(9 * 10**18)
    product = Arithmetic("*", large, Arithmetic("*", large, large))
    assert satisfies(Comparison("=", product, Constant(729 * 10**54)), {}, {})
    thirds = Arithmetic("+", Constant(Decimal("0.1")), Constant(Decimal("0.2")))
    assert satisfies(Comparison("=", thirds, Constant(Decimal("0.3"))), {}, {})
    assert not satisfies(
        Comparison("=", Arithmetic("+", Constant(0.1), Constant(0.2)), Constant(0.3)), {}, {}
    )
    huge = Arithmetic("*", Constant(10**200), Constant(10**200))
    assert satisfies(Comparison(">", huge, Constant(math.inf)), {}, {}) is False


@pytest.mark.parametrize(
    "value",
    [
        *(True, 7, -(10**30), 0.1, -0.0, math.inf, Decimal("1.50"), "a'\"ü"),
        date(2020, 2, 29),
        datetime(2020, 2, 29, 12, 30, 1, 5),
    ],
)
def test_definitions_survive_their_text(value: object) -> None:
    constant = Constant(value)
    assert read_term(plain_term(constant)) == constant
    group = GroupDefinition(
        (Predicate("count", (SUBJECT,), (X,)), Predicate("other", (SUBJECT, constant), (X,))),
        (Comparison("<", Arithmetic("/", X, Constant(2)), ColumnTerm("size")),),
    )
    assert read_group(group.text()) == group
    assert group.variables() == ["x"]
    assert group.columns() == ["subject", "size"]


@pytest.mark.parametrize(
    "text", ["", "7", "[[],[],[]]", '[[["p",[["variable","x"]],[]]],[]]', '[[],[["constant"]]]']
)
def test_texts_that_are_no_definition(text: str) -> None:
    with pytest.raises(OperatorError, match="cannot be read"):
        read_group(text)


def test_constants_of_different_types_differ() -> None:
    assert len({Constant(1), Constant(1.0), Constant(True), Constant(Decimal(1))}) == 4


# What may stand where.

T = Argument("t", TIMESTAMP)
MORE: dict[str, Operator] = {
    **OPERATORS,
    "day": operator("day", [Argument("s", VARCHAR)], outputs=[Output("d", DATE)])(bool),
    "fixed": operator("fixed", [Argument("s", VARCHAR, constant=True)])(bool),
    "at": operator("at", [T])(bool),
}


@pytest.mark.parametrize(
    ("predicates", "constraints", "what"),
    [
        ([], [], "at least one predicate"),
        ([Predicate("none", ())], [], "none is not registered"),
        ([Predicate("count", ())], [], "count takes 1 arguments and binds 1 variables"),
        ([Predicate("count", (SUBJECT,))], [], "takes 1 arguments"),
        ([Predicate("count", (X,), (Y,))], [], "cannot be the variable :x"),
        ([Predicate("count", (SUBJECT,), (SUBJECT,))], [], "a variable or a constant"),
        ([Predicate("fixed", (SUBJECT,))], [], "is a constant, not the column subject"),
        ([Predicate("count", (ColumnTerm("size"),), (X,))], [], "and size is a BIGINT"),
        ([Predicate("count", (ColumnTerm("nothing"),), (X,))], [], "no column nothing"),
        ([Predicate("count", (Constant(7),), (X,))], [], "7 is not a VARCHAR"),
        ([count(Constant("a"))], [], "'a' is not a BIGINT"),
        ([count(X), Predicate("weight", (SUBJECT,), (X,))], [], ":x is a BIGINT, and output w"),
        ([count(X)], [Comparison("<", X, Y)], ":y is bound by no predicate"),
        ([count(X)], [Comparison("<", X, Constant("a"))], "compares a number with a str"),
        ([count(X)], [Comparison("<", X, Constant(True))], "compares a number with a bool"),
        ([count(X)], [Comparison("<", X, ColumnTerm("name"))], "a VARCHAR with a number"),
        (
            [count(X)],
            [Comparison("<", X, Arithmetic("+", X, ColumnTerm("name")))],
            "takes numbers",
        ),
        ([Predicate("day", (SUBJECT,), (X,))], [Comparison("<", X, Constant("soon"))], "soon"),
        (
            [Predicate("day", (SUBJECT,), (X,))],
            [Comparison("<", Constant(7), X)],
            "7 is not a DATE",
        ),
        ([count(X)] * 17, [], "at most 16 predicates"),
        ([pair(Variable(f"x{n}"), Variable(f"y{n}")) for n in range(9)], [], "at most 16 var"),
    ],
)
def test_groups_that_are_refused(
    predicates: list[Predicate], constraints: list[Comparison], what: str
) -> None:
    with pytest.raises(OperatorError, match=what):
        check_group(GroupDefinition(tuple(predicates), tuple(constraints)), MORE, COLUMNS)


def test_terms_that_are_refused() -> None:
    deep: Term = X
    for _ in range(40):
        deep = Arithmetic("+", deep, X)
    with pytest.raises(OperatorError, match="at most 64 parts"):
        check_group(GroupDefinition((count(X),), (Comparison("<", deep, X),)), OPERATORS, COLUMNS)
    with pytest.raises(OperatorError, match="not an arithmetic operator"):
        Arithmetic("%", X, X)
    with pytest.raises(OperatorError, match="not a comparison"):
        Comparison("LIKE", X, X)


def test_constants_take_the_form_of_what_they_meet() -> None:
    day = Predicate("day", (SUBJECT,), (X,))
    group = GroupDefinition(
        (day, Predicate("WEIGHT", (SUBJECT,), (Constant(1),))),
        (Comparison("<", Constant("2020-01-01"), X),),
    )
    checked = check_group(group, {**MORE, "WEIGHT": OPERATORS["weight"]}, COLUMNS)
    assert checked.constraints == (Comparison("<", Constant(date(2020, 1, 1)), X),)
    assert checked.predicates[1] == Predicate("weight", (SUBJECT,), (Constant(1.0),))
