"""Validation of decompositions that callers pass in."""

from __future__ import annotations

from penstock.arguments import listed, shown, whole_number
from penstock.catalog.relations import MAX_COLUMNS
from penstock.errors import SubscriptionError
from penstock.predicates.normal_form import MAX_BRANCHES
from penstock.query import MAX_TABLES, Query
from penstock.spaces import Choice, Decomposition, fits, plain_decomposition

_HINT = "each node is filtered by a node it is joined with, over conditions it has"


def fitting(query: Query, chosen: object) -> Decomposition:
    """The decomposition, in plain integers; SubscriptionError if it does not fit the query."""
    rows = listed(chosen, "the branches of a decomposition", SubscriptionError, most=MAX_BRANCHES)
    plain = tuple(_row(row) for row in rows)
    if not fits(query, plain):
        raise SubscriptionError(
            "a decomposition that is none of the query",
            detail=f"{plain_decomposition(plain)}",
            hint=_HINT,
        )
    return plain


def _row(row: object) -> tuple[Choice, ...]:
    choices = listed(row, "the choices of a branch", SubscriptionError, most=MAX_TABLES)
    return tuple(map(_choice, choices))


def _choice(choice: object) -> Choice:
    if not isinstance(choice, tuple) or len(choice) != 2:
        raise SubscriptionError(
            f"a choice is a node and the columns that filter, not {shown(choice)}", hint=_HINT
        )
    neighbour, columns = choice
    node = whole_number(neighbour, "a node of a query", SubscriptionError, most=MAX_TABLES)
    numbers = listed(columns, "the columns of a choice", SubscriptionError, most=MAX_COLUMNS)
    what = "a column of a choice"
    return Choice(
        node,
        tuple(whole_number(one, what, SubscriptionError, most=MAX_COLUMNS) for one in numbers),
    )
