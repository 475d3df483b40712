"""Events of streams without a key: what they mean follows from the subscriptions alone.

Each is known by its offset, so none ever meets a row that is there. They need not pass the rows of
the tables, and many are told of at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from penstock.catalog import Relation, Row
from penstock.flow.changes import Delta
from penstock.flow.group_steps import FIRST_STEP, StepCollector
from penstock.flow.index import Index
from penstock.joins import StepsByEdge
from penstock.messages import EVERYONE, Message, Position


def is_keyless_stream(relation: Relation) -> bool:
    """Whether what an event of this relation means can be told without knowing other rows.

    Events of a stream without a key never meet a row that is there: each is known by its offset.
    """
    return relation.is_stream and not relation.key


def event_messages(
    index: Index, stream: Relation, events: Sequence[tuple[int, Row]]
) -> Iterator[Message]:
    """The messages of events with their offsets to those who subscribe to their stream alone."""
    points = index.selections(stream)
    if points is None:
        return
    space, everybody = points.space.id, EVERYONE
    for i in np.flatnonzero(points.any_match([row for _, row in events])).tolist():
        offset, row = events[i]
        yield Message(Position(offset, FIRST_STEP), space, (offset,), row, everybody)


def event_steps(index: Index, stream: Relation, events: Sequence[tuple[int, Row]]) -> StepsByEdge:
    """What the events do to the groups of all edges that their stream feeds."""
    collected = StepCollector(index)
    if index.edges_of(stream):
        collected.add(stream, [Delta(o, stream, (o,), None, row) for o, row in events])
    return collected.in_order()
