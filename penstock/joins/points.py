"""The points of one space: as objects, as arrays of order codes, and in indexes over them.

Most points of a large space are *frozen*: they exist in arrays that another process has written,
and become objects only when they are accessed individually.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar, cast

import numpy as np

from penstock.catalog import Catalog, Key, Relation, Row, Stored, ValueType
from penstock.joins.array_codes import Values
from penstock.joins.column_values import values_of
from penstock.joins.group import KeyedRow
from penstock.joins.point_arrays import CodeArray, CodedRanges, Mask, PointArrays
from penstock.messages import Point, PointId, Vector
from penstock.spaces import Space


class PointIndex(Protocol):
    """An index over the points of a space that is maintained as points are added and removed."""

    def __init__(self, points: SpacePoints) -> None: ...

    def add(self, point: Point) -> None: ...

    def remove(self, point: Point) -> None: ...


class Prepared(Protocol):
    """Precomputed data for an index over frozen points, for one base column."""

    @property
    def column(self) -> int | None: ...


AnyIndex = TypeVar("AnyIndex", bound=PointIndex)


# Many methods: schemes get everything about a space's points from one object, and most methods are
# one line over the arrays or the relation, which a second class would only forward.
class SpacePoints:
    """The points of one space: added and removed one by one, queried in bulk.

    The arrays are rebuilt on first use after a change; indexes are built on first use and notified
    of every later change. Not thread-safe; the owner of the index serialises access.
    """

    def __init__(self, space: Space, catalog: Catalog, sample: Sequence[Row] = ()) -> None:
        """`sample` holds representative base rows."""
        self.space = space
        self.sample = sample
        self.base: Relation = catalog[space.table]
        self._filter_types: tuple[ValueType, ...] = ()
        if space.edge is not None:
            columns = catalog[space.filter_side.table].columns
            self._filter_types = tuple(columns[attribute].type for attribute in space.attributes)
        self._points: dict[PointId, Point] = {}
        self._frozen: PointArrays | None = None
        self._gone: Mask = np.zeros(0, np.bool_)
        """Which of the frozen points have been thawed."""
        self._frozen_count = 0
        self._prepared: Prepared | None = None
        self._columns: Counter[int] = Counter()
        self._changes_only = 0
        self._mentioned: list[int] | None = None
        self._arrays: PointArrays | None = None
        self._indexes: dict[type, PointIndex] = {}

    @classmethod
    def of_ranges(
        cls, space: Space, catalog: Catalog, column: int, base: CodedRanges, filters: CodedRanges
    ) -> SpacePoints:
        """Bulk construction with boxes over one base column: subscription i has point i."""
        points = cls(space, catalog)
        numbers = np.zeros((len(base), 3), np.int64)
        numbers[:, 0] = np.arange(len(base))
        points.freeze(PointArrays(numbers, {column: base}, (filters,)))
        return points

    def freeze(self, frozen: PointArrays, prepared: Prepared | None = None) -> None:
        """Set the frozen points, replacing earlier frozen ones.

        `prepared` has the precomputed data of an index over these points alone.
        """
        self._frozen, self._prepared = frozen, prepared
        self._gone = np.zeros(len(frozen), np.bool_)
        self._frozen_count = len(frozen)
        self._columns = Counter(c for point in self._points.values() for c, _ in point.base)
        for column, ranges in frozen.base.items():
            self._columns[column] += int(ranges.is_bound.sum())
        self._changed()
        self._indexes = {}

    def forget_frozen(self) -> None:
        if self._frozen is not None:
            self.freeze(self._frozen.take(slice(0)))
            self._frozen = None

    def has_frozen_since(self, subscription: int) -> bool:
        """Whether there are frozen points of subscriptions from this one on."""
        frozen = self._frozen
        return frozen is not None and not self._gone[frozen.since(subscription) :].all()

    def is_frozen(self, subscription: int) -> bool:
        return bool(self._places(subscription))

    def _places(self, subscription: int) -> range:
        """The positions of the frozen points of a subscription."""
        if self._frozen is None:
            return range(0)
        found = range(self._frozen.since(subscription), self._frozen.since(subscription + 1))
        return range(0) if not found or self._gone[found.start] else found

    def _changed(self) -> None:
        self._mentioned = None
        self._arrays = None

    def __len__(self) -> int:
        return len(self._points) + self._frozen_count

    def add(self, point: Point) -> None:
        self.remove(point.id)
        self._points[point.id] = point
        self._columns.update(column for column, _ in point.base)
        self._changes_only += point.changes_only
        self._changed()
        for index in self._indexes.values():
            index.add(point)

    def remove(self, point_id: PointId) -> None:
        point = self._points.pop(point_id, None)
        if point is None:
            self.thaw(point_id.subscription)
            point = self._points.pop(point_id, None)
        if point is not None:
            self._columns.subtract(column for column, _ in point.base)
            self._changes_only -= point.changes_only
            self._changed()
            for index in self._indexes.values():
                index.remove(point)

    def thaw(self, subscription: int) -> list[Point]:
        """Turn the frozen points of a subscription, if there are any, into objects."""
        found = self._places(subscription)
        if not found:
            return []
        assert self._frozen is not None
        place = slice(found.start, found.stop)
        points = list(self._frozen.take(place).points(self.space.id))
        self._gone[place] = True
        self._frozen_count -= len(points)
        self._points |= {point.id: point for point in points}
        return points

    def subset(self, ids: Iterable[PointId], frozen_since: int | None = None) -> SpacePoints:
        """A copy with some of the points: the given ones that are objects, and the frozen ones of
        subscriptions that were recorded from an offset on."""
        part = SpacePoints.__new__(SpacePoints)
        part.space, part.base, part._filter_types = self.space, self.base, self._filter_types
        part.sample = self.sample
        part._points = {i: self._points[i] for i in ids if i in self._points}
        part._columns = Counter(c for point in part._points.values() for c, _ in point.base)
        part._changes_only = sum(point.changes_only for point in part._points.values())
        part._frozen, part._frozen_count, part._prepared, part._indexes = None, 0, None, {}
        part._changed()
        if frozen_since is not None and self._frozen is not None:
            first = self._frozen.since(frozen_since)
            if first or self._gone.any():
                part.freeze(self._frozen.take(slice(first, None)).take(~self._gone[first:]))
            else:
                part.freeze(self._frozen, self._prepared)
        return part

    def index(self, kind: type[AnyIndex]) -> AnyIndex:
        """The index of one kind over these points; there is at most one."""
        found = self._indexes.get(kind)
        if found is None:
            found = self._indexes[kind] = kind(self)
        return cast(AnyIndex, found)

    def forget_indexes(self) -> None:
        """Drop all indexes, so that they are rebuilt from the points alone: results then do not
        depend on the history and are the same in every process."""
        self._indexes = {}

    def __getitem__(self, point_id: PointId) -> Point:
        if point_id not in self._points:
            self.thaw(point_id.subscription)
        return self._points[point_id]

    def prepared(self, column: int | None) -> Prepared | None:
        """Precomputed data for an index over this base column; None if points changed since."""
        prepared = self._prepared
        if prepared is None or self._points or self._gone.any() or prepared.column != column:
            return None
        return prepared

    @property
    def ids(self) -> list[PointId]:
        return self._compiled.ids

    @property
    def ids_are_sorted(self) -> bool:
        return self._compiled.ids_are_sorted

    @property
    def base_table(self) -> tuple[CodeArray, CodeArray]:
        """The ranges of all points over `base_columns`: lows and highs, by column and point."""
        return self._compiled.base_table

    def base_codes(self, rows: Sequence[KeyedRow]) -> CodeArray:
        """The codes of rows in these columns, by row and column."""
        codes = np.empty((len(rows), len(self.base_columns)), np.int64)
        for place, (column, ranges) in enumerate(self._compiled.base.items()):
            codes[:, place] = ranges.codes.all_values(self.base_values(column, rows))
        return codes

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
        """Whether filters have several columns, so that regions consist of envelopes."""
        return bool(self.space.more)

    @property
    def main_column(self) -> int | None:
        """The base column that most points constrain; None if no point constrains any."""
        used = [(count, -column) for column, count in self._columns.items() if count > 0]
        return -max(used)[1] if used else None

    def has_outgrown(self, column: int | None, size: int) -> bool:
        """Whether an index that was built over this base column, for `size` points, should be
        rebuilt over another one: rarely enough that the amortised cost per point is low."""
        return self.main_column != column and (column is None or len(self) >= 2 * size)

    @property
    def constrained_columns(self) -> int:
        """The number of base columns that some point constrains."""
        return sum(count > 0 for count in self._columns.values())

    @property
    def base_columns(self) -> list[int]:
        """The base columns that some point constrains."""
        return list(self._compiled.base)

    def base_ranges(self, column: int | None) -> CodedRanges:
        """The intervals of all points over one base column; unbounded for None."""
        return self._compiled.base_ranges(column)

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

    def filter_codes(self, rows: Sequence[KeyedRow]) -> CodeArray:
        """The codes of rows of the filter table in all filter columns, by row and column."""
        filters = self._compiled.filters
        codes = np.empty((len(rows), len(filters)), np.int64)
        if not self._filter_types:
            codes[:, 0] = filters[0].codes.value(None)
            return codes
        of_columns = zip(self.space.attributes, self._filter_types, filters, strict=True)
        for place, (attribute, kind, ranges) in enumerate(of_columns):
            values = values_of(kind, [row[attribute] for _, row in rows])
            codes[:, place] = ranges.codes.all_values(values)
        return codes

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
        mask = np.ones(len(self), np.bool_)
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
        mask = np.ones(len(arrays), np.bool_)
        for column, ranges in arrays.base.items():
            mask &= ranges.containing(self.base_key(column, row))
        return mask

    def selected_by_any(self, rows: Sequence[KeyedRow]) -> Mask:
        """Which of the rows are in the base box of some point; for few points."""
        codes, (low, high) = self.base_codes(rows), self.base_table
        found = np.zeros(len(rows), np.bool_)
        for point in range(len(self)):
            found |= ((low[:, point] <= codes) & (codes <= high[:, point])).all(axis=1)
        return found

    @property
    def mentioned_columns(self) -> set[int]:
        """The base columns that some point constrains; all, if some point holds no rows itself."""
        if self._changes_only:
            return set(range(len(self.base.columns)))
        return {column for column, count in self._columns.items() if count > 0}

    @property
    def sorted_columns(self) -> list[int]:
        """`mentioned_columns`, sorted."""
        if self._mentioned is None:
            self._mentioned = sorted(self.mentioned_columns)
        return self._mentioned

    def mentioned(self, row: Row) -> tuple[tuple[int, Stored], ...]:
        """The values of a base row in the columns that some point's box constrains."""
        return tuple([(column, row[column]) for column in self.sorted_columns])

    @property
    def _compiled(self) -> PointArrays:
        if self._arrays is None:
            self._arrays = PointArrays.of(list(self._points.values()), len(self.space.more))
            if self._frozen_count:
                assert self._frozen is not None
                is_whole = self._frozen_count == len(self._frozen)
                frozen = self._frozen if is_whole else self._frozen.take(~self._gone)
                self._arrays = frozen.concat(self._arrays)
        return self._arrays
