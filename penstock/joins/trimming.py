"""Dropping messages that no point needs.

Gap shadows use one base column. If points constrain several, a row may be excluded by another
column; for a join value that many rows share, most messages would be such.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from penstock.joins.group import KeyedRow
from penstock.joins.points import SpacePoints
from penstock.messages import AnyMessage, Message, MessageBatch

TESTED_POINTS = 1_000
"""Up to this many points, testing a row (10 us) costs less than encoding its message."""


def drop_needless(
    messages: Iterable[AnyMessage], spaces: Iterable[SpacePoints]
) -> Iterator[AnyMessage]:
    """The messages whose rows some point of their space selects."""
    tested = {
        points.space.id: points
        for points in spaces
        if points.constrained_columns > 1 and len(points) <= TESTED_POINTS
    }
    for one in messages:
        points = tested.get(one.space)
        if points is None:
            yield one
        elif isinstance(one, MessageBatch):
            rows = _selected(points, one.rows)
            if rows:
                yield one._replace(rows=rows)
        elif _is_needed(points, one):
            yield one


def _selected(points: SpacePoints, rows: Iterable[KeyedRow]) -> list[KeyedRow]:
    listed = list(rows)
    if len(listed) <= len(points):
        return [one for one in listed if points.selecting(one[1]).any()]
    return [listed[i] for i in np.flatnonzero(points.selected_by_any(listed)).tolist()]


def _is_needed(points: SpacePoints, message: Message) -> bool:
    is_taken = message.row is not None and bool(points.selecting(message.row).any())
    return is_taken or (
        bool(message.remove) and bool(points.selecting(message.row_before(points.base)).any())
    )
