"""Rewrites a subscription so that DuckDB does not fail at a value that cannot be computed.

In a subscription such a value is NULL, and so is a condition that needs it
(`penstock.expressions`). In DuckDB, TRY has the same effect. A date or time outside the range of
columns, the years 1 to 9999, is also NULL, where it is shown or compared with constants.
"""

from __future__ import annotations

from sqlglot import exp, parse_one

from penstock.sql.dialect import DIALECT, write_sql

_COMBINED = (exp.And, exp.Or, exp.Not, exp.Paren)
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_OF_LEFT_SIDE = (exp.Between, exp.In)

# Not by comparing with dates: most values have other types, and DuckDB binds all alternatives.
_ON_CALENDAR = (
    "CASE WHEN typeof({0}) IN ('DATE', 'TIMESTAMP', 'TIMESTAMP WITH TIME ZONE') "
    "AND NOT regexp_matches(CAST({0} AS VARCHAR), '^[0-9]{{4}}-[^(]*$') THEN NULL ELSE {0} END"
)


def with_try(sql: str) -> str:
    """The text of a SELECT that was bound before, with TRY around computed values."""
    select = parse_one(sql, dialect=DIALECT)
    for item in select.expressions:
        if isinstance(item, exp.Alias) and not isinstance(item.this, exp.Column):
            item.set("this", _tried(_on_calendar(item.this)))
    clauses = [one.args.get("on") for one in select.args.get("joins") or ()]
    where = select.args.get("where")
    for clause in [*clauses, where.this if where is not None else None]:
        if clause is not None:
            clause.replace(_each_tried(clause))
    return write_sql(select, comments=False)


def _each_tried(condition: exp.Expr) -> exp.Expr:
    """A condition whose parts are wrapped in TRY one by one."""
    written = exp.Paren(this=condition.copy())
    waiting: list[exp.Expr] = [written]
    while waiting:
        here = waiting.pop()
        if isinstance(here, _COMBINED):
            waiting += list(here.iter_expressions())
        else:
            here.replace(_tried(_compared_on_calendar(here)))
    return written


def _compared_on_calendar(condition: exp.Expr) -> exp.Expr:
    """A condition that compares a computed value with constants, with the value limited to the
    range of columns. Others are computed as a whole."""
    condition = condition.copy()
    sides = list(condition.iter_expressions())
    computing = [one for one in sides if one.find(exp.Column) is not None]
    if len(computing) != 1 or isinstance(computing[0].unnest(), exp.Column):
        return condition
    is_left = computing[0] is condition.this
    if isinstance(condition, _COMPARISONS) or (isinstance(condition, _OF_LEFT_SIDE) and is_left):
        computing[0].replace(_on_calendar(computing[0]))
    return condition


def _on_calendar(value: exp.Expr) -> exp.Expr:
    text = write_sql(exp.Paren(this=value.copy()), comments=False)
    return exp.Paren(this=parse_one(_ON_CALENDAR.format(text), dialect=DIALECT))


def _tried(expression: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="TRY", expressions=[expression.copy()])
