"""The bodies of rows: changes and steps of groups as plain values, and back.

Relations and edges travel by name; the reader has them from the catalog and the index. The history
packs each by itself, the pipeline packs thousands at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import msgspec

from penstock.catalog import Catalog, RowKey
from penstock.flow.changes import Checked, Op
from penstock.joins import GroupStep
from penstock.packing import pack, read_extension
from penstock.spaces import Edge, JoinValue

_Values = tuple[Any, ...]
ChangeRow: TypeAlias = tuple[int, str, Op, _Values, _Values, tuple[int, ...]]
"""Offset, table, operation, key, row, and the columns that are given."""
StepsRow: TypeAlias = tuple[str, JoinValue, list[GroupStep]]
"""Edge, join value, and steps of that group."""


class _Step(NamedTuple):
    """A `GroupStep` for the decoder, who is not to look at values."""

    offset: int
    step: int
    side: int
    key: _Values
    old: _Values | None
    new: _Values | None


def _decoder(of: Any) -> Callable[[bytes], Any]:
    return msgspec.msgpack.Decoder(of, ext_hook=read_extension).decode


decode_changes: Callable[[bytes], list[ChangeRow]] = _decoder(list[ChangeRow])
decode_steps: Callable[[bytes], list[StepsRow]] = _decoder(list[tuple[str, _Values, list[_Step]]])
_decode_change: Callable[[bytes], ChangeRow] = _decoder(ChangeRow)
_decode_step: Callable[[bytes], tuple[str, JoinValue, GroupStep]] = _decoder(
    tuple[str, _Values, _Step]
)


def change_row(offset: int, checked: Checked) -> ChangeRow:
    relation, op, key, row, given = checked
    return offset, relation.name, op, key, row, given


def pack_change(offset: int, checked: Checked) -> bytes:
    return pack(change_row(offset, checked))


def unpack_change(body: bytes, catalog: Catalog) -> Checked:
    _, name, op, key, row, given = _decode_change(body)
    return Checked(catalog[name], op, key, row, given)


def pack_step(edge: Edge, value: JoinValue, step: GroupStep) -> bytes:
    return pack((edge.name, value, step))


def unpack_step(body: bytes, edges: Mapping[str, Edge]) -> tuple[Edge, JoinValue, GroupStep]:
    name, value, step = _decode_step(body)
    return edges[name], value, step


def row_place(relation: str, key: RowKey) -> bytes:
    """What decides where a row lives."""
    return pack([relation, key])


def group_place(edge: Edge, value: JoinValue) -> bytes:
    """What decides where a group lives."""
    return pack([edge.name, value])
