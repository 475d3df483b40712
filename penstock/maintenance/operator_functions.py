"""Operators as functions of the oracle, to compare contents of subscriptions that call them.

DuckDB calls a function for each group of predicates of a query, with the columns of a row;
operators are evaluated as usual, under their limits and through the caches. A failure is NULL, as
for a subscription whose row is left out.
"""

from __future__ import annotations

from penstock.catalog import Catalog, Outside, Row
from penstock.maintenance.oracle import Function, Oracle
from penstock.operators.lazy_columns import lazy_column
from penstock.query import Query
from penstock.registry import HomeOperators, Registry, calls_of, rows_left_out
from penstock.sql.operator_functions import GroupFunction, with_group_functions
from penstock.storage import Home


class OperatorFunctions:
    def __init__(self, home: Home, oracle: Oracle, catalog: Catalog) -> None:
        """`home`: with copies of its databases, which may be written to."""
        self._oracle = oracle
        self._catalog = catalog
        self._home = home
        self._copies = home.catalog_db.parent
        self._operators: HomeOperators | None = None

    def define_for(self, query: Query) -> str:
        """Define the functions of a query; returns its text with calls of them. OperatorError, by
        name, if an operator is missing."""
        text, functions = with_group_functions(query.sql, self._catalog)
        for one in functions:
            for call in lazy_column(one.definition).calls:
                self._found.find(call.operator)
            types = [one.table.columns[i].type for i in one.definition.reads]
            self._oracle.define_function(one.name, types, self._function(one))
        return text

    def excuse(self, subscription: int, query: Query) -> str:
        """Why a content may differ from the results of the current operators; empty if it may
        not."""
        called = {call.operator for call in calls_of(query)}
        changed = sorted(one for one in called if self._found.journal.has_changed(one))
        if changed:
            names = ", ".join(changed)
            return f"rows are as earlier versions of {names} said, until they change"
        with Registry(self._home, catch_up=False) as registry:
            if called and subscription in rows_left_out(self._copies, registry):
                return "operators failed on rows when it began (penstock quarantine HOME list)"
        return ""

    @property
    def _found(self) -> HomeOperators:
        if self._operators is None:
            self._operators = HomeOperators(lambda: self._catalog, self._copies)
        return self._operators

    def _function(self, one: GroupFunction) -> Function:
        definition, table = one

        def function(given: tuple[Outside, ...]) -> object:
            values: list[object] = [None] * len(table.columns)
            for position, value in zip(definition.reads, given, strict=True):
                kind = table.columns[position].type
                values[position] = None if value is None else kind.store(value)
            row: Row = tuple(values)  # type: ignore[arg-type]  # stored, each by its own type
            ((known, _),) = self._found.runtime.values_of([definition], table, [row])
            return known.get(definition)

        return function

    def close(self) -> None:
        if self._operators is not None:
            self._operators.close()
