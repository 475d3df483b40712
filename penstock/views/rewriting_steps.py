"""The steps of a rewriting: what a plan is made of."""

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
    """Join with a scan: equal ids at nodes that both know."""

    scan: Scan
    on: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StructuralJoin:
    """Join with a scan: its node lies below (or above) a node that is known, at any depth."""

    scan: Scan
    above: int
    below: int
    above_is_known: bool


@dataclass(frozen=True, slots=True)
class CrossJoin:
    """Join with a scan that nothing connects yet."""

    scan: Scan


@dataclass(frozen=True, slots=True)
class SelectEdge:
    """Keep rows where a node lies below its parent as the query asks."""

    node: int


@dataclass(frozen=True, slots=True)
class SelectValue:
    """Keep rows where a node's value passes the query's predicate."""

    node: int


@dataclass(frozen=True, slots=True)
class Navigate:
    """Evaluate the part of the query below a node inside that node's content."""

    node: int


Step: TypeAlias = Scan | IdJoin | StructuralJoin | CrossJoin | SelectEdge | SelectValue | Navigate
