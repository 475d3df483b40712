"""SQL type names and the value types they stand for."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.errors import SqlglotError

from penstock.catalog import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    StringType,
    TimestampType,
    ValueType,
    XmlType,
)
from penstock.errors import SqlError
from penstock.sql.dialect import DIALECT
from penstock.sql.names import other_arguments
from penstock.xml_text import load_lxml

_T = exp.DType

SQL_NAMES: dict[exp.DType, ValueType] = {
    _T.TINYINT: IntegerType("TINYINT", 8),
    _T.SMALLINT: IntegerType("SMALLINT", 16),
    _T.INT: IntegerType("INTEGER", 32),
    _T.BIGINT: IntegerType("BIGINT", 64),
    _T.DOUBLE: DoubleType(),
    _T.BOOLEAN: BooleanType(),
    _T.DATE: DateType(),
    _T.TIMESTAMP: TimestampType(),
    _T.TIMESTAMPNTZ: TimestampType(),
    _T.DATETIME: TimestampType(),
    _T.TIMESTAMPTZ: TimestampType(zoned=True),
}
_TEXT = {_T.VARCHAR, _T.TEXT, _T.CHAR, _T.NVARCHAR}
SUPPORTED = (
    "TINYINT, SMALLINT, INTEGER, BIGINT, DOUBLE, DECIMAL(p,s), VARCHAR, BOOLEAN, DATE, "
    "TIMESTAMP, TIMESTAMP WITH TIME ZONE, XML"
)


def value_type_of(data_type: exp.DataType) -> ValueType:
    """The value type for a type name; SqlError if there is none."""
    kind = data_type.this
    sizes = [_size(parameter) for parameter in data_type.expressions]
    known = not any(other_arguments(data_type, "this", "expressions")) and None not in sizes
    if known:
        numbers = [size for size in sizes if size is not None]
        if kind in SQL_NAMES and not numbers:
            return SQL_NAMES[kind]
        if kind in _TEXT and len(numbers) <= 1:
            return _string(numbers)
        if kind == _T.DECIMAL and len(numbers) <= 2:
            return _decimal(numbers)
    if kind == _T.USERDEFINED and str(data_type.args.get("kind")).upper() == "XML":
        load_lxml()  # fails early: documents cannot be read without it
        return XmlType()
    if kind == _T.FLOAT:
        raise SqlError(
            "type REAL is not supported", hint="use DOUBLE, which holds every REAL value"
        )
    name = "HUGEINT" if kind == _T.INT128 else data_type.sql(dialect="duckdb")[:60]
    raise SqlError(f"type {name} is not supported", hint=f"the types are {SUPPORTED}")


_WIDER = {
    "UTINYINT": "SMALLINT",
    "USMALLINT": "INTEGER",
    "UINTEGER": "BIGINT",
    "UBIGINT": "DECIMAL(20,0)",
    "HUGEINT": "DECIMAL(38,0)",
}
"""Result types that no column has, and types that hold (nearly) all of their values."""


def computed_type(name: str) -> ValueType:
    """The value type of an expression, given DuckDB's name of its type; SqlError if no column type
    corresponds."""
    try:
        return value_type_of(exp.DataType.build(_WIDER.get(name, name), dialect=DIALECT))
    except (SqlError, SqlglotError):
        raise SqlError(
            f"the type of this expression is {name[:60]}, which is not supported",
            hint="CAST it to a type that columns can have",
        ) from None


def _size(parameter: exp.Expr) -> int | None:
    """The number in parentheses after a type, if it is one."""
    text = parameter.name if isinstance(parameter, exp.DataTypeParam) else ""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 9 else None


def _string(parameters: list[int]) -> StringType:
    if not parameters:
        return StringType()
    if parameters[0] < 1:
        raise SqlError("the length of a VARCHAR is at least 1")
    return StringType(parameters[0])


def _decimal(parameters: list[int]) -> DecimalType:
    if not parameters:
        return DecimalType()
    precision, scale = parameters[0], parameters[1] if len(parameters) == 2 else 0
    if not 1 <= precision <= DecimalType.MAX_PRECISION:
        raise SqlError(f"the precision of a DECIMAL is 1 to {DecimalType.MAX_PRECISION}")
    if scale > precision:
        raise SqlError("the scale of a DECIMAL is at most its precision")
    return DecimalType(precision, scale)
