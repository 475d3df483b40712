"""Conditions in canonical form, so that equal conditions compare equal."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.catalog import Relation
from penstock.predicates.boxes import Box, is_empty
from penstock.predicates.intervals import EVERYTHING, Interval, normalise

_MOST_REMEMBERED = 100_000
"""Cached intervals, about 20 MB; the cache is cleared when it exceeds this."""


class Spelling:
    """Normalises boxes and caches normalised intervals, most of which recur."""

    def __init__(self, relation: Relation) -> None:
        self._types = [column.type for column in relation.columns]
        self._known: dict[tuple[int, Interval], Interval] = {}

    def distinct(self, boxes: Sequence[Box]) -> list[Box]:
        """The distinct non-empty boxes, with normalised intervals."""
        spelled = dict.fromkeys(self._box(one) for one in boxes)
        return [one for one in spelled if not is_empty(one)]

    def _box(self, one: Box) -> Box:
        intervals = [(predicate[0], self._interval(predicate)) for predicate in one]
        return tuple((column, i) for column, i in intervals if i != EVERYTHING)

    def _interval(self, predicate: tuple[int, Interval]) -> Interval:
        spelled = self._known.get(predicate)
        if spelled is None:
            if len(self._known) >= _MOST_REMEMBERED:
                self._known.clear()
            column, interval = predicate
            spelled = self._known[predicate] = normalise(interval, self._types[column])
        return spelled
