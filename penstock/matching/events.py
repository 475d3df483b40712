"""A batch of rows of one relation, column by column, in comparable form."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.catalog import Column, Key, Relation, Row, Stored
from penstock.errors import ChangeError
from penstock.matching.arrow import stored_array
from penstock.matching.key_arrays import check_stored, double_keys, fits_int64


@dataclass(frozen=True, slots=True)
class NumberColumn:
    """Keys that fit 64 bits. Where `nulls` is True, the key is undefined."""

    keys: npt.NDArray[np.int64]
    nulls: npt.NDArray[np.bool_] | None = None

    def slice(self, start: int, stop: int) -> NumberColumn:
        nulls = None if self.nulls is None else self.nulls[start:stop]
        return NumberColumn(self.keys[start:stop], nulls)

    def take(self, places: npt.NDArray[np.integer]) -> NumberColumn:
        return NumberColumn(self.keys[places], None if self.nulls is None else self.nulls[places])

    def key(self, i: int) -> Key | None:
        return None if self.nulls is not None and self.nulls[i] else int(self.keys[i])


@dataclass(frozen=True, slots=True)
class DictionaryColumn:
    """Strings, and decimals beyond 64 bits, dictionary-encoded; index -1 is NULL."""

    indices: npt.NDArray[np.int32]
    dictionary: tuple[Key, ...]

    def slice(self, start: int, stop: int) -> DictionaryColumn:
        return DictionaryColumn(self.indices[start:stop], self.dictionary)

    def take(self, places: npt.NDArray[np.integer]) -> DictionaryColumn:
        return DictionaryColumn(self.indices[places], self.dictionary)

    def key(self, i: int) -> Key | None:
        index = int(self.indices[i])
        return None if index < 0 else self.dictionary[index]


KeyColumn: TypeAlias = NumberColumn | DictionaryColumn


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Rows of one relation. The columns hold keys, in the order of the relation's columns."""

    relation: Relation
    columns: tuple[KeyColumn, ...]
    length: int

    @classmethod
    def of_rows(cls, relation: Relation, rows: Sequence[Row]) -> EventBatch:
        """From rows of stored values; ChangeError if one does not fit."""
        width = len(relation.columns)
        for row in rows:
            if len(row) != width:
                raise ChangeError(
                    f"a row of {relation.name} has {width} values, not {len(row)}",
                    hint="give NULL for what is not known",
                )
        columns = [
            _of_stored(column, [row[i] for row in rows])
            for i, column in enumerate(relation.columns)
        ]
        return cls(relation, tuple(columns), len(rows))

    @classmethod
    def of_stored(
        cls, relation: Relation, rows: Sequence[Row], columns: Collection[int] | None = None
    ) -> EventBatch:
        """From rows that are known to fit the relation, so they are not checked again. With
        `columns`, all other columns are NULL throughout."""
        found = {
            i: _of_keys(relation.columns[i], list(map(itemgetter(i), rows)))
            for i in (range(len(relation.columns)) if columns is None else columns)
        }
        return cls.of_columns(relation, found, len(rows))

    @classmethod
    def of_arrays(
        cls, relation: Relation, arrays: Mapping[str, npt.NDArray[np.generic]]
    ) -> EventBatch:
        """From arrays of stored values by column name; a missing column is NULL throughout."""
        given = {name.lower(): array for name, array in arrays.items()}
        for name in arrays:
            if name.lower() not in relation.positions:
                raise relation.unknown_column(name)
        lengths = {len(array) for array in arrays.values()}
        if len(lengths) > 1:
            raise ChangeError(f"the columns of {relation.name} differ in length")
        length = lengths.pop() if lengths else 0
        columns = [
            _of_array(column, given[column.name.lower()])
            if column.name.lower() in given
            else _all_null(column, length)
            for column in relation.columns
        ]
        return cls(relation, tuple(columns), length)

    @classmethod
    def of_columns(
        cls, relation: Relation, columns: Mapping[int, KeyColumn], length: int
    ) -> EventBatch:
        """From columns of keys by their positions; a missing column is NULL throughout."""
        found = [
            columns[i] if i in columns else _all_null(column, length)
            for i, column in enumerate(relation.columns)
        ]
        return cls(relation, tuple(found), length)

    @classmethod
    def of_arrow(cls, relation: Relation, batch: pa.RecordBatch) -> EventBatch:
        """From Arrow; a missing column is NULL throughout, a type that does not fit is refused."""
        given: dict[str, pa.Array] = {}
        for name, array in zip(batch.schema.names, batch.columns, strict=True):
            if name.lower() not in relation.positions:
                raise relation.unknown_column(name)
            given[name.lower()] = array
        columns: list[KeyColumn] = []
        for column in relation.columns:
            array = given.get(column.name.lower())
            if array is None:
                columns.append(_all_null(column, batch.num_rows))
                continue
            stored, nulls = stored_array(column, array)
            if isinstance(stored, pa.DictionaryArray):
                indices = stored.indices.fill_null(-1).to_numpy(zero_copy_only=False)
                words = tuple(stored.dictionary.to_pylist())
                columns.append(DictionaryColumn(indices.astype(np.int32), words))
            elif stored.dtype == object:
                columns.append(_of_stored(column, stored.tolist()))
            else:
                columns.append(_numbers(stored, nulls))
        return cls(relation, tuple(columns), batch.num_rows)

    def __len__(self) -> int:
        return self.length

    def slice(self, start: int, stop: int) -> EventBatch:
        stop = min(stop, self.length)
        columns = tuple(column.slice(start, stop) for column in self.columns)
        return EventBatch(self.relation, columns, stop - start)

    def take(self, places: npt.NDArray[np.integer]) -> EventBatch:
        columns = tuple(column.take(places) for column in self.columns)
        return EventBatch(self.relation, columns, len(places))

    def keys(self, i: int) -> tuple[Key | None, ...]:
        """Row `i` as keys."""
        return tuple(column.key(i) for column in self.columns)

    def row(self, i: int) -> Row:
        """Row `i` as stored values."""
        return tuple(
            None if key is None else column.type.unkey(key)
            for column, key in zip(self.relation.columns, self.keys(i), strict=True)
        )


def row_keys(relation: Relation, row: Row) -> list[Key | None]:
    """One stored row as keys; ChangeError if it does not fit the relation."""
    if len(row) != len(relation.columns):
        raise ChangeError(
            f"a row of {relation.name} has {len(relation.columns)} values, not {len(row)}"
        )
    keys: list[Key | None] = []
    for column, value in zip(relation.columns, row, strict=True):
        if value is None:
            keys.append(None)
        else:
            check_stored(column, value)
            keys.append(column.type.key(value))
    return keys


def _of_stored(column: Column, values: list[Stored]) -> KeyColumn:
    for value in values:
        if value is not None:
            check_stored(column, value)
    return _of_keys(column, values)


def _of_keys(column: Column, values: list[Stored]) -> KeyColumn:
    """A column of stored values that fit it."""
    if not fits_int64(column.type):
        places: dict[Stored, int] = {None: -1}
        # Decimals beyond 64 bits are their own keys, like texts.
        indices = [places.setdefault(value, len(places) - 1) for value in values]
        del places[None]
        return DictionaryColumn(np.array(indices, np.int32), tuple(cast(Iterable[Key], places)))
    nulls = np.array([value is None for value in values], np.bool_) if None in values else None
    if nulls is not None:
        values = [0 if value is None else value for value in values]
    return _numbers(np.array(values, column.type.stored_as), nulls)


_NUMPY_KINDS: dict[type, str] = {float: "f", bool: "b", int: "iu"}
"""NumPy dtype kinds that can hold stored values of a Python type."""


def _of_array(column: Column, array: npt.NDArray[np.generic]) -> KeyColumn:
    if array.dtype.kind in "OUS" or not fits_int64(column.type):
        return _of_stored(column, array.tolist())
    if array.dtype.kind not in _NUMPY_KINDS[column.type.stored_as]:
        raise ChangeError(f"column {column.name}: {array.dtype} values are not {column.type}")
    return _numbers(array, None)


def _numbers(array: npt.NDArray[np.generic], nulls: npt.NDArray[np.bool_] | None) -> NumberColumn:
    keys = double_keys(array.astype(np.float64)) if array.dtype.kind == "f" else array
    return NumberColumn(keys.astype(np.int64), nulls)


def _all_null(column: Column, length: int) -> KeyColumn:
    if fits_int64(column.type):
        return NumberColumn(np.zeros(length, np.int64), np.ones(length, np.bool_))
    return DictionaryColumn(np.full(length, -1, np.int32), ())
