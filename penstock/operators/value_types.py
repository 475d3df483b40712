"""The types of operators' arguments and outputs, under their SQL names."""

from __future__ import annotations

from penstock.catalog import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    StringType,
    TimestampType,
    ValueType,
)

BIGINT: ValueType = IntegerType("BIGINT", 64)
BOOLEAN: ValueType = BooleanType()
DATE: ValueType = DateType()
DOUBLE: ValueType = DoubleType()
INTEGER: ValueType = IntegerType("INTEGER", 32)
TIMESTAMP: ValueType = TimestampType()
VARCHAR: ValueType = StringType()


def decimal_type(precision: int, scale: int) -> ValueType:
    """DECIMAL(precision, scale)."""
    return DecimalType(precision, scale)
