"""A bound SELECT: what a subscription's text means against the catalog."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.catalog import Relation
from penstock.predicates.boxes import Box


@dataclass(frozen=True)
class Node:
    """One occurrence of a relation in FROM; a self-join has two nodes of one relation."""

    alias: str
    relation: Relation


@dataclass(frozen=True, slots=True)
class Join:
    """All equalities between two nodes: pairs of (column of left, column of right), sorted."""

    left: int
    right: int
    columns: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Output:
    """One column of the content, under the name the SELECT gives it."""

    label: str
    node: int
    column: int


@dataclass(frozen=True)
class Query:
    """Nodes joined by equalities, and the union of branches that rows must satisfy.

    A branch holds one box per node. A query without branches can never match; that is legal, and
    said in `warnings`. At most one Join connects two nodes, the smaller node on the left; the
    graph of joins is connected and may have cycles.
    """

    sql: str
    nodes: tuple[Node, ...]
    joins: tuple[Join, ...]
    branches: tuple[tuple[Box, ...], ...]
    outputs: tuple[Output, ...]
    warnings: tuple[str, ...] = ()
