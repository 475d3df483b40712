"""Making a union of products smaller without changing what it means.

A *product* maps places (table, column) to unions of intervals: the value at each place must be in
its union; other places are free. Two rules are repeated until nothing changes:

* products that differ in one place only are merged, with the union of both there;
* a product inside another one is dropped.

Both rules work on all products at once (by grouping, and by bit masks of coverers), and on pairs
only for products with the same bounds: thousands of plain products cost a fraction of a second.
More expensive inputs are refused (`penstock.predicates.budget`). The result does not depend on the
order of the products.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from penstock.predicates.budget import Budget
from penstock.predicates.intervals import EVERYTHING, Interval
from penstock.predicates.masks import IntervalMasks, bits
from penstock.predicates.unions import (
    ANY_BUT_NULL,
    ANY_VALUE,
    Union,
    hull_of,
    union,
    union_covers,
)

Place: TypeAlias = tuple[int, int]
Product: TypeAlias = tuple[tuple[Place, Union], ...]
"""Sorted by place, without free places, without empty unions."""


_PASS_STEPS = 8
"""Steps of merging and of searching coverers, for each place and interval."""


def is_free(place: Place, values: Union, never_null: frozenset[Place]) -> bool:
    """Whether a limit admits all values, given the places that are never NULL."""
    return values == ANY_VALUE or (values == ANY_BUT_NULL and place in never_null)


def simplify(
    products: Iterable[Product],
    never_null: frozenset[Place] = frozenset(),
    *,
    split: bool = False,
    budget: Budget | None = None,
) -> list[Product]:
    """The same union of products with fewer of them, sorted.

    With `split`, every union in the result is a single interval, as boxes need it. TooComplexError
    if it takes more than the budget.
    """
    budget = budget or Budget()
    distinct = set(_split_all(products) if split else products)
    common, kept = _factored(distinct)
    while True:
        before = len(kept)
        budget.spend(_PASS_STEPS * sum(map(weight, kept)))
        kept = _without_covered(_Merger(kept, never_null, split).merged(), budget)
        if len(kept) == before:
            break
    return sorted(tuple(sorted((*common, *product))) for product in kept)


def _factored(products: set[Product]) -> tuple[set[tuple[Place, Union]], list[Product]]:
    """The limits that all products share, and the products without them."""
    if len(products) < 2:
        return set(), list(products)
    common = set.intersection(*map(set, products))
    if not common:
        return common, list(products)
    return common, [tuple(i for i in product if i not in common) for product in products]


def weight(product: Product) -> int:
    """The steps to read a product: one for each place, and for each interval."""
    return len(product) + sum(len(values) for _, values in product)


def split_count(product: Product) -> int:
    """The number of single-interval products that this one splits into."""
    return math.prod(len(values) for _, values in product)


def _split_all(products: Iterable[Product]) -> Iterator[Product]:
    for product in products:
        choices = [[(place, (value,)) for value in values] for place, values in product]
        yield from itertools.product(*choices)


class _Merger:
    """Merges products that agree in all places but one, place after place.

    Products are identified by number. The hash of a product without one place is derived from the
    hash of the whole by removing that item, so long products are compared only if hashes agree.
    """

    def __init__(
        self, products: Sequence[Product], never_null: frozenset[Place], split: bool
    ) -> None:
        self.never_null = never_null
        self.split = split
        self.products: list[Product] = []
        self.hashes: list[int] = []
        self.alive: dict[int, Product] = {}
        self.numbers: dict[int, list[int]] = {}  # by hash
        self.limited: dict[Place, list[tuple[int, Union]]] = {}
        for product in products:
            self._add(product)

    def merged(self) -> list[Product]:
        for place in sorted(self.limited):
            for group in self._groups(place):
                self._merge(place, group)
        return list(self.alive.values())

    def _add(self, product: Product) -> None:
        number = len(self.products)
        self.products.append(product)
        self.hashes.append(_hash(product))
        self.alive[number] = product
        self.numbers.setdefault(self.hashes[number], []).append(number)
        for place, values in product:
            self.limited.setdefault(place, []).append((number, values))

    def _groups(self, place: Place) -> list[list[tuple[int, Union]]]:
        """Groups of products that may differ in this place only; of one, if its rest may exist."""
        groups: dict[int, list[tuple[int, Union]]] = {}
        for number, values in self.limited[place]:
            if number in self.alive:
                rest = self.hashes[number] ^ hash((place, values))
                groups.setdefault(rest, []).append((number, values))
        return [group for rest, group in groups.items() if len(group) > 1 or rest in self.numbers]

    def _merge(self, place: Place, group: list[tuple[int, Union]]) -> None:
        by_rest: dict[Product, list[tuple[int, Union]]] = {}
        for number, values in group:
            rest = tuple(item for item in self.products[number] if item[0] != place)
            by_rest.setdefault(rest, []).append((number, values))
        for rest, members in by_rest.items():
            if self._is_alive(rest):  # free in this place, so it covers the group
                fewer: list[Product] = []
            else:
                values = union(interval for _, one in members for interval in one)
                fewer = self._limited(rest, place, values)
            if len(fewer) < len(members):
                for number, _ in members:
                    del self.alive[number]
                for product in fewer:
                    self._add(product)

    def _limited(self, rest: Product, place: Place, values: Union) -> list[Product]:
        """The rest with a limit at `place`; with `split`, one product for each interval."""
        if is_free(place, values, self.never_null):
            return [rest]
        parts: list[Union] = [(interval,) for interval in values] if self.split else [values]
        return [tuple(sorted((*rest, (place, part)))) for part in parts]

    def _is_alive(self, product: Product) -> bool:
        numbers = self.numbers.get(_hash(product), [])
        return any(n in self.alive and self.products[n] == product for n in numbers)


def _hash(product: Product) -> int:
    combined = 0
    for item in product:
        combined ^= hash(item)
    return combined


def _without_covered(products: Sequence[Product], budget: Budget) -> list[Product]:
    """The products that are not inside another one; the input must have no duplicates."""
    flat = [dict(product) for product in products]
    masks = coverers([{place: hull_of(u) for place, u in one.items()} for one in flat])
    return [
        product for i, product in enumerate(products) if not _is_covered(i, masks[i], flat, budget)
    ]


def _is_covered(i: int, mask: int, flat: Sequence[Mapping[Place, Union]], budget: Budget) -> bool:
    """Whether another product of the mask covers product `i`. The hulls of all of them cover its
    hull, but unions with the same hull may have different gaps."""
    steps = weight(tuple(flat[i].items()))
    for j in bits(mask):
        budget.spend(steps)
        if j != i and _covers(flat[j], flat[i]):
            return True
    return False


def _covers(one: Mapping[Place, Union], other: Mapping[Place, Union]) -> bool:
    return all(union_covers(u, other.get(place, ANY_VALUE)) for place, u in one.items())


def coverers(boxes: Sequence[Mapping[Place, Interval]]) -> list[int]:
    """For each box, a bit mask of the boxes that cover it (itself among them).

    A box that is free in a place covers all others there.
    """
    limits: dict[Place, dict[int, Interval]] = {}
    for i, one in enumerate(boxes):
        for place, interval in one.items():
            limits.setdefault(place, {})[i] = interval
    masks = [(1 << len(boxes)) - 1] * len(boxes)
    for of_place in limits.values():
        known = IntervalMasks(of_place, len(boxes))
        for i in range(len(boxes)):
            masks[i] &= known.covering(*of_place.get(i, EVERYTHING))
    return masks
