"""The SELECT list: which columns a content has, and what they are called."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from sqlglot import exp

from penstock.predicates.simplify import Place
from penstock.query import Output
from penstock.sql.names import clause_name, other_arguments, refusal
from penstock.sql.scope import Scope


@dataclass(frozen=True, slots=True)
class _Item:
    place: Place
    alias: str | None
    at: exp.Expr


def bind_outputs(scope: Scope, expressions: list[exp.Expr]) -> tuple[Output, ...]:
    """The columns in the order of the SELECT list, each under a name of its own."""
    if not expressions:
        raise scope.source.refuse("the SELECT list is empty", scope.source.tokens[0])
    items = [item for expression in expressions for item in _items(scope, expression)]
    short = [item.alias or scope.column(item.place).name for item in items]
    shared = Counter(label.lower() for label in short)
    labels = [
        label if item.alias or shared[label.lower()] == 1 else _qualified(scope, item.place)
        for label, item in zip(short, items, strict=True)
    ]
    _check_distinct(scope, labels, items)
    return tuple(Output(label, *item.place) for label, item in zip(labels, items, strict=True))


def _qualified(scope: Scope, place: Place) -> str:
    return f"{scope.nodes[place[0]].alias}.{scope.column(place).name}"


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
    if isinstance(expression, exp.Alias) and isinstance(expression.this, exp.Column):
        if isinstance(expression.this.this, exp.Star):
            raise scope.source.refuse("* cannot have a name", expression)
        if not isinstance(expression.args.get("alias"), exp.Identifier):
            raise scope.source.refuse("a name is expected behind AS", expression)
        return [_Item(scope.resolve(expression.this), expression.alias, expression)]
    with scope.source.pointing_at(expression):
        raise refusal(expression.unalias(), "the SELECT list of a subscription")


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
