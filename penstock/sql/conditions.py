"""Conditions of WHERE and ON: from parsed SQL to AND and OR over unions of intervals."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from penstock.catalog import ValueType
from penstock.errors import NotYetError, SqlError
from penstock.predicates.normal_form import FALSE, TRUE, All, Atom, Condition, Some
from penstock.predicates.simplify import Place
from penstock.predicates.unions import ANY_BUT_NULL, intersect_unions
from penstock.sql.atoms import MIRRORED, comparison, is_boolean, is_true, like
from penstock.sql.constants import NULL, Constant, as_double
from penstock.sql.literal_rules import check_digits, rules_of
from penstock.sql.literals import compared, read_constant
from penstock.sql.names import clause_name, other_arguments, refusal
from penstock.sql.scope import Scope
from penstock.sql.truth import ISNULL, Truth, any_of

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)


class ConditionBinder:
    """Binds conditions against the tables of one SELECT. Warnings are collected on the way."""

    def __init__(self, scope: Scope, warnings: list[str]) -> None:
        self.scope = scope
        self.source = scope.source
        self.warnings = warnings

    def bind(self, expression: exp.Expr, negated: bool = False) -> Condition:
        """The condition, or its negation, as AND and OR over atoms.

        Recursion goes as deep as the parentheses, which the guard limits; chains are flat.
        """
        while isinstance(expression, exp.Paren | exp.Not):
            negated ^= isinstance(expression, exp.Not)
            expression = expression.this
        if isinstance(expression, exp.And | exp.Or):
            parts = tuple(self.bind(part, negated) for part in operands(expression))
            return All(parts) if isinstance(expression, exp.And) != negated else Some(parts)
        with self.source.pointing_at(expression):
            return self._leaf(expression, negated)

    def _leaf(self, expression: exp.Expr, negated: bool) -> Condition:
        if isinstance(expression, _COMPARISONS):
            return self._comparison(expression, negated)
        if isinstance(expression, exp.Between):
            return self._about_column(expression, self._between, negated)
        if isinstance(expression, exp.In):
            return self._about_column(expression, self._in, negated)
        if isinstance(expression, exp.Like):
            return self._about_column(expression, self._like, negated)
        if isinstance(expression, exp.Is):
            return self._about_column(expression, self._is, negated)
        if isinstance(expression, exp.Column):
            return self._boolean_column(expression, negated)
        constant = read_constant(expression)
        if constant is not None:
            return _constant_condition(constant, negated)
        if isinstance(expression, exp.Anonymous):
            raise NotYetError(
                f"the operator {expression.name} is not supported yet",
                detail="operators are understood, but this release runs none",
            )
        raise refusal(expression)

    def _about_column(
        self,
        expression: exp.Expr,
        truth_of: Callable[[exp.Expr, ValueType], Truth],
        negated: bool,
    ) -> Condition:
        """A condition whose left side must be a column; `truth_of` knows the rest."""
        subject = unparenthesised(expression.this)
        if not isinstance(subject, exp.Column):
            if read_constant(subject) is not None:
                raise SqlError("the left side of this condition must be a column")
            raise refusal(subject)
        where = self.scope.resolve(subject)
        return self._atom(where, truth_of(expression, self.scope.column(where).type), negated)

    def _atom(self, where: Place, truth: Truth, negated: bool) -> Condition:
        values = truth.false if negated else truth.true
        if not self.scope.column(where).nullable:
            values = intersect_unions(values, ANY_BUT_NULL)
        return Atom(where, values)

    def _comparison(self, expression: exp.Binary, negated: bool) -> Condition:
        self._nothing_but(expression, "this", "expression")
        left, right = unparenthesised(expression.this), unparenthesised(expression.expression)
        if isinstance(left, exp.Column) and isinstance(right, exp.Column):
            raise self._column_to_column(expression, left, right)
        kind: type[exp.Expr] = type(expression)
        if isinstance(right, exp.Column):
            left, right, kind = right, left, MIRRORED.get(kind, kind)
        if not isinstance(left, exp.Column):
            both = self._constant(left), self._constant(right)
            return _constant_condition(compared(kind, *both), negated)
        where = self.scope.resolve(left)
        constant = self._constant(right)
        if constant == NULL and kind not in (exp.NullSafeEQ, exp.NullSafeNEQ):
            self._warn(f"{self.scope.show(where)} compared with NULL is never true; use IS NULL")
        truth = comparison(kind, constant, self.scope.column(where).type)
        return self._atom(where, truth, negated)

    def _column_to_column(
        self, expression: exp.Binary, left: exp.Column, right: exp.Column
    ) -> SqlError:
        if self.scope.resolve(left)[0] == self.scope.resolve(right)[0]:
            return SqlError("comparing two columns of one table is not supported in a subscription")
        if isinstance(expression, exp.EQ):
            return SqlError(
                "a join condition under OR or NOT is not supported in a subscription",
                hint="join conditions are combined with the others by AND",
            )
        return SqlError(
            "joins on anything but equality are not supported in a subscription",
            hint="join on a.x = b.y",
        )

    def _between(self, expression: exp.Expr, value_type: ValueType) -> Truth:
        self._nothing_but(expression, "this", "low", "high")
        ends = [expression.args["low"], expression.args["high"]]
        low, high = self._constants(ends, value_type)
        if NULL in (low, high):
            self._warn("BETWEEN with NULL is never true")
        with self.source.pointing_at(ends[0]):
            above_low = comparison(exp.GTE, low, value_type)
        with self.source.pointing_at(ends[1]):
            return above_low & comparison(exp.LTE, high, value_type)

    def _in(self, expression: exp.Expr, value_type: ValueType) -> Truth:
        if expression.args.get("query"):
            raise SqlError("a subquery is not supported in a subscription")
        if expression.args.get("field") or expression.args.get("unnest"):
            raise SqlError("IN needs a list of constants in parentheses")
        self._nothing_but(expression, "this", "expressions")
        items = expression.expressions
        if not items:
            raise SqlError("IN needs at least one constant")
        found: list[Truth] = []
        for item, constant in zip(items, self._constants(items, value_type), strict=True):
            if constant == NULL:
                self._warn("NULL in the list of IN equals nothing, and makes NOT IN never true")
            with self.source.pointing_at(item):
                found.append(comparison(exp.EQ, constant, value_type))
        return any_of(found)

    def _like(self, expression: exp.Expr, value_type: ValueType) -> Truth:
        self._nothing_but(expression, "this", "expression", "negate")
        pattern = self._constant(expression.args["expression"])
        if pattern == NULL:
            self._warn("LIKE NULL is never true")
        truth = like(pattern, value_type)
        return ~truth if expression.args.get("negate") else truth

    def _is(self, expression: exp.Expr, value_type: ValueType) -> Truth:
        self._nothing_but(expression, "this", "expression")
        what = expression.args["expression"]
        if isinstance(what, exp.Null):
            return ISNULL
        if not isinstance(what, exp.Boolean):
            raise SqlError("IS is followed by NULL, TRUE, FALSE or DISTINCT FROM")
        return is_boolean(bool(what.this), value_type)

    def _boolean_column(self, expression: exp.Column, negated: bool) -> Condition:
        where = self.scope.resolve(expression)
        value_type = self.scope.column(where).type
        if not rules_of(value_type).is_condition:
            raise SqlError(
                f"{expression.name} is of type {value_type}, not a condition",
                hint="compare it with a value",
            )
        return self._atom(where, is_true(value_type), negated)

    def _constant(self, expression: exp.Expr) -> Constant:
        with self.source.pointing_at(expression):
            constant = read_constant(expression)
            if constant is None:
                if isinstance(unparenthesised(expression), exp.Column):
                    raise SqlError("a column is not supported here", hint="write a constant")
                raise refusal(expression)
            return constant

    def _constants(self, expressions: list[exp.Expr], value_type: ValueType) -> list[Constant]:
        """Several constants that a column is compared with at once: if one is a double, all are."""
        constants = [self._constant(expression) for expression in expressions]
        if any(constant.kind == "double" for constant in constants):
            return [as_double(constant) for constant in constants]
        check_digits(constants, value_type)
        return constants

    def _nothing_but(self, expression: exp.Expr, *known: str) -> None:
        for name in other_arguments(expression, *known):
            raise SqlError(f"{clause_name(name)} is not supported in a subscription")

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
        if type(here) is kind:
            waiting += [here.expression, here.this]
        else:
            found.append(here)
    return found


def unparenthesised(expression: exp.Expr) -> exp.Expr:
    while isinstance(expression, exp.Paren):
        expression = expression.this
    return expression


def _constant_condition(constant: Constant, negated: bool) -> Condition:
    if constant == NULL:
        return FALSE
    if constant.kind != "boolean":
        raise SqlError(f"{constant} is not a condition", hint="write TRUE or FALSE")
    return TRUE if bool(constant.value) != negated else FALSE
