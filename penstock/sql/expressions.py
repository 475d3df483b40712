"""Expressions of one row: which are allowed in a query, and the derived columns they become."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp, parse_one

from penstock.catalog import BooleanType
from penstock.catalog.derived import Definition
from penstock.errors import SqlError
from penstock.predicates.simplify import Place
from penstock.sql.column_types import computed_type, value_type_of
from penstock.sql.constants import Constant
from penstock.sql.dialect import DIALECT
from penstock.sql.literal_rules import converted
from penstock.sql.literals import read_constant
from penstock.sql.names import clause_name, other_arguments, refusal
from penstock.sql.reference import write_expression
from penstock.sql.scope import Scope
from penstock.sql.source import Source
from penstock.sql.text_growth import check_texts

MAX_CHARACTERS = 2_000
"""Maximum per expression. Its text is part of the names of spaces."""

_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Pow, exp.Neg, exp.Paren)
_CONDITIONS = (
    *(exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE),
    *(exp.NullSafeEQ, exp.NullSafeNEQ, exp.Is, exp.Between, exp.In),
)
_PATTERNS = (
    *(exp.Like, exp.ILike, exp.Escape, exp.SimilarTo, exp.Glob),
    *(exp.RegexpLike, exp.RegexpFullMatch, exp.StartsWith, exp.EndsWith, exp.Contains),
)
_CHOICES = (exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.Greatest, exp.Least)
_CASTS = (exp.Cast, exp.TryCast)
_NUMBERS = (exp.Abs, exp.Round, exp.Floor, exp.Ceil, exp.Sign, exp.Sqrt)
_TEXTS = (
    *(exp.Lower, exp.Upper, exp.Length, exp.Substring, exp.Trim, exp.Left, exp.Right, exp.Replace),
    *(exp.StrPosition, exp.DPipe, exp.Concat, exp.Reverse, exp.RegexpExtract, exp.RegexpReplace),
)
_TIMES = (
    *(exp.TimestampTrunc, exp.DateTrunc, exp.Extract, exp.Interval, exp.DateDiff, exp.Var),
    *(exp.Year, exp.Month, exp.Day, exp.DayOfWeek, exp.DayOfYear, exp.Week, exp.Quarter),
    *(exp.Hour, exp.Minute, exp.Second),
)
_LEAVES = (exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.DataType)
DETERMINISTIC = frozenset(
    (
        *(*_ARITHMETIC, *_CONDITIONS, *_PATTERNS, *_CHOICES, *_CASTS),
        *(*_NUMBERS, *_TEXTS, *_TIMES, *_LEAVES, exp.DataTypeParam),
    )
)
"""Allowed parts of an expression: deterministic functions of one row."""


class ExpressionBinder:
    """Turns expressions over one table of a scope into derived columns."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def place(self, expression: exp.Expr, where: str = "a subscription") -> Place:
        """The column with the values of an expression: a declared or a derived one. SqlError if it
        cannot be derived."""
        if isinstance(expression, exp.Column):
            return self._scope.resolve(expression)
        check_deterministic(self._scope.source, expression, where)
        node, reads, renamed = self._over_one_table(expression)
        from penstock.expressions import type_name

        text = _as_text(renamed)
        columns = self._scope.nodes[node].relation.columns
        value_type = computed_type(type_name(text, tuple(columns[i] for i in reads)))
        return self._scope.add_derived(node, Definition(text, value_type, reads))

    def constant(self, expression: exp.Expr) -> Constant | None:
        """The value of an expression without columns; None if it has columns."""
        check_deterministic(self._scope.source, expression)
        if expression.find(exp.Column) is not None:
            return None
        from penstock.expressions import constant_value, type_name

        text = _as_text(expression)
        value_type = computed_type(type_name(text))
        stored = constant_value(text, value_type)
        if stored is None and constant_value(f"({text}) IS NULL", BooleanType()) is False:
            raise SqlError(
                "the value of this expression is beyond the calendar",
                detail="dates and times are those of the years 1 to 9999",
            )
        if stored is None:
            return Constant("null", None, value_type)
        literal = read_constant(parse_one(value_type.literal(stored), dialect=DIALECT))
        assert literal is not None
        return converted(literal, value_type)

    def _over_one_table(self, expression: exp.Expr) -> tuple[int, tuple[int, ...], exp.Expr]:
        """The node that an expression reads, which of its columns, and the same expression with the
        declared names of the columns."""
        renamed = expression.copy()
        places = []
        # Both trees have the same order.
        pairs = zip(_columns(expression), list(_columns(renamed)), strict=True)
        for original, copy in pairs:
            place = self._scope.resolve(original)
            places.append(place)
            column = self._scope.column(place)
            if column.type.is_opaque:
                raise SqlError(
                    f"{column.name} is {column.type}, and cannot be part of an expression",
                    hint="take values out of documents with XMLTABLE",
                )
            name = column.name
            copy.set("table", None)
            copy.set("this", exp.to_identifier(name, quoted=True))
        nodes = {node for node, _ in places}
        if not nodes:
            raise SqlError("an expression without columns is not supported here")
        if len(nodes) > 1:
            raise SqlError(
                "an expression over several tables is not supported in a subscription",
                hint="join on a.x = b.y, and compute with the columns of one table at a time",
            )
        return nodes.pop(), tuple(sorted({column for _, column in places})), renamed


def _columns(expression: exp.Expr) -> Iterator[exp.Column]:
    return (one for one in expression.walk() if isinstance(one, exp.Column))


def _as_text(expression: exp.Expr) -> str:
    while isinstance(expression, exp.Paren):
        expression = expression.this
    text = write_expression(expression)
    if len(text) > MAX_CHARACTERS:
        raise _too_long()
    return text


def _too_long() -> SqlError:
    return SqlError(
        f"an expression has at most {MAX_CHARACTERS:,} characters",
        hint="combine several conditions by AND or OR",
    )


def check_deterministic(
    source: Source, expression: exp.Expr, where: str = "a subscription"
) -> None:
    """SqlError for the first part of an expression that is not allowed, or if a text in it can
    become too long."""
    for count, part in enumerate(expression.walk()):
        if count == MAX_CHARACTERS:
            raise _too_long()
        with source.pointing_at(part):
            _check_part(part, where)
    check_texts(expression)


def _check_part(part: exp.Expr, where: str) -> None:
    if type(part) not in DETERMINISTIC:
        raise refusal(part, where)
    if isinstance(part, _CASTS):
        for name in other_arguments(part, "this", "to", "safe"):
            raise SqlError(f"CAST with {clause_name(name)} is not supported in {where}")
        value_type_of(part.to)
    if isinstance(part, exp.In):
        _check_in(part)


def _check_in(part: exp.In) -> None:
    if part.args.get("query"):
        raise SqlError("a subquery is not supported in a subscription")
    if part.args.get("field") or part.args.get("unnest"):
        raise SqlError("IN needs a list of values in parentheses")
