"""Decompositions of a query by number: contents must not depend on which one is used."""

from __future__ import annotations

from random import Random

from penstock.query import Query
from penstock.spaces import Decomposition, candidates


def numbered_decomposition(query: Query, number: int) -> Decomposition:
    """One of the query's decompositions; the same number gives the same one."""
    if len(query.nodes) == 1:
        return ()
    draw = Random(number)
    return tuple(
        tuple(draw.choice(list(candidates(query, b, node))) for node in range(len(query.nodes)))
        for b in range(len(query.branches))
    )
