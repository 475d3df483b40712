"""The points of one space, as arrays of order codes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from penstock.catalog import Catalog, Key, Relation, Row, Stored, ValueType
from penstock.joins.spaces import Space
from penstock.messages import Point, PointId
from penstock.predicates.boxes import interval_of
from penstock.predicates.codes import Codes
from penstock.predicates.intervals import Interval

Mask = npt.NDArray[np.bool_]
CodeArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class CodedRanges:
    """One interval per point over one attribute, as closed ranges of codes."""

    codes: Codes
    low: CodeArray
    high: CodeArray

    @classmethod
    def of(cls, intervals: list[Interval]) -> CodedRanges:
        codes = Codes.of_intervals(intervals)
        ranges = np.array([codes.interval(i) for i in intervals], np.int64).reshape(-1, 2)
        return cls(codes, ranges[:, 0].copy(), ranges[:, 1].copy())

    def containing(self, key: Key | None) -> Mask:
        code = self.codes.value(key)
        return (self.low <= code) & (code <= self.high)


class SpacePoints:
    """The points of one space: added and removed one by one, asked in bulk.

    The arrays are built when they are first asked for after a change. Not thread-safe; the owner
    of the index serialises access.
    """

    def __init__(self, space: Space, catalog: Catalog) -> None:
        self.space = space
        self.base: Relation = catalog[space.table]
        self._filter_type: ValueType | None = None
        if space.edge is not None and space.attribute is not None:
            self._filter_type = catalog[space.filter_side.table].columns[space.attribute].type
        self._points: dict[PointId, Point] = {}
        self._arrays: _Arrays | None = None

    def __len__(self) -> int:
        return len(self._points)

    def add(self, point: Point) -> None:
        self._points[point.id] = point
        self._arrays = None

    def remove(self, point_id: PointId) -> None:
        if self._points.pop(point_id, None) is not None:
            self._arrays = None

    def subset(self, ids: Iterable[PointId]) -> SpacePoints:
        """A view of some of the points, for work that concerns only them."""
        part = SpacePoints.__new__(SpacePoints)
        part.space, part.base, part._filter_type = self.space, self.base, self._filter_type
        part._points = {i: self._points[i] for i in ids if i in self._points}
        part._arrays = None
        return part

    @property
    def ids(self) -> list[PointId]:
        return self._compiled.ids

    @property
    def filters(self) -> CodedRanges:
        """The filter intervals of all points."""
        return self._compiled.filters

    def attribute(self, row: Row) -> Key | None:
        """The comparable value of the filter column in a row of the filter table."""
        if self._filter_type is None:
            return None
        assert self.space.attribute is not None
        value = row[self.space.attribute]
        return None if value is None else self._filter_type.key(value)

    def selecting(self, row: Row) -> Mask:
        """Which points' base boxes contain the row."""
        arrays = self._compiled
        mask = np.ones(len(arrays.ids), np.bool_)
        for column, ranges in arrays.base:
            value = row[column]
            key = None if value is None else self.base.columns[column].type.key(value)
            mask &= ranges.containing(key)
        return mask

    def mentioned(self, row: Row) -> tuple[tuple[int, Stored], ...]:
        """The values of a base row that any point's box looks at."""
        return tuple((column, row[column]) for column, _ in self._compiled.base)

    @property
    def _compiled(self) -> _Arrays:
        if self._arrays is None:
            self._arrays = _Arrays.of(list(self._points.values()))
        return self._arrays


@dataclass(frozen=True, slots=True)
class _Arrays:
    ids: list[PointId]
    base: list[tuple[int, CodedRanges]]
    filters: CodedRanges

    @classmethod
    def of(cls, points: list[Point]) -> _Arrays:
        columns = sorted({column for point in points for column, _ in point.base})
        base = [
            (column, CodedRanges.of([interval_of(point.base, column) for point in points]))
            for column in columns
        ]
        filters = CodedRanges.of([point.filter for point in points])
        return cls([point.id for point in points], base, filters)
