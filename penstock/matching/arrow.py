"""Arrow arrays as stored values."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.catalog import Column, DecimalType
from penstock.errors import ChangeError
from penstock.matching.key_arrays import fits_int64

Nulls = npt.NDArray[np.bool_] | None


def stored_array(
    column: Column, array: pa.Array
) -> tuple[pa.Array | npt.NDArray[np.generic], Nulls]:
    """The stored values of an Arrow array: a dictionary array for strings, else numpy and NULLs.

    ChangeError if the Arrow type is not one the column can hold.
    """
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_null(array.type):
        array = array.cast(_arrow_type(column))
    kind = column.type.kind
    if kind == "string":
        return _words(column, array), None
    if kind == "decimal":
        return _decimals(column, array)
    try:
        wanted = array.cast(_arrow_type(column)) if _may_cast(kind, array.type) else None
    except pa.ArrowInvalid as error:
        raise ChangeError(f"column {column.name}: {error}") from None
    if wanted is None:
        raise _misfit(column, array.type)
    nulls = np.asarray(wanted.is_null()) if wanted.null_count else None
    if kind in ("date", "timestamp"):
        wanted = wanted.view(pa.int32() if kind == "date" else pa.int64())
    filled = wanted.fill_null(False if kind == "boolean" else 0)
    return filled.to_numpy(zero_copy_only=False), nulls


def _words(column: Column, array: pa.Array) -> pa.DictionaryArray:
    value_type = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
    if not (pa.types.is_string(value_type) or pa.types.is_large_string(value_type)):
        raise _misfit(column, array.type)
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    if array.dictionary.null_count:
        array = array.cast(value_type).dictionary_encode()
    return array


def _decimals(column: Column, array: pa.Array) -> tuple[npt.NDArray[np.generic], Nulls]:
    assert isinstance(column.type, DecimalType)
    if not (pa.types.is_decimal(array.type) or pa.types.is_integer(array.type)):
        raise _misfit(column, array.type)
    values = [None if v is None else column.type.store(v) for v in array.to_pylist()]
    if not fits_int64(column.type):
        return np.array(values, object), None
    nulls = np.array([v is None for v in values], np.bool_)
    return np.array([v or 0 for v in values], np.int64), nulls if nulls.any() else None


def _arrow_type(column: Column) -> pa.DataType:
    kinds = {
        "integer": pa.int64(),
        "double": pa.float64(),
        "boolean": pa.bool_(),
        "date": pa.date32(),
        "string": pa.string(),
        "decimal": pa.decimal128(38, 0),
    }
    if column.type.kind == "timestamp":
        return pa.timestamp("us", tz="UTC" if getattr(column.type, "zoned", False) else None)
    return kinds[column.type.kind]


def _may_cast(kind: str, arrow_type: pa.DataType) -> bool:
    """Casts that change the width or the unit of a value, never its meaning."""
    types = pa.types
    if kind == "double":
        return bool(types.is_floating(arrow_type) or types.is_integer(arrow_type))
    checks = {
        "integer": types.is_integer,
        "boolean": types.is_boolean,
        "date": types.is_date,
        "timestamp": types.is_timestamp,
    }
    return bool(checks[kind](arrow_type))


def _misfit(column: Column, arrow_type: pa.DataType) -> ChangeError:
    return ChangeError(f"column {column.name}: Arrow {arrow_type} values are not {column.type}")
