"""The bodies of rows: changes and steps of groups as plain values, and back.

Relations and edges travel by name; the reader has them from the catalog and the index. The history
packs each body by itself, the pipeline packs thousands at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

from penstock.catalog import Catalog, RowKey
from penstock.engine.changes import Checked, Op
from penstock.joins import Edge, GroupStep, JoinValue
from penstock.packing import pack, read_extension

_Values = tuple[Any, ...]
ChangeBody: TypeAlias = tuple[str, Op, _Values, _Values, tuple[int, ...]]
"""Table, operation, key, row, and the columns that are given."""
StepBody: TypeAlias = tuple[str, int, _Values, _Values, _Values | None, _Values | None]
"""Edge, side, join value, key, old row and new row."""


def change_body(checked: Checked) -> ChangeBody:
    relation, op, key, row, given = checked
    return relation.name, op, key, row, given


def change_of(body: ChangeBody, catalog: Catalog) -> Checked:
    name, op, key, row, given = body
    return Checked(catalog[name], op, key, row, given)


def step_body(step: GroupStep) -> StepBody:
    _, _, edge, side, value, key, old, new = step
    return edge.name, side, value, key, old, new


def step_of(offset: int, number: int, body: StepBody, edges: Mapping[str, Edge]) -> GroupStep:
    name, side, value, key, old, new = body
    return GroupStep(offset, number, edges[name], side, value, key, old, new)


decode_changes = msgspec.msgpack.Decoder(
    list[tuple[int, int, ChangeBody]], ext_hook=read_extension
).decode
"""A chunk of changes: offset, step and body of each."""
decode_steps = msgspec.msgpack.Decoder(
    list[tuple[int, int, StepBody]], ext_hook=read_extension
).decode

_decode_change = msgspec.msgpack.Decoder(ChangeBody, ext_hook=read_extension).decode
_decode_step = msgspec.msgpack.Decoder(StepBody, ext_hook=read_extension).decode


def pack_change(checked: Checked) -> bytes:
    return pack(change_body(checked))


def unpack_change(body: bytes, catalog: Catalog) -> Checked:
    return change_of(_decode_change(body), catalog)


def pack_step(step: GroupStep) -> bytes:
    return pack(step_body(step))


def unpack_step(offset: int, number: int, body: bytes, edges: Mapping[str, Edge]) -> GroupStep:
    return step_of(offset, number, _decode_step(body), edges)


def row_place(relation: str, key: RowKey) -> bytes:
    """What decides where a row lives."""
    return pack([relation, key])


def group_place(edge: Edge, value: JoinValue) -> bytes:
    """What decides where a group lives."""
    return pack([edge.name, value])
