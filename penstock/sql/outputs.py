"""The SELECT list: the columns of a content, and their names."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from sqlglot import exp

from penstock.errors import SqlError
from penstock.predicates.simplify import Place
from penstock.query import Output
from penstock.sql.expressions import ExpressionBinder, check_deterministic
from penstock.sql.names import clause_name, other_arguments
from penstock.sql.scope import Scope

_WHERE = "the SELECT list of a subscription"


@dataclass(frozen=True, slots=True)
class _Item:
    place: Place
    alias: str | None
    at: exp.Expr


def bind_outputs(scope: Scope, expressions: list[exp.Expr]) -> tuple[Output, ...]:
    """The columns in the order of the SELECT list, with unique names."""
    if not expressions:
        raise scope.source.refuse("the SELECT list is empty", scope.source.tokens[0])
    items = [item for expression in expressions for item in _items(scope, expression)]
    short = [item.alias or scope.name(item.place) for item in items]
    shared = Counter(label.lower() for label in short)
    labels = [
        label if item.alias or shared[label.lower()] == 1 else scope.qualified(item.place)
        for label, item in zip(short, items, strict=True)
    ]
    _check_distinct(scope, labels, items)
    return tuple(Output(label, *item.place) for label, item in zip(labels, items, strict=True))


def _items(scope: Scope, expression: exp.Expr) -> list[_Item]:
    if isinstance(expression, exp.Star):
        _check_star(scope, expression, expression)
        return [_Item(visible.place, None, expression) for visible in scope.star()]
    if isinstance(expression, exp.Column):
        star, table = expression.this, expression.args.get("table")
        if isinstance(star, exp.Star) and isinstance(table, exp.Identifier):
            _check_star(scope, star, expression)
            return [_Item(visible.place, None, expression) for visible in scope.star_of(table)]
        return [_Item(scope.resolve(expression), None, expression)]
    with scope.source.pointing_at(expression):
        value = expression.unalias()
        if not isinstance(value, exp.Column):
            _check_value(scope, value)
        if not isinstance(expression, exp.Alias):
            raise SqlError("an expression of the SELECT list needs a name", hint="write AS name")
        return [_named(scope, expression)]


def _check_value(scope: Scope, value: exp.Expr) -> None:
    check_deterministic(scope.source, value, _WHERE)
    if value.find(exp.Column) is None:
        raise SqlError(f"a constant is not supported in {_WHERE}")


def _named(scope: Scope, expression: exp.Alias) -> _Item:
    value = expression.this
    if isinstance(value, exp.Column) and isinstance(value.this, exp.Star):
        raise SqlError("* cannot have a name")
    if not isinstance(expression.args.get("alias"), exp.Identifier):
        raise SqlError("a name is expected behind AS")
    place = ExpressionBinder(scope).place(value, _WHERE)
    return _Item(place, expression.alias, expression)


def _check_star(scope: Scope, star: exp.Star, at: exp.Expr) -> None:
    for name in other_arguments(star):
        raise scope.source.refuse(f"* {clause_name(name)} is not supported in a subscription", at)


def _check_distinct(scope: Scope, labels: list[str], items: list[_Item]) -> None:
    seen: set[str] = set()
    for label, item in zip(labels, items, strict=True):
        if label.lower() in seen:
            raise scope.source.refuse(
                f"two columns are called {label}", item.at, hint="name one of them with AS"
            )
        seen.add(label.lower())
