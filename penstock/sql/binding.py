"""SELECT: from text to a bound query."""

from __future__ import annotations

from sqlglot import exp

from penstock.catalog import Catalog
from penstock.errors import SqlError
from penstock.predicates.boxes import ANY_ROW
from penstock.predicates.intervals import NOT_NULL
from penstock.predicates.normal_form import (
    MAX_BRANCHES,
    All,
    Findings,
    TooManyBranches,
    branches_of,
)
from penstock.sql.conditions import ConditionBinder
from penstock.sql.ddl import INSTEAD
from penstock.sql.names import clause_name
from penstock.sql.outputs import bind_outputs
from penstock.sql.query import Query
from penstock.sql.scope import Scope
from penstock.sql.source import Source
from penstock.sql.tables import TableBinder

_KNOWN_CLAUSES = {"expressions", "from_", "joins", "where"}
_SET_OPERATIONS = {exp.Union: "UNION", exp.Except: "EXCEPT", exp.Intersect: "INTERSECT"}


def bind(sql: str, catalog: Catalog) -> Query:
    """What a subscription's SELECT means; SqlError, pointing at the place, if it is refused."""
    source = Source(sql)
    select = _parse_select(source)
    warnings: list[str] = []
    scope = Scope(source, catalog)
    conditions = ConditionBinder(scope, warnings)
    tables = TableBinder(scope, conditions)
    tables.bind_from(select)
    outputs = bind_outputs(scope, select.expressions)
    where = select.args.get("where")
    if where is not None:
        tables.bind_conjunction(where.this)
    joins = tables.joins()
    findings = Findings()
    try:
        branches = branches_of(All(tuple(tables.local)), len(scope.nodes), findings)
    except TooManyBranches as error:
        raise _too_many(source, error.count) from None
    _warn(scope, findings, warnings)
    if not branches:
        warnings.append("the condition can never be true: this subscription stays empty")
    elif tables.local and branches == (tuple(ANY_ROW for _ in scope.nodes),):
        warnings.append("the condition is always true: it excludes no row")
    return Query(sql, tuple(scope.nodes), joins, branches, outputs, tuple(warnings))


def _parse_select(source: Source) -> exp.Select:
    first = source.word(0)
    if first not in ("SELECT", "WITH", "VALUES", "("):
        raise source.refuse(
            f"{first} is not a subscription",
            source.tokens[0],
            hint=INSTEAD.get(first, "a subscription is a SELECT"),
        )
    statement = source.parse()
    if not isinstance(statement, exp.Select):
        names = [name for kind, name in _SET_OPERATIONS.items() if isinstance(statement, kind)]
        what = names[0] if names else "VALUES" if first == "VALUES" else "a SELECT in parentheses"
        raise source.refuse(
            f"{what} is not supported in a subscription",
            source.token_of(what) or source.tokens[0],
        )
    for name, value in statement.args.items():
        if value and name not in _KNOWN_CLAUSES:
            what = clause_name(name)
            raise source.refuse(
                f"{what} is not supported in a subscription",
                source.token_of(what, what.split()[0]) or source.tokens[0],
            )
    return statement


def _too_many(source: Source, count: int) -> SqlError:
    return source.refuse(
        f"the condition is too complex: it needs at least {count:,} alternatives",
        source.token_of("WHERE"),
        detail=f"ANDed ORs multiply; at most {MAX_BRANCHES:,} alternatives are supported",
        hint="split it into several subscriptions, or use ranges and IN on one column",
    )


def _warn(scope: Scope, findings: Findings, warnings: list[str]) -> None:
    for place in findings.contradictions:
        warnings.append(f"the conditions on {scope.show(place)} exclude each other")
    for place, values in findings.tautologies:
        rest = "non-NULL " if values == (NOT_NULL,) else ""
        name = scope.show(place)
        warnings.append(f"the alternatives for {name} are true for every {rest}{name}")
