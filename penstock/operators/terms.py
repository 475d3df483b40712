"""Terms of groups of predicates: columns, constants, variables, arithmetic and comparisons.

Values are *outside* values. Arithmetic follows DuckDB: `+`, `-` and `*` of integers and decimals
are exact, anything with a double is a double, and `/` always gives a double, with infinities and
NaN where it divides by zero. Where DuckDB fails because a result exceeds its type, ours is exact:
terms are short, and their results are compared and never stored. NaN equals itself and exceeds all
other numbers; NULL propagates.
"""

from __future__ import annotations

import math
import operator as python
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Context, Decimal
from typing import Any, TypeAlias

from penstock.catalog import Outside
from penstock.errors import OperatorError

MAX_TERM_NODES = 64
"""Maximum per constraint. It bounds the digits of exact products: 64 factors of 38 digits."""

Number: TypeAlias = int | Decimal | float


@dataclass(frozen=True, slots=True)
class ColumnTerm:
    """The value of a column of the row."""

    name: str


@dataclass(frozen=True, slots=True)
class Variable:
    """A value that operators bind."""

    name: str


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that is not NULL. 1, 1.0 and True are three constants, though equal in Python."""

    value: Outside
    kind: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", type(self.value).__name__)


@dataclass(frozen=True, slots=True)
class Arithmetic:
    sign: str
    left: Term
    right: Term

    def __post_init__(self) -> None:
        if self.sign not in _EXACT:
            raise OperatorError(f"{self.sign} is not an arithmetic operator of value constraints")


@dataclass(frozen=True, slots=True)
class Comparison:
    """A value constraint: it holds, does not hold, or is unknown."""

    sign: str
    left: Term
    right: Term

    def __post_init__(self) -> None:
        if self.sign not in _COMPARISONS:
            raise OperatorError(f"{self.sign} is not a comparison of value constraints")


Term: TypeAlias = ColumnTerm | Variable | Constant | Arithmetic
Leaf: TypeAlias = ColumnTerm | Variable | Constant

_MORE_DIGITS = Context(prec=40 * MAX_TERM_NODES)
_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "<": python.lt,
    "<=": python.le,
    "=": python.eq,
    "<>": python.ne,
    ">": python.gt,
    ">=": python.ge,
}


def leaves_of(term: Term | Comparison) -> Iterator[Leaf]:
    """Columns, constants and variables from left to right, with repetitions."""
    if isinstance(term, Arithmetic | Comparison):
        yield from leaves_of(term.left)
        yield from leaves_of(term.right)
    else:
        yield term


def satisfies(
    constraint: Comparison, bound: Mapping[str, Outside], columns: Mapping[str, Outside]
) -> bool | None:
    """Whether a constraint holds for values of its variables and columns; None is unknown."""
    left = _value(constraint.left, bound, columns)
    right = _value(constraint.right, bound, columns)
    if left is None or right is None:
        return None
    return _COMPARISONS[constraint.sign](_order(left, right), 0)


def _value(term: Term, bound: Mapping[str, Outside], columns: Mapping[str, Outside]) -> Outside:
    if isinstance(term, Variable):
        return bound[term.name]
    if isinstance(term, ColumnTerm):
        return columns[term.name]
    if isinstance(term, Constant):
        return term.value
    left, right = _value(term.left, bound, columns), _value(term.right, bound, columns)
    return None if left is None or right is None else _calculate(term.sign, left, right)


def _calculate(sign: str, left: Any, right: Any) -> Number:
    if sign == "/":
        return _divide(_double(left), _double(right))
    if isinstance(left, float) or isinstance(right, float):
        return _exact_doubles(sign, _double(left), _double(right))
    if isinstance(left, int) and isinstance(right, int):
        whole: int = _EXACT[sign](left, right)
        return whole
    first, second = Decimal(left), Decimal(right)
    if sign == "+":
        return _MORE_DIGITS.add(first, second)
    return (_MORE_DIGITS.subtract if sign == "-" else _MORE_DIGITS.multiply)(first, second)


def _exact_doubles(sign: str, left: float, right: float) -> float:
    result: float = _EXACT[sign](left, right)  # Python's are IEEE's: they overflow to infinity
    return result


def _divide(left: float, right: float) -> float:
    if right:
        return left / right
    if not left or math.isnan(left) or math.isnan(right):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def _double(number: Number) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


_EXACT: dict[str, Callable[[Any, Any], Any]] = {
    "+": python.add,
    "-": python.sub,
    "*": python.mul,
    "/": python.truediv,
}


def _order(left: Any, right: Any) -> int:
    """Negative, zero or positive, as the left value is less, equal or greater."""
    if isinstance(left, float) or isinstance(right, float):
        left, right = _double(left), _double(right)
        if math.isnan(left) or math.isnan(right):
            return int(math.isnan(left)) - int(math.isnan(right))
    return int(left > right) - int(left < right)


def plain_term(term: Term | Comparison) -> list[object]:
    """A term as JSON data; `read_term` is the inverse."""
    if isinstance(term, Arithmetic | Comparison):
        return [term.sign, plain_term(term.left), plain_term(term.right)]
    if isinstance(term, Constant):
        text = repr(term.value) if isinstance(term.value, float) else str(term.value)
        return ["constant", term.kind, text]
    return ["column" if isinstance(term, ColumnTerm) else "variable", term.name]


def read_term(plain: Any) -> Term | Comparison:
    """Raises OperatorError for invalid data."""
    try:
        kind, *rest = plain
        if kind == "column":
            return ColumnTerm(str(rest[0]))
        if kind == "variable":
            return Variable(str(rest[0]))
        if kind == "constant":
            return Constant(_CONSTANTS[rest[0]](rest[1]))
        left, right = (read_term(one) for one in rest)
        assert not isinstance(left, Comparison)
        assert not isinstance(right, Comparison)
        return Arithmetic(kind, left, right) if kind in _EXACT else Comparison(kind, left, right)
    except (AssertionError, IndexError, KeyError, TypeError, ValueError, ArithmeticError):
        raise OperatorError("the definition of a group of predicates cannot be read") from None


_CONSTANTS: dict[str, Callable[[str], Outside]] = {
    "bool": lambda text: text == "True",
    "int": int,
    "float": float,
    "Decimal": Decimal,
    "str": str,
    "date": date.fromisoformat,
    "datetime": datetime.fromisoformat,
}
