"""Operators of installed packages, declared in a home when a statement first calls them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from penstock.catalog.derived import ExtendedRelation
from penstock.errors import UnknownOperatorError
from penstock.query import Query

_Bound = TypeVar("_Bound")


def declaring_installed(bind: Callable[[], _Bound], define: Callable[[str], object]) -> _Bound:
    """The result of `bind`, after declaring missing operators that installed packages have."""
    while True:
        try:
            return bind()
        except UnknownOperatorError as error:
            from penstock.operators.registration import discover_operators
            from penstock.registry.operator_runtime import signature_of
            from penstock.sql import operator_statement

            installed = discover_operators()
            if error.name not in installed:
                raise
            define(operator_statement(signature_of(installed[error.name])))


def operators_called(query: Query) -> set[str]:
    """The operators that a query calls, in lower case."""
    relations = (node.relation for node in query.nodes)
    lazy = [
        one
        for relation in relations
        if isinstance(relation, ExtendedRelation)
        for one in relation.definitions
        if one.is_lazy
    ]
    if not lazy:
        return set()
    from penstock.operators.lazy_columns import lazy_column  # lazy: slow to load

    return {call.operator.lower() for one in lazy for call in lazy_column(one).calls}
