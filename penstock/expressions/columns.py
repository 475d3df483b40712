"""Converts stored values to Arrow arrays for DuckDB, and back."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan

import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog import Stored, ValueType
from penstock.catalog.arrow_types import ARROW_RULES, exact_arrow_type


def to_arrow(value_type: ValueType, values: Sequence[Stored]) -> pa.Array:
    rule, wanted = ARROW_RULES[type(value_type)], exact_arrow_type(value_type)
    if not rule.is_cast:
        return pa.array([None if v is None else value_type.show(v) for v in values], wanted)
    if rule.view is not None:
        return pa.array(values, rule.view).view(wanted)
    # In columns -0.0 is 0.0: which of them a row has depends on the changes that made it.
    return (
        pc.add(pa.array(values, wanted), 0.0)
        if wanted == pa.float64()
        else pa.array(values, wanted)
    )


def from_arrow(value_type: ValueType, array: pa.Array) -> list[Stored]:
    """The stored values of a result. Values that no column of the type can hold are NULL."""
    rule = ARROW_RULES[type(value_type)]
    array = array.cast(exact_arrow_type(value_type))
    if not rule.is_cast:
        return [None if v is None else value_type.store(v) for v in array.to_pylist()]
    if value_type.stored_as is float:
        return [nan if v != v else v for v in array.to_pylist()]  # one canonical NaN
    if rule.view is None:
        found: list[Stored] = array.to_pylist()
        return found
    lowest, highest = value_type.key_range
    # DuckDB's calendar has a wider range than columns.
    return [
        None if v is None or not lowest <= v <= highest else v
        for v in array.cast(rule.view).to_pylist()
    ]
