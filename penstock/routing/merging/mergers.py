"""Finding mergers among similar interests.

Candidates differ little: *siblings* agree in all but one dimension (on diagrams, these are the
roots of one diagram with the same attribute; figure 10 of the paper says "different", its text "the
same"), *neighbours* are adjacent when all interests of a space are sorted. Perfect mergers are made
until there are none; imperfect ones, the cheapest first, as long as the threshold (IMT) allows
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TypeAlias

from penstock.routing.interests import Interest, name_of
from penstock.routing.merging.measures import Measure
from penstock.routing.merging.rules import IMPERFECT_RULES, PERFECT_RULES, MergeRule

MAX_PARTS = 1_000
"""Maximum parts of a merger: withdrawing one of them sends all others again."""
_NEIGHBOURS = 2
"""Candidates on either side, in each sort order."""
_MAX_ROUNDS = 24
"""Maximum rounds: each halves the number of parts, so this is enough for a million parts."""


@dataclass(frozen=True, slots=True)
class Merger:
    interest: Interest
    parts: Mapping[int, Interest]

    @property
    def name(self) -> int:
        return name_of(self.interest)


_Key: TypeAlias = tuple[object, ...]


def find_mergers(
    interests: Mapping[int, Interest],
    *,
    measure: Measure | None = None,
    threshold: float = 0.0,
    advertised: Sequence[Interest] = (),
    rules: Sequence[MergeRule] = IMPERFECT_RULES,
    originals: Mapping[int, Sequence[Interest]] | None = None,
) -> list[Merger]:
    """Disjoint mergers of at least two interests each. For interests that are imperfect mergers
    themselves, `originals` has their parts by name: false positives are measured against these.

    Without a measure, or with a threshold of 0, only perfect ones (and, with advertisements, those
    that no advertised publication can distinguish from perfect ones).
    """
    groups = [Merger(interest, {name: interest}) for name, interest in interests.items()]
    groups = _perfect(groups)
    if measure is not None and (threshold > 0 or advertised):
        found = _Imperfect(groups, measure, threshold, advertised, rules, originals or {})
        groups = found.merge()
    return [group for group in groups if len(group.parts) > 1]


def _perfect(groups: list[Merger]) -> list[Merger]:
    """Merge siblings along one dimension after the other, until nothing changes."""
    before = len(groups) + 1
    while len(groups) < before:
        before = len(groups)
        for dimension in sorted({d for group in groups for d in _dimensions(group.interest)}):
            groups = _merge_along(groups, dimension)
    return groups


def _dimensions(interest: Interest) -> Iterable[_Key]:
    yield from ((0, column) for column, _ in interest.base)
    for i in range(len(interest.bounds)):
        yield 1, i
        yield 2, i


def _merge_along(groups: list[Merger], dimension: _Key) -> list[Merger]:
    siblings: dict[_Key, list[Merger]] = {}
    rest: list[Merger] = []
    for group in groups:
        key = _without(group.interest, dimension)
        if key is None:
            rest.append(group)
        else:
            siblings.setdefault(key, []).append(group)
    for family in siblings.values():
        rest += _merge_row(family, dimension)
    return rest


def _without(interest: Interest, dimension: _Key) -> _Key | None:
    """The interest in all other dimensions, which is equal for siblings."""
    kind, number = dimension
    assert isinstance(number, int)
    if kind == 0:
        kept = tuple(pair for pair in interest.base if pair[0] != number)
        if len(kept) == len(interest.base):
            return None
        return (interest.space, kept, interest.bounds, interest.numbers)
    ends = slice(2) if kind == 2 else slice(2, 4)
    bounds = (
        *interest.bounds[:number],
        interest.bounds[number][ends],
        *interest.bounds[number + 1 :],
    )
    return (interest.space, interest.base, bounds, interest.numbers)


def _merge_row(family: list[Merger], dimension: _Key) -> list[Merger]:
    """Merge siblings, sorted by their low ends in the dimension in which they differ."""
    if len(family) == 1:
        return family
    merged: list[Merger] = []
    for group in sorted(family, key=lambda one: _range(one.interest, dimension)):
        if merged and len(merged[-1].parts) + len(group.parts) <= MAX_PARTS:
            found = _first(PERFECT_RULES, merged[-1].interest, group.interest)
            if found is not None:
                merged[-1] = Merger(found, {**merged[-1].parts, **group.parts})
                continue
        merged.append(group)
    return merged


def _range(interest: Interest, dimension: _Key) -> _Key:
    kind, number = dimension
    assert isinstance(number, int)
    if kind == 0:
        return next(interval for column, interval in interest.base if column == number)
    return interest.bounds[number][:2] if kind == 1 else interest.bounds[number][2:]


def _first(rules: Iterable[MergeRule], one: Interest, other: Interest) -> Interest | None:
    return next((found for rule in rules if (found := rule(one, other)) is not None), None)


class _Imperfect:
    """Merges disjoint pairs in rounds, the cheapest first, until no pair is allowed."""

    def __init__(
        self,
        groups: list[Merger],
        measure: Measure,
        threshold: float,
        advertised: Sequence[Interest],
        rules: Sequence[MergeRule],
        originals: Mapping[int, Sequence[Interest]],
    ) -> None:
        self._originals = originals
        self._measure = measure
        self._threshold = threshold
        self._advertised = advertised
        self._rules = rules
        self._known: dict[tuple[int, int], tuple[float, Interest] | None] = {}
        """Cached mergers of pairs of groups, by number: most are needed again in the next round."""
        self._numbers = count(len(groups))
        self._numbered = dict(enumerate(groups))

    def merge(self) -> list[Merger]:
        for _ in range(_MAX_ROUNDS):
            chosen = self._chosen()
            if not chosen:
                break
            for (one, other), merged in chosen.items():
                parts = {**self._numbered.pop(one).parts, **self._numbered.pop(other).parts}
                self._numbered[next(self._numbers)] = Merger(merged, parts)
        return list(self._numbered.values())

    def _chosen(self) -> dict[tuple[int, int], Interest]:
        """Disjoint pairs and their mergers."""
        costs, known = [], dict[tuple[int, int], tuple[float, Interest] | None]()
        for pair in self._candidates():
            best = self._known[pair] if pair in self._known else self._best(*pair)
            known[pair] = best
            if best is not None:
                costs.append((best[0], pair, best[1]))
        self._known = known
        chosen: dict[tuple[int, int], Interest] = {}
        taken: set[int] = set()
        for _, pair, merged in sorted(costs, key=lambda cost: cost[:2]):
            if taken.isdisjoint(pair):
                taken.update(pair)
                chosen[pair] = merged
        return chosen

    def _candidates(self) -> Iterable[tuple[int, int]]:
        """Neighbours in the order of each dimension, among those that bound the same columns."""
        alike: dict[_Key, list[int]] = {}
        for number, group in self._numbered.items():
            interest = group.interest
            columns = tuple(column for column, _ in interest.base)
            alike.setdefault((interest.space, interest.numbers, columns), []).append(number)
        seen: set[tuple[int, int]] = set()
        for numbers in alike.values():
            for dimension in _dimensions(self._numbered[numbers[0]].interest):
                keys = {number: self._order(number, dimension) for number in numbers}
                ordered = sorted(numbers, key=keys.__getitem__)
                for step in range(1, _NEIGHBOURS + 1):
                    seen.update(zip(ordered, ordered[step:], strict=False))
        return sorted({(min(pair), max(pair)) for pair in seen})

    def _order(self, number: int, dimension: _Key) -> _Key:
        """Sorts by all other dimensions, then by this one: siblings are neighbours."""
        interest = self._numbered[number].interest
        return _without(interest, dimension), _range(interest, dimension)

    def _best(self, one: int, other: int) -> tuple[float, Interest] | None:
        first, second = self._numbered[one], self._numbered[other]
        if len(first.parts) + len(second.parts) > MAX_PARTS:
            return None
        pairs = (*first.parts.items(), *second.parts.items())
        parts = [each for name, part in pairs for each in self._originals.get(name, (part,))]
        best: tuple[float, Interest] | None = None
        for rule in self._rules:
            merged = rule(first.interest, second.interest)
            if merged is None:
                continue
            cost = self._measure.measured(merged, parts, self._advertised).threshold
            if cost <= self._threshold and (best is None or cost < best[0]):
                best = (cost, merged)
        return best
