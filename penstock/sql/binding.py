"""SELECT: from text to a bound query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from penstock.catalog import Catalog
from penstock.errors import SqlError
from penstock.garbage import without_garbage
from penstock.predicates.boxes import ANY_ROW, Box
from penstock.predicates.budget import MAX_WORK, READING_STEPS, Budget, TooComplexError
from penstock.predicates.normal_form import (
    MAX_BRANCHES,
    MAX_SIZE,
    All,
    Condition,
    Findings,
    branches_of,
)
from penstock.predicates.unions import ANY_BUT_NULL
from penstock.query import Output, Query
from penstock.sql.conditions import ConditionBinder
from penstock.sql.ddl import INSTEAD
from penstock.sql.derived import with_derived
from penstock.sql.names import clause_name, other_arguments
from penstock.sql.outputs import bind_outputs
from penstock.sql.payload import in_halves
from penstock.sql.reference import check_read_alike
from penstock.sql.scope import Scope
from penstock.sql.source import Source
from penstock.sql.strict import check_names, check_nothing_dropped
from penstock.sql.tables import TableBinder

_WORDS: dict[str, tuple[str, ...]] = {
    "WITH": ("WITH",),
    "FOR UPDATE": ("FOR",),
    "LIMIT": ("LIMIT", "FETCH"),
    "TABLESAMPLE": ("TABLESAMPLE", "USING"),
}
"""Clauses whose keywords differ from their name."""


def bind(sql: str, catalog: Catalog) -> Query:
    """Bind a subscription's SELECT; SqlError, with its position, if it is refused."""
    analysis = analyse(sql, catalog)
    return analysis.as_hinted(analysis.query)


@dataclass(frozen=True, slots=True)
class Analysis:
    """A bound SELECT, with intermediate results."""

    query: Query
    outputs: tuple[Output, ...]
    """As bound: the final positions of derived columns are assigned at the end."""
    scope: Scope
    literals: tuple[exp.Literal, ...]
    """In the order of the text."""
    conditions: tuple[exp.Expr, ...]
    """The ANDed conditions, without the equalities between tables."""
    select: exp.Select

    def as_hinted(self, query: Query) -> Query:
        """A query of this shape, transformed according to the hint in its text."""
        return in_halves(self.scope.source, query)


def analyse(sql: str, catalog: Catalog) -> Analysis:
    with without_garbage():
        source = Source(sql)
        with source.reading():
            return _analyse(source, catalog)


def _analyse(source: Source, catalog: Catalog) -> Analysis:
    select = _parse_select(source)
    warnings: list[str] = []
    scope = Scope(source, catalog)
    tables = TableBinder(scope, ConditionBinder(scope, warnings, select))
    tables.bind_from(select)
    outputs = bind_outputs(scope, select.expressions)
    where = select.args.get("where")
    if where is not None:
        tables.bind_conjunction(where.this)
    joins = tables.joins()
    branches = normal_form(scope, tables.local, warnings)
    check_names(source, select)
    check_nothing_dropped(source, select)
    if any(scope.derived):
        check_read_alike(source, select)
    query = Query(source.sql, tuple(scope.nodes), joins, branches, outputs, tuple(warnings))
    query = with_derived(query, scope.derived)
    literals = sorted(
        select.find_all(exp.Literal), key=lambda literal: literal.meta.get("start", -1)
    )
    conditions = tuple(tables.local_expressions)
    return Analysis(query, outputs, scope, tuple(literals), conditions, select)


def normal_form(
    scope: Scope, conditions: Sequence[Condition], warnings: list[str]
) -> tuple[tuple[Box, ...], ...]:
    """The branches of ANDed conditions; adds to the warnings."""
    findings = Findings()
    budget = Budget(MAX_WORK - READING_STEPS * len(scope.source.tokens))
    try:
        condition = All(tuple(conditions))
        branches = branches_of(condition, len(scope.nodes), scope.never_null(), findings, budget)
    except TooComplexError as error:
        raise _too_complex(scope.source, error) from None
    warnings += _found(scope, findings)
    if not branches:
        warnings.append("the condition can never be true: the content stays empty")
    elif conditions and branches == (tuple(ANY_ROW for _ in scope.nodes),):
        warnings.append("the condition is always true: it excludes no row")
    return branches


def _parse_select(source: Source) -> exp.Select:
    first = source.word(0)
    if first not in ("SELECT", "WITH", "VALUES", "("):
        instead = INSTEAD.get(first) if first != "FROM" else None
        hint = instead or "a subscription begins with SELECT"
        raise source.refuse(f"{first} is not a subscription", source.tokens[0], hint=hint)
    statement = source.parse()
    if not isinstance(statement, exp.Select):
        raise _not_a_select(source, statement)
    for name in other_arguments(statement, "expressions", "from_", "joins", "where"):
        what = clause_name(name)
        raise source.refuse(
            f"{what} is not supported in a subscription",
            source.token_of(*_WORDS.get(what, (what,))) or source.tokens[0],
        )
    return statement


def _not_a_select(source: Source, statement: exp.Expr) -> SqlError:
    what = "a SELECT in parentheses"
    for kind in (exp.Union, exp.Except, exp.Intersect, exp.Values):
        if isinstance(statement, kind):
            what = kind.__name__.upper()
    return source.refuse(
        f"{what} is not supported in a subscription", source.token_of(what) or source.tokens[0]
    )


def _too_complex(source: Source, error: TooComplexError) -> SqlError:
    size = f" with {error.size:,} conditions" if error.size else ""
    found = f"it multiplies to {error.branches:,} alternatives{size}"
    if not error.branches:
        found = f"its alternatives overlap too much to be compared in {MAX_WORK:,} steps"
    return source.refuse(
        f"the condition is too complex: {found}",
        source.token_of("WHERE", "ON"),
        detail=f"at most {MAX_BRANCHES:,} alternatives with {MAX_SIZE:,} conditions are supported; "
        "ORs that are combined with AND multiply",
        hint="make several subscriptions of it, or use ranges and IN on one column",
    )


def _found(scope: Scope, findings: Findings) -> list[str]:
    """The warnings about the condition, in words."""
    found = [
        f"the conditions on {scope.show(place)} exclude each other"
        for place in findings.contradictions
    ]
    for place, values in findings.tautologies:
        name = scope.show(place)
        but_null = values == ANY_BUT_NULL and scope.column(place).nullable
        every = f"every non-NULL {name}" if but_null else f"every {name}"
        found.append(f"the alternatives on {name} are true for {every}")
    return list(dict.fromkeys(found))
