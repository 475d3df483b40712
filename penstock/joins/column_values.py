"""The values of one column in many rows, in comparable form: an array if all are numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.catalog import Key, Stored, ValueType
from penstock.joins.array_codes import Numbers, Values
from penstock.matching.key_arrays import double_keys, fits_int64
from penstock.predicates.intervals import below


def values_of(value_type: ValueType, stored: Sequence[Stored]) -> Values:
    if fits_int64(value_type) and None not in stored:
        if value_type.stored_as is float:
            return double_keys(np.array(stored, np.float64))
        return np.array(stored, np.int64)
    return [None if value is None else value_type.key(value) for value in stored]


def places(values: Values) -> tuple[list[Key | None], Numbers]:
    """The distinct values, sorted, and the position of each value among them."""
    if isinstance(values, np.ndarray):
        numbers, place = np.unique(values, return_inverse=True)
        return numbers.tolist(), place
    distinct = sorted(set(values), key=below)
    place_of = {value: place for place, value in enumerate(distinct)}
    return distinct, np.array([place_of[value] for value in values], np.int64)
