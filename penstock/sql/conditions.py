"""Conditions of WHERE and ON: from parsed SQL to AND and OR over unions of intervals."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from penstock.catalog import BooleanType, StringType, ValueType
from penstock.errors import NotYetError, SqlError
from penstock.predicates.intervals import (
    ABOVE_NULL,
    NOT_NULL,
    TOP,
    Cut,
    Interval,
    normalise,
    point,
    prefix,
)
from penstock.predicates.normal_form import FALSE, TRUE, All, Atom, Condition, Some
from penstock.predicates.simplify import Place
from penstock.predicates.unions import ANY_BUT_NULL, ANY_VALUE, intersect_unions
from penstock.sql.literals import NULL, Constant, read_constant
from penstock.sql.names import refusal
from penstock.sql.placing import place
from penstock.sql.scope import Scope
from penstock.sql.truth import ISNULL, UNKNOWN, Truth, exactly, unless_null

Comparison = Callable[[Cut, Cut], Interval]

_COMPARISONS: dict[type[exp.Expr], Comparison] = {
    exp.EQ: lambda low, high: Interval(low, high),
    exp.LT: lambda low, high: Interval(ABOVE_NULL, low),
    exp.LTE: lambda low, high: Interval(ABOVE_NULL, high),
    exp.GT: lambda low, high: Interval(high, TOP),
    exp.GTE: lambda low, high: Interval(low, TOP),
}
_MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
}
_BINARY = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)


class ConditionBinder:
    """Binds conditions against the tables of one SELECT. Warnings are collected on the way."""

    def __init__(self, scope: Scope, warnings: list[str]) -> None:
        self.scope = scope
        self.source = scope.source
        self.warnings = warnings

    def bind(self, expression: exp.Expr, negated: bool = False) -> Condition:
        """The condition, or its negation, as AND and OR over atoms."""
        while isinstance(expression, exp.Paren | exp.Not):
            negated ^= isinstance(expression, exp.Not)
            expression = expression.this
        if isinstance(expression, exp.And | exp.Or):
            parts = tuple(self.bind(part, negated) for part in operands(expression))
            return All(parts) if isinstance(expression, exp.And) != negated else Some(parts)
        with self.source.pointing_at(expression):
            return self._leaf(expression, negated)

    def _leaf(self, expression: exp.Expr, negated: bool) -> Condition:
        if isinstance(expression, _BINARY):
            return self._comparison(expression, negated)
        if isinstance(expression, exp.Between):
            return self._on_column(expression, self._between, negated)
        if isinstance(expression, exp.In):
            return self._on_column(expression, self._in, negated)
        if isinstance(expression, exp.Like):
            return self._on_column(expression, self._like, negated)
        if isinstance(expression, exp.Is):
            return self._on_column(expression, self._is, negated)
        if isinstance(expression, exp.Column):
            return self._boolean_column(expression, negated)
        constant = read_constant(expression)
        if constant is not None:
            return _constant_condition(constant, negated)
        if isinstance(expression, exp.Anonymous):
            raise NotYetError(
                f"the operator {expression.name} is not supported yet",
                detail="operators are parsed, but this release does not run them",
            )
        raise refusal(expression)

    def _on_column(
        self,
        expression: exp.Expr,
        truth_of: Callable[[exp.Expr, ValueType], Truth],
        negated: bool,
    ) -> Condition:
        """An atom: `expression.this` must be a column, `truth_of` says the rest."""
        subject = unparenthesised(expression.this)
        if not isinstance(subject, exp.Column):
            constant = read_constant(subject)
            if constant is not None:
                raise SqlError("the left side of this condition must be a column")
            raise refusal(subject)
        where = self.scope.resolve(subject)
        truth = truth_of(expression, self.scope.column(where).type)
        return self._atom(where, ~truth if negated else truth)

    def _atom(self, where: Place, truth: Truth) -> Condition:
        column = self.scope.column(where)
        values = truth.true
        if not column.nullable:
            values = intersect_unions(values, ANY_BUT_NULL)
            values = ANY_VALUE if values == ANY_BUT_NULL else values
        return Atom(where, values)

    def _comparison(self, expression: exp.Binary, negated: bool) -> Condition:
        left, right = unparenthesised(expression.this), unparenthesised(expression.expression)
        if isinstance(left, exp.Column) and isinstance(right, exp.Column):
            raise self._column_to_column(expression, left, right)
        kind = type(expression)
        if isinstance(right, exp.Column):
            left, right, kind = right, left, _MIRRORED.get(kind, kind)
        constant = self._constant(right)
        if not isinstance(left, exp.Column):
            return _constant_condition(_compared(kind, self._constant(left), constant), negated)
        where = self.scope.resolve(left)
        truth = self._compare(kind, constant, where)
        return self._atom(where, ~truth if negated else truth)

    def _compare(self, kind: type[exp.Expr], constant: Constant, where: Place) -> Truth:
        value_type = self.scope.column(where).type
        if kind in (exp.NullSafeEQ, exp.NullSafeNEQ):
            same = (
                ISNULL if constant == NULL else exactly(_interval(exp.EQ, constant, value_type))
            )
            return same if kind is exp.NullSafeEQ else ~same
        if constant == NULL:
            self._warn(f"{self.scope.show(where)} compared with NULL is never true; use IS NULL")
            return UNKNOWN
        if kind is exp.NEQ:
            return ~unless_null(_interval(exp.EQ, constant, value_type))
        return unless_null(_interval(kind, constant, value_type))

    def _column_to_column(
        self, expression: exp.Binary, left: exp.Column, right: exp.Column
    ) -> SqlError:
        one, other = self.scope.resolve(left), self.scope.resolve(right)
        if one[0] == other[0]:
            return SqlError("comparing two columns of one table is not supported in a subscription")
        if isinstance(expression, exp.EQ):
            return SqlError(
                "a join condition under OR or NOT is not supported in a subscription",
                hint="join conditions are ANDed to the rest",
            )
        return SqlError(
            "joins on anything but equality are not supported in a subscription",
            hint="join on a.x = b.y",
        )

    def _constant(self, expression: exp.Expr) -> Constant:
        with self.source.pointing_at(expression):
            constant = read_constant(expression)
            if constant is None:
                raise refusal(expression)
            return constant

    def _constants(self, expressions: list[exp.Expr]) -> list[Constant]:
        """Of several constants compared at once; if one is a double, they all are."""
        constants = [self._constant(expression) for expression in expressions]
        if any(constant.kind == "double" for constant in constants):
            constants = [as_double(constant) for constant in constants]
        return constants

    def _between(self, expression: exp.Expr, value_type: ValueType) -> Truth:
        _only(expression, "this", "low", "high")
        low, high = self._constants([expression.args["low"], expression.args["high"]])
        with self.source.pointing_at(expression.args["low"]):
            from_low = _bound(exp.GTE, low, value_type)
        with self.source.pointing_at(expression.args["high"]):
            return from_low & _bound(exp.LTE, high, value_type)

    def _in(self, expression: exp.Expr, value_type: ValueType) -> Truth:
        if expression.args.get("query"):
            raise SqlError("a subquery is not supported in a subscription")
        _only(expression, "this", "expressions")
        constants = self._constants(expression.expressions)
        intervals: list[Interval] = []
        for item, constant in zip(expression.expressions, constants, strict=True):
            if constant != NULL:
                with self.source.pointing_at(item):
                    intervals.append(_interval(exp.EQ, constant, value_type))
        found = unless_null(*intervals)
        if NULL in constants:
            self._warn("NULL in a list of IN equals nothing; NOT IN with NULL is never true")
            return Truth(found.true, ())
        return found

    def _like(self, expression: exp.Expr, value_type: ValueType) -> Truth:
        _only(expression, "this", "expression", "negate")
        if not isinstance(value_type, StringType):
            raise SqlError(f"LIKE needs a string column, this one is {value_type}")
        pattern = self._constant(expression.args["expression"])
        if pattern == NULL:
            self._warn("LIKE NULL is never true")
            return UNKNOWN
        if pattern.kind != "string":
            raise SqlError("the pattern of LIKE is a string")
        truth = unless_null(_pattern(str(pattern.value)))
        return ~truth if expression.args.get("negate") else truth

    def _is(self, expression: exp.Expr, value_type: ValueType) -> Truth:
        _only(expression, "this", "expression")
        what = expression.args["expression"]
        if isinstance(what, exp.Null):
            return ISNULL
        if not isinstance(what, exp.Boolean):
            raise SqlError("IS is followed by NULL, TRUE or FALSE")
        if not isinstance(value_type, BooleanType):
            raise SqlError(f"IS TRUE needs a boolean column, this one is {value_type}")
        return exactly(normalise(point(int(what.this)), value_type))

    def _boolean_column(self, expression: exp.Column, negated: bool) -> Condition:
        where = self.scope.resolve(expression)
        value_type = self.scope.column(where).type
        if not isinstance(value_type, BooleanType):
            raise SqlError(
                f"{expression.name} is a {value_type}, not a condition", hint="compare it with a value"
            )
        truth = unless_null(normalise(point(1), value_type))
        return self._atom(where, ~truth if negated else truth)

    def _warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)


def operands(expression: exp.Expr) -> list[exp.Expr]:
    """The operands of a chain of ANDs, or of ORs, from left to right, without recursion."""
    kind = type(expression)
    found: list[exp.Expr] = []
    waiting = [expression]
    while waiting:
        here = unparenthesised(waiting.pop())
        if type(here) is kind and isinstance(here, exp.And | exp.Or):
            waiting += [here.expression, here.this]
        else:
            found.append(here)
    return found


def unparenthesised(expression: exp.Expr) -> exp.Expr:
    while isinstance(expression, exp.Paren):
        expression = expression.this
    return expression


def as_double(constant: Constant) -> Constant:
    if constant.is_number:
        assert constant.value is not None
        return Constant("double", float(constant.value))
    return constant


def _only(expression: exp.Expr, *known: str) -> None:
    """Nothing the parser read may be ignored."""
    for name, value in expression.args.items():
        if value and name not in known:
            raise SqlError(f"{name.upper()} is not supported in a subscription")


def _interval(kind: type[exp.Expr], constant: Constant, value_type: ValueType) -> Interval:
    return normalise(_COMPARISONS[kind](*place(constant, value_type)), value_type)


def _bound(kind: type[exp.Expr], constant: Constant, value_type: ValueType) -> Truth:
    return UNKNOWN if constant == NULL else unless_null(_interval(kind, constant, value_type))


def _pattern(pattern: str) -> Interval:
    stem = pattern.rstrip("%")
    if "%" in stem or "_" in stem:
        raise SqlError(
            "LIKE is supported for prefixes only", hint="write LIKE 'prefix%', with % at the end"
        )
    if stem == pattern:
        return point(stem)
    return prefix(stem) if stem else NOT_NULL


def _constant_condition(constant: Constant, negated: bool) -> Condition:
    if constant == NULL:
        return FALSE
    if constant.kind != "boolean":
        raise SqlError("a constant is not a condition", hint="write TRUE or FALSE")
    return TRUE if bool(constant.value) != negated else FALSE


def _compared(kind: type[exp.Expr], left: Constant, right: Constant) -> Constant:
    """A comparison of two constants, as people write in WHERE 1 = 1."""
    if NULL in (left, right) and kind not in (exp.NullSafeEQ, exp.NullSafeNEQ):
        return NULL
    if left.kind == right.kind == "integer" or left.kind == right.kind == "string":
        one, other = (left.value, right.value)
        order = (one > other) - (one < other)  # type: ignore[operator]
        true = {
            exp.EQ: order == 0,
            exp.NEQ: order != 0,
            exp.LT: order < 0,
            exp.LTE: order <= 0,
            exp.GT: order > 0,
            exp.GTE: order >= 0,
        }.get(kind)
        if true is not None:
            return Constant("boolean", true)
    raise SqlError("one side of a comparison must be a column")

