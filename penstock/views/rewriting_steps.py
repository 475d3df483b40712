"""The steps of a rewriting plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Scan:
    """Read the rows of an input; `places[i]` is the query node of the view's node i."""

    input: int
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class IdJoin:
    """Join with a scan: equal ids at nodes that both have."""

    scan: Scan
    on: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StructuralJoin:
    """Join with a scan: its node is a descendant (or ancestor) of a known node, at any depth."""

    scan: Scan
    above: int
    below: int
    above_is_known: bool


@dataclass(frozen=True, slots=True)
class CrossJoin:
    """Join with a scan that is not connected yet."""

    scan: Scan


@dataclass(frozen=True, slots=True)
class SelectEdge:
    """Keep rows where a node is below its parent as the query requires."""

    node: int


@dataclass(frozen=True, slots=True)
class SelectValue:
    """Keep rows where a node's value satisfies the query's predicate."""

    node: int


@dataclass(frozen=True, slots=True)
class Navigate:
    """Evaluate the part of the query below a node inside that node's content."""

    node: int


Step: TypeAlias = Scan | IdJoin | StructuralJoin | CrossJoin | SelectEdge | SelectValue | Navigate
