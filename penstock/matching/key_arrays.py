"""Checking stored values, and turning whole arrays of them into keys."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from penstock.catalog import Column, Stored, ValueType
from penstock.catalog.number_types import NAN_KEY
from penstock.errors import ChangeError

_MAGNITUDE = np.int64((1 << 63) - 1)
_LOWEST, _HIGHEST = -(1 << 63), (1 << 63) - 1


def fits_int64(value_type: ValueType) -> bool:
    """Whether all keys of a type fit 64 bits."""
    lowest, highest = value_type.key_range
    if not isinstance(lowest, int) or not isinstance(highest, int):
        return False
    return lowest >= _LOWEST and highest <= _HIGHEST


def check_stored(column: Column, value: Stored) -> None:
    """ChangeError if a value is not of the Python type in which the column stores its values."""
    wanted = column.type.stored_as
    if type(value) is not wanted:
        raise ChangeError(
            f"column {column.name}: {value!r} is not a stored {column.type}",
            detail=f"it is a {type(value).__name__}, not a {wanted.__name__}",
        )


def double_keys(values: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """`DoubleType.key` of every value."""
    bits = (values + 0.0).view(np.int64)  # -0.0 + 0.0 is 0.0
    keys = np.where(bits >= 0, bits, -(bits & _MAGNITUDE))
    return np.where(np.isnan(values), np.int64(NAN_KEY), keys)
