"""Why a row does not match: the first predicate that fails, and a value that would have passed."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.catalog import Column, Key, Relation, Row
from penstock.matching.events import row_keys
from penstock.matching.interface import Failure, MatchExplanation
from penstock.predicates.boxes import Box
from penstock.predicates.intervals import (
    ABOVE_NULL,
    BOTTOM,
    TOP,
    Interval,
    describe,
    normalise,
    show_value,
)


def explain_boxes(
    relation: Relation, subscription: int, boxes: Sequence[Box], row: Row
) -> MatchExplanation:
    """The answer of every matcher's `explain`; predicates are tried in the order of a box."""
    keys = row_keys(relation, row)
    failures: list[Failure] = []
    for place, one in enumerate(boxes):
        failed = next(((c, i) for c, i in one if not i.contains(keys[c])), None)
        if failed is None:
            return MatchExplanation(subscription, place)
        column, interval = failed
        failures.append(_failure(place, relation.columns[column], interval, keys[column]))
    return MatchExplanation(subscription, None, tuple(failures))


def _failure(place: int, column: Column, interval: Interval, key: Key | None) -> Failure:
    value_type = column.type
    passing = passing_key(interval, column, key)
    shown: str | None = None
    if not interval.is_empty and passing is not _NONE:
        shown = "NULL" if passing is None else show_value(value_type.unkey(passing), value_type)
    stored = None if key is None else value_type.unkey(key)
    condition = describe(interval, column.name, value_type)
    return Failure(place, column.name, condition, show_value(stored, value_type), shown)


_NONE: Key = "\0no value passes"


def passing_key(interval: Interval, column: Column, key: Key | None) -> Key | None:
    """A key inside the interval, on the side where `key` lies if it can be named.

    NULL if only NULL passes; the marker `_NONE` if nothing does.
    """
    interval = normalise(interval, column.type)
    candidates: list[Key | None] = []
    for cut in (interval.low, interval.high):
        if len(cut) == 3:
            candidates += column.type.near_keys(cut[1])
    ordered: list[Key | None] = candidates
    if isinstance(key, int):
        distance = key
        ordered = sorted(candidates, key=lambda c: abs(c - distance) if isinstance(c, int) else 0)
    if interval.low in (BOTTOM, ABOVE_NULL) or interval.high == TOP:
        ordered = [*ordered, "" if column.type.stored_as is str else 0]
    return next((c for c in [*ordered, None] if interval.contains(c)), _NONE)
