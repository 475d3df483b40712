"""Rows of CSV and Parquet files as events.

A value that does not fit its column still becomes an event, in which it stands as it was found: the
row then lands in the quarantine with the reason, and is not lost. Only a file that as a whole
cannot be meant, such as one with columns that the table does not have, is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from penstock.catalog import BooleanType, DoubleType, IntegerType, Relation, ValueType
from penstock.engine.changes import Op
from penstock.engine.events import json_value
from penstock.errors import ChangeError, EventError
from penstock.log.disk import os_errors
from penstock.log.files import InputBatch

ROWS_PER_FRAME = 4096
CSV_BLOCK_BYTES = 1 << 20  # 1 MiB; a row must fit into a block

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_BOOLEANS = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}
_MAX_DIGITS = 400  # more than any column holds; Python refuses to read very many


def read_csv(path: Path, relation: Relation, op: Op) -> Iterator[InputBatch]:
    """The rows of a CSV file with a header. An empty field is NULL, a quoted empty one is ''."""
    with _arrow_errors(path):
        names = _csv_header(path)
        _check_columns(path, names, relation)
        ragged: list[bytes] = []

        def set_aside(row: Any) -> str:
            ragged.append(_ragged_event(row, relation, op))
            return "skip"

        readers = [_csv_value(value_type) for value_type in _types(names, relation)]
        done_bytes, total_bytes = 0, path.stat().st_size
        with _open_csv(path, names, set_aside) as reader:
            for arrow_batch in reader:
                for start in range(0, arrow_batch.num_rows, ROWS_PER_FRAME):
                    part = arrow_batch.slice(start, ROWS_PER_FRAME)
                    done_bytes = min(total_bytes, done_bytes + _csv_bytes(part))
                    columns = [
                        [None if raw is None else read(raw) for raw in column.to_pylist()]
                        for read, column in zip(readers, part.columns, strict=True)
                    ]
                    yield InputBatch(_events(relation, op, names, columns), done_bytes, total_bytes)
        yield InputBatch(ragged, total_bytes, total_bytes)


def read_parquet(path: Path, relation: Relation, op: Op) -> Iterator[InputBatch]:
    """The rows of a Parquet file."""
    with _arrow_errors(path), pyarrow.parquet.ParquetFile(path) as file:
        names = list(file.schema_arrow.names)
        _check_columns(path, names, relation)
        types = _types(names, relation)
        total_bytes, total_rows = path.stat().st_size, file.metadata.num_rows
        done_rows = 0
        for arrow_batch in file.iter_batches(batch_size=ROWS_PER_FRAME):
            columns = [
                _parquet_values(column, value_type)
                for column, value_type in zip(arrow_batch.columns, types, strict=True)
            ]
            done_rows += arrow_batch.num_rows
            done_bytes = total_bytes * done_rows // max(1, total_rows)
            yield InputBatch(_events(relation, op, names, columns), done_bytes, total_bytes)


def _types(names: Sequence[str], relation: Relation) -> list[ValueType]:
    return [relation.columns[relation.positions[name.lower()]].type for name in names]


def _events(
    relation: Relation, op: Op, names: Sequence[str], columns: Sequence[Sequence[object]]
) -> list[bytes]:
    encode = msgspec.json.Encoder().encode
    return [
        encode({"table": relation.name, "op": op.value, "row": dict(zip(names, row, strict=True))})
        for row in zip(*columns, strict=True)
    ]


def _check_columns(path: Path, names: Sequence[str], relation: Relation) -> None:
    lowered = [name.lower() for name in names]
    for name in names:
        if name.lower() not in relation.positions:
            known = ", ".join(column.name for column in relation.columns)
            raise EventError(
                f"{path.name} has a column {name!r:.60}, {relation.kind} {relation.name} has not",
                hint=f"its columns are {known}",
            )
        if lowered.count(name.lower()) > 1:
            raise EventError(f"{path.name} has the column {name!r:.60} twice")


# CSV


def _csv_header(path: Path) -> list[str]:
    with pyarrow.csv.open_csv(path, _read_options(), _parse_options(lambda _: "skip")) as reader:
        return list(reader.schema.names)


def _csv_bytes(part: Any) -> int:
    """About how many bytes of the file these rows were: Arrow has an offset of 4 bytes where the
    file has a separator of 1. (Arrow reads far ahead, so the place in the file says little.)"""
    fields: int = part.num_rows * part.num_columns
    return max(0, int(part.nbytes) - 3 * fields)


def _open_csv(path: Path, names: Sequence[str], invalid: Callable[[Any], str]) -> Any:
    convert = pyarrow.csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.binary()),
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    return pyarrow.csv.open_csv(path, _read_options(), _parse_options(invalid), convert)


def _read_options() -> Any:
    return pyarrow.csv.ReadOptions(use_threads=False, block_size=CSV_BLOCK_BYTES)


def _parse_options(invalid: Callable[[Any], str]) -> Any:
    return pyarrow.csv.ParseOptions(newlines_in_values=True, invalid_row_handler=invalid)


def _ragged_event(row: Any, relation: Relation, op: Op) -> bytes:
    """A row with too many or too few fields, as an event that says so when it is refused."""
    reason = f"({row.expected_columns} fields expected, {row.actual_columns} found)"
    line = {"table": relation.name, "op": op.value, "row": {reason: row.text}}
    return msgspec.json.encode(line)


def _csv_value(value_type: ValueType) -> Callable[[bytes], object]:
    """How a field of such a column is read; what cannot be read stays text."""
    read: Callable[[str], object] = str
    if isinstance(value_type, IntegerType):
        read = _integer
    elif isinstance(value_type, DoubleType):
        read = _double
    elif isinstance(value_type, BooleanType):
        read = _boolean

    def field(raw: bytes) -> object:
        try:
            return read(raw.decode())
        except UnicodeDecodeError:
            return _invalid_text(raw)

    return field


def _integer(text: str) -> object:
    stripped = text.strip()
    return int(stripped) if _INTEGER.fullmatch(stripped) and len(stripped) < _MAX_DIGITS else text


def _double(text: str) -> object:
    stripped = text.strip()
    if not _NUMBER.fullmatch(stripped):
        return text  # perhaps NaN or Infinity, which are texts in JSON
    value = float(stripped)
    return text if value in (float("inf"), float("-inf")) else value


def _boolean(text: str) -> object:
    return _BOOLEANS.get(text.strip().lower(), text)


def _invalid_text(raw: bytes) -> msgspec.Raw:
    """Bytes that are no text, as they are: the event is then not valid UTF-8, and says so."""
    escaped = raw.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
    return msgspec.Raw(b'"' + re.sub(rb"[\x00-\x1f]", b" ", escaped) + b'"')


# Parquet


def _parquet_values(column: Any, value_type: ValueType) -> list[object]:
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        # Python's datetime ends at microseconds, as do our timestamps.
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    try:
        values = column.to_pylist()
    except (ValueError, OverflowError):
        values = [_scalar(scalar) for scalar in column]
    return [None if value is None else _parquet_value(value, value_type) for value in values]


def _scalar(scalar: Any) -> object:
    """A value that may lie beyond what Python can hold, such as a date in the year 20000."""
    try:
        return scalar.as_py()
    except (ValueError, OverflowError):
        return str(scalar.value)


def _parquet_value(value: object, value_type: ValueType) -> object:
    if isinstance(value, float) and isinstance(value_type, IntegerType) and value.is_integer():
        return int(value)  # integers with gaps are often written as doubles
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return _invalid_text(value)
    if isinstance(value, str | int | float | Decimal | date | datetime):
        try:
            return json_value("", value)
        except ChangeError:
            return str(value)
    return str(value)


@contextmanager
def _arrow_errors(path: Path) -> Iterator[None]:
    try:
        with os_errors("read the file", path):
            yield
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise EventError(f"{path.name} cannot be read", detail=str(error)) from error
