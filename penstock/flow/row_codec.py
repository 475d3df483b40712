"""The bytes of rows between stages.

Relations and edges are referenced by name; the reader resolves them in the catalog and the index.
Kernels read and write the same bytes (`penstock.flow.packed`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from penstock.catalog import RowKey
from penstock.flow.changes import Checked, Op
from penstock.flow.kinds import ChangeRow, Kind, StageRow
from penstock.packing import pack, read_extension
from penstock.spaces import Edge, JoinValue

_Values = tuple[Any, ...]


class _Step(NamedTuple):
    """A `GroupStep` for the decoder, which must not validate values."""

    offset: int
    step: int
    side: int
    key: _Values
    old: _Values | None
    new: _Values | None


def _decoder(of: Any) -> Callable[[bytes], list[Any]]:
    return msgspec.msgpack.Decoder(list[of], ext_hook=read_extension).decode


_decode_stage_rows = _decoder(tuple[int, int, bytes])
_DECODERS = {
    Kind.CHANGE: _decoder(tuple[int, str, Op, _Values, _Values, tuple[int, ...]]),
    Kind.SEED: _decoder(tuple[str, _Values, list[_Step]]),
    Kind.STEP: _decoder(tuple[str, _Values, list[_Step]]),
}


def decode_rows(kind: Kind, chunk: bytes) -> list[Any]:
    decode = _DECODERS.get(kind)
    if decode is not None:
        return decode(chunk)
    return [StageRow(*row) for row in _decode_stage_rows(chunk)]


def pack_rows(kind: Kind, rows: list[Any]) -> bytes:
    return pack(rows if kind in _DECODERS else [_with_bytes(row) for row in rows])


def _with_bytes(row: StageRow) -> StageRow:
    return row if isinstance(row.body, bytes) else row._replace(body=row.body.to_bytes())


def change_row(offset: int, checked: Checked) -> ChangeRow:
    relation, op, key, row, given = checked
    return offset, relation.name, op, key, row, given


def row_place(relation: str, key: RowKey) -> bytes:
    """The bytes that determine the partition of a row."""
    return pack([relation, key])


def group_place(edge: Edge, value: JoinValue) -> bytes:
    """The bytes that determine the partition of a group."""
    return pack([edge.name, value])


def offsets_of(kind: Kind, row: Any) -> list[int]:
    """The offsets of the events that a row results from."""
    if kind in (Kind.STEP, Kind.SEED):
        return [step.offset for step in row[2]]
    return [row[0]]


def only_events(kind: Kind, row: Any, events: set[int]) -> Any | None:
    """The part of a row that results from these events; None if there is none."""
    if kind is Kind.STEP:
        edge, value, steps = row
        some = [step for step in steps if step.offset in events]
        return (edge, value, some) if some else None
    return row if row[0] in events else None
