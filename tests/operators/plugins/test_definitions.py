"""Operators as users write them: definitions, the decorator, what they may return."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from penstock.catalog import StringType
from penstock.errors import ChangeError, OperatorError
from penstock.operators import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    VARCHAR,
    Argument,
    FailureKind,
    FunctionOperator,
    Operator,
    OperatorFailure,
    Output,
    decimal_type,
    operator,
    signature,
)
from penstock.operators.validation import (
    MAX_BINDINGS,
    GarbageError,
    check_operator,
    show_rows,
    store_results,
)

TEXT = Argument("text", VARCHAR)


@operator("isLong", [TEXT, Argument("least", BIGINT, constant=True)], version="3")
def is_long(text: str, least: int) -> bool:
    """Whether a text is long."""
    return len(text) >= least


@operator("letters", [TEXT], outputs=[Output("letter", VARCHAR), Output("times", BIGINT)])
def letters(text: str) -> list[tuple[str, int]]:
    return [(one, text.count(one)) for one in sorted(set(text))]


@operator("lengths", [TEXT], outputs=[Output("length", BIGINT)], by_batch=True)
def lengths(rows: Sequence[tuple[str]]) -> list[list[tuple[int]]]:
    return [[(len(text),)] for (text,) in rows]


class Contains(Operator):
    """With a state of its own, and a set-up."""

    name = "contains"
    arguments = (TEXT,)

    def __init__(self, word: str) -> None:
        self.word = word
        self.pattern: str | None = None

    def set_up(self) -> None:
        self.pattern = self.word.lower()

    def evaluate(self, rows: Sequence[tuple[Any, ...]]) -> list[bool]:
        assert self.pattern is not None
        return [self.pattern in text.lower() for (text,) in rows]


def results_of(one: Operator, *rows: tuple[Any, ...]) -> list[object]:
    return list(store_results(one, one.evaluate(rows), len(rows)))


def returning(returned: object, *outputs: Output) -> FunctionOperator:
    return operator("odd", [TEXT], outputs=outputs)(lambda _text: returned)


def test_a_function_of_a_row() -> None:
    assert results_of(is_long, ("abc", 3), ("ab", 3)) == [True, False]
    assert is_long("abc", 3) is True
    assert is_long.__doc__ == "Whether a text is long."
    assert signature(is_long) == "isLong(text VARCHAR, least BIGINT constant)"


def test_bindings_and_batches() -> None:
    assert results_of(letters, ("aba",), ("",)) == [(("a", 2), ("b", 1)), ()]
    assert results_of(lengths, ("aba",), ("",)) == [((3,),), ((0,),)]
    assert signature(letters) == "letters(text VARCHAR, :letter VARCHAR, :times BIGINT)"


def test_a_class_with_a_set_up() -> None:
    one = Contains("Fire")
    check_operator(one)
    one.set_up()
    assert results_of(one, ("campfire",), ("water",)) == [True, False]


def test_an_exception_fails_its_row_alone() -> None:
    @operator("inverse", [Argument("x", BIGINT)], outputs=[Output("y", DOUBLE)])
    def inverse(x: int) -> list[tuple[float]]:
        return [(1 / x,)]

    good, bad, other = results_of(inverse, (4,), (0,), (-2,))
    assert (good, other) == (((0.25,),), ((-0.5,),))
    assert bad == OperatorFailure(
        "inverse", "1", FailureKind.RAISED, "ZeroDivisionError: division by zero"
    )


def test_running_out_of_memory_is_not_for_the_row_to_hide() -> None:
    @operator("greedy", [TEXT])
    def greedy(_text: str) -> bool:
        raise MemoryError

    with pytest.raises(MemoryError):
        greedy.evaluate([("a",)])


def test_results_are_stored_by_type() -> None:
    price = returning(
        [(Decimal("1.5"), date(1970, 1, 3))], Output("p", decimal_type(9, 2)), Output("d", DATE)
    )
    assert results_of(price, ("",)) == [((150, 2),)]
    counts = returning([(np.int64(7), None)], Output("n", BIGINT), Output("m", BIGINT))
    assert results_of(counts, ("",)) == [((7, None),)]
    assert results_of(returning(np.bool_(True)), ("",)) == [True]
    repeated = returning(
        iter([(1.0,), (float("nan"),), (1.0,), (float("nan"),)]), Output("x", DOUBLE)
    )
    (found,) = results_of(repeated, ("",))
    assert isinstance(found, tuple)
    assert len(found) == 2


@pytest.mark.parametrize(
    ("returned", "outputs", "reason"),
    [
        (1, [], "1 (int) is neither True, False nor None"),
        ("true", [], "neither True, False nor None"),
        (True, [Output("n", BIGINT)], "not a list of bindings"),
        (7, [Output("n", BIGINT)], "TypeError"),
        ([7], [Output("n", BIGINT)], "7 (int) is not a tuple of (n)"),
        ([(7, 8)], [Output("n", BIGINT)], "is not a tuple of (n)"),
        ([("7",)], [Output("n", BIGINT)], "output n: '7' is not a BIGINT"),
        ([(2**40,)], [Output("n", INTEGER)], "the range is"),
        ([(True,)], [Output("n", BIGINT)], "output n: True is not a BIGINT"),
        ([("\ud800",)], [Output("s", VARCHAR)], "lone surrogate"),
        ([("abc",)], [Output("s", StringType(2))], "it has 3 characters"),
        ([(i,) for i in range(MAX_BINDINGS + 1)], [Output("n", BIGINT)], "more than 1,000"),
        ([("x" * 2_000_000,)], [Output("s", VARCHAR)], "more than 1,048,576 bytes"),
    ],
)
def test_garbage_is_named(returned: object, outputs: list[Output], reason: str) -> None:
    (found,) = results_of(returning(returned, *outputs), ("",))
    assert isinstance(found, OperatorFailure)
    assert found.kind is FailureKind.GARBAGE
    assert reason in found.reason


@pytest.mark.parametrize("returned", [None, 5, "no", {}, [], [True], [True] * 3])
def test_a_batch_of_the_wrong_length_cannot_be_taken_apart(returned: object) -> None:
    with pytest.raises(GarbageError, match="evaluate returned"):
        store_results(is_long, returned, 2)


def test_the_failure_as_the_quarantine_keeps_it() -> None:
    error = OperatorFailure("mob", "2", FailureKind.TIMEOUT, "x" * 5_000).error()
    assert isinstance(error, ChangeError)
    assert error.primary == "operator mob took longer than its timeout on this row"
    assert error.detail.startswith("version 2: xxx")
    assert len(error.detail) == 1_000


def test_arguments_are_shown_as_operators_see_them() -> None:
    taken = [Argument("p", decimal_type(9, 2)), Argument("d", DATE), TEXT]
    one = operator("any", taken)(lambda *_: True)
    assert show_rows(one, [(150, 2, "a"), (None, None, None)]) == [
        (Decimal("1.50"), date(1970, 1, 3), "a"),
        (None, None, None),
    ]


def test_what_an_argument_accepts() -> None:
    number = Argument("x", DOUBLE)
    assert number.accepts(INTEGER)
    assert number.accepts(decimal_type(9, 2))
    assert number.convert(150, decimal_type(9, 2)) == 1.5
    assert number.convert(None, INTEGER) is None
    assert not Argument("n", BIGINT).accepts(DOUBLE)
    assert not Argument("n", BIGINT).accepts(VARCHAR)
    assert not TEXT.accepts(BIGINT)
    assert not TEXT.accepts(BOOLEAN)
    assert TEXT.accepts(StringType(3))
    with pytest.raises(ChangeError):
        Argument("s", StringType(2)).convert("abc", VARCHAR)


def test_pickling() -> None:
    """A decorated function by its name, an object with its state."""
    assert pickle.loads(pickle.dumps(Contains("fire"))).word == "fire"
    assert pickle.loads(pickle.dumps(is_long)) is is_long
    local = operator("local", [TEXT])(len)
    again = pickle.loads(pickle.dumps(local))
    assert again is not local
    assert again("abc") == 3
    assert signature(again) == signature(local)


class Nothing(Operator):
    name = "nothing"
    arguments = (TEXT,)


def changed(**attributes: object) -> FunctionOperator:
    one = operator("changed", [TEXT])(lambda _text: True)
    for name, value in attributes.items():
        setattr(one, name, value)
    return one


@pytest.mark.parametrize(
    ("candidate", "what"),
    [
        (len, "is not an operator"),
        (Operator(), "the name of an operator is a text"),
        (changed(name="loc in"), "letters, digits and underscores"),
        (changed(name="x" * 65), "letters, digits and underscores"),
        (Nothing(), "no method evaluate"),
        (changed(arguments=None), "arguments are a list"),
        (changed(arguments=[VARCHAR]), "where an Argument is expected"),
        (changed(arguments=[Output("x", VARCHAR)]), "where an Argument is expected"),
        (changed(arguments=[Argument("x", "VARCHAR")]), "the type of x"),  # type: ignore[arg-type]
        (changed(arguments=[TEXT, TEXT]), "are named text"),
        (changed(outputs=[Output("TEXT", VARCHAR)]), "are named TEXT"),
        (changed(arguments=[Argument(f"a{i}", BIGINT) for i in range(40)]), "32 at most"),
        (changed(version=""), "its version has 1 to"),
        (changed(version=7), "its version is a text"),
        (changed(timeout_seconds=0), "timeout_seconds is above 0"),
        (changed(timeout_seconds=float("nan")), "timeout_seconds is above 0"),
        (changed(set_up_timeout_seconds=1e9), "set_up_timeout_seconds is above 0"),
        (changed(cost_seconds=-1.0), "cost_seconds is above 0"),
        (changed(cost_seconds="1"), "cost_seconds is a number"),
        (changed(memory_limit_bytes=1_000), "memory_limit_bytes is a number from"),
        (changed(takes_null=1), "takes_null is True or False"),
    ],
)
def test_bad_definitions_are_refused(candidate: object, what: str) -> None:
    with pytest.raises(OperatorError, match=what):
        check_operator(candidate)
