"""Arrow arrays as stored values."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.catalog import Column
from penstock.catalog.arrow_types import ARROW_RULES
from penstock.errors import ChangeError
from penstock.matching.key_arrays import fits_int64

Nulls = npt.NDArray[np.bool_] | None


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
