"""Arrow arrays as stored values: which Arrow type holds the values of each column type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.catalog import (
    BooleanType,
    Column,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    StringType,
    TimestampType,
    ValueType,
)
from penstock.errors import ChangeError
from penstock.matching.key_arrays import fits_int64

Nulls = npt.NDArray[np.bool_] | None


class ArrowRule(NamedTuple):
    """How Arrow holds the values of a column type."""

    type_of: Callable[[Any], pa.DataType]
    """The Arrow type of a column type."""
    accepts: Callable[[pa.DataType], bool]
    """Whether values of an Arrow type are such values, if only their width or unit is changed."""
    view: pa.DataType | None = None
    """What the cast array is viewed as to get stored values."""
    is_cast: bool = True
    """Whether Arrow casts values without loss; if not, each is stored by itself."""


def _is_text(arrow_type: pa.DataType) -> bool:
    return bool(pa.types.is_string(arrow_type) or pa.types.is_large_string(arrow_type))


def _is_number(arrow_type: pa.DataType) -> bool:
    return bool(pa.types.is_floating(arrow_type) or pa.types.is_integer(arrow_type))


def _is_exact(arrow_type: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(arrow_type) or pa.types.is_integer(arrow_type))


ARROW_RULES: dict[type[ValueType], ArrowRule] = {
    IntegerType: ArrowRule(lambda _: pa.int64(), pa.types.is_integer),
    DoubleType: ArrowRule(lambda _: pa.float64(), _is_number),
    DecimalType: ArrowRule(
        lambda one: pa.decimal128(one.precision, one.scale), _is_exact, is_cast=False
    ),
    BooleanType: ArrowRule(lambda _: pa.bool_(), pa.types.is_boolean),
    StringType: ArrowRule(lambda _: pa.string(), _is_text),
    DateType: ArrowRule(lambda _: pa.date32(), pa.types.is_date, pa.int32()),
    TimestampType: ArrowRule(
        lambda one: pa.timestamp("us", "UTC" if one.zoned else None),
        pa.types.is_timestamp,
        pa.int64(),
    ),
}


def arrow_type(value_type: ValueType) -> pa.DataType:
    """The Arrow type that holds the outside values of a column type."""
    return ARROW_RULES[type(value_type)].type_of(value_type)


def stored_array(
    column: Column, array: pa.Array
) -> tuple[pa.Array | npt.NDArray[np.generic], Nulls]:
    """The stored values of an Arrow array: a dictionary array for texts, else numpy and NULLs.

    ChangeError if the Arrow type is not one the column can hold.
    """
    rule = ARROW_RULES[type(column.type)]
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_null(array.type):
        array = array.cast(rule.type_of(column.type))
    held = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
    if not rule.accepts(held):
        raise _misfit(column, array.type)
    if column.type.stored_as is str:
        return _words(array), None
    if not rule.is_cast:
        return _each_stored(column, array)
    try:
        wanted = array.cast(rule.type_of(column.type))
    except pa.ArrowInvalid as error:
        raise ChangeError(f"column {column.name}: {error}") from None
    nulls = np.asarray(wanted.is_null()) if wanted.null_count else None
    if rule.view is not None:
        wanted = wanted.view(rule.view)
    filled = wanted.fill_null(column.type.stored_as())
    return filled.to_numpy(zero_copy_only=False), nulls


def _words(array: pa.Array) -> pa.DictionaryArray:
    if not pa.types.is_dictionary(array.type):
        return array.dictionary_encode()
    if array.dictionary.null_count:
        return array.cast(array.type.value_type).dictionary_encode()
    return array


def _each_stored(column: Column, array: pa.Array) -> tuple[npt.NDArray[np.generic], Nulls]:
    values = [None if v is None else column.type.store(v) for v in array.to_pylist()]
    if not fits_int64(column.type):
        return np.array(values, object), None
    nulls = np.array([v is None for v in values], np.bool_)
    return np.array([v or 0 for v in values], np.int64), nulls if nulls.any() else None


def _misfit(column: Column, arrow_type: pa.DataType) -> ChangeError:
    return ChangeError(f"column {column.name}: Arrow {arrow_type} values are not {column.type}")
