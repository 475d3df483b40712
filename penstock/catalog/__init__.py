"""Tables, streams, their columns and value types."""

from penstock.catalog.catalog import Catalog
from penstock.catalog.relations import Column, Relation, Row, RowKey
from penstock.catalog.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    Key,
    Outside,
    Stored,
    StringType,
    TimestampType,
    ValueType,
    joinable,
)

__all__ = [
    "BooleanType",
    "Catalog",
    "Column",
    "DateType",
    "DecimalType",
    "DoubleType",
    "IntegerType",
    "Key",
    "Outside",
    "Relation",
    "Row",
    "RowKey",
    "Stored",
    "StringType",
    "TimestampType",
    "ValueType",
    "joinable",
]
