"""Conditions of WHERE and ON: from parsed SQL to AND and OR over unions of intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sqlglot import exp

from penstock.catalog import ValueType
from penstock.errors import OperatorError, SqlError
from penstock.predicates.normal_form import FALSE, TRUE, All, Atom, Condition, Some
from penstock.predicates.simplify import Place
from penstock.predicates.unions import ANY_BUT_NULL, intersect_unions
from penstock.sql.atoms import MIRRORED, comparison, is_boolean, is_prefix, is_true, like
from penstock.sql.constants import NULL, Constant, as_double
from penstock.sql.expressions import ExpressionBinder
from penstock.sql.literal_rules import check_digits, rules_of
from penstock.sql.literals import compared, read_constant
from penstock.sql.names import clause_name, other_arguments
from penstock.sql.operators import OperatorBinder, has_variables, may_have_variables, variables_of
from penstock.sql.scope import Scope
from penstock.sql.truth import ISNULL, Truth, any_of

_OF_NULL = (exp.NullSafeEQ, exp.NullSafeNEQ, exp.Is)
"""What NULL may fulfil. On an expression such a condition is computed whole: a value that cannot be
computed makes it NULL, and is no NULL that it could be true of."""
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)


class ConditionBinder:
    """Binds conditions against the tables of one SELECT. Warnings are collected on the way."""

    def __init__(self, scope: Scope, warnings: list[str], select: exp.Expr) -> None:
        self.scope = scope
        self.source = scope.source
        self._any_variables = may_have_variables(scope.source.sql) and has_variables(select)
        self.warnings = warnings
        self.expressions = ExpressionBinder(scope)
        self.operators = OperatorBinder(scope)
        self._plain_truths: dict[tuple[type[exp.Expr], str, bool, ValueType], Truth] = {}
        """Of comparisons with literals, by their text: 1.0 and 1.00 are of different types."""

    def bind(self, expression: exp.Expr, negated: bool = False) -> Condition:
        """The condition, or its negation, as AND and OR over atoms.

        Recursion goes as deep as the parentheses, which the guard limits; chains are flat.
        """
        while isinstance(expression, exp.Paren | exp.Not):
            negated ^= isinstance(expression, exp.Not)
            expression = expression.this
        if isinstance(expression, exp.And | exp.Or):
            parts = operands(expression)
            if isinstance(expression, exp.And) == negated:
                return Some(tuple(self.bind(part, negated) for part in parts))
            return All(tuple(self.bind_all(parts, negated)))
        with self.source.pointing_at(expression):
            return self._leaf(expression, negated)

    def bind_all(self, parts: Sequence[exp.Expr], negated: bool = False) -> Iterator[Condition]:
        """Conditions that are combined by AND; those that share variables become one."""
        sharing = [self.has_variables(part) for part in parts]
        shared = [unparenthesised(part) for part, yes in zip(parts, sharing, strict=True) if yes]
        alternatives = [part for part in shared if isinstance(part, exp.Or)]
        leaves = [part for part in shared if not isinstance(part, exp.Or)]
        for part, yes in zip(parts, sharing, strict=True):
            if not yes:
                yield self.bind(part, negated)
        self._check_apart(alternatives, leaves)
        for part in alternatives:
            yield self.bind(part, negated)
        for together in _sharing(leaves):
            yield self._group(together, negated)

    def has_variables(self, part: exp.Expr) -> bool:
        """Looks at a part only if the statement has any: a long one has thousands of parts."""
        return self._any_variables and has_variables(part)

    def _check_apart(self, alternatives: Sequence[exp.Expr], leaves: Sequence[exp.Expr]) -> None:
        """SqlError if a variable of an OR is used outside of it."""
        for part in alternatives:
            inside = variables_of(part)
            for other in (*alternatives, *leaves):
                both = inside & variables_of(other) if other is not part else set()
                if both:
                    raise self.source.refuse(
                        f"the variable :{min(both)} is used inside and outside of an OR",
                        part,
                        hint="each alternative of an OR has variables of its own",
                    )

    def _group(self, parts: Sequence[exp.Expr], negated: bool) -> Condition:
        """Conditions that hold together, for one substitution of their variables."""
        with self.source.pointing_at(parts[0]):
            if negated or any(isinstance(part, exp.Not) for part in parts):
                names = sorted(set().union(*map(variables_of, parts)))
                raise SqlError(
                    f"the variable :{names[0]} is used under NOT",
                    hint="NOT has no substitution that could satisfy it; negate the comparison",
                )
            where = self._operator_place(parts)
        return self._atom(where, is_true(self.scope.column(where).type), negated=False)

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
            return self._boolean(expression, negated)
        constant = read_constant(expression)
        if constant is not None:
            return _constant_condition(constant, negated)
        if self.has_variables(expression):
            return self._group([expression], negated)
        if isinstance(expression, exp.Anonymous):
            return self._call(expression, negated)
        return self._boolean(expression, negated)

    def _operator_place(self, parts: Sequence[exp.Expr]) -> Place:
        try:
            return self.operators.place(parts)
        except OperatorError as error:
            raise SqlError(error.primary, detail=error.detail, hint=error.hint) from None

    def _call(self, expression: exp.Anonymous, negated: bool) -> Condition:
        """An operator that binds nothing."""
        where = self._operator_place([expression])
        if negated and self.scope.catalog.operators[expression.name.lower()].outputs:
            raise SqlError(
                f"NOT {expression.name}(...) is not supported: it binds variables",
                hint="compare a variable instead: f(x, :y) AND :y <> 5",
            )
        return self._atom(where, is_true(self.scope.column(where).type), negated)

    def _about_column(
        self,
        expression: exp.Expr,
        truth_of: Callable[[exp.Expr, ValueType], Truth],
        negated: bool,
    ) -> Condition:
        """A condition on its left side; `truth_of` knows the rest."""
        subject = unparenthesised(expression.this)
        if read_constant(subject) is not None:
            raise SqlError("the left side of this condition must be a column")
        of_null = isinstance(expression, _OF_NULL) and not isinstance(subject, exp.Column)
        if of_null or not self._has_constants(expression):
            return self._boolean(expression, negated)
        where = self.expressions.place(subject)
        try:
            truth = truth_of(expression, self.scope.column(where).type)
        except _NoIntervalError:
            return self._boolean(expression, negated)
        except SqlError:
            if isinstance(subject, exp.Column):
                raise
            return self._boolean(expression, negated)
        return self._atom(where, truth, negated)

    def _has_constants(self, expression: exp.Expr) -> bool:
        """Whether everything but the left side of a condition is the same for all rows."""
        left = {id(one) for one in expression.this.find_all(exp.Column)}
        return all(id(one) in left for one in expression.find_all(exp.Column))

    def _atom(self, where: Place, truth: Truth, negated: bool) -> Condition:
        values = truth.false if negated else truth.true
        if not self.scope.column(where).nullable:
            values = intersect_unions(values, ANY_BUT_NULL)
        return Atom(where, values)

    def _comparison(self, expression: exp.Binary, negated: bool) -> Condition:
        self._nothing_but(expression, "this", "expression")
        left, right = unparenthesised(expression.this), unparenthesised(expression.expression)
        if _names_columns(left) and _names_columns(right):
            self._check_one_table(expression)
            return self._boolean(expression, negated)
        kind: type[exp.Expr] = type(expression)
        if _names_columns(right):
            left, right, kind = right, left, MIRRORED.get(kind, kind)
        if not _names_columns(left):
            both = self._constant(left), self._constant(right)
            return _constant_condition(compared(kind, *both), negated)
        if kind in _OF_NULL and not isinstance(left, exp.Column):
            return self._boolean(expression, negated)
        where = self.expressions.place(left)
        constant = self._constant(right)
        if constant == NULL and kind not in _OF_NULL:
            self._warn(f"{self.scope.show(where)} compared with NULL is never true; use IS NULL")
        try:
            truth = self._truth(kind, constant, right, self.scope.column(where).type)
        except SqlError:
            if isinstance(left, exp.Column):
                raise
            return self._boolean(expression, negated)
        return self._atom(where, truth, negated)

    def _truth(
        self, kind: type[exp.Expr], constant: Constant, written: exp.Expr, value_type: ValueType
    ) -> Truth:
        """`column <kind> constant`; long conditions compare with the same literals again."""
        if type(written) is not exp.Literal:
            return comparison(kind, constant, value_type)
        key = (kind, str(written.this), bool(written.is_string), value_type)
        truth = self._plain_truths.get(key)
        if truth is None:
            truth = self._plain_truths[key] = comparison(kind, constant, value_type)
        return truth

    def _check_one_table(self, expression: exp.Binary) -> None:
        """SqlError if a comparison is one between columns of several tables."""
        columns = expression.find_all(exp.Column)
        if len({self.scope.resolve(column)[0] for column in columns}) > 1:
            raise self._comparison_of_tables(expression)

    def _comparison_of_tables(self, expression: exp.Binary) -> SqlError:
        sides = unparenthesised(expression.this), unparenthesised(expression.expression)
        if isinstance(expression, exp.EQ) and not all(isinstance(s, exp.Column) for s in sides):
            return SqlError(
                "an expression over several tables is not supported in a subscription",
                hint="join on a.x = b.y, and compute with the columns of one table at a time",
            )
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
        if pattern.kind == "string" and not is_prefix(str(pattern.value)):
            raise _NoIntervalError("LIKE with this pattern is not an interval")
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

    def _boolean(self, expression: exp.Expr, negated: bool) -> Condition:
        """A column, or an expression, that is a condition by itself."""
        where = self.expressions.place(expression)
        value_type = self.scope.column(where).type
        if not rules_of(value_type).is_condition:
            raise SqlError(
                f"{self.scope.column(where).name} is of type {value_type}, not a condition",
                hint="compare it with a value",
            )
        return self._atom(where, is_true(value_type), negated)

    def _constant(self, expression: exp.Expr) -> Constant:
        with self.source.pointing_at(expression):
            constant = read_constant(expression) or self.expressions.constant(expression)
            if constant is None:
                raise SqlError("a column is not supported here", hint="write a constant")
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


def _sharing(parts: Sequence[exp.Expr]) -> list[list[exp.Expr]]:
    """Conditions in groups that have no variable in common."""
    groups: list[tuple[set[str], list[exp.Expr]]] = []
    for part in parts:
        names, together = variables_of(part), [part]
        for group in [group for group in groups if group[0] & names]:
            groups.remove(group)
            names |= group[0]
            together = [*group[1], *together]
        groups.append((names, together))
    return [together for _, together in groups]


class _NoIntervalError(SqlError):
    """A condition that is true for values which are no union of a few intervals."""


def _names_columns(expression: exp.Expr) -> bool:
    if isinstance(expression, exp.Column | exp.Literal):  # nearly all: no need to walk
        return isinstance(expression, exp.Column)
    return expression.find(exp.Column) is not None


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
