"""Binds many statements that differ only in their constants.

Subscriptions come from programs: a million of them have a handful of shapes. Parsing and resolving
names takes most of a millisecond, with the same result for every statement of a shape. So the first
statement of a shape is bound normally and cached; for the others, the new constants are put into
its tree and only the conditions are bound again. Unusual cases, errors above all, fall back to
normal binding.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from sqlglot import exp

from penstock.catalog import Catalog
from penstock.errors import SqlError
from penstock.predicates.boxes import Box
from penstock.predicates.normal_form import Atom, Condition
from penstock.predicates.unions import ANY_BUT_NULL, intersect_unions
from penstock.query import Query
from penstock.sql.atoms import comparison
from penstock.sql.binding import Analysis, analyse, bind, normal_form
from penstock.sql.conditions import ConditionBinder
from penstock.sql.conjunctions import Comparison, Conjunction, literal_constant
from penstock.sql.derived import with_derived

MAX_SHAPES = 1_000
MAX_CHARACTERS = 4_096  # longer texts are not cached

_LITERAL = re.compile(
    r"(?<![\w.'\"$@\\])(?:[0-9]{1,18}(?:\.[0-9]{1,18})?(?![\w.])|'[^'\\\0\ud800-\udfff]*'(?!'))"
)
"""Plain numbers and strings, in contexts that cannot change what they are."""

_Part: TypeAlias = Callable[[list[str]], Condition]


class ShapeBinder:
    """Binds statements against one catalog. Not thread-safe."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._shapes: dict[str, _Shape | None] = {}

    def bind(self, sql: str) -> Query:
        """The same as `bind(sql, catalog)`."""
        if len(sql) > MAX_CHARACTERS:
            return bind(sql, self._catalog)
        literals: list[str] = []

        def take(match: re.Match[str]) -> str:
            literals.append(match.group())
            return "''" if match.group().startswith("'") else "0"

        text = _LITERAL.sub(take, sql)
        if text in self._shapes:
            shape = self._shapes[text]
            query = None if shape is None else shape.bind(sql, literals)
            return query or bind(sql, self._catalog)
        analysis = analyse(sql, self._catalog)
        if len(self._shapes) < MAX_SHAPES:
            self._shapes[text] = _Shape.of(sql, analysis)
        return analysis.as_hinted(analysis.query)


@dataclass(frozen=True, slots=True)
class _Shape:
    """The common part of statements of one shape, and how the rest depends on their literals."""

    analysis: Analysis
    binder: ConditionBinder
    parts: tuple[_Part, ...]
    conjunction: Conjunction | None
    """The fast path, if all conditions are comparisons."""
    definitions: tuple[int, ...]
    """How many derived columns each node has."""

    @classmethod
    def of(cls, sql: str, analysis: Analysis) -> _Shape | None:
        """None unless the literals found in the text are exactly those of its tree, and all of them
        are in conditions."""
        spans = [match.span() for match in _LITERAL.finditer(sql)]
        found = [
            (literal.meta.get("start", -1), literal.meta.get("end", -2) + 1)
            for literal in analysis.literals
        ]
        in_conditions = sum(len(list(one.find_all(exp.Literal))) for one in analysis.conditions)
        if spans != found or len(found) != in_conditions:
            return None
        binder = ConditionBinder(analysis.scope, [], analysis.select)
        numbers = {id(literal): i for i, literal in enumerate(analysis.literals)}
        parts = tuple(
            _simple_part(one, numbers, binder) or _any_part(one, numbers, binder)
            for one in analysis.conditions
        )
        definitions = tuple(map(len, analysis.scope.derived))
        return cls(analysis, binder, parts, _conjunction(analysis, numbers), definitions)

    def bind(self, sql: str, literals: list[str]) -> Query | None:
        """The query of another statement of this shape; None to fall back to normal binding."""
        warnings = self.binder.warnings = []
        try:
            branches = None if self.conjunction is None else self.conjunction.branches(literals)
            if branches is not None:
                return self._as_found(sql, branches, ())
            conditions = [part(literals) for part in self.parts]
            branches = normal_form(self.analysis.scope, conditions, warnings)
            return self._as_found(sql, branches, tuple(warnings))
        except SqlError:
            return None
        finally:
            self._forget_definitions()

    def _forget_definitions(self) -> None:
        """If a literal is part of a derived column's definition, each statement has columns of its
        own; those of the first stay, because outputs may use them."""
        for known, mine in zip(self.definitions, self.analysis.scope.derived, strict=True):
            del mine[known:]

    def _as_found(
        self, sql: str, branches: tuple[tuple[Box, ...], ...], warnings: tuple[str, ...]
    ) -> Query:
        analysis = self.analysis
        nodes, outputs = tuple(analysis.scope.nodes), analysis.outputs
        found = Query(sql, nodes, analysis.query.joins, branches, outputs, warnings)
        return analysis.as_hinted(with_derived(found, analysis.scope.derived))


def _conjunction(analysis: Analysis, numbers: dict[int, int]) -> Conjunction | None:
    """None unless every condition is a column compared with literals."""
    comparisons: list[Comparison] = []
    for expression in analysis.conditions:
        if not isinstance(expression.this, exp.Column):
            return None
        where = analysis.scope.resolve(expression.this)
        value_type = analysis.scope.column(where).type
        ends = _compared(expression)
        for kind, end in ends:
            sign, literal = ("-", end.this) if isinstance(end, exp.Neg) else ("", end)
            if not isinstance(literal, exp.Literal):
                return None
            comparisons.append(Comparison(where, value_type, kind, numbers[id(literal)], sign))
        if not ends:
            return None
    return Conjunction(comparisons, len(analysis.scope.nodes)) if comparisons else None


def _any_part(expression: exp.Expr, numbers: dict[int, int], binder: ConditionBinder) -> _Part:
    """Any condition: its literals are replaced in the tree, and it is bound again."""
    mine = [(one, numbers[id(one)]) for one in expression.find_all(exp.Literal)]

    def part(literals: list[str]) -> Condition:
        for literal, number in mine:
            literal.set("this", _unquoted(literals[number]))
        return binder.bind(expression)

    return part


def _simple_part(
    expression: exp.Expr, numbers: dict[int, int], binder: ConditionBinder
) -> _Part | None:
    """A column compared with literals: the same result, without walking the tree."""
    compared = _compared_literals(expression)
    if not compared or not isinstance(expression.this, exp.Column):
        return None
    scope = binder.scope
    place = scope.resolve(expression.this)
    column = scope.column(place)
    kinds = [kind for kind, _ in compared]
    mine = [numbers[id(literal)] for _, literal in compared]

    def part(literals: list[str]) -> Condition:
        constants = [literal_constant(literals[number]) for number in mine]
        truth = comparison(kinds[0], constants[0], column.type)
        for kind, constant in zip(kinds[1:], constants[1:], strict=True):
            truth &= comparison(kind, constant, column.type)
        values = truth.true if column.nullable else intersect_unions(truth.true, ANY_BUT_NULL)
        return Atom(place, values)

    return part


def _compared(expression: exp.Expr) -> list[tuple[type[exp.Expr], exp.Expr]]:
    """The right sides of its comparisons, and their kinds."""
    if isinstance(expression, exp.EQ | exp.LT | exp.LTE | exp.GT | exp.GTE):
        return [(type(expression), expression.expression)]
    if isinstance(expression, exp.Between) and not expression.args.get("symmetric"):
        return [(exp.GTE, expression.args["low"]), (exp.LTE, expression.args["high"])]
    return []


def _compared_literals(expression: exp.Expr) -> list[tuple[type[exp.Expr], exp.Literal]]:
    ends = _compared(expression)
    literals = [(kind, end) for kind, end in ends if isinstance(end, exp.Literal)]
    return literals if len(literals) == len(ends) else []


def _unquoted(literal: str) -> str:
    return literal[1:-1] if literal.startswith("'") else literal
