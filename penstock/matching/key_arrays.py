"""Checking stored values, and turning whole arrays of them into keys."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from penstock.catalog import Column, DecimalType, DoubleType, Stored, StringType, ValueType
from penstock.errors import ChangeError

_MAGNITUDE = np.int64((1 << 63) - 1)
_STORED_AS: dict[str, type] = {"double": float, "string": str, "boolean": bool}
_INT64_DIGITS = 18
"""Decimals of so many digits always fit 64 bits."""


def fits_int64(value_type: ValueType) -> bool:
    """Whether all keys of a type fit 64 bits."""
    if isinstance(value_type, DecimalType):
        return value_type.precision <= _INT64_DIGITS
    return not isinstance(value_type, StringType)


def check_stored(column: Column, value: Stored) -> None:
    """ChangeError if a value is not of the kind in which the column stores its values."""
    wanted = _STORED_AS.get(column.type.kind, int)
    if type(value) is not wanted:
        raise ChangeError(
            f"column {column.name}: {value!r} is not a stored {column.type}",
            detail=f"it is a {type(value).__name__}, not a {wanted.__name__}",
        )


def double_keys(values: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """What `DoubleType.key` gives, for all values at once."""
    bits = (values + 0.0).view(np.int64)  # -0.0 + 0.0 is 0.0
    keys = np.where(bits >= 0, bits, -(bits & _MAGNITUDE))
    nan_key = DoubleType().key(float("nan"))
    return np.where(np.isnan(values), np.int64(nan_key), keys)
