"""CSV files: a header with column names, then rows."""

from __future__ import annotations

import csv
import io
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePath
from typing import Any, BinaryIO

from penstock.catalog import Relation, ValueType
from penstock.catalog.coercions import store_lossless
from penstock.catalog.numerals import read_numeral
from penstock.errors import ChangeError, EventError
from penstock.flow.changes import Op
from penstock.ingest.input_files import InputBatch, InputFile
from penstock.ingest.row_writer import (
    ROWS_PER_FRAME,
    RowWriter,
    check_columns,
    column_types,
    invalid_text,
)

BLOCK_BYTES = 1 << 20  # 1 MiB; a row, or the header, must fit into a block
MAX_RAGGED_BYTES = 32 << 20  # 32 MiB
"""Rows with too many or too few fields are kept until the end of the file. With more of them, the
file is probably not CSV."""

_MAX_INTEGER_DIGITS = 30  # more than any integer has
_COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}


class CsvRows:
    """A header, then rows. An empty field is NULL, a quoted empty one is ''."""

    name = "csv"
    suffixes = frozenset({".csv"})
    holds_rows = True

    def read(self, source: InputFile, relation: Relation | None, op: Op) -> Iterator[InputBatch]:
        assert relation is not None
        return _read(source, relation, op)


FORMAT = CsvRows()


def _read(source: InputFile, relation: Relation, op: Op) -> Iterator[InputBatch]:
    with source.errors():
        names = _header(source)
        check_columns(source.name, names, relation)
        writer = RowWriter(source.name, source.size, relation, op, names)
        ragged = _Ragged(writer)
        readers = [_field_reader(value_type) for value_type in column_types(names, relation)]
        done_bytes = 0
        with _open(source, names, ragged.set_aside) as reader:
            for arrow_batch in reader:
                for start in range(0, arrow_batch.num_rows, ROWS_PER_FRAME):
                    part = arrow_batch.slice(start, ROWS_PER_FRAME)
                    done_bytes = min(source.size, done_bytes + _bytes_of(part))
                    columns = [
                        [None if raw is None else read(raw) for raw in column.to_pylist()]
                        for read, column in zip(readers, part.columns, strict=True)
                    ]
                    for events, numbers in writer.frames(zip(*columns, strict=True)):
                        told = ragged.numbers_in_file(numbers)
                        yield InputBatch(events, done_bytes, source.size, told, "row")
        yield InputBatch(ragged.events, source.size, source.size, ragged.numbers, "row")


class _Ragged:
    """Rows with too many or too few fields, as events that will be refused with that reason."""

    def __init__(self, writer: RowWriter) -> None:
        self._writer = writer
        self._bytes = 0
        self.events: list[bytes] = []
        self.numbers: list[int] = []
        self._others_before: list[int] = []

    def set_aside(self, row: Any) -> str:
        reason = f"({row.expected_columns} fields expected, {row.actual_columns} found)"
        event = self._writer.event({reason: row.text})
        self._bytes += len(event)
        if self._bytes > MAX_RAGGED_BYTES:
            return "error"
        self.events.append(event)
        number = (row.number or 2) - 1  # the header is the first row
        self._others_before.append(number - 1 - len(self.numbers))
        self.numbers.append(number)
        return "skip"

    def numbers_in_file(self, numbers: range) -> Sequence[int]:
        """File row numbers for rows counted without those set aside. Arrow sets rows aside before
        it returns the rows after them."""
        if not self.numbers:
            return numbers
        shifted = []
        for number in numbers:
            # The k-th row set aside, with number n, has n - k other rows before it.
            before = bisect_right(self._others_before, number - 1)
            shifted.append(number + before)
        return shifted


def _header(source: InputFile) -> list[str]:
    """The names of the columns, possibly a million: they are not validated yet."""
    with _plain(source) as file:
        block = file.read(BLOCK_BYTES)
    source.file.seek(0)
    if len(block) == BLOCK_BYTES and b"\n" not in block and b"\r" not in block:
        raise EventError(f"the first line of {source.name} is longer than {BLOCK_BYTES} bytes")
    text = block.decode("utf-8-sig", errors="replace")
    try:
        return next((row for row in csv.reader(io.StringIO(text, newline="")) if row), [])
    except csv.Error as error:
        raise EventError(f"{source.name} cannot be read", detail=str(error)) from None


def _bytes_of(part: Any) -> int:
    """The approximate bytes of these rows in the file: Arrow has an offset of 4 bytes where the
    file has a separator of 1. (Arrow reads far ahead, so the position in the file is of no use.)"""
    fields: int = part.num_rows * part.num_columns
    return max(0, int(part.nbytes) - 3 * fields)


def _open(source: InputFile, names: Sequence[str], invalid: Callable[[Any], str]) -> Any:
    import pyarrow as pa
    import pyarrow.csv

    read = pyarrow.csv.ReadOptions(use_threads=False, block_size=BLOCK_BYTES)
    parse = pyarrow.csv.ParseOptions(newlines_in_values=True, invalid_row_handler=invalid)
    convert = pyarrow.csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.binary()),
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    reader = pyarrow.csv.open_csv(_plain(source), read, parse, convert)
    if list(reader.schema.names) != list(names):
        raise EventError(f"the header of {source.name} cannot be read")
    return reader


def _plain(source: InputFile) -> Any:
    """The stream to read from; closing it leaves the file open."""
    import pyarrow as pa

    codec = _COMPRESSED.get(PurePath(source.name).suffix.lower())
    plain = pa.PythonFile(_Shared(source.file), mode="r")
    return pa.CompressedInputStream(plain, codec) if codec else plain


class _Shared(io.RawIOBase):
    """A file that is read here and closed elsewhere."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        return self._file.read(size)


def _field_reader(value_type: ValueType) -> Callable[[bytes], object]:
    """How a field of a column type is parsed; unparsable fields stay text.

    Valid values are written in the one form that the kernels parse.
    """
    make_reader = _READERS.get(value_type.json_as)
    read: Callable[[str], object] = str if make_reader is None else make_reader(value_type)

    def field(raw: bytes) -> object:
        try:
            return read(raw.decode())
        except UnicodeDecodeError:
            return invalid_text(raw)

    return field


def _integer_reader(value_type: ValueType) -> Callable[[str], object]:
    def read(text: str) -> object:
        digits = text.removeprefix("-")
        if digits.isdecimal() and digits.isascii() and len(digits) < _MAX_INTEGER_DIGITS:
            return int(text)
        try:
            return store_lossless(value_type, text)
        except ChangeError:
            return text

    return read


def _double(text: str) -> object:
    if read_numeral(text) is None:
        return text  # may be NaN or Infinity, which are texts in JSON
    value = float(text)
    return text if value in (float("inf"), float("-inf")) else value


def _boolean_reader(value_type: ValueType) -> Callable[[str], object]:
    def read(text: str) -> object:
        found = value_type.rewrite(text)
        return text if found is None else found

    return read


_READERS: dict[type, Callable[[ValueType], Callable[[str], object]]] = {
    int: _integer_reader,
    float: lambda _: _double,
    bool: _boolean_reader,
}
"""Makers of field parsers by the Python type of JSON values; others stay text."""
