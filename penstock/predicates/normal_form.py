"""From a condition over several tables to branches, a disjunction with one box per table each.

NOT has been pushed into the atoms before; the input is AND and OR over atoms, and an atom is a
union of intervals on one column of one table. Atoms on one column are combined before anything is
multiplied out, so `x IN (...)`, `x NOT IN (...)` and ranges of all kinds stay cheap; only ANDed ORs
over different columns multiply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from penstock.predicates.boxes import Box, as_branch
from penstock.predicates.budget import Budget, TooComplexError
from penstock.predicates.simplify import (
    Place,
    Product,
    is_free,
    simplify,
    split_count,
    weight,
)
from penstock.predicates.unions import ANY_BUT_NULL, ANY_VALUE, Union, intersect_unions, union

MAX_BRANCHES = 1_024
MAX_PARTIAL = 4 * MAX_BRANCHES
"""Maximum products held at a time: a few times more than allowed, before simplification."""
MAX_SIZE = 100_000
"""Maximum limits on columns in all products together."""
_INTERSECTION_STEPS = 2
"""Steps to intersect two products, in addition to those for their intervals."""


@dataclass(frozen=True, slots=True)
class Atom:
    """The value at `place` is in a union of intervals."""

    place: Place
    values: Union


@dataclass(frozen=True, slots=True)
class All:
    """AND; without parts, always true."""

    parts: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Some:
    """OR; without parts, never true."""

    parts: tuple[Condition, ...] = ()


Condition: TypeAlias = Atom | All | Some
TRUE = All()
FALSE = Some()


@dataclass(slots=True)
class Findings:
    """Columns on which ANDed parts contradict each other, or ORed parts cover all values."""

    contradictions: list[Place] = field(default_factory=list)
    tautologies: list[tuple[Place, Union]] = field(default_factory=list)


def branches_of(
    condition: Condition,
    tables: int,
    never_null: frozenset[Place] = frozenset(),
    findings: Findings | None = None,
    budget: Budget | None = None,
) -> tuple[tuple[Box, ...], ...]:
    """The condition as simplified, sorted branches; TooComplexError if there are too many."""
    budget = budget or Budget()
    products = _Multiplier(never_null, findings or Findings(), budget).products(condition)
    count = sum(map(split_count, products))
    size = sum(split_count(product) * len(product) for product in products)
    if count > MAX_PARTIAL or size > MAX_SIZE:
        raise TooComplexError(count, size)
    boxes = simplify(products, never_null, split=True, budget=budget)
    if len(boxes) > MAX_BRANCHES:
        raise TooComplexError(len(boxes))
    return tuple(as_branch(product, tables) for product in boxes)


class _Multiplier:
    """Distributes AND over OR, within a budget."""

    def __init__(self, never_null: frozenset[Place], findings: Findings, budget: Budget) -> None:
        self.never_null = never_null
        self.findings = findings
        self.budget = budget

    def products(self, condition: Condition) -> list[Product]:
        if isinstance(condition, Atom):
            return self._product({condition.place: condition.values})
        if isinstance(condition, Some):
            return self._any_of(condition.parts)
        return self._all_of(condition.parts)

    def _any_of(self, parts: Sequence[Condition]) -> list[Product]:
        atoms, others = _sorted_out(Some, parts)
        found: set[Product] = set()
        for place, unions in atoms.items():
            values = union(interval for one in unions for interval in one)
            if values in (ANY_VALUE, ANY_BUT_NULL) and values not in unions:
                self.findings.tautologies.append((place, values))
            found.update(self._product({place: values}))
        if not others and () not in found:
            return sorted(found)  # each limits a different column: none is inside another
        for part in others:
            found.update(self.products(part))
        return self._simplified(found)

    def _all_of(self, parts: Sequence[Condition]) -> list[Product]:
        atoms, others = _sorted_out(All, parts)
        limits: dict[Place, Union] = {}
        for place, unions in atoms.items():
            limits[place] = _fold(intersect_unions, unions)
            if not limits[place] and all(unions):
                self.findings.contradictions.append(place)
        found = self._product(limits)
        for factor in sorted((self.products(part) for part in others), key=len):
            found = self._multiply(found, factor)
        return found

    def _multiply(self, one: list[Product], other: list[Product]) -> list[Product]:
        intervals = len(other) * sum(map(weight, one)) + len(one) * sum(map(weight, other))
        self.budget.spend(_INTERSECTION_STEPS * len(one) * len(other) + intervals)
        found: set[Product] = set()
        for first in map(dict, one):
            both = (_intersection(first, second) for second in other)
            found.update(product for product in both if product is not None)
            if len(found) > MAX_PARTIAL:
                raise TooComplexError(len(found))
        return self._simplified(found)

    def _product(self, limits: dict[Place, Union]) -> list[Product]:
        """One product, or none if a place has no values left."""
        if not all(limits.values()):
            return []
        limited = ((p, u) for p, u in limits.items() if not is_free(p, u, self.never_null))
        return [tuple(sorted(limited))]

    def _simplified(self, products: set[Product]) -> list[Product]:
        size = sum(map(len, products))
        if size > MAX_SIZE:
            raise TooComplexError(len(products), size)
        simple = simplify(products, self.never_null, budget=self.budget)
        if len(simple) > MAX_BRANCHES:
            raise TooComplexError(len(simple))
        return simple


def _sorted_out(
    kind: type[All | Some], parts: Iterable[Condition]
) -> tuple[dict[Place, list[Union]], list[Condition]]:
    """The atoms by place, and all other parts; nested parts of the same kind are flattened."""
    atoms: dict[Place, list[Union]] = {}
    others: list[Condition] = []
    waiting = list(parts)
    while waiting:
        part = waiting.pop()
        if isinstance(part, Atom):
            atoms.setdefault(part.place, []).append(part.values)
        elif isinstance(part, kind):
            waiting += part.parts
        else:
            others.append(part)
    return atoms, others


def _fold(combine: Callable[[Union, Union], Union], unions: Sequence[Union]) -> Union:
    """Combine unions pairwise in a balanced tree, so that intermediate unions stay small."""
    while len(unions) > 1:
        pairs = [combine(a, b) for a, b in zip(unions[::2], unions[1::2], strict=False)]
        unions = [*pairs, unions[-1]] if len(unions) % 2 else pairs
    return unions[0]


def _intersection(one: dict[Place, Union], other: Product) -> Product | None:
    limits = one.copy()
    for place, values in other:
        known = one.get(place)
        if known is not None:
            values = intersect_unions(known, values)
            if not values:
                return None
        limits[place] = values
    return tuple(sorted(limits.items()))
