"""Interests as boxes in flat dimensions, and messages as probes into them.

Every part of an interest is a pair of cuts: the interval over a base column, the two cuts that a
low end lies between, the same for a high end, the subscription numbers. A probe gives for some of
these dimensions the highest low end and the lowest high end that an interest may have. "Contains
this value", "meets this reach" and "covers that interest" are then one comparison each, and one
index answers them all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from penstock.catalog import Relation, Row
from penstock.messages import ANY_FILTER, Envelope, Message, Reach, Reaches
from penstock.predicates.intervals import EVERYTHING, TOP, Cut, Interval, above, below
from penstock.routing.interests import Interest, SpaceShape

Sides: TypeAlias = dict[int, Interval]
"""By dimension; unbounded dimensions are left out."""
Probe: TypeAlias = dict[int, tuple[Cut, Cut]]
"""By dimension: begins no higher than the first cut, ends no lower than the second."""

NUMBERS = -1


def low_end(filter_column: int) -> int:
    return -2 - 2 * filter_column


def high_end(filter_column: int) -> int:
    return -3 - 2 * filter_column


def sides_of(interest: Interest, shape: SpaceShape) -> Sides:
    sides: Sides = dict(interest.base)
    if not shape.is_selection:
        for i, (low_from, low_to, high_from, high_to) in enumerate(interest.bounds):
            sides[low_end(i)] = Interval(low_from, low_to)
            sides[high_end(i)] = Interval(high_from, high_to)
    if interest.numbers != EVERYTHING:
        sides[NUMBERS] = interest.numbers
    return sides


def admits(sides: Mapping[int, Interval], probe: Probe) -> bool:
    for dimension, (low, high) in sides.items():
        asked = probe.get(dimension)
        if asked is not None and (low > asked[0] or high < asked[1]):
            return False
    return True


def lies_within(sides: Mapping[int, Interval], outer: Sides) -> bool:
    """Whether a box lies within another one."""
    return all(i.covers(sides.get(dimension, EVERYTHING)) for dimension, i in outer.items())


def cover_probe(sides: Sides, dimensions: Mapping[int, object]) -> Probe:
    """The probe for covers of an interest, among interests that bound these dimensions."""
    return {d: sides.get(d, EVERYTHING) for d in dimensions}


def message_probes(
    message: Message, shape: SpaceShape, columns: Mapping[int, object]
) -> Iterator[Probe]:
    """An interest that is concerned admits one of these; `columns` are all bounded dimensions."""
    base = shape.base
    if message.recipients:
        yield from _probes_by_name(message, shape, columns)
        return
    since: Probe = {NUMBERS: (TOP, above(message.since))} if message.since else {}
    if message.row is not None and message.upsert:
        probe = _row_probe(message.row, base, columns) | since
        yield from _region_probes(message.upsert, probe, shape)
    if message.remove:
        probe = _row_probe(message.row_before(base), base, columns) | since
        yield from _region_probes(message.remove, probe, shape)


def _probes_by_name(
    message: Message, shape: SpaceShape, columns: Mapping[int, object]
) -> Iterator[Probe]:
    row: Probe = {}
    if message.row is not None or message.old is not None:
        known = message.row if message.row is not None else message.row_before(shape.base)
        row = _row_probe(known, shape.base, columns)
    if NUMBERS not in columns:
        yield row
        return
    for number in sorted({one.subscription for one in message.recipients}):
        yield {**row, NUMBERS: (below(number), above(number))}


def _row_probe(row: Row, base: Relation, columns: Mapping[int, object]) -> Probe:
    probe: Probe = {}
    for column in columns:
        if column < 0:
            continue
        if column >= len(row):
            probe[column] = EVERYTHING  # absent: only interests that do not bound it pass
            continue
        value = row[column]
        key = None if value is None else base.columns[column].type.key(value)
        probe[column] = (below(key), above(key))
    return probe


def _region_probes(reaches: Reaches, row: Probe, shape: SpaceShape) -> Iterator[Probe]:
    if shape.is_selection or ANY_FILTER in reaches:
        if reaches:
            yield row
        return
    for reach in reaches:
        probe = dict(row)
        columns = reach.reaches if isinstance(reach, Envelope) else (reach,)
        for i, one in enumerate(columns):
            _add_ends(probe, i, one)
        yield probe


def _add_ends(probe: Probe, filter_column: int, reach: Reach) -> None:
    probe[low_end(filter_column)] = (reach.low_to, reach.low_from)
    probe[high_end(filter_column)] = (reach.high_to, reach.high_from)


def is_approximate(message: Message) -> bool:
    """Whether the probes of a message may find too many interests: those that only excluded
    vectors rule out."""
    return any(
        isinstance(one, Envelope) and one.without for one in (*message.upsert, *message.remove)
    )
