"""Interests: what a link wants, as boxes in subscription space.

A point is one subscription's selection of rows of one table. An interest stands for all points in a
box: their base boxes lie in `base`, the ends of their filter intervals in `bounds` (one reach per
filter column of the space), their subscription numbers in `numbers`. A point is the smallest
interest. Interests of brokers leave `numbers` unbounded: then one subscription's interest can stand
for another's, and a message that names its recipients is routed by the box around its row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from penstock.catalog import Relation, Row
from penstock.errors import NetworkError
from penstock.messages import ANY_FILTER, Envelope, Message, Point, Reach, Reaches, Vector
from penstock.packing import pack
from penstock.predicates.boxes import Box, contains
from penstock.predicates.boxes import covers as box_covers
from penstock.predicates.boxes import intersect as intersect_boxes
from penstock.predicates.boxes import is_empty as box_is_empty
from penstock.predicates.intervals import EVERYTHING, Cut, Interval, above, below

MAX_INTEREST_BYTES = 64 << 10
"""Maximum packed size, because every broker on the path stores it. A box over 500 columns of short
values takes half of it."""
NAME_BYTES = 8
"""The probability that two of a million interests share a name is 3e-8."""


class Interest(NamedTuple):
    """A named tuple for its small size: tables hold a million of them."""

    space: int
    base: Box
    bounds: tuple[Reach, ...]
    numbers: Interval = EVERYTHING

    def covers(self, other: Interest) -> bool:
        """Whether every message that concerns the other interest concerns this one."""
        return (
            self.space == other.space
            and self.numbers.covers(other.numbers)
            and box_covers(self.base, other.base)
            and all(_holds(mine, its) for mine, its in zip(self.bounds, other.bounds, strict=True))
        )

    def meets(self, other: Interest) -> bool:
        """Whether some point may lie in both, so that a publication can concern both."""
        return (
            self.space == other.space
            and not self.numbers.intersect(other.numbers).is_empty
            and not box_is_empty(intersect_boxes(self.base, other.base))
            and None not in map(_overlap, self.bounds, other.bounds)
        )


@dataclass(frozen=True, slots=True)
class SpaceShape:
    """What a broker must know of a space: the table whose rows its messages carry, and the number
    of filter columns. Selections over one table have none: their regions bound nothing."""

    space: int
    base: Relation
    filters: int

    @property
    def is_selection(self) -> bool:
        return self.filters == 0


Shapes = Mapping[int, SpaceShape]


def shape_of(shapes: Shapes, space: int) -> SpaceShape:
    shape = shapes.get(space)
    if shape is None:
        raise NetworkError(
            f"space {space} is not known here",
            hint="brokers must know the tables of the home whose messages they pass on",
        )
    return shape


def interest_of(point: Point, *, with_number: bool = False) -> Interest:
    """The interest of one point."""
    bounds = tuple([Reach(i.low, i.low, i.high, i.high) for i in point.filters])
    if not with_number:
        return Interest(point.space, point.base, bounds)
    number = point.id.subscription
    return Interest(point.space, point.base, bounds, Interval(below(number), above(number)))


def everything_in(shape: SpaceShape) -> Interest:
    """All points of a space, as advertised by the publisher of its messages."""
    return Interest(shape.space, (), (ANY_FILTER,) * max(1, shape.filters))


def concerns(message: Message, interest: Interest, base: Relation) -> bool:
    """Whether some point of the interest may have to upsert or remove the message's row.

    Never a false negative, and exact for points, except for the branch of a subscription that a
    message names. (In larger interests, filters that are ruled out only by several excluded vectors
    together are not recognised.)
    """
    if message.space != interest.space:
        return False
    if message.recipients:
        return _names(message, interest) and _may_hold(message, interest, base)
    if message.since and interest.numbers.high <= below(message.since):
        return False
    row = message.row
    if (
        row is not None
        and region_meets(message.upsert, interest.bounds)
        and _contains(interest.base, base, row)
    ):
        return True
    if not message.remove:
        return False
    before = message.row_before(base)
    return _contains(interest.base, base, before) and region_meets(message.remove, interest.bounds)


def region_meets(reaches: Reaches, bounds: tuple[Reach, ...]) -> bool:
    return any(
        _envelope_meets(one, bounds)
        if isinstance(one, Envelope)
        else _overlap(one, bounds[0]) is not None
        for one in reaches
    )


def _names(message: Message, interest: Interest) -> bool:
    return interest.numbers == EVERYTHING or any(
        interest.numbers.contains(one.subscription) for one in message.recipients
    )


def _may_hold(message: Message, interest: Interest, base: Relation) -> bool:
    """Whether the row of a message that names its recipients may lie in the base box; it lies in
    the boxes of its recipients. A row that is removed by its key only may lie anywhere."""
    if message.row is not None:
        return _contains(interest.base, base, message.row)
    return message.old is None or _contains(interest.base, base, message.row_before(base))


def _contains(one: Box, base: Relation, row: Row) -> bool:
    """Columns missing at the end of the row are not needed by any recipient that is undecided."""
    if one and one[-1][0] >= len(row):
        return False
    return contains(one, base, row)


def _envelope_meets(envelope: Envelope, bounds: tuple[Reach, ...]) -> bool:
    shared = [_overlap(reach, own) for reach, own in zip(envelope.reaches, bounds, strict=True)]
    met = [one for one in shared if one is not None]
    return len(met) == len(shared) and not any(_all_admit(met, v) for v in envelope.without)


def _all_admit(met: list[Reach], vector: Vector) -> bool:
    """Whether every filter with such ends contains the vector."""
    pairs = zip(met, vector, strict=True)
    return all(one.low_to <= below(key) and above(key) <= one.high_from for one, key in pairs)


def _overlap(one: Reach, other: Reach) -> Reach | None:
    low_from, low_to = max(one[0], other[0]), min(one[1], other[1])
    high_from, high_to = max(one[2], other[2]), min(one[3], other[3])
    if low_from > low_to or high_from > high_to:
        return None
    return Reach(low_from, low_to, high_from, high_to)


def _holds(outer: Reach, inner: Reach) -> bool:
    return (
        outer.low_from <= inner.low_from
        and inner.low_to <= outer.low_to
        and outer.high_from <= inner.high_from
        and inner.high_to <= outer.high_to
    )


def hull(one: Interest, other: Interest) -> Interest:
    """The smallest interest that covers both; they must be of one space."""
    other_base = dict(other.base)
    base = tuple((c, i.hull(other_base[c])) for c, i in one.base if c in other_base)
    bounds = tuple(
        Reach(min(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), max(a[3], b[3]))
        for a, b in zip(one.bounds, other.bounds, strict=True)
    )
    kept = tuple((c, i) for c, i in base if i != EVERYTHING)
    return Interest(one.space, kept, bounds, one.numbers.hull(other.numbers))


def pack_interest(interest: Interest) -> bytes:
    return pack(interest)


def interest_from(plain: Any) -> Interest:
    """The interest from unpacked `pack_interest` data; NetworkError if it is not an interest."""
    try:
        space, base, bounds, numbers = plain
        read = Interest(
            int(space),
            tuple((int(c), _interval(i)) for c, i in base),
            tuple(Reach(*map(_cut, reach)) for reach in bounds),
            _interval(numbers),
        )
    except (TypeError, ValueError, OverflowError) as error:
        raise NetworkError("an interest cannot be read", detail=str(error)) from None
    return read


def _interval(plain: Any) -> Interval:
    low, high = plain
    return Interval(_cut(low), _cut(high))


def _cut(plain: Any) -> Cut:
    cut = tuple(plain)
    if cut[:1] in ((0,), (1,), (3,)) and len(cut) == 1:
        return cut
    if len(cut) == 3 and cut[0] == 2 and cut[2] in (0, 1):
        return cut
    raise ValueError(f"{cut!r} is not a cut")


def name_of(interest: Interest) -> int:
    """A number that is the same on every node for equal interests."""
    packed = pack(interest)
    _check_size(len(packed))
    return int.from_bytes(hashlib.blake2b(packed, digest_size=NAME_BYTES).digest())


def _check_size(nbytes: int) -> None:
    if nbytes > MAX_INTEREST_BYTES:
        raise NetworkError(
            f"an interest of {nbytes:,} bytes",
            detail=f"limit: {MAX_INTEREST_BYTES:,} bytes",
            hint="constrain fewer columns, or compare with shorter values",
        )


def check_interest(interest: Interest, shapes: Shapes) -> None:
    """NetworkError unless the interest fits the shape of a known space."""
    _check_size(len(pack(interest)))
    shape = shape_of(shapes, interest.space)
    columns = [column for column, _ in interest.base]
    if columns != sorted(set(columns)) or (columns and not columns[0] >= 0):
        raise NetworkError("an interest names columns twice or out of order")
    if columns and columns[-1] >= len(shape.base.columns):
        raise NetworkError(
            f"an interest names column {columns[-1]} of {shape.base.name}",
            detail=f"the table has {len(shape.base.columns)} columns",
        )
    if len(interest.bounds) != max(1, shape.filters):
        raise NetworkError(
            f"an interest with {len(interest.bounds)} bounds in a space with {shape.filters}"
        )
