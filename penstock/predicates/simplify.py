"""Making a union of products smaller without changing what it means.

A *product* maps places (any sortable name of an attribute) to unions of intervals: a value must
be in the union of every place; places that are not named are free. Two rules are repeated until
nothing changes:

* products that differ in one place only become one product, with the union of both there;
* a product inside another one goes.

Both rules look at all products at once (grouping by the rest, bit masks of coverers) rather than
at every pair, so that a thousand products cost milliseconds.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from penstock.predicates.intervals import EVERYTHING, Cut, Interval
from penstock.predicates.unions import ANY_VALUE, Union, hull_of, union, union_covers

Place: TypeAlias = tuple[int, int]
Product: TypeAlias = tuple[tuple[Place, Union], ...]
"""Sorted by place; without places that are free; without empty unions."""


def simplify(products: Iterable[Product], *, split: bool = False) -> list[Product]:
    """The same union of products with fewer of them, sorted.

    With `split`, every union in the result is a single interval, as boxes need it.
    """
    kept = sorted(set(_split_all(products) if split else products))
    while True:
        before = len(kept)
        for place in sorted({place for product in kept for place, _ in product}):
            kept = _merge_along(place, kept, split)
        kept = _without_covered(kept)
        if len(kept) == before:
            return sorted(kept)


def split_count(product: Product) -> int:
    """How many products of single intervals this one is."""
    count = 1
    for _, values in product:
        count *= len(values)
    return count


def _split_all(products: Iterable[Product]) -> Iterable[Product]:
    for product in products:
        partial: list[Product] = [()]
        for place, values in product:
            partial = [(*head, (place, (value,))) for head in partial for value in values]
        yield from partial


def _merge_along(place: Place, products: Sequence[Product], split: bool) -> list[Product]:
    """Products that agree everywhere but at `place` become one (or, split, one per interval)."""
    groups: dict[Product, list[Union]] = {}
    for product in products:
        rest = tuple(item for item in product if item[0] != place)
        values = ANY_VALUE if len(rest) == len(product) else dict(product)[place]
        groups.setdefault(rest, []).append(values)
    merged: list[Product] = []
    for rest, unions in groups.items():
        values = union(interval for one in unions for interval in one)
        for part in [(interval,) for interval in values] if split else [values]:
            free = part == ANY_VALUE
            merged.append(rest if free else tuple(sorted((*rest, (place, part)))))
    return merged


def _without_covered(products: Sequence[Product]) -> list[Product]:
    flat = [dict(product) for product in products]
    kept: list[Product] = []
    for i, mask in enumerate(coverers([{p: hull_of(u) for p, u in one.items()} for one in flat])):
        mask &= ~(1 << i)
        covered = False
        while mask and not covered:
            lowest = mask & -mask
            covered = _covers(flat[lowest.bit_length() - 1], flat[i])
            mask ^= lowest
        if not covered:
            kept.append(products[i])
    return kept


def _covers(one: dict[Place, Union], other: dict[Place, Union]) -> bool:
    return all(union_covers(u, other.get(place, ANY_VALUE)) for place, u in one.items())


def coverers(boxes: Sequence[dict[Place, Interval]]) -> list[int]:
    """For each box, a bit mask of the boxes that cover it (itself among them)."""
    masks = [(1 << len(boxes)) - 1] * len(boxes)
    for place in {place for one in boxes for place in one}:
        intervals = [one.get(place, EVERYTHING) for one in boxes]
        starts_by = _counting([interval.low for interval in intervals], bisect_right)
        ends_before = _counting([interval.high for interval in intervals], bisect_left)
        for i, interval in enumerate(intervals):
            masks[i] &= starts_by(interval.low) & ~ends_before(interval.high)
    return masks


def _counting(
    cuts: Sequence[Cut], bisect: Callable[[Sequence[Cut], Cut], int]
) -> Callable[[Cut], int]:
    """A function from a cut to the bit mask of the given cuts before it."""
    order = sorted(range(len(cuts)), key=cuts.__getitem__)
    ordered = [cuts[i] for i in order]
    prefixes = [0]
    for i in order:
        prefixes.append(prefixes[-1] | (1 << i))
    return lambda cut: prefixes[bisect(ordered, cut)]
