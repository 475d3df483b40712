"""Tables, streams, their columns and value types."""

from penstock.catalog.catalog import Catalog
from penstock.catalog.number_types import DecimalType, DoubleType, IntegerType
from penstock.catalog.relations import Column, Relation, Row, RowKey
from penstock.catalog.text_types import BooleanType, StringType
from penstock.catalog.time_types import DateType, TimestampType
from penstock.catalog.types import Key, Outside, Stored, ValueType
from penstock.catalog.xml_type import XmlType

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
    "XmlType",
]
