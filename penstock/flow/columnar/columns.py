"""Parsed events of one relation as columns, and their packed forms."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.catalog import Relation
from penstock.flow.columnar.json_kernels import GIVEN, OPS, ParsedEvents
from penstock.flow.columnar.layout import DOUBLE, TEXT, WIDE
from penstock.flow.columnar.pack_rows import gather_texts, hash_keys, pack_changes, pack_events
from penstock.kernels.arrays import Bytes8, Flags, Ints
from penstock.kernels.packed_values import Packed
from penstock.matching import EventBatch
from penstock.matching.events import DictionaryColumn, KeyColumn, NumberColumn
from penstock.matching.key_arrays import double_keys
from penstock.packing import array_header, pack

_PACKED_OPS = [pack(op) for op in OPS]
_LOW_WORD = (1 << 64) - 1
_PAIR = array_header(2)


def _bytes(data: bytes) -> Bytes8:
    return np.frombuffer(data, np.uint8)


@dataclass(frozen=True, slots=True)
class PlainColumns:
    """The plain events of one relation."""

    relation: Relation
    sheet: ParsedEvents

    def __len__(self) -> int:
        return len(self.sheet.offsets)

    @property
    def offsets(self) -> Ints:
        return self.sheet.offsets

    def batch(self, columns: Collection[int]) -> EventBatch:
        """The events for a matcher that reads these columns; others are NULL."""
        found = {column: self.keys(column) for column in columns}
        return EventBatch.of_columns(self.relation, found, len(self))

    def packed_events(self) -> Packed:
        """Each event packed as offset and row."""
        return Packed(*pack_events(self.sheet, self._all(), _bytes(_PAIR), False))

    def packed_keyed(self, chosen: Ints) -> tuple[Bytes8, Ints]:
        """The chosen events packed as offset, the offset as key, and row, concatenated; and where
        each ends."""
        return pack_events(self.sheet, chosen, _bytes(b""), True)

    def packed_changes(self, chosen: Ints) -> Packed:
        """The chosen events as changes, in the format of `penstock.flow.row_codec`."""
        ends = np.cumsum([len(op) for op in _PACKED_OPS], dtype=np.int64)
        ops, name = _bytes(b"".join(_PACKED_OPS)), _bytes(pack(self.relation.name))
        return Packed(*pack_changes(self.sheet, chosen, name, ops, ends))

    def key_hashes(self) -> npt.NDArray[np.uint32]:
        """The CRC-32 of each event's table and key, packed together."""
        return hash_keys(self.sheet, _bytes(_PAIR + pack(self.relation.name)))

    def _all(self) -> Ints:
        return np.arange(len(self), dtype=np.int64)

    def keys(self, column: int) -> KeyColumn:
        """The values of a column in comparable form."""
        fields, kind = self.sheet.fields, self.sheet.form.kinds[column]
        if kind == TEXT:
            return self._words(column)
        is_null = fields.states[:, column] != GIVEN
        if kind == WIDE:
            return _wide_keys(fields.high[:, column], fields.values[:, column], is_null)
        values = np.where(is_null, 0, fields.values[:, column])
        keys = double_keys(values.view(np.float64)) if kind == DOUBLE else values
        return NumberColumn(keys, is_null if is_null.any() else None)

    def _words(self, column: int) -> DictionaryColumn:
        data, ends = gather_texts(self.sheet, column)
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(data)]
        words = pa.Array.from_buffers(pa.large_string(), len(self), buffers).dictionary_encode()
        is_null = self.sheet.fields.states[:, column] != GIVEN
        indices = np.where(is_null, -1, words.indices.to_numpy()).astype(np.int32)
        return DictionaryColumn(indices, tuple(words.dictionary.to_pylist()))


def _wide_keys(high: Ints, low: Ints, is_null: Flags) -> DictionaryColumn:
    """A dictionary of two-word integers."""
    words = np.where(is_null, 0, np.stack([high, low]))
    distinct, place = np.unique(words, axis=1, return_inverse=True)
    keys = [(upper << 64) | (lower & _LOW_WORD) for upper, lower in distinct.T.tolist()]
    indices = np.where(is_null, -1, place.reshape(-1)).astype(np.int32)
    return DictionaryColumn(indices, tuple(keys))
