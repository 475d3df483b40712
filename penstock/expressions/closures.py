"""Evaluates expressions on rows that are objects, without DuckDB.

A call of DuckDB takes milliseconds, and converting objects to Arrow arrays takes longer than
computing.

Closures over stored values, for common cases in which DuckDB's result is certain: integers and
decimals, ASCII texts, comparisons, and three-valued logic. Compilation returns `None` for anything
else, and evaluation raises `NotSureError` for uncertain values (an overflow, a non-ASCII text);
DuckDB computes those. So this may be slow in some cases, but never wrong.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from penstock.catalog import Relation, Row, Stored, ValueType
from penstock.catalog.derived import Definition

Compute = Callable[[Row], Any]
Value = Callable[[Row], Stored]

_SURE = 10**18
"""Scaled decimals below this are far from every limit of DuckDB's types."""
_MOST_DIGITS = 36
"""Above 38, DuckDB computes with doubles, or fails."""
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}
"""Digits of a decimal that holds all integers of this many bits."""


class NotSureError(Exception):
    """The value must be computed by DuckDB."""


class _Part(NamedTuple):
    """A part of an expression."""

    compute: Compute
    family: str
    scale: int = 0
    """Digits after the decimal point."""
    bits: int = 64
    """Of an integer."""
    digits: int = 0
    """The maximum number of digits of a decimal that holds all values."""


class _Unknown(Exception):  # noqa: N818  # never leaves this module
    pass


@lru_cache(10_000)
def compiled(definition: Definition, relation: Relation) -> Value | None:
    """A function of a row; None if DuckDB's result is not certain."""
    try:
        tree = parse_one(definition.text, dialect="duckdb")
        part = _part(tree, {one.name: i for i, one in enumerate(relation.columns)}, relation)
    except (_Unknown, SqlglotError, RecursionError):
        return None
    if (part.family, part.scale) != _family(definition.type)[:2]:
        return None
    return part.compute


def _family(value_type: ValueType) -> tuple[str, int, int]:
    """The kind of a type, its digits after the decimal point, and its bits."""
    scale, bits = getattr(value_type, "scale", 0), getattr(value_type, "bits", 0)
    kind = value_type.kind
    if value_type.stored_as is str:
        kind = "text"
    if value_type.stored_as is bool:
        kind = "truth"
    if value_type.stored_as is int and (bits or hasattr(value_type, "precision")):
        kind = "number"
    return kind, scale, bits or 64


def _part(tree: exp.Expr, columns: Mapping[str, int], relation: Relation) -> _Part:
    if isinstance(tree, exp.Paren):
        return _part(tree.this, columns, relation)
    if isinstance(tree, exp.Column):
        return _column(columns[tree.name], relation)
    if isinstance(tree, exp.Literal):
        return _literal(tree)
    make = _MAKERS.get(type(tree))
    if make is None or any(
        value for name, value in tree.args.items() if name not in ("this", "expression")
    ):
        raise _Unknown
    operands = [
        _part(tree.args[name], columns, relation)
        for name in ("this", "expression")
        if isinstance(tree.args.get(name), exp.Expr) and not isinstance(tree, exp.Is)
    ]
    if isinstance(tree, exp.Is):
        if not isinstance(tree.expression, exp.Null):
            raise _Unknown
        operands = [_part(tree.this, columns, relation)]
    return make(*operands)


def _column(position: int, relation: Relation) -> _Part:
    value_type = relation.columns[position].type
    family, scale, bits = _family(value_type)
    if family not in ("number", "text", "truth"):
        raise _Unknown
    digits = getattr(value_type, "precision", _DIGITS[bits])
    return _Part(operator.itemgetter(position), family, scale, bits, digits)


def _literal(tree: exp.Literal) -> _Part:
    text = str(tree.this)
    if tree.is_string:
        return _Part(lambda _: text, "text")
    if not re.fullmatch(r"\d{1,9}(\.\d{1,6})?", text):
        raise _Unknown
    scale = len(text.partition(".")[2])
    value = int(Decimal(text).scaleb(scale))
    return _Part(
        lambda _: value, "number", scale, 8 if value < 128 else 16 if value < 32768 else 32
    )


def _strict(function: Callable[..., Any], *parts: _Part) -> Compute:
    """NULL if an operand is NULL."""
    if len(parts) == 1:
        (only,) = (one.compute for one in parts)

        def unary(row: Row) -> Any:
            value = only(row)
            return None if value is None else function(value)

        return unary
    left, right = (one.compute for one in parts)

    def binary(row: Row) -> Any:
        one, other = left(row), right(row)
        return None if one is None or other is None else function(one, other)

    return binary


def _check_numbers(*parts: _Part, digits: int) -> None:
    if any(one.family != "number" for one in parts) or digits > _MOST_DIGITS:
        raise _Unknown


def _checked(function: Callable[[int, int], int], scale: int, bits: int) -> Callable[..., int]:
    limit = _SURE if scale else 1 << (bits - 1)

    def compute(one: int, other: int) -> int:
        found = function(one, other)
        if not -limit <= found < limit:
            raise NotSureError
        return found

    return compute


def _sum(function: Callable[[int, int], int]) -> Callable[[_Part, _Part], _Part]:
    def make(left: _Part, right: _Part) -> _Part:
        scale, bits = max(left.scale, right.scale), max(left.bits, right.bits)
        digits = max(left.digits - left.scale, right.digits - right.scale) + scale + 1
        _check_numbers(left, right, digits=digits)
        one, other = 10 ** (scale - left.scale), 10 ** (scale - right.scale)
        exact = _checked(lambda a, b: function(a * one, b * other), scale, bits)
        return _Part(_strict(exact, left, right), "number", scale, bits, digits)

    return make


def _product(left: _Part, right: _Part) -> _Part:
    scale, bits = left.scale + right.scale, max(left.bits, right.bits)
    digits = left.digits + right.digits
    _check_numbers(left, right, digits=digits if scale else 0)
    exact = _checked(operator.mul, scale, bits)
    return _Part(_strict(exact, left, right), "number", scale, bits, digits if scale else 19)


def _comparison(function: Callable[[Any, Any], bool]) -> Callable[[_Part, _Part], _Part]:
    def make(left: _Part, right: _Part) -> _Part:
        if left.family != right.family:
            raise _Unknown
        scale = max(left.scale, right.scale)
        if scale + max(left.digits - left.scale, right.digits - right.scale) > _MOST_DIGITS:
            raise _Unknown
        one, other = 10 ** (scale - left.scale), 10 ** (scale - right.scale)
        if one == other == 1:
            return _Part(_strict(function, left, right), "truth")
        return _Part(_strict(lambda a, b: function(a * one, b * other), left, right), "truth")

    return make


def _truths(*parts: _Part) -> None:
    if any(one.family != "truth" for one in parts):
        raise _Unknown


def _and(left: _Part, right: _Part) -> _Part:
    _truths(left, right)

    def compute(row: Row) -> bool | None:
        one, other = left.compute(row), right.compute(row)
        if one is False or other is False:
            return False
        return None if one is None or other is None else True

    return _Part(compute, "truth")


def _or(left: _Part, right: _Part) -> _Part:
    _truths(left, right)

    def compute(row: Row) -> bool | None:
        one, other = left.compute(row), right.compute(row)
        if one is True or other is True:
            return True
        return None if one is None or other is None else False

    return _Part(compute, "truth")


def _not(part: _Part) -> _Part:
    _truths(part)
    return _Part(_strict(operator.not_, part), "truth")


def _is_null(part: _Part) -> _Part:
    inner = part.compute
    return _Part(lambda row: inner(row) is None, "truth")


def _of_text(function: Callable[[str], Any], family: str) -> Callable[[_Part], _Part]:
    def make(part: _Part) -> _Part:
        if part.family != "text":
            raise _Unknown

        def compute(text: str) -> Any:
            if not text.isascii():
                raise NotSureError
            return function(text)

        return _Part(_strict(compute, part), family, digits=19 if family == "number" else 0)

    return make


def _concatenation(left: _Part, right: _Part) -> _Part:
    if {left.family, right.family} != {"text"}:
        raise _Unknown
    return _Part(_strict(operator.add, left, right), "text")


_MAKERS: dict[type[exp.Expr], Callable[..., _Part]] = {
    exp.Add: _sum(operator.add),
    exp.Sub: _sum(operator.sub),
    exp.Mul: _product,
    exp.EQ: _comparison(operator.eq),
    exp.NEQ: _comparison(operator.ne),
    exp.LT: _comparison(operator.lt),
    exp.LTE: _comparison(operator.le),
    exp.GT: _comparison(operator.gt),
    exp.GTE: _comparison(operator.ge),
    exp.And: _and,
    exp.Or: _or,
    exp.Not: _not,
    exp.Is: _is_null,
    exp.Lower: _of_text(str.lower, "text"),
    exp.Upper: _of_text(str.upper, "text"),
    exp.Length: _of_text(len, "number"),
    exp.DPipe: _concatenation,
}
