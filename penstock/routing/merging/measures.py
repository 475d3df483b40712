"""The probability that a publication concerns an interest, and the false positives of mergers.

The *imperfect degree* of a merger is the share of the publications that concern it and none of its
parts. With advertisements, only advertised publications count. Degree times probability is the
share of all publications that are false positives of the merger: the imperfect merging threshold
(IMT) of Li, Hou and Jacobsen (2005) bounds it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from penstock.messages import Message
from penstock.predicates.boxes import intersect as intersect_boxes
from penstock.predicates.intervals import EVERYTHING, Cut, Interval
from penstock.routing.interests import Interest, Shapes, SpaceShape
from penstock.routing.merging.samples import PublicationSample
from penstock.routing.merging.volumes import FlatBox, Range, union_volume
from penstock.routing.probes import Sides, sides_of

ENOUGH_MESSAGES = 100
"""With fewer messages, publications are assumed to be uniform."""


class Measured(NamedTuple):
    """Of a merger: the probability that it is concerned, and the share of false positives."""

    probability: float
    degree: float

    @property
    def threshold(self) -> float:
        return self.probability * self.degree


class Measure(Protocol):
    def measured(
        self, merger: Interest, parts: Sequence[Interest], advertised: Sequence[Interest]
    ) -> Measured: ...


def threshold_of(
    measure: Measure, merger: Interest, parts: Sequence[Interest], advertised: Sequence[Interest]
) -> float:
    """The smallest IMT that allows a merger. Without advertisements everything is advertised."""
    return measure.measured(merger, parts, advertised).threshold


class UniformMeasure:
    """Publications are uniform over the given ranges of keys. In a dimension without a range, or
    with non-numeric keys, parts that are narrower than the merger count as empty: such mergers look
    worse than they are, never better."""

    def __init__(self, shape: SpaceShape, ranges: Mapping[int, tuple[int, int]]) -> None:
        """`ranges` are the first and the last key of each dimension."""
        self._shape = shape
        self._ranges = ranges

    def measured(
        self, merger: Interest, parts: Sequence[Interest], advertised: Sequence[Interest]
    ) -> Measured:
        # Include dimensions that the parts bound and the merger does not.
        bounded = {d for part in parts for d in sides_of(part, self._shape)}
        outer = {**dict.fromkeys(bounded, EVERYTHING), **sides_of(merger, self._shape)}
        whole = self._clipped([merger], advertised, outer)
        volume = union_volume(whole)
        if not volume:
            return Measured(0.0, 0.0)
        filled = union_volume(self._clipped(parts, advertised, outer))
        return Measured(volume, max(0.0, 1.0 - filled / volume))

    def _clipped(
        self, interests: Sequence[Interest], advertised: Sequence[Interest], outer: Sides
    ) -> list[FlatBox]:
        if not advertised:
            return [self._flat(sides_of(one, self._shape), outer) for one in interests]
        return [
            self._flat(sides_of(both, self._shape), outer)
            for one in interests
            for other in advertised
            if (both := intersection(one, other)) is not None
        ]

    def _flat(self, sides: Sides, outer: Sides) -> FlatBox:
        dimensions = sorted(self._ranges.keys() | outer.keys())
        return tuple(
            self._flat_range(d, sides.get(d, EVERYTHING), outer.get(d, EVERYTHING))
            for d in dimensions
        )

    def _flat_range(self, dimension: int, interval: Interval, outer: Interval) -> Range:
        known = self._ranges.get(dimension)
        if known is None:
            return (0.0, 1.0) if interval.covers(outer) else (0.0, 0.0)
        first, last = known
        is_end = dimension < 0  # ends of filters lie between two cuts, inclusive
        low = _place(interval.low, first, last)
        high = _place(interval.high, first, last) + (0.5 if is_end else 0.0)
        size = last - first + 1
        return (max(0.0, min(1.0, low / size)), max(0.0, min(1.0, high / size)))


def _place(cut: Cut, first: int, last: int) -> float:
    """The number of keys of a range below a cut."""
    if len(cut) == 1:
        return 0.0 if cut[0] <= 1 else float(last - first + 1)
    key = cut[1]
    if not isinstance(key, int):
        return 0.0
    return float(key - first + cut[2])


class ObservedMeasure:
    """Measures on recent publications; until there are enough of them, uses another measure."""

    def __init__(self, shape: SpaceShape, fallback: Measure) -> None:
        self._fallback = fallback
        self._sample = PublicationSample(shape)

    def observe(self, message: Message) -> None:
        self._sample.observe(message)

    def measured(
        self, merger: Interest, parts: Sequence[Interest], advertised: Sequence[Interest]
    ) -> Measured:
        """All publications were advertised, so advertisements are ignored."""
        seen = len(self._sample)
        if seen < ENOUGH_MESSAGES:
            return self._fallback.measured(merger, parts, advertised)
        met = self._sample.concerned(merger)
        if not met:
            # Nothing seen for the merger: a small probability, and the degree of the fallback.
            degree = self._fallback.measured(merger, parts, advertised).degree
            return Measured(1 / (seen + 1), degree)
        in_vain = met & ~self._sample.concerned_by_any(parts)
        return Measured(met.bit_count() / seen, in_vain.bit_count() / met.bit_count())


class ObservedMeasures(Mapping[int, Measure]):
    """One measure for each space of a node, created on first use."""

    def __init__(self, shapes: Shapes, fallbacks: Mapping[int, Measure]) -> None:
        self._shapes, self._fallbacks = shapes, fallbacks
        self._made: dict[int, ObservedMeasure] = {}

    def __getitem__(self, space: int) -> ObservedMeasure:
        made = self._made.get(space)
        if made is None:
            shape = self._shapes[space]
            fallback = self._fallbacks.get(space) or UniformMeasure(shape, {})
            made = self._made[space] = ObservedMeasure(shape, fallback)
        return made

    def __iter__(self) -> Iterator[int]:
        return iter(self._shapes)

    def __len__(self) -> int:
        return len(self._shapes)

    def observe(self, message: Message) -> None:
        """Ignores messages to named recipients: they are initial content, not publications."""
        if not message.recipients and message.space in self._shapes:
            self[message.space].observe(message)


def intersection(one: Interest, other: Interest) -> Interest | None:
    if not one.meets(other):
        return None
    bounds = tuple(
        type(a)(max(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), min(a[3], b[3]))
        for a, b in zip(one.bounds, other.bounds, strict=True)
    )
    base = intersect_boxes(one.base, other.base)
    return Interest(one.space, base, bounds, one.numbers.intersect(other.numbers))
