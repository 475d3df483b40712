"""The points of one subscription in one space, and the effect of a message on them.

OR, IN and NOT make up to a thousand branches, with a point each. Nearly every message concerns few
of them, which are found without testing the others.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.catalog import Relation
from penstock.messages import Message, Point
from penstock.messages.point_masks import PointMasks


class OwnPoints:
    """Sets of points are bit masks over `points`, as in `PointMasks`."""

    def __init__(self, points: Sequence[Point], base: Relation) -> None:
        self.points = points
        self._subscription = points[0].id.subscription
        self._base = base
        self._masks = PointMasks(points, base)
        self._bits = {point.id: 1 << i for i, point in enumerate(points)}

    def upserting(self, message: Message) -> int:
        """The points that must upsert the row: those for which `Message.upserts` is true."""
        if message.row is None:
            return 0
        if message.recipients:
            return self._named(message)
        if not message.upsert or message.since > self._subscription:
            return 0
        return self._masks.within(message.upsert) & self._masks.selecting(message.row)

    def removing(self, message: Message) -> int:
        """The points that must remove the row, unless they upsert it: `Message.removes`."""
        if message.recipients:
            return 0 if message.row is not None else self._named(message)
        if not message.remove or message.since > self._subscription:
            return 0
        within = self._masks.within(message.remove)
        return within & self._masks.selecting(message.row_before(self._base)) if within else 0

    def _named(self, message: Message) -> int:
        found = 0
        for recipient in message.recipients:
            found |= self._bits.get(recipient, 0)
        return found
