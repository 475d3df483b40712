"""Rewrites a subscription that calls operators for a database with one function per group."""

from __future__ import annotations

from typing import NamedTuple

from sqlglot import exp

from penstock.catalog import Catalog, Relation
from penstock.catalog.derived import Definition
from penstock.sql.binding import analyse
from penstock.sql.dialect import DIALECT
from penstock.sql.operators import GROUP
from penstock.sql.scope import FIRST_DERIVED


class GroupFunction(NamedTuple):
    """A derived column computed by operators, as a function of the columns that it reads."""

    definition: Definition
    table: Relation

    @property
    def name(self) -> str:
        return f"penstock_{self.definition.id}"


def with_group_functions(sql: str, catalog: Catalog) -> tuple[str, list[GroupFunction]]:
    """The text of a SELECT that was bound before, with function calls in place of the conditions of
    each group; and the functions."""
    analysis = analyse(sql, catalog)
    scope, functions = analysis.scope, dict[str, GroupFunction]()
    select = analysis.select.copy()
    for part in [one for one in select.walk() if GROUP in one.meta]:
        node, position = part.meta[GROUP]
        table = scope.nodes[node].relation
        function = GroupFunction(scope.derived[node][position - FIRST_DERIVED], table)
        functions[function.name] = function
        reads = [(node, column) for column in function.definition.reads]
        given = [exp.column(scope.name(one), scope.owner(one), quoted=True) for one in reads]
        part.replace(exp.Anonymous(this=function.name, expressions=given))
    return select.sql(dialect=DIALECT, comments=False), list(functions.values())
