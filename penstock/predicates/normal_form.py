"""From a condition over several tables to branches: one box per table each, any of which may hold.

NOT has been pushed into the atoms before; what arrives here is AND and OR over atoms, and an atom
is a union of intervals on one column of one node. Atoms on one column are combined before
anything is multiplied out, so `x IN (...)`, `x NOT IN (...)` and ranges of all kinds stay cheap;
only ANDed ORs over different columns multiply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from penstock.predicates.boxes import Box, as_branch
from penstock.predicates.simplify import Place, Product, simplify, split_count
from penstock.predicates.unions import ANY_VALUE, Union, intersect_unions, union

MAX_BRANCHES = 1_024
MAX_STEPS = 2_000_000  # intersections of two products, about a microsecond each


@dataclass(frozen=True, slots=True)
class Atom:
    """The value at `place` (node, column) is in a union of intervals."""

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


class TooManyBranches(Exception):
    """The condition needs more branches than allowed: at least `count`."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.count = count


@dataclass
class Findings:
    """Columns on which ANDed parts exclude each other, or ORed parts leave no value out."""

    contradictions: list[Place] = field(default_factory=list)
    tautologies: list[tuple[Place, Union]] = field(default_factory=list)


def branches_of(
    condition: Condition, nodes: int, findings: Findings | None = None
) -> tuple[tuple[Box, ...], ...]:
    """The condition as a union of branches, simplified and sorted; TooManyBranches if it is big."""
    products = _Multiplier(findings or Findings()).products(condition)
    count = sum(map(split_count, products))
    if count > MAX_BRANCHES * 16:
        raise TooManyBranches(count)
    boxes = simplify(products, split=True)
    if len(boxes) > MAX_BRANCHES:
        raise TooManyBranches(len(boxes))
    return tuple(as_branch(product, nodes) for product in boxes)


class _Multiplier:
    """Turns AND over OR into OR over AND, within a budget of steps."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.steps = 0

    def products(self, condition: Condition) -> list[Product]:
        if isinstance(condition, Atom):
            return _product({condition.place: condition.values})
        if isinstance(condition, Some):
            return self._any_of(condition.parts)
        return self._all_of(condition.parts)

    def _any_of(self, parts: Sequence[Condition]) -> list[Product]:
        atoms, others = _sorted_out(parts)
        found: list[Product] = []
        for place, unions in atoms.items():
            values = union(interval for one in unions for interval in one)
            if values not in unions and values[-1:] == values and values[0].high == values[-1].high:
                self._note_tautology(place, values)
            found += _product({place: values})
        for part in others:
            found += self.products(part)
        return simplify(found)

    def _all_of(self, parts: Sequence[Condition]) -> list[Product]:
        atoms, others = _sorted_out(parts)
        limits: dict[Place, Union] = {}
        for place, unions in atoms.items():
            limits[place] = _fold(intersect_unions, unions)
            if not limits[place] and all(unions):
                self.findings.contradictions.append(place)
        found = _product(limits)
        for factor in sorted((self.products(part) for part in others), key=len):
            found = self._multiply(found, factor)
        return found

    def _multiply(self, one: list[Product], other: list[Product]) -> list[Product]:
        self.steps += len(one) * len(other)
        if self.steps > MAX_STEPS:
            raise TooManyBranches(MAX_BRANCHES + 1)
        both = simplify(p for a in one for b in other for p in _intersection(a, b))
        if len(both) > MAX_BRANCHES:
            raise TooManyBranches(len(both))
        return both

    def _note_tautology(self, place: Place, values: Union) -> None:
        if values[0].high == (3,) and len(values[0].low) == 1:
            self.findings.tautologies.append((place, values))


def _sorted_out(parts: Iterable[Condition]) -> tuple[dict[Place, list[Union]], list[Condition]]:
    """Atoms by place, and everything that is not an atom."""
    atoms: dict[Place, list[Union]] = {}
    others: list[Condition] = []
    for part in parts:
        if isinstance(part, Atom):
            atoms.setdefault(part.place, []).append(part.values)
        else:
            others.append(part)
    return atoms, others


def _fold(combine: Callable[[Union, Union], Union], unions: Sequence[Union]) -> Union:
    """Combined pairwise, so that a thousand small unions do not cost a thousand big steps."""
    while len(unions) > 1:
        pairs = [combine(a, b) for a, b in zip(unions[::2], unions[1::2], strict=False)]
        unions = [*pairs, unions[-1]] if len(unions) % 2 else pairs
    return unions[0]


def _product(limits: dict[Place, Union]) -> list[Product]:
    """One product, or none if a place is left without values."""
    if not all(limits.values()):
        return []
    return [tuple(sorted((p, u) for p, u in limits.items() if u != ANY_VALUE))]


def _intersection(one: Product, other: Product) -> list[Product]:
    limits = dict(one)
    for place, values in other:
        limits[place] = intersect_unions(limits.get(place, ANY_VALUE), values)
    return _product(limits)
