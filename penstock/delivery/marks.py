"""Marks, the messages at the start and end of each batch, and sequence numbers of messages.

Brokers pass on single messages: a reader gets only those that concern it, without their batches. So
every batch begins and ends with a *mark*, a message in a space of its own, which every reader of a
subscription wants. All of them want the same, so brokers pass on one interest for it.

A *sequence number* encodes the batch of a message and its place in it. It is the same for every
process that reads the message log.
"""

from __future__ import annotations

from typing import NamedTuple

from penstock.catalog import Column, Relation
from penstock.catalog.number_types import IntegerType
from penstock.catalog.text_types import StringType
from penstock.errors import NetworkError
from penstock.messages import EVERYONE, Message, Point, PointId, Position
from penstock.predicates.intervals import EVERYTHING
from penstock.routing.interests import SpaceShape
from penstock.spaces import Space
from penstock.storage import BatchHeader

# The first character cannot occur in SQL, so no table has the same name.
BATCHES = Relation(
    "\0batches",
    (
        *(
            Column(name, IntegerType(), nullable=False)
            for name in ("end", "start", "active", "part", "is_base")
        ),
        Column("changed", StringType()),
    ),
    key=(0, 1, 3),
)
MARKS = SpaceShape(Space(BATCHES.name).id, BATCHES, filters=0)
BEGIN, END = 0, 1
"""Start and end of a batch."""
MAX_NAMED = 100
"""Maximum number of changed subscriptions that a mark names; above that, every reader asks."""

_PLACE_BITS = 32
_LAST_PLACE = (1 << _PLACE_BITS) - 1
"""Maximum number of messages in a batch."""


class Mark(NamedTuple):
    header: BatchHeader
    part: int
    is_base: bool
    changed: tuple[int, ...] | None
    """Subscriptions withdrawn or replanned with this batch; None if there are too many."""

    def concerns(self, subscription: int) -> bool:
        return self.changed is None or subscription in self.changed


def mark_message(mark: Mark) -> Message:
    header = mark.header
    changed = None if mark.changed is None else ",".join(map(str, mark.changed))
    row = (header.end, header.start, header.active, mark.part, int(mark.is_base), changed)
    key = (header.end, header.start, mark.part)
    return Message(Position(header.end, mark.part), MARKS.space, key, row, EVERYONE)


def mark_of(message: Message) -> Mark:
    """The mark in a message of the marks' space; NetworkError if there is none."""
    try:
        end, start, active, part, is_base, changed = message.row or ()
        header = BatchHeader(*map(_number, (start, end, active)))
        names = None if changed is None else tuple(map(int, filter(None, str(changed).split(","))))
        return Mark(header, _number(part), bool(is_base), names)
    except (TypeError, ValueError) as error:
        raise NetworkError("a mark cannot be read", detail=str(error)) from None


def _number(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError(f"{value!r} is not a number")
    return value


def mark_point(subscription: int) -> Point:
    """The point that gets all marks."""
    return Point(PointId(subscription, 0, 0), MARKS.space, (), EVERYTHING)


def begin_sequence(header: BatchHeader) -> int:
    """The sequence number of the first mark; messages follow it. Two batches may end at one offset;
    the second one is empty."""
    return (2 * header.end + (header.start == header.end)) << _PLACE_BITS


def end_sequence(header: BatchHeader) -> int:
    """That of the last mark: having it means having the whole batch."""
    return begin_sequence(header) + _LAST_PLACE


def place_in_batch(sequence: int, header: BatchHeader) -> int:
    """The place of a sequence number in a batch: 0 is the first mark; negative before it."""
    return sequence - begin_sequence(header)
