"""The points of one space: one by one, as arrays of order codes, and in indexes over them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar, cast

import numpy as np
import numpy.typing as npt

from penstock.catalog import Catalog, Key, Relation, Row, Stored, ValueType
from penstock.joins.array_codes import Values
from penstock.joins.column_values import values_of
from penstock.joins.group import KeyedRow
from penstock.joins.spaces import Space
from penstock.messages import Point, PointId, Vector
from penstock.predicates.boxes import interval_of
from penstock.predicates.codes import Codes
from penstock.predicates.intervals import EVERYTHING, Interval

Mask = npt.NDArray[np.bool_]
CodeArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class CodedRanges:
    """One interval per point over one attribute, as closed ranges of codes."""

    codes: Codes
    low: CodeArray
    high: CodeArray

    @classmethod
    def of(cls, intervals: Sequence[Interval]) -> CodedRanges:
        codes = Codes.of_intervals(intervals)
        ranges = np.array([codes.interval(i) for i in intervals], np.int64).reshape(-1, 2)
        return cls(codes, ranges[:, 0].copy(), ranges[:, 1].copy())

    def containing(self, key: Key | None) -> Mask:
        code = self.codes.value(key)
        return (self.low <= code) & (code <= self.high)

    def interval(self, i: int) -> Interval:
        """The interval of one point, back from its codes."""
        return Interval(
            self.codes.low_cut(int(self.low[i])), self.codes.high_cut(int(self.high[i]))
        )


class PointIndex(Protocol):
    """Something built over the points of a space that can follow them as they come and go."""

    def __init__(self, points: SpacePoints) -> None: ...

    def add(self, point: Point) -> None: ...

    def remove(self, point: Point) -> None: ...


AnyIndex = TypeVar("AnyIndex", bound=PointIndex)


class SpacePoints:
    """The points of one space: added and removed one by one, asked in bulk.

    The arrays are built when they are first asked for after a change; indexes are built when they
    are first asked for and told of every change after that. Not thread-safe; the owner of the index
    serialises access.
    """

    def __init__(self, space: Space, catalog: Catalog, sample: Sequence[Row] = ()) -> None:
        """`sample` holds base rows like those to come."""
        self.space = space
        self.sample = sample
        self.base: Relation = catalog[space.table]
        self._filter_types: tuple[ValueType, ...] = ()
        if space.edge is not None:
            columns = catalog[space.filter_side.table].columns
            self._filter_types = tuple(columns[attribute].type for attribute in space.attributes)
        self._points: dict[PointId, Point] | None = {}
        self._columns: Counter[int] = Counter()
        self._changes_only = 0
        self._mentioned: list[int] | None = None
        self._arrays: _Arrays | None = None
        self._indexes: dict[type, PointIndex] = {}

    @classmethod
    def of_ranges(
        cls, space: Space, catalog: Catalog, column: int, base: CodedRanges, filters: CodedRanges
    ) -> SpacePoints:
        """Many points at once, with boxes over one base column: subscription i has point i."""
        points = cls(space, catalog)
        ids = [PointId(i, 0, 0) for i in range(len(base.low))]
        points._arrays = _Arrays(ids, [(column, base)], (filters,))
        points._columns[column] = len(ids)
        points._points = None
        return points

    def __len__(self) -> int:
        return len(self._compiled.ids) if self._points is None else len(self._points)

    def add(self, point: Point) -> None:
        points = self._by_id()
        if point.id in points:
            self.remove(point.id)
        points[point.id] = point
        self._columns.update(column for column, _ in point.base)
        self._changes_only += point.changes_only
        self._mentioned = None
        self._arrays = None
        for index in self._indexes.values():
            index.add(point)

    def remove(self, point_id: PointId) -> None:
        point = self._by_id().pop(point_id, None)
        if point is not None:
            self._columns.subtract(column for column, _ in point.base)
            self._changes_only -= point.changes_only
            self._mentioned = None
            self._arrays = None
            for index in self._indexes.values():
                index.remove(point)

    def subset(self, ids: Iterable[PointId]) -> SpacePoints:
        """A view of some of the points, for work that concerns only them."""
        part = SpacePoints.__new__(SpacePoints)
        part.space, part.base, part._filter_types = self.space, self.base, self._filter_types
        part.sample = self.sample
        points = self._by_id()
        part._points = {i: points[i] for i in ids if i in points}
        part._columns = Counter(c for point in part._points.values() for c, _ in point.base)
        part._changes_only = sum(point.changes_only for point in part._points.values())
        part._mentioned = None
        part._arrays = None
        part._indexes = {}
        return part

    def index(self, kind: type[AnyIndex]) -> AnyIndex:
        """The index of one kind over these points; there is at most one."""
        found = self._indexes.get(kind)
        if found is None:
            found = self._indexes[kind] = kind(self)
        return cast(AnyIndex, found)

    def forget_indexes(self) -> None:
        """Have indexes built anew from nothing but the points: then what follows from them is the
        same in every process, whatever came and went before."""
        self._indexes = {}

    def __getitem__(self, point_id: PointId) -> Point:
        return self._by_id()[point_id]

    @property
    def ids(self) -> list[PointId]:
        return self._compiled.ids

    @property
    def filters(self) -> CodedRanges:
        """The filter intervals of all points (over the first filter column, if there are more)."""
        return self._compiled.filters[0]

    @property
    def all_filters(self) -> tuple[CodedRanges, ...]:
        """The filter intervals of all points, over each filter column of the space."""
        return self._compiled.filters

    @property
    def has_envelopes(self) -> bool:
        """Whether filters have several columns, so that regions are made of envelopes."""
        return bool(self.space.more)

    @property
    def main_column(self) -> int | None:
        """The base column that most points constrain; None if no point constrains any."""
        used = [(count, -column) for column, count in self._columns.items() if count > 0]
        return -max(used)[1] if used else None

    def has_outgrown(self, column: int | None, size: int) -> bool:
        """Whether an index that was built over this base column, for so many points, should be
        built over another one: seldom enough that it costs little per point."""
        return self.main_column != column and (column is None or len(self) >= 2 * size)

    @property
    def constrained_columns(self) -> int:
        """How many base columns any point constrains."""
        return sum(count > 0 for count in self._columns.values())

    @property
    def base_columns(self) -> list[int]:
        """The base columns that some point constrains."""
        return [column for column, _ in self._compiled.base]

    def base_ranges(self, column: int | None) -> CodedRanges:
        """The intervals of all points over one base column (over none: everything)."""
        for candidate, ranges in self._compiled.base:
            if candidate == column:
                return ranges
        return CodedRanges.of([EVERYTHING] * len(self))

    def attribute(self, row: Row) -> Key | None:
        """The comparable value of the (first) filter column in a row of the filter table."""
        if not self._filter_types:
            return None
        assert self.space.attribute is not None
        value = row[self.space.attribute]
        return None if value is None else self._filter_types[0].key(value)

    def filter_values(self, rows: Sequence[KeyedRow]) -> Values:
        """`attribute` of many rows."""
        attribute = self.space.attribute
        if attribute is None:
            return [None] * len(rows)
        return values_of(self._filter_types[0], [row[attribute] for _, row in rows])

    def base_values(self, column: int | None, rows: Sequence[KeyedRow]) -> Values:
        """`base_key` of many rows."""
        if column is None:
            return [None] * len(rows)
        return values_of(self.base.columns[column].type, [row[column] for _, row in rows])

    def vector(self, row: Row) -> Vector:
        """The comparable values of all filter columns in a row of the filter table."""
        pairs = zip(self.space.attributes, self._filter_types, strict=True)
        return tuple(
            None if row[column] is None else kind.key(row[column]) for column, kind in pairs
        )

    def admitting(self, vector: Vector) -> Mask:
        """Which points' filters contain a row with these values."""
        if not vector:
            return np.ones(len(self), np.bool_)
        mask = np.ones(len(self._compiled.ids), np.bool_)
        for ranges, key in zip(self._compiled.filters, vector, strict=True):
            mask &= ranges.containing(key)
        return mask

    def base_key(self, column: int | None, row: Row) -> Key | None:
        """The comparable value of a column of the base table; None for NULL (and no column)."""
        value = None if column is None else row[column]
        if value is None:
            return None
        assert column is not None
        return self.base.columns[column].type.key(value)

    def selecting(self, row: Row) -> Mask:
        """Which points' base boxes contain the row."""
        arrays = self._compiled
        mask = np.ones(len(arrays.ids), np.bool_)
        for column, ranges in arrays.base:
            mask &= ranges.containing(self.base_key(column, row))
        return mask

    @property
    def mentioned_columns(self) -> set[int]:
        """The base columns that some point constrains; all, if some point holds no rows itself."""
        if self._changes_only:
            return set(range(len(self.base.columns)))
        return {column for column, count in self._columns.items() if count > 0}

    def mentioned(self, row: Row) -> tuple[tuple[int, Stored], ...]:
        """The values of a base row that any point looks at when the row is no longer there."""
        if self._mentioned is None:
            self._mentioned = sorted(self.mentioned_columns)
        return tuple([(column, row[column]) for column in self._mentioned])

    def _by_id(self) -> dict[PointId, Point]:
        if self._points is None:
            self._points = self._compiled.points(self.space.id)
        return self._points

    @property
    def _compiled(self) -> _Arrays:
        if self._arrays is None:
            self._arrays = _Arrays.of(list(self._by_id().values()), len(self.space.more))
        return self._arrays


@dataclass(frozen=True, slots=True)
class _Arrays:
    ids: list[PointId]
    base: list[tuple[int, CodedRanges]]
    filters: tuple[CodedRanges, ...]

    @classmethod
    def of(cls, points: list[Point], more: int) -> _Arrays:
        columns = sorted({column for point in points for column, _ in point.base})
        base = [
            (column, CodedRanges.of([interval_of(point.base, column) for point in points]))
            for column in columns
        ]
        first = CodedRanges.of([point.filter for point in points])
        others = (CodedRanges.of([point.more[i] for point in points]) for i in range(more))
        return cls([point.id for point in points], base, (first, *others))

    def points(self, space: int) -> dict[PointId, Point]:
        return {
            point_id: Point(
                point_id,
                space,
                tuple((column, ranges.interval(i)) for column, ranges in self.base),
                self.filters[0].interval(i),
                tuple(ranges.interval(i) for ranges in self.filters[1:]),
            )
            for i, point_id in enumerate(self.ids)
        }
