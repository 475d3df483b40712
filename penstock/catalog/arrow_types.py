"""The Arrow type for each column type.

Nothing else in this package needs Arrow, so the package does not load this module by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa

from penstock.catalog.number_types import DecimalType, DoubleType, IntegerType
from penstock.catalog.text_types import BooleanType, StringType
from penstock.catalog.time_types import DateType, TimestampType
from penstock.catalog.types import ValueType
from penstock.catalog.xml_type import XmlType


class ArrowRule(NamedTuple):
    """How a column type maps to Arrow."""

    type_of: Callable[[Any], pa.DataType]
    """The Arrow type of a column type."""
    accepts: Callable[[pa.DataType], bool]
    """Whether values of an Arrow type can be converted by changing only their width or unit."""
    view: pa.DataType | None = None
    """The type as which the cast array is viewed to get stored values."""
    is_cast: bool = True
    """Whether Arrow casts values without loss; if not, each is stored separately."""
    exact: Callable[[Any], pa.DataType] | None = None
    """The Arrow type that DuckDB uses for the column type, if it is another one."""


def _is_text(arrow_type: pa.DataType) -> bool:
    return bool(pa.types.is_string(arrow_type) or pa.types.is_large_string(arrow_type))


def _is_number(arrow_type: pa.DataType) -> bool:
    return bool(pa.types.is_floating(arrow_type) or pa.types.is_integer(arrow_type))


def _is_exact(arrow_type: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(arrow_type) or pa.types.is_integer(arrow_type))


_INTEGERS = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}

ARROW_RULES: dict[type[ValueType], ArrowRule] = {
    IntegerType: ArrowRule(
        lambda _: pa.int64(), pa.types.is_integer, exact=lambda one: _INTEGERS[one.bits]
    ),
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
    XmlType: ArrowRule(lambda _: pa.string(), _is_text, is_cast=False),
}


def arrow_type(value_type: ValueType) -> pa.DataType:
    """The Arrow type that holds the outside values of a column type."""
    return ARROW_RULES[type(value_type)].type_of(value_type)


def exact_arrow_type(value_type: ValueType) -> pa.DataType:
    """The Arrow type that DuckDB maps to the column type."""
    rule = ARROW_RULES[type(value_type)]
    return (rule.exact or rule.type_of)(value_type)
