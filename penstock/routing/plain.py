"""The points of one space as bit masks: the plain gear of the region index.

Exact like the fast one (`penstock.routing.regions`), and imports neither numba nor numpy. A message
costs a few microseconds for every `CHUNK_POINTS` points, so it suits spaces of some thousands.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.catalog import Relation
from penstock.messages import Message, Point, PointId
from penstock.messages.point_masks import PointMasks
from penstock.predicates.masks import bits

CHUNK_POINTS = 512
"""Points per chunk. Masks of n points take n² bits for each column, and are rebuilt after a change:
64 KiB and about 1 ms with this many."""


class _Chunk:
    def __init__(self) -> None:
        self.points: dict[PointId, Point] = {}
        self._masks: PointMasks | None = None

    def changed(self) -> None:
        self._masks = None

    def found(self, message: Message, base: Relation) -> Iterator[Point]:
        if self._masks is None:
            self._masks = PointMasks(list(self.points.values()), base)
        masks, mask = self._masks, 0
        if message.upsert and message.row is not None:
            mask = masks.within(message.upsert) & masks.selecting(message.row)
        if message.remove:
            within = masks.within(message.remove)
            mask |= within & masks.selecting(message.row_before(base)) if within else 0
        return (masks.points[number] for number in bits(mask))


class PlainRegions:
    """Points are added and removed one by one. Not thread-safe."""

    def __init__(self, base: Relation) -> None:
        self._base = base
        self._chunks: list[_Chunk] = []
        self._chunk_of: dict[PointId, _Chunk] = {}

    def __len__(self) -> int:
        return len(self._chunk_of)

    def __iter__(self) -> Iterator[Point]:
        for chunk in self._chunks:
            yield from chunk.points.values()

    def add(self, point: Point) -> None:
        self.remove(point.id)
        if not self._chunks or len(self._chunks[-1].points) >= CHUNK_POINTS:
            self._chunks.append(_Chunk())
        chunk = self._chunk_of[point.id] = self._chunks[-1]
        chunk.points[point.id] = point
        chunk.changed()

    def remove(self, point_id: PointId) -> None:
        chunk = self._chunk_of.pop(point_id, None)
        if chunk is not None:
            del chunk.points[point_id]
            chunk.changed()
            if not chunk.points:
                self._chunks.remove(chunk)

    def recipients(self, message: Message) -> list[PointId]:
        """The points that must upsert or remove the message's row, in any order."""
        if message.recipients:
            return list(message.recipients)
        return [
            point.id
            for chunk in self._chunks
            for point in chunk.found(message, self._base)
            if point.id.subscription >= message.since
            and not (message.since and point.changes_only)  # they take no initial content
        ]

    def subscribers(self, message: Message) -> set[int]:
        """The subscriptions of these points."""
        return {point.subscription for point in self.recipients(message)}
