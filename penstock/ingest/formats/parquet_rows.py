"""Parquet files: the footer is checked first, then rows are read in bounded pieces."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from penstock.catalog import Relation, ValueType
from penstock.catalog.coercions import store_lossless
from penstock.errors import ChangeError, EventError
from penstock.flow.changes import Op
from penstock.flow.events import MAX_EVENT_BYTES, json_value
from penstock.ingest.input_files import InputBatch, InputFile
from penstock.ingest.row_writer import (
    ROWS_PER_FRAME,
    RowWriter,
    check_columns,
    column_types,
    invalid_text,
)

MAX_FOOTER_BYTES = 16 << 20  # 16 MiB: 1,000 columns in 100 row groups take about 10
MAX_COMPRESSION = 100
MIN_GROUP_BYTES = 64 << 20  # 64 MiB
"""Maximum size of a row group: a hundred times its compressed bytes, but at least this many. A page
may be as large as its row group, and is in memory at once."""

READ_BYTES = 4 << 20  # 4 MiB: rows of wide fixed-size values are read in smaller pieces
_TAIL_BYTES = 8  # the length of the footer, and PAR1

_EPOCH = datetime(1970, 1, 1)


class ParquetRows:
    name = "parquet"
    suffixes = frozenset({".parquet", ".pq"})
    holds_rows = True

    def read(self, source: InputFile, relation: Relation | None, op: Op) -> Iterator[InputBatch]:
        assert relation is not None
        return _read(source, relation, op)


FORMAT = ParquetRows()


def _read(source: InputFile, relation: Relation, op: Op) -> Iterator[InputBatch]:
    import pyarrow.parquet

    with source.errors():
        _check_footer(source)
        with pyarrow.parquet.ParquetFile(source.file) as file:
            _check_groups(source.name, file.metadata)
            schema = file.schema_arrow
        names = list(schema.names)
        check_columns(source.name, names, relation)
        rows_at_once = _check_types(source.name, schema)
        writer = RowWriter(source.name, source.size, relation, op, names)
        types = column_types(names, relation)
        # As a dictionary, a text that is repeated in every row is in memory once.
        texts = [field.name for field in schema if _is_text(field.type)]
        with pyarrow.parquet.ParquetFile(source.file, read_dictionary=texts) as file:
            total_rows = file.metadata.num_rows
            for arrow_batch in file.iter_batches(batch_size=rows_at_once):
                for events, numbers in writer.frames(_rows(arrow_batch, types)):
                    done_bytes = source.size * writer.rows // max(1, total_rows, writer.rows)
                    yield InputBatch(events, done_bytes, source.size, numbers, "row")


def _check_footer(source: InputFile) -> None:
    """Checked before parsing: the footer is parsed as a whole, and then takes many times its
    size."""
    if source.size < 2 * _TAIL_BYTES:
        raise EventError(f"{source.name} cannot be read", detail="it is too short to be Parquet")
    source.file.seek(-_TAIL_BYTES, os.SEEK_END)
    length = int.from_bytes(source.file.read(4), "little")
    source.file.seek(0)
    if length > MAX_FOOTER_BYTES and length <= source.size:
        raise EventError(
            f"the footer of {source.name} has {length:,} bytes",
            detail=f"at most {MAX_FOOTER_BYTES:,} are accepted",
            hint="write larger row groups, or several files",
        )


def _check_groups(name: str, metadata: Any) -> None:
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        columns = [group.column(i) for i in range(group.num_columns)]
        unpacked = sum(max(0, column.total_uncompressed_size) for column in columns)
        packed = sum(max(0, column.total_compressed_size) for column in columns)
        if unpacked > max(MIN_GROUP_BYTES, MAX_COMPRESSION * packed):
            raise EventError(
                f"row group {number} of {name} has {packed:,} bytes that become {unpacked:,}",
                detail=f"at most {MAX_COMPRESSION} times as many are accepted",
                hint="write smaller row groups, if the data is meant",
            )


def _check_types(name: str, schema: Any) -> int:
    """Refuse types that no column holds; returns how many rows to read at once."""
    import pyarrow as pa

    row_bytes = 0
    for field in schema:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if not (_is_text(kind) or pa.types.is_primitive(kind) or _is_fixed(kind)):
            raise EventError(
                f"{name}: no column of a table holds what {field.name!r:.60} holds",
                detail=f"its type is {kind!s:.100}",
            )
        if _is_fixed(kind):
            row_bytes += int(kind.byte_width)
    return max(1, min(ROWS_PER_FRAME, READ_BYTES // max(1, row_bytes)))


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    return bool(
        types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_string_view(kind)
        or types.is_binary_view(kind)
        or types.is_null(kind)
    )


def _is_fixed(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_fixed_size_binary(kind) or types.is_decimal(kind))


def _rows(arrow_batch: Any, types: Sequence[ValueType]) -> Iterator[tuple[object, ...]]:
    columns = [
        _values(column, value_type)
        for column, value_type in zip(arrow_batch.columns, types, strict=True)
    ]
    return zip(*columns, strict=True)


def _values(column: Any, value_type: ValueType) -> list[object]:
    """The values of a column; equal ones are one object if the file has a dictionary."""
    import pyarrow as pa
    import pyarrow.compute

    if pa.types.is_dictionary(column.type):
        words = _values(column.dictionary, value_type)
        return [None if i is None else words[i] for i in column.indices.to_pylist()]
    if pa.types.is_binary(column.type) or pa.types.is_string(column.type):
        # Longer values make their event too large in any case.
        column = pa.compute.binary_slice(column.cast(pa.binary()), 0, MAX_EVENT_BYTES + 1)
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        return [_in_nanoseconds(scalar) for scalar in column]
    try:
        values = column.to_pylist()
    except (ValueError, OverflowError):
        values = [_scalar(scalar) for scalar in column]
    return [None if value is None else _value(value, value_type) for value in values]


def _in_nanoseconds(scalar: Any) -> object:
    """With nine digits if needed: Python's datetime has only microseconds."""
    if scalar.value is None:
        return None
    microseconds, rest = divmod(scalar.value, 1000)
    moment = _EPOCH + timedelta(microseconds=microseconds)
    zone = "Z" if scalar.type.tz else ""
    if not rest:
        return moment.isoformat() + zone
    return f"{moment.isoformat(timespec='microseconds')}{rest:03}{zone}"


def _scalar(scalar: Any) -> object:
    """A value that may exceed Python's range, such as a date in the year 20000."""
    try:
        return scalar.as_py()
    except (ValueError, OverflowError):
        return str(scalar.value)


def _value(value: object, value_type: ValueType) -> object:
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return invalid_text(value)
    if isinstance(value, str | int | float | Decimal | date | datetime):
        try:
            if value_type.json_as is int and isinstance(value, float | Decimal):
                return store_lossless(value_type, value)  # integers with NULLs come as doubles
            return json_value("", value)
        except ChangeError:
            return str(value)
    return str(value)
